//! A reader that reads datagrams from its socket at a fixed rate and sleeps in between, with a
//! small receive buffer. A publisher sends the viewers' audio through the same socket: all viewers
//! miss the packets that their reports displace.

use super::Planted;
use crate::publisher::{Publisher, VideoCodec};
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

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    // The datagrams of a viewer are measured on a server without that limit.
    let free = Stage::start(lab, None, &[])?;
    let publisher = Publisher::start(lab, None, &free, VideoCodec::Vp8)?;
    let truth = free.limit(lab, RATE, |stage| stage.counter("datagrams_received"))?;
    drop((publisher, free));
    let arguments = ["--receive-rate", &format!("{RATE:.0}"), "--receive-buffer-kb", "64"];
    let stage = Stage::start(lab, None, &arguments)?;
    let _publisher = Publisher::start(lab, None, &stage, VideoCodec::Vp8)?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "receive-buffer", &stage.url, &watch, &["--ceiling", "200"])?;
    Ok(Outcome { answer, truth: Some(truth) })
}
