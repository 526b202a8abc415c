//! A thread that mostly copies bytes.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::{CpuOf, Stage};

pub(super) const PLANTED: Planted = Planted {
    name: "copying",
    what: "stage, 1 worker, 2 MB copied for each packet",
    // The stage has a setting for more workers, so the full thread is the cause, explained by
    // copying.
    expects: &["one_thread_full", "copy_dominated"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--workers", "1", "--copy-per-packet-kb", "2000"])?;
    let truth = stage.cpu_limit(lab, CpuOf::BusiestThread, 1.0)?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "copying", &stage.url, &watch, &["--ceiling", "200"])?;
    Ok(Outcome { answer, truth: Some(truth) })
}
