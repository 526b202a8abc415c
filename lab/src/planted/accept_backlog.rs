//! A server that accepts connections slowly, with a short queue before it: those who come at once are turned away by the
//! kernel.

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
    // How many come at once depends on the search's steps: there is no number of viewers that is the limit.
    Ok(Outcome { answer, truth: None })
}
