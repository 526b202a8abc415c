//! A policer between the server and its crowd, which drops what exceeds its rate: packets leave the
//! server and are lost on the path, the more users the more.

use std::net::Ipv4Addr;

use anyhow::ensure;
use throng_sim::namespace::Namespace;

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

const RATE_BYTES_PER_S: f64 = 2.5e6;

pub(super) const PLANTED: Planted = Planted {
    name: "policer",
    what: "stage, what exceeds 20 Mbit/s is dropped between stage and crowd",
    expects: &["path_loss"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let (server, crowd) =
        Namespace::pair("lab", Ipv4Addr::new(10, 78, 8, 1), Ipv4Addr::new(10, 78, 8, 2))?;
    let stage = Stage::start(lab, Some((&server, "10.78.8.1")), &["--workers", "1"])?;
    let per_viewer = lab.bits_per_viewer(Some(&crowd), &stage.url)?;
    police(&crowd)?;
    let watch = format!("pid={}", stage.pid());
    let more = ["--ceiling", "200", "--allow-target", "10.78.8.0/24"];
    let answer = lab.find(Some(&crowd), "policer", &stage.url, &watch, &more)?;
    Ok(Outcome { answer, truth: Some(RATE_BYTES_PER_S * 8.0 / per_viewer) })
}

/// Drops what exceeds the rate as it comes in, before packet sockets see it. The burst takes the
/// key frames of a crowd of the limit.
fn police(namespace: &Namespace) -> anyhow::Result<()> {
    let rules = format!(
        "table netdev throng {{\nchain input {{\n\
         type filter hook ingress devices = {{ v0 }} priority 0;\n\
         meta l4proto udp limit rate over {RATE_BYTES_PER_S:.0} bytes/second burst 500000 bytes \
         counter drop\n}}\n}}\n"
    );
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), rules)?;
    let output = namespace.command("nft").arg("-f").arg(file.path()).output()?;
    ensure!(output.status.success(), "nft: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
