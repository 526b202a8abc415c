//! A reader that reads datagrams from its socket at a fixed rate and sleeps in between, with a
//! small receive buffer. A publisher sends the viewers' media through the same socket: all viewers
//! miss the packets that their reports displace.

use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::ensure;
use tempfile::TempDir;

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

/// Datagrams a second.
const RATE: f64 = 300.0;

pub(super) const PLANTED: Planted = Planted {
    name: "UDP receive buffer",
    what: "stage with a publisher, reads 300 datagrams a second, SO_RCVBUF of 64 KiB",
    expects: &["udp_receive_buffer"],
    verdict: "found",
    is_short: false,
    plant,
};

/// Publishes into a stage until it is dropped.
struct Publisher {
    process: Child,
    _folder: TempDir,
}

impl Publisher {
    fn start(lab: &Lab, stage: &Stage) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let url = stage.url.replace("whep+", "whip+").replace("/whep", "/whip");
        let mut command = lab.command(None);
        command.args([
            "view",
            &url,
            "-n",
            "1",
            "--for",
            "1h",
            "--set",
            "crowd.subscribe=none",
            "--quiet",
        ]);
        command.arg("--output").arg(folder.path().join("run")).stdin(Stdio::null());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let publisher = Self { process, _folder: folder };
        std::thread::sleep(Duration::from_secs(4));
        ensure!(stage.counter("published_packets")? > 0.0, "no publisher sends packets");
        Ok(publisher)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    // The datagrams of a viewer are measured on a server without that limit.
    let free = Stage::start(lab, None, &[])?;
    let publisher = Publisher::start(lab, &free)?;
    let truth = free.limit(lab, RATE, |stage| stage.counter("datagrams_received"))?;
    drop((publisher, free));
    let arguments = ["--receive-rate", &format!("{RATE:.0}"), "--receive-buffer-kb", "64"];
    let stage = Stage::start(lab, None, &arguments)?;
    let _publisher = Publisher::start(lab, &stage)?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "receive-buffer", &stage.url, &watch, &["--ceiling", "200"])?;
    Ok(Outcome { answer, truth: Some(truth) })
}
