//! Measured delay equals added delay: a link of known delay between the stage and the viewers.

use std::net::Ipv4Addr;

use throng_sim::link::{Conditions, Link};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::throng::{Ran, Stage, figure, run, throng_link};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);

fn viewed_over(delay_ms: f64) -> Ran {
    let (here, there) = (Namespace::new("here").unwrap(), Namespace::new("there").unwrap());
    let _link =
        Link::start(&throng_link(), (&here, HERE), (&there, THERE), Conditions::delay(delay_ms))
            .unwrap();
    let stage = Stage::start(Some(&there), &format!("{THERE}:7080"), &["--listen-any"]);
    let view =
        ["view", &stage.target(), "-n", "4", "--every", "100ms", "--for", "8s", "--warm-up", "3s"];
    run(Some(&here), &[&view[..], &["--allow-target", "10.88.0.0/24"]].concat()).expect_code(0)
}

/// 25 s: three runs of 8 s, one for each delay.
#[test]
fn added_delay_is_measured_within_five_milliseconds() {
    if !requires_root() {
        return;
    }
    let near = figure(&viewed_over(0.0).summary(), "video.one_way_delay_ms_p50");
    for added_ms in [20.0, 80.0] {
        let ran = viewed_over(added_ms);
        let far = figure(&ran.summary(), "video.one_way_delay_ms_p50");
        assert!(
            ((far - near) - added_ms).abs() < 5.0,
            "{near} ms became {far} ms by {added_ms} ms\n{ran}"
        );
        // A constant path has no queue: the delay above the floor must stay near zero.
        assert!(figure(&ran.summary(), "video.delay_ms_p50") < 15.0, "{ran}");
    }
}
