//! A server that the kernel kills for lack of memory, and that nobody starts again: one event, and
//! the whole cause. It is no crash, and no rate that a mean over seconds could rule out.

use super::Planted;
use super::memory::{LIMIT_BYTES, PER_VIEWER_MB};
use crate::cgroup::Group;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "killed for memory",
    what: "stage, 8 MB held for each viewer, in a control group of 200 MB, not started again",
    expects: &["memory"],
    verdict: "found",
    is_short: false,
    plant,
};

/// The group's limit, and the number of users that would fit.
const SAYS: &[&str] = &["The kernel killed", "may use 200 MB", "so that 200 MB fit"];
const NEVER: &[&str] =
    &["server_crashed", "a crash under load is a bug", "killed for lack of memory does not grow"];

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let group = Group::memory(LIMIT_BYTES)?;
    let mut command = group.command(&lab.throng);
    command.args(["stage", "--listen", "127.0.0.1:0"]);
    command.args(["--memory-per-viewer-mb", &PER_VIEWER_MB.to_string()]);
    let stage = Stage::of(&mut command)?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "killed", &stage.url, &watch, &["--ceiling", "100"])?;
    drop(stage);
    // The search cannot come nearer to the limit once the server is gone.
    Ok(Outcome { answer: answer.saying("memory", SAYS).never_saying(NEVER), truth: None })
}
