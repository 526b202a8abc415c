//! throng in a control group with little memory, as a container or `MemoryMax` of systemd gives it.

use std::process::Command;

use throng_rig::{ControlGroup, Limits};
use throng_sim::skipped;

use crate::throng::{Running, Stage, THRONG};

const LIMIT_BYTES: u64 = 24 << 20;

/// A group that is gone with the test.
struct Group(ControlGroup);

impl Drop for Group {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// 10 s: what the kernel kills has no report and exit code 137.
#[test]
fn a_run_in_a_group_of_24_mb_ends_before_the_kernel_kills_it_and_keeps_its_folder() {
    let name = format!("throng-e2e-memory-{}", std::process::id());
    let limits = Limits { memory_bytes: Some(LIMIT_BYTES), ..Limits::default() };
    let _group = match ControlGroup::create(&name, &limits) {
        Ok(group) => Group(group),
        Err(error) => return skipped(&error.to_string()),
    };
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let doors = ControlGroup::planned(&name).into_iter().map(|folder| folder.join("cgroup.procs"));
    let enter: String = doors
        .filter(|door| door.exists())
        .fold(String::new(), |script, door| format!("{script}echo $$ > {} && ", door.display()));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{enter}exec \"$0\" \"$@\""), THRONG]);
    let view = ["view", &stage.target(), "-n", "1000", "--every", "10ms", "--for", "30s"];
    let ran = Running::spawn(command, &view).wait();
    assert_eq!(ran.code, Some(4), "{ran}");
    assert_eq!(ran.summary()["outcome"], "invalid", "{ran}");
    assert!(ran.stdout.contains("of its memory in use"), "{ran}");
}
