//! The stage as a server whose limit is set, and what a viewer costs it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use throng_sim::namespace::Namespace;

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
        Self::of(command)
    }

    /// Starts the stage that `command` runs.
    pub(crate) fn of(mut command: Command) -> anyhow::Result<Self> {
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

    /// CPU seconds a second that viewers cost the whole process, or its busiest thread alone: measured with few and with more,
    /// because the first ones pay for what all share.
    pub(crate) fn cpu(&self, lab: &Lab, of: CpuOf) -> anyhow::Result<Line> {
        const VIEWERS: [u32; 2] = [4, 10];
        let mut used = [0.0; 2];
        for (used, viewers) in used.iter_mut().zip(VIEWERS) {
            let mut crowd = lab.command(None);
            let folder = tempfile::tempdir()?;
            crowd.args(["view", &self.url, "-n", &viewers.to_string(), "--for", "11s", "--quiet"]);
            crowd.arg("--output").arg(folder.path().join("run")).stdout(Stdio::null()).stderr(Stdio::null());
            let mut crowd = crowd.spawn()?;
            std::thread::sleep(Duration::from_secs(4));
            let before = of.on_cpu_s(self.pid())?;
            std::thread::sleep(Duration::from_secs(6));
            *used = (of.on_cpu_s(self.pid())? - before) / 6.0;
            crowd.wait()?;
        }
        let each = (used[1] - used[0]) / f64::from(VIEWERS[1] - VIEWERS[0]);
        Ok(Line { shared: used[0] - each * f64::from(VIEWERS[0]), each })
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
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
