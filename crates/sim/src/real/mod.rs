//! Real media servers of other projects that no package has, each in a network namespace, on its
//! usual ports, with the least configuration that serves media.
//!
//! Their programs are looked for in the folder that `THRONG_REAL_SERVERS` names, or packed in
//! `../shared/servers` beside the checkout, and last where `scripts/real-servers.sh` keeps what it
//! builds from their public sources: `~/.cache/throng/servers`.

pub mod galene;
pub mod go2rtc;
pub mod live555;
pub mod mediamtx;
pub mod oven_media_engine;
pub mod srs;

mod feed;
mod program;

pub use feed::{Feed, Sound};
pub use program::is_installed;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::http;
use crate::namespace::Namespace;
use crate::support::{ChildGuard, SimError, run, wait_for_port};

/// Where a configuration names the server's own folder.
const WORK: &str = "@WORK@";
/// The first start of a large program reads it from the disk.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// A running server with a folder of its own; it ends when dropped.
#[derive(Debug)]
pub struct RealServer<'a> {
    namespace: &'a Namespace,
    address: Ipv4Addr,
    process: ChildGuard,
    folder: TempDir,
}

/// What a server is started with.
struct Launch<'t> {
    /// The program.
    program: &'t str,
    /// Its arguments; [`WORK`] in them is its folder.
    arguments: &'t [&'t str],
    /// TCP ports that it opens on its address when it is ready.
    ports: &'t [u16],
}

impl<'a> RealServer<'a> {
    /// Starts a program in `folder`, and waits for its ports.
    fn start(
        namespace: &'a Namespace,
        address: Ipv4Addr,
        folder: TempDir,
        launch: &Launch<'_>,
    ) -> Result<Self, SimError> {
        let program = program::find(launch.program)
            .ok_or_else(|| SimError::Said(format!("{} is not installed", launch.program)))?;
        let log = fs::File::create(folder.path().join("log"))?;
        let mut command = namespace.command(&program.to_string_lossy());
        let work = folder.path().to_string_lossy().into_owned();
        command.args(launch.arguments.iter().map(|argument| argument.replace(WORK, &work)));
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let process = ChildGuard::start_before_others(&mut command)?;
        let server = Self { namespace, address, process, folder };
        let ready = namespace.enter(|| {
            launch.ports.iter().try_for_each(|port| {
                let to = SocketAddr::from((address, *port));
                wait_for_port(launch.program, to, READY_WITHIN).map(drop)
            })
        })?;
        match ready {
            Ok(()) => Ok(server),
            Err(error) => Err(SimError::Said(format!("{error}; its log:\n{}", server.log()))),
        }
    }

    /// The process, for watching it. It is `ip netns exec`, which becomes the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The address of the namespace that it serves on.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &'a Namespace {
        self.namespace
    }

    /// A file of its folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Lets it open only `more` files and sockets beside those that it has.
    ///
    /// # Errors
    /// When those cannot be counted, or `prlimit` fails.
    pub fn allow_more_files(&self, more: usize) -> Result<(), SimError> {
        let pid = self.pid().to_string();
        let limit = fs::read_dir(format!("/proc/{pid}/fd"))?.count() + more;
        let nofile = format!("--nofile={limit}:{limit}");
        run(Command::new("prlimit").args(["--pid", &pid, &nofile])).map(drop)
    }

    /// Kills it by SIGKILL. How it ended can be seen until this is dropped.
    ///
    /// # Errors
    /// When `kill` fails.
    pub fn kill(&self) -> Result<(), SimError> {
        run(Command::new("kill").args(["-KILL", &self.pid().to_string()])).map(drop)
    }

    /// The body of the answer to a GET; `headers` end with a line end each.
    fn get(&self, port: u16, path: &str, headers: &str) -> Result<String, SimError> {
        let head = format!("GET {path} HTTP/1.1\r\n{headers}");
        http::exchange(self.namespace, SocketAddr::from((self.address, port)), &head, "")
    }
}

/// Writes a file of a server's folder, in which [`WORK`] becomes the folder.
fn write(folder: &Path, name: &str, text: &str) -> Result<(), SimError> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(path, text.replace(WORK, &folder.to_string_lossy()))?)
}

/// The sum of all numbers that a JSON text has under `key`, at any depth.
fn sum_of(json: &serde_json::Value, key: &str) -> f64 {
    match json {
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value.as_f64().filter(|_| name == key) {
                Some(number) => number,
                None => sum_of(value, key),
            })
            .sum(),
        serde_json::Value::Array(items) => items.iter().map(|item| sum_of(item, key)).sum(),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => 0.0,
    }
}

/// The answer as JSON.
fn json(answer: &str) -> Result<serde_json::Value, SimError> {
    serde_json::from_str(answer).map_err(|error| SimError::Said(format!("{error} in {answer}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_summed_at_any_depth() {
        let text = r#"{"a": [{"n": 1, "m": 9}, {"b": {"n": 2}}], "n": 4, "s": "n"}"#;
        assert_eq!(sum_of(&json(text).unwrap(), "n"), 7.0);
        assert!(json("<html>").is_err());
    }
}
