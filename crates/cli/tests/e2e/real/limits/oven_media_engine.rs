//! OvenMediaEngine, which is killed under its viewers.

use std::net::Ipv4Addr;
use std::time::Duration;

use throng_sim::namespace::Namespace;
use throng_sim::real::oven_media_engine::{self, PORT, PROGRAM};

use super::super::can_run;
use crate::throng::Running;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 84, 2, 1);

const FINDING: &str = "server_crashed";

/// 15 s: 5 s of the idle server, and 3 s of viewers until it is killed, which ends the run.
#[test]
fn oven_media_engine_that_is_killed_is_named_with_the_signal() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("omekill", ADDRESS).unwrap();
    let server = oven_media_engine::start(&namespace, ADDRESS).unwrap();
    let _feed = oven_media_engine::feed(&server).unwrap();
    let (url, watch) = (format!("ws://{ADDRESS}:{PORT}/app/live"), format!("pid={}", server.pid()));
    let view = ["view", &url, "-n", "4", "--every", "100ms", "--for", "60s", "--watch", &watch];
    let mut running = Running::start(Some(&namespace), &view);
    running.when_playing(4);
    // As long as a load has to last to be one.
    std::thread::sleep(Duration::from_secs(3));
    server.kill().unwrap();
    let ran = running.wait();
    let found = &ran.summary()["bottleneck"];
    assert_eq!(found["finding"], FINDING, "{found:#}\n{ran}");
    let ended = format!("(PID {}) ended under the load, by signal 9 (SIGKILL)", server.pid());
    let title = found["title"].as_str().unwrap_or_default();
    assert!(title.ends_with(&ended), "{title}\n{ran}");
}
