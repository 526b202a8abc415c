//! A conference on the real Janus behind a shaper: the traffic grows with the square of the crowd.

use std::net::Ipv4Addr;

use throng_sim::janus::{Janus, ROOM};
use throng_sim::namespace::Namespace;

use super::{Planted, line};
use crate::conference;
use crate::search::{Lab, Outcome};

pub(super) const PLANTED: Planted = Planted {
    name: "conference, shaped line",
    what: "Janus VideoRoom, everybody sends to everybody, behind tbf, 20 Mbit/s",
    expects: &["line_rate"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let (server, crowd) =
        Namespace::pair("lab", Ipv4Addr::new(10, 78, 5, 1), Ipv4Addr::new(10, 78, 5, 2))?;
    let janus = Janus::start(&server, Ipv4Addr::new(10, 78, 5, 1))?;
    let url = format!("janus+ws://10.78.5.1:8188/videoroom/{ROOM}");
    let truth = conference::line(lab, &crowd, &url)?.limit(line::RATE_BPS);
    line::shape(&server)?;
    let watch = format!("pid={}", janus.pid());
    let more = [&conference::ASKED[..], &["--allow-target", "10.78.5.0/24"]].concat();
    let answer = lab.find(Some(&crowd), "conference-line", &url, &watch, &more)?;
    Ok(Outcome { answer, truth: Some(truth) })
}
