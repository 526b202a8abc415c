//! The smallest send buffer of a socket behind a slow queue: the kernel refuses what does not fit,
//! and only what nobody asks for again is missed by users, which is the sound.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;

use super::{Planted, line};
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

/// Far above what the crowd takes, so that the line is never the limit.
const RATE_BPS: f64 = 200e6;
/// What leaves at once: the key frames of a few viewers fit, those of many do not, and wait in the
/// send buffer. So the errors begin with the load.
const AT_ONCE: &str = "128kb";

pub(super) const PLANTED: Planted = Planted {
    name: "send buffer",
    what: "stage, SO_SNDBUF of 1 KiB (the kernel makes it 4.5), behind tbf, 128 KiB at once",
    expects: &["backpressure"],
    verdict: "found",
    is_short: false,
    plant,
};

/// An error counter that grows evenly through the limit is a suspect, and is felt here.
const NEVER: &[&str] = &["udp.sndbuf_errors was as much", "udp.sndbuf_errors grew evenly"];

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let (server, crowd) =
        Namespace::pair("lab", Ipv4Addr::new(10, 78, 10, 1), Ipv4Addr::new(10, 78, 10, 2))?;
    let arguments = ["--workers", "1", "--send-buffer-kb", "1"];
    let stage = Stage::start(lab, Some((&server, "10.78.10.1")), &arguments)?;
    line::shape_to(&server, RATE_BPS, AT_ONCE)?;
    let watch = format!("pid={}", stage.pid());
    let more = ["--start", "2", "--ceiling", "200", "--allow-target", "10.78.10.0/24"];
    let answer = lab.find(Some(&crowd), "send-buffer", &stage.url, &watch, &more)?;
    // How many datagrams fit depends on how fast the worker writes them: no number is the limit.
    Ok(Outcome { answer: answer.never_saying(NEVER), truth: None })
}
