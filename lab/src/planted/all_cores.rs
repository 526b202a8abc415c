//! All cores of the host are busy with the server. The generator shares the host, so the server has
//! a lower priority: the rest of the CPU time is its limit. No CPU is idle, so that affinity is not
//! the advice.

use std::process::Command;

use super::{NO_PLACEMENT, Planted};
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "all cores",
    what: "stage, a worker a core, 800 passes a packet, nice 10",
    expects: &["cpu_full"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let cores = std::thread::available_parallelism()?.to_string();
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(&lab.throng).args(["stage", "--listen", "127.0.0.1:0"]);
    command.args(["--workers", &cores, "--work-per-packet", "800"]);
    let stage = Stage::of(&mut command)?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "all-cores", &stage.url, &watch, &["--ceiling", "400"])?;
    // The crowd's own CPU use is unknown beforehand.
    Ok(Outcome { answer: answer.never_saying(NO_PLACEMENT), truth: None })
}
