//! A maximum of a server that is watched twice, by its process and by its port: one limit, told
//! once.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "watched twice",
    what: "stage, answers 503 beyond 18 viewers, watched by process and by port",
    expects: &["configured_ceiling"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--max-viewers", "18"])?;
    let watch = format!("pid={}", stage.pid());
    let by_port = format!("port={}", stage.port());
    let more = ["--ceiling", "100", "--watch", &by_port];
    let answer = lab.find(None, "watched-twice", &stage.url, &watch, &more)?;
    Ok(Outcome { answer: answer.never_saying(&[" limits at once"]), truth: Some(18.0) })
}
