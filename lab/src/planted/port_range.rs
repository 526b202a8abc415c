//! The real Janus with a narrow range of UDP ports for media, of which each viewer needs one.

use std::net::Ipv4Addr;

use throng_sim::janus::Janus;
use throng_sim::namespace::Namespace;

use super::Planted;
use crate::search::{Lab, Outcome};

const URL: &str = "janus+ws://127.0.0.1:8188/streaming/1";
const PORTS: std::ops::RangeInclusive<u16> = 20_000..=20_019;

pub(super) const PLANTED: Planted = Planted {
    name: "port range",
    what: "Janus, 20 UDP ports for media",
    expects: &["local_ports", "configured_ceiling"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let address = Ipv4Addr::new(10, 78, 4, 1);
    let namespace = Namespace::with_veth("lab", address)?;
    let janus = Janus::start_on_ports(&namespace, address, PORTS)?;
    let _feed = janus.feed()?;
    let watch = format!("pid={}", janus.pid());
    let answer = lab.find(Some(&namespace), "port-range", URL, &watch, &["--ceiling", "100"])?;
    Ok(Outcome { answer, truth: Some(PORTS.len() as f64) })
}
