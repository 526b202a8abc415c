//! A generator that is given too little CPU: no verdict on the server is the right answer.

use std::process::Command;

use super::Planted;
use crate::cgroup::Quota;
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
    let quota = Quota::cpu(0.05)?;
    let watch = format!("pid={}", stage.pid());
    // The shell joins the group and then becomes throng.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("echo $$ > {}; exec \"$0\" \"$@\"", quota.members().display())]);
    command.arg(&lab.throng);
    let answer = lab.find_by(command, "generator", &stage.url, &watch, &["--ceiling", "300"])?;
    Ok(Outcome { answer, truth: None })
}
