//! One worker whose core is full, on a host without idle time because of low-priority work, which
//! yields and is no limit.

use std::process::{Child, Command, Stdio};

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::{CpuOf, Stage};

pub(super) const PLANTED: Planted = Planted {
    name: "next to low priority",
    what: "stage, 1 worker, 800 passes a packet, next to a busy loop per core at nice 19",
    expects: &["one_thread_full", "single_threaded"],
    verdict: "found",
    is_short: false,
    plant,
};

/// A busy loop at the lowest priority; it ends when dropped.
struct Loop(Child);

impl Loop {
    fn start() -> anyhow::Result<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", "19", "sh", "-c", "while :; do :; done"]);
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
    let cores = std::thread::available_parallelism()?.get();
    let _loops: Vec<Loop> = (0..cores).map(|_| Loop::start()).collect::<anyhow::Result<_>>()?;
    let watch = format!("pid={}", stage.pid());
    let answer =
        lab.find(None, "next-to-low-priority", &stage.url, &watch, &["--ceiling", "400"])?;
    Ok(Outcome { answer, truth: Some(truth) })
}
