//! A path that loses packets with one viewer as with all: no limit of the load.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;

use super::{AS_WITHOUT_LOAD, Planted};
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

pub(super) const PLANTED: Planted = Planted {
    name: "lossy path",
    what: "every tenth packet lost between stage and crowd, at any load, up to 15 viewers",
    expects: &[],
    verdict: "at_least",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let (server, crowd) =
        Namespace::pair("lab", Ipv4Addr::new(10, 78, 1, 1), Ipv4Addr::new(10, 78, 1, 2))?;
    let stage = Stage::start(lab, Some((&server, "10.78.1.1")), &["--workers", "1"])?;
    crowd.lose(100, None)?;
    let watch = format!("pid={}", stage.pid());
    let more = ["--ceiling", "15", "--allow-target", "10.78.1.0/24"];
    let answer = lab.find(Some(&crowd), "lossy-path", &stage.url, &watch, &more)?;
    let answer = answer.saying("", &[AS_WITHOUT_LOAD, "of the packets lost"]);
    Ok(Outcome { answer, truth: Some(15.0) })
}
