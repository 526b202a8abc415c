//! A generator with too little CPU time: the right answer is no verdict on the server.

use super::Planted;
use crate::cgroup::Group;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "generator limited",
    what: "unlimited stage, throng in a quota of 0.05 cores",
    expects: &["generator_limited"],
    verdict: "invalid",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let stage = Stage::start(lab, None, &["--workers", "1"])?;
    let quota = Group::cpu(0.05)?;
    let watch = format!("pid={}", stage.pid());
    let command = quota.command(&lab.throng);
    let answer = lab.find_by(command, "generator", &stage.url, &watch, &["--ceiling", "300"])?;
    Ok(Outcome { answer, truth: None })
}
