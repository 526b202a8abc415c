//! A server that accepts connections slowly, with a short accept queue: the kernel refuses
//! simultaneous connections.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "accept backlog",
    what: "stage, sleeps 0.4 s after each connection that it accepts, 4 may wait",
    expects: &["accept_queue"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--backlog", "4", "--accept-pause-ms", "400"])?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "accept-backlog", &stage.url, &watch, &["--ceiling", "100"])?;
    // The number of simultaneous connections depends on the steps of the search: no number of
    // viewers is the limit.
    Ok(Outcome { answer, truth: None })
}
