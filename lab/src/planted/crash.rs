//! A server that crashes under its load and is restarted each time: a bug, not a limit.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

/// The viewer at which it crashes.
const FATAL: u32 = 15;

pub(super) const PLANTED: Planted = Planted {
    name: "crash",
    what: "stage, aborts when the 15th viewer comes",
    expects: &["server_crashed"],
    verdict: "found",
    is_short: true,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::kept_alive(lab, None, &["--crash-at", &FATAL.to_string()])?;
    let watch = format!("port={}", stage.port());
    let answer = lab.find(None, "crash", &stage.url, &watch, &["--ceiling", "100"])?;
    Ok(Outcome { answer, truth: Some(f64::from(FATAL - 1)) })
}
