//! A configured maximum of users.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "configured maximum",
    what: "stage, answers 503 beyond 18 viewers",
    expects: &["configured_ceiling"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--max-viewers", "18"])?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "ceiling", &stage.url, &watch, &["--ceiling", "100"])?;
    Ok(Outcome { answer, truth: Some(18.0) })
}
