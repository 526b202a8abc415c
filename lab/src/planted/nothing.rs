//! No limit within the range of the search.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "no limit",
    what: "stage, up to 15 viewers only",
    expects: &[],
    verdict: "at_least",
    is_short: true,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--workers", "1"])?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "nothing", &stage.url, &watch, &["--ceiling", "15"])?;
    Ok(Outcome { answer, truth: Some(15.0) })
}
