//! A control group that gives the server less than a core.

use super::Planted;
use crate::cgroup::Group;
use crate::search::{Lab, Outcome};
use crate::stage::{CpuOf, Stage};

const CORES: f64 = 0.5;

pub(super) const PLANTED: Planted = Planted {
    name: "CPU quota",
    what: "stage, 2 workers, 800 passes a packet, quota of half a core",
    expects: &["cpu_quota"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--workers", "2", "--work-per-packet", "800"])?;
    let truth = stage.cpu_limit(lab, CpuOf::Process, CORES)?;
    let quota = Group::cpu(CORES)?;
    quota.take(stage.pid())?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "cpu-quota", &stage.url, &watch, &["--ceiling", "200"])?;
    drop(stage);
    Ok(Outcome { answer, truth: Some(truth) })
}
