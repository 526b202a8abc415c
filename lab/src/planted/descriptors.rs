//! The real Janus with a low limit of open files, of which each viewer needs some.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::ensure;
use throng_sim::janus::Janus;
use throng_sim::namespace::Namespace;

use super::Planted;
use crate::search::{Lab, Outcome};

const URL: &str = "janus+ws://127.0.0.1:8188/streaming/1";
const VIEWERS: u64 = 5;

pub(super) const PLANTED: Planted = Planted {
    name: "open files",
    what: "Janus, limit of open files for about 20 viewers",
    expects: &["file_descriptors"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let address = Ipv4Addr::new(10, 78, 2, 1);
    let namespace = Namespace::with_veth("lab", address)?;
    let janus = Janus::start(&namespace, address)?;
    let _feed = janus.feed()?;
    let idle = descriptors(janus.pid());
    let folder = tempfile::tempdir()?;
    let mut crowd = lab.command(Some(&namespace));
    crowd.args(["view", URL, "-n", &VIEWERS.to_string(), "--for", "8s", "--quiet", "--output"]);
    let mut crowd = crowd.arg(folder.path().join("run")).stdout(Stdio::null()).spawn()?;
    std::thread::sleep(Duration::from_secs(6));
    let each = (descriptors(janus.pid()).saturating_sub(idle) / VIEWERS).max(1);
    crowd.wait()?;
    std::thread::sleep(Duration::from_secs(3));
    let limit = idle + 20 * each;
    let set = Command::new("prlimit")
        .args(["--pid", &janus.pid().to_string(), &format!("--nofile={limit}:{limit}")])
        .status()?;
    ensure!(set.success(), "prlimit");
    let watch = format!("pid={}", janus.pid());
    let answer = lab.find(Some(&namespace), "descriptors", URL, &watch, &["--ceiling", "100"])?;
    Ok(Outcome { answer, truth: Some(20.0) })
}

fn descriptors(pid: u32) -> u64 {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |entries| entries.count() as u64)
}
