//! A server of lowered priority on a host that other work fills: the host is its limit, and neither
//! its affinity nor anything that holds single CPUs.

use super::low_priority::Loop;
use super::{NO_PLACEMENT, Planted};
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "niced on a full host",
    what: "stage, 1 worker, 200 passes a packet, nice 5, next to a busy loop per core",
    expects: &["cpu_full"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let mut command = std::process::Command::new("nice");
    command.args(["-n", "5"]).arg(&lab.throng).args(["stage", "--listen", "127.0.0.1:0"]);
    command.args(["--workers", "1", "--work-per-packet", "200"]);
    let stage = Stage::of(&mut command)?;
    let _loops = Loop::on_each_core("0")?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "niced", &stage.url, &watch, &["--ceiling", "200"])?;
    // A quarter of a core, less what the generator takes of it, which is unknown beforehand.
    Ok(Outcome { answer: answer.never_saying(NO_PLACEMENT), truth: None })
}
