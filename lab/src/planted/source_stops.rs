//! The source stops for 12 s, as an encoder that hangs or is started again: all viewers lose their
//! media in one second and fail together, and the server has nothing to do with it.

use std::net::Ipv4Addr;
use std::time::Duration;

use throng_sim::namespace::Namespace;

use super::{Planted, signal};
use crate::publisher::{Publisher, VideoCodec};
use crate::search::{Lab, Outcome, RUN};
use crate::stage::Stage;

/// From the start of throng: 5 s of the idle server, and 15 s of the run.
const BEFORE: Duration = Duration::from_secs(20);
/// More than viewers wait for media (10 s), so that all fail; less than the stage waits for a
/// publisher (30 s), so that it is silent until then.
const STOPS_FOR: Duration = Duration::from_secs(12);

pub(super) const PLANTED: Planted = Planted {
    name: "source stops",
    what: "stage with a publisher behind a veth pair, which stops for 12 s, 6 viewers",
    expects: &["source_stopped"],
    verdict: RUN,
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    // What comes in shows whether it is the source that stopped, but not on loopback.
    let (server, crowd) =
        Namespace::pair("lab", Ipv4Addr::new(10, 78, 6, 1), Ipv4Addr::new(10, 78, 6, 2))?;
    let stage = Stage::start(lab, Some((&server, "10.78.6.1")), &["--workers", "1"])?;
    let publisher = Publisher::start(lab, Some(&crowd), &stage, VideoCodec::H264)?;
    let pid = publisher.pid();
    let watch = format!("pid={}", stage.pid());
    let more = ["-n", "6", "--every", "200ms", "--for", "32s", "--allow-target", "10.78.6.0/24"];
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| -> anyhow::Result<()> {
            std::thread::sleep(BEFORE);
            signal(pid, "-STOP")?;
            std::thread::sleep(STOPS_FOR);
            signal(pid, "-CONT")
        });
        lab.view(Some(&crowd), "source-stops", &stage.url, &watch, &more)
    })?;
    let answer = answer.never_saying(&["a maximum of about", "further ones fail"]);
    Ok(Outcome { answer, truth: None })
}
