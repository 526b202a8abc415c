//! A server that is killed while it serves well, and whose signalling closes at once: all users are
//! gone in the second of its end, and no second is left that could be judged.

use std::net::Ipv4Addr;
use std::time::Duration;

use throng_sim::janus::Janus;
use throng_sim::namespace::Namespace;

use super::{Planted, signal};
use crate::search::{Lab, Outcome, RUN};

const URL: &str = "janus+ws://127.0.0.1:8188/streaming/1";
/// From the start of throng: 5 s of the idle server, and 12 s of the run.
const LIVES: Duration = Duration::from_secs(17);

pub(super) const PLANTED: Planted = Planted {
    name: "killed at once",
    what: "Janus, 5 viewers, killed by SIGKILL after 12 s, whose WebSockets close at once",
    expects: &["server_crashed"],
    verdict: RUN,
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let address = Ipv4Addr::new(10, 78, 7, 1);
    let namespace = Namespace::with_veth("lab", address)?;
    let janus = Janus::start(&namespace, address)?;
    let _feed = janus.feed()?;
    let pid = janus.pid();
    let watch = format!("pid={pid}");
    let more = ["-n", "5", "--every", "200ms", "--for", "60s"];
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(LIVES);
            signal(pid, "-KILL")
        });
        lab.view(Some(&namespace), "killed-at-once", URL, &watch, &more)
    })?;
    let answer = answer.saying("server_crashed", &["by signal 9 (SIGKILL)"]);
    // Who kills a server says nothing of the server.
    let answer = answer.never_saying(&["a crash under load is a bug", "a maximum of about"]);
    Ok(Outcome { answer, truth: None })
}
