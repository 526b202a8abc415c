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

    /// CPU seconds of a worker that one viewer costs in a second, measured with a few of them.
    pub(crate) fn cpu_per_viewer(&self, lab: &Lab) -> anyhow::Result<f64> {
        const VIEWERS: u32 = 4;
        let mut crowd = lab.command(None);
        let folder = tempfile::tempdir()?;
        crowd.args(["view", &self.url, "-n", &VIEWERS.to_string(), "--for", "12s", "--quiet"]);
        crowd.arg("--output").arg(folder.path().join("run")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut crowd = crowd.spawn()?;
        std::thread::sleep(Duration::from_secs(4));
        let before = on_cpu_s(self.pid())?;
        std::thread::sleep(Duration::from_secs(6));
        let cost = (on_cpu_s(self.pid())? - before) / 6.0 / f64::from(VIEWERS);
        crowd.wait()?;
        Ok(cost)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// CPU seconds of all threads (`/proc/P/task/T/schedstat` field 1).
fn on_cpu_s(pid: u32) -> anyhow::Result<f64> {
    let mut ns = 0_u64;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        ns += text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(ns as f64 / 1e9)
}
