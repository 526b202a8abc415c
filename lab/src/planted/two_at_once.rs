//! A full thread and a full line within a few viewers of each other: either is a right answer.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;

use super::{Planted, line};
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "two at once",
    what: "stage, 1 worker full at about 18 viewers, behind 20 Mbit/s",
    expects: &["one_thread_full", "single_threaded", "line_rate"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let (server, crowd) =
        Namespace::pair("lab", Ipv4Addr::new(10, 78, 3, 1), Ipv4Addr::new(10, 78, 3, 2))?;
    let arguments = ["--workers", "1", "--work-per-packet", "1000"];
    let stage = Stage::start(lab, Some((&server, "10.78.3.1")), &arguments)?;
    line::shape(&server)?;
    let watch = format!("pid={}", stage.pid());
    let more = ["--ceiling", "200", "--allow-target", "10.78.3.0/24"];
    let answer = lab.find(Some(&crowd), "two-at-once", &stage.url, &watch, &more)?;
    Ok(Outcome { answer, truth: None })
}
