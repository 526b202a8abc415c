//! A line with a shaper (token bucket) between the server and its crowd.

use std::net::Ipv4Addr;

use anyhow::ensure;
use throng_sim::namespace::Namespace;

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const RATE_BPS: f64 = 20e6;
/// Ethernet header that the shaper counts and the meters do not, for packets of about 1,100 bytes.
pub(crate) const FRAME_RATIO: f64 = 1.0 + 14.0 / 1100.0;

pub(super) const PLANTED: Planted = Planted {
    name: "shaped line",
    what: "stage behind tbf, 20 Mbit/s",
    expects: &["line_rate"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let (server, crowd) =
        Namespace::pair("lab", Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2))?;
    let stage = Stage::start(lab, Some((&server, "10.78.0.1")), &["--workers", "1"])?;
    let per_viewer = lab.bits_per_viewer(Some(&crowd), &stage.url)?;
    shape(&server)?;
    let watch = format!("pid={}", stage.pid());
    let more = ["--ceiling", "200", "--allow-target", "10.78.0.0/24"];
    let answer = lab.find(Some(&crowd), "line", &stage.url, &watch, &more)?;
    Ok(Outcome { answer, truth: Some(RATE_BPS / (per_viewer * FRAME_RATIO)) })
}

/// A shaper on all traffic out of the namespace. Its queue holds a second: key frames of all
/// viewers are simultaneous, and with a shorter queue the burst would be the limit and not the
/// rate.
pub(super) fn shape(namespace: &Namespace) -> anyhow::Result<()> {
    shape_to(namespace, RATE_BPS, "32kb")
}

/// The same at this rate, bits a second, after what may leave at once.
pub(super) fn shape_to(namespace: &Namespace, rate_bps: f64, burst: &str) -> anyhow::Result<()> {
    let rate = format!("{rate_bps:.0}bit");
    let mut command = namespace.command("tc");
    command.args([
        "qdisc", "add", "dev", "v0", "root", "tbf", "rate", &rate, "burst", burst, "latency", "1s",
    ]);
    let output = command.output()?;
    ensure!(output.status.success(), "tc: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
