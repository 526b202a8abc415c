//! A reader that takes datagrams from its socket at a fixed rate, asleep in between, and a small buffer before it. Somebody
//! publishes what the viewers see through the same socket: what their reports push out of the buffer, all of them miss.

use std::process::{Child, Stdio};
use std::time::Duration;

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

/// Datagrams a second.
const RATE: f64 = 400.0;

pub(super) const PLANTED: Planted = Planted {
    name: "UDP receive buffer",
    what: "stage with a publisher, reads 400 datagrams a second, SO_RCVBUF of 32 KiB",
    expects: &["udp_receive_buffer"],
    verdict: "found",
    is_short: false,
    plant,
};

/// Publishes into a stage until it is dropped.
struct Publisher(Child);

impl Publisher {
    fn start(lab: &Lab, stage: &Stage, folder: &std::path::Path) -> anyhow::Result<Self> {
        let url = stage.url.replace("whep+", "whip+").replace("/whep", "/whip");
        let mut command = lab.command(None);
        command.args(["view", &url, "-n", "1", "--for", "1h", "--set", "crowd.subscribe=none", "--quiet"]);
        command.arg("--output").arg(folder.join("run")).stdin(Stdio::null());
        let publisher = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        std::thread::sleep(Duration::from_secs(3));
        Ok(publisher)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    // What a viewer sends is counted where every datagram is taken in.
    let free = Stage::start(lab, None, &[])?;
    let publisher = Publisher::start(lab, &free, folder.path())?;
    let truth = free.growth(lab, |stage| stage.counter("datagrams_received"))?.limit(RATE);
    drop((publisher, free));
    let arguments = ["--receive-rate", &format!("{RATE:.0}"), "--receive-buffer-kb", "32"];
    let stage = Stage::start(lab, None, &arguments)?;
    let _publisher = Publisher::start(lab, &stage, folder.path())?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "receive-buffer", &stage.url, &watch, &["--ceiling", "200"])?;
    Ok(Outcome { answer, truth: Some(truth) })
}
