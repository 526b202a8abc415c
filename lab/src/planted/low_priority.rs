//! One worker whose core is full, on a host without idle time because of low-priority work, which
//! yields and is no limit.
//!
//! The generator shares the host: if it keeps the worker waiting for 8 % of the time, no CPU is
//! left for it, and the host is the name (docs/findings.md). No CPU is idle in either case, so that
//! the affinity of the worker is never the advice.

use std::process::{Child, Command, Stdio};

use super::{NO_PLACEMENT, Planted};
use crate::search::{Lab, Outcome};
use crate::stage::{CpuOf, Stage};

pub(super) const PLANTED: Planted = Planted {
    name: "next to low priority",
    what: "stage, 1 worker, 800 passes a packet, next to a busy loop per core at nice 19",
    expects: &["one_thread_full", "single_threaded", "cpu_full"],
    verdict: "found",
    is_short: false,
    plant,
};

/// A busy loop; it ends when dropped.
pub(super) struct Loop(Child);

impl Loop {
    /// One for each core, of this priority (nice(1)).
    pub(super) fn on_each_core(nice: &str) -> anyhow::Result<Vec<Self>> {
        let cores = std::thread::available_parallelism()?.get();
        (0..cores).map(|_| Self::start(nice)).collect()
    }

    fn start(nice: &str) -> anyhow::Result<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", nice, "sh", "-c", "while :; do :; done"]);
        Ok(Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--workers", "1", "--work-per-packet", "800"])?;
    let truth = stage.cpu_limit(lab, CpuOf::BusiestThread, 1.0)?;
    let _loops = Loop::on_each_core("19")?;
    let watch = format!("pid={}", stage.pid());
    let answer =
        lab.find(None, "next-to-low-priority", &stage.url, &watch, &["--ceiling", "400"])?;
    Ok(Outcome { answer: answer.never_saying(NO_PLACEMENT), truth: Some(truth) })
}
