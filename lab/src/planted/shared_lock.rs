//! Several threads with one lock: together they use one core, and none of them is full.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::{CpuOf, Stage};

pub(super) const PLANTED: Planted = Planted {
    name: "shared lock",
    what: "stage, 4 workers, 800 passes a packet under one lock",
    expects: &["lock_contention"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let arguments = ["--workers", "4", "--work-per-packet", "800", "--shared-lock"];
    let stage = Stage::start(lab, None, &arguments)?;
    let truth = stage.cpu_limit(lab, CpuOf::Process, 1.0)?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "shared-lock", &stage.url, &watch, &["--ceiling", "200"])?;
    Ok(Outcome { answer, truth: Some(truth) })
}
