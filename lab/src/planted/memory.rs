//! A control group with too little memory for the buffers of all viewers: the kernel kills the
//! server, and it is restarted.

use super::Planted;
use crate::cgroup::Group;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const LIMIT_BYTES: u64 = 200_000_000;
pub(super) const PER_VIEWER_MB: u64 = 8;

pub(super) const PLANTED: Planted = Planted {
    name: "memory limit",
    what: "stage, 8 MB held for each viewer, in a control group of 200 MB",
    expects: &["memory"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let group = Group::memory(LIMIT_BYTES)?;
    let arguments = ["--memory-per-viewer-mb", &PER_VIEWER_MB.to_string()];
    let stage = Stage::kept_alive(lab, Some(&group), &arguments)?;
    let idle = group.memory_bytes()?;
    let watch = format!("port={}", stage.port());
    let answer = lab.find(None, "memory", &stage.url, &watch, &["--ceiling", "100"])?;
    drop(stage);
    let truth = LIMIT_BYTES.saturating_sub(idle) / (PER_VIEWER_MB * 1_000_000);
    let answer = answer.saying("memory", &["The kernel killed", "200 MB"]);
    Ok(Outcome { answer: answer.never_saying(&["server_crashed"]), truth: Some(truth as f64) })
}
