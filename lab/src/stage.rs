//! The stage as a server whose limit is set, and what a viewer costs it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use throng_sim::namespace::Namespace;

use crate::cgroup::Group;
use crate::search::Lab;

/// A running stage; it ends when dropped.
pub(crate) struct Stage {
    process: Child,
    pub(crate) url: String,
}

impl Stage {
    /// Starts one on loopback, or on `address` inside of a namespace.
    pub(crate) fn start(
        lab: &Lab,
        at: Option<(&Namespace, &str)>,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        let address = at.map_or_else(|| "127.0.0.1:0".to_owned(), |(_, address)| format!("{address}:7080"));
        let mut command = lab.command(at.map(|(namespace, _)| namespace));
        command.args(["stage", "--listen", &address]).args(arguments);
        if at.is_some() {
            command.arg("--listen-any");
        }
        Self::of(&mut command)
    }

    /// Starts one on loopback that is started again whenever it ends, as service managers do; in `group`, if there is one.
    /// [`Self::pid`] is then its keeper's.
    pub(crate) fn kept_alive(lab: &Lab, group: Option<&Group>, arguments: &[&str]) -> anyhow::Result<Self> {
        // The port that it comes back to: free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let shell = Path::new("sh");
        let mut command = group.map_or_else(|| Command::new(shell), |group| group.command(shell));
        command.args(["-c", "while :; do \"$0\" \"$@\"; sleep 0.2; done"]).arg(&lab.throng);
        Self::of(command.args(["stage", "--listen", &address]).args(arguments))
    }

    /// Starts the stage that `command` runs.
    pub(crate) fn of(command: &mut Command) -> anyhow::Result<Self> {
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::inherit()).stdin(Stdio::null()).spawn()?;
        let stdout = process.stdout.take().context("no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let url = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_whitespace().find(|word| word.starts_with("whep+")).map(str::to_owned)
        });
        // What it says later must find a reader, or it would stop to wait for one.
        std::thread::spawn(move || lines.for_each(drop));
        match url {
            Some(url) => Ok(Self { process, url }),
            None => {
                let _ = process.kill();
                anyhow::bail!("the stage did not start")
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The TCP port of its HTTP.
    pub(crate) fn port(&self) -> &str {
        let host = self.url.split('/').nth(2).unwrap_or_default();
        host.rsplit(':').next().unwrap_or_default()
    }

    /// One of its counters, from `/stats`.
    pub(crate) fn counter(&self, name: &str) -> anyhow::Result<f64> {
        let address = self.url.split('/').nth(2).context("no host in the URL")?;
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /stats HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer of /stats")?;
        let counters: serde_json::Value = serde_json::from_str(body)?;
        counters[name].as_f64().with_context(|| format!("no counter {name}"))
    }

    /// How fast a count of it grows, a second, in a straight line of its viewers: measured with few and with more, because the
    /// first ones pay for what all share.
    pub(crate) fn growth(
        &self,
        lab: &Lab,
        count: impl Fn(&Self) -> anyhow::Result<f64>,
    ) -> anyhow::Result<Line> {
        const VIEWERS: [u32; 2] = [4, 10];
        let mut grown = [0.0; 2];
        for (grown, viewers) in grown.iter_mut().zip(VIEWERS) {
            let mut crowd = lab.command(None);
            let folder = tempfile::tempdir()?;
            crowd.args(["view", &self.url, "-n", &viewers.to_string(), "--for", "11s", "--quiet"]);
            crowd.arg("--output").arg(folder.path().join("run")).stdout(Stdio::null()).stderr(Stdio::null());
            let mut crowd = crowd.spawn()?;
            std::thread::sleep(Duration::from_secs(4));
            let before = count(self)?;
            std::thread::sleep(Duration::from_secs(6));
            *grown = (count(self)? - before) / 6.0;
            crowd.wait()?;
        }
        let each = (grown[1] - grown[0]) / f64::from(VIEWERS[1] - VIEWERS[0]);
        Ok(Line { shared: grown[0] - each * f64::from(VIEWERS[0]), each })
    }

    /// CPU seconds a second that viewers cost the whole process, or its busiest thread alone.
    pub(crate) fn cpu(&self, lab: &Lab, of: CpuOf) -> anyhow::Result<Line> {
        self.growth(lab, |stage| of.on_cpu_s(stage.pid()))
    }

    /// Bytes that it has read from files (`/proc/P/io`: rchar).
    pub(crate) fn bytes_read(&self) -> anyhow::Result<f64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.pid()))?;
        let bytes = io.lines().find_map(|line| line.strip_prefix("rchar:")).context("no rchar")?;
        Ok(bytes.trim().parse()?)
    }
}

/// Whose CPU time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CpuOf {
    /// All threads.
    Process,
    /// The one that has used most.
    BusiestThread,
}

impl CpuOf {
    /// CPU seconds so far (`/proc/P/task/T/schedstat` field 1).
    pub(crate) fn on_cpu_s(self, pid: u32) -> anyhow::Result<f64> {
        let (mut sum_ns, mut most_ns) = (0_u64, 0);
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            let ns = text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0);
            (sum_ns, most_ns) = (sum_ns + ns, most_ns.max(ns));
        }
        let ns = match self {
            Self::Process => sum_ns,
            Self::BusiestThread => most_ns,
        };
        Ok(ns as f64 / 1e9)
    }
}

/// What grows with the crowd in a straight line.
pub(crate) struct Line {
    shared: f64,
    each: f64,
}

impl Line {
    /// The crowd at which so much is used up.
    pub(crate) fn limit(&self, whole: f64) -> f64 {
        (whole - self.shared) / self.each
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Of a stage that is kept alive, its keeper goes first.
        let pid = self.pid();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let _ = self.process.kill();
        if !children.trim().is_empty() {
            let _ = Command::new("kill").arg("-KILL").args(children.split_whitespace()).status();
        }
        let _ = self.process.wait();
    }
}
