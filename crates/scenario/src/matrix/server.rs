//! The server of a cell, as the file describes it (with templates) and as it is started (with
//! texts).

use std::time::Duration;

/// A server. Of a level: only what differs from the matrix's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server<T> {
    /// Program and arguments; `None`: the user starts the server.
    pub command: Option<Vec<T>>,
    /// Environment variables in addition to throng's own.
    pub env: Vec<(String, T)>,
    /// The working directory; `None`: the folder of the matrix file.
    pub cwd: Option<T>,
    /// When it is ready; `None`: when it was started.
    pub ready: Option<Ready>,
    /// How it is stopped.
    pub stop: Option<Stop>,
    /// Configuration files that are made for it.
    pub files: Vec<ServerFile<T>>,
    /// The CPUs that it may use, such as `0` or `0-3,8`.
    pub cpus: Option<T>,
    /// CPU time that it may use, in CPUs (control group).
    pub cpu_quota: Option<f64>,
    /// Memory that it may use, page cache of its files included, bytes (control group).
    pub memory_bytes: Option<u64>,
    /// How fast it may read from a disk (control group).
    pub disk: Option<DiskLimit<T>>,
    /// Files that it may have open (`RLIMIT_NOFILE`).
    pub nofile: Option<u64>,
    /// More of its watch, as `--watch` has it: `profile=full,every=500ms`; `none`: it is not
    /// watched.
    pub watch: Option<T>,
}

/// When a server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The sign.
    pub when: ReadyWhen,
    /// How long it may take.
    pub within: Duration,
}

/// The sign that a server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyWhen {
    /// It accepts TCP connections on this port of 127.0.0.1.
    Port(u16),
    /// GET of this `http://` URL is answered with a status below 400.
    Url(String),
    /// A line of its output matches this regular expression.
    Log(String),
}

/// How a server is stopped: by a signal to its process group; SIGKILL if that does not end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The first signal: one of [`Stop::SIGNALS`].
    pub signal: String,
    /// How long it may take to end.
    pub within: Duration,
}

/// A configuration file that is made from a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFile<T> {
    /// The template: a path relative to the matrix file.
    pub template: T,
    /// The file to make.
    pub path: T,
}

/// How fast a server may read from a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskLimit<T> {
    /// A path on the disk.
    pub path: T,
    /// Bytes per second.
    pub read_bytes_per_s: u64,
}

impl Stop {
    /// The signals that may be the first one.
    pub const SIGNALS: [&'static str; 3] = ["SIGTERM", "SIGINT", "SIGQUIT"];
}

impl Default for Stop {
    fn default() -> Self {
        Self { signal: "SIGTERM".into(), within: Duration::from_secs(5) }
    }
}

impl<T: Clone> Server<T> {
    /// This server, with what `level` says differently.
    pub(crate) fn with(&self, level: &Self) -> Self {
        let mut env = self.env.clone();
        for (name, value) in &level.env {
            env.retain(|(known, _)| known != name);
            env.push((name.clone(), value.clone()));
        }
        Self {
            command: level.command.clone().or_else(|| self.command.clone()),
            env,
            cwd: level.cwd.clone().or_else(|| self.cwd.clone()),
            ready: level.ready.clone().or_else(|| self.ready.clone()),
            stop: level.stop.clone().or_else(|| self.stop.clone()),
            files: self.files.iter().chain(&level.files).cloned().collect(),
            cpus: level.cpus.clone().or_else(|| self.cpus.clone()),
            cpu_quota: level.cpu_quota.or(self.cpu_quota),
            memory_bytes: level.memory_bytes.or(self.memory_bytes),
            disk: level.disk.clone().or_else(|| self.disk.clone()),
            nofile: level.nofile.or(self.nofile),
            watch: level.watch.clone().or_else(|| self.watch.clone()),
        }
    }

    /// The same server with other texts.
    pub(super) fn map<U>(&self, text: impl Fn(&T) -> U) -> Server<U> {
        Server {
            command: self.command.as_ref().map(|words| words.iter().map(&text).collect()),
            env: self.env.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
            cwd: self.cwd.as_ref().map(&text),
            ready: self.ready.clone(),
            stop: self.stop.clone(),
            files: self
                .files
                .iter()
                .map(|file| ServerFile { template: text(&file.template), path: text(&file.path) })
                .collect(),
            cpus: self.cpus.as_ref().map(&text),
            cpu_quota: self.cpu_quota,
            memory_bytes: self.memory_bytes,
            disk: self.disk.as_ref().map(|disk| DiskLimit {
                path: text(&disk.path),
                read_bytes_per_s: disk.read_bytes_per_s,
            }),
            nofile: self.nofile,
            watch: self.watch.as_ref().map(&text),
        }
    }
}
