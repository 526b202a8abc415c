//! One thread that does all the work, on a host with an idle core.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::{CpuOf, Stage};

pub(super) const PLANTED: Planted = Planted {
    name: "one hot thread",
    what: "stage, 1 worker, 800 passes a packet",
    expects: &["one_thread_full", "single_threaded"],
    verdict: "found",
    is_short: true,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--workers", "1", "--work-per-packet", "800"])?;
    let truth = match lab.is_short {
        true => None,
        false => Some(stage.cpu_limit(lab, CpuOf::BusiestThread, 1.0)?),
    };
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "one-thread", &stage.url, &watch, &["--ceiling", "200"])?;
    Ok(Outcome { answer, truth })
}
