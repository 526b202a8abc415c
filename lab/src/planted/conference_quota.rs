//! A conference on the real Janus whose control group has less than a core, as on a small virtual
//! machine.

use std::net::Ipv4Addr;

use throng_sim::janus::{Janus, ROOM};
use throng_sim::namespace::Namespace;

use super::Planted;
use crate::cgroup::Group;
use crate::conference;
use crate::search::{Lab, Outcome};

const CORES: f64 = 0.25;

pub(super) const PLANTED: Planted = Planted {
    name: "conference, CPU quota",
    what: "Janus VideoRoom, everybody sends to everybody, quota of a quarter of a core",
    expects: &["cpu_quota"],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let address = Ipv4Addr::new(10, 78, 4, 1);
    let namespace = Namespace::with_veth("lab", address)?;
    let janus = Janus::start(&namespace, address)?;
    let url = format!("janus+ws://{address}:8188/videoroom/{ROOM}");
    let truth = conference::cpu(lab, &namespace, &url, janus.pid())?.limit(CORES);
    let quota = Group::cpu(CORES)?;
    quota.take(janus.pid())?;
    let watch = format!("pid={}", janus.pid());
    let answer =
        lab.find(Some(&namespace), "conference-quota", &url, &watch, &conference::ASKED)?;
    drop(janus);
    Ok(Outcome { answer, truth: Some(truth) })
}
