//! Live555: a Matroska file, a transport stream and a program stream by RTSP.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::live555::{self, PROGRAM};
use throng_store::RunFolder;

use super::{View, by, can_run, source_fps, table};
use crate::throng::{Running, figure, run, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 3, 1);

/// 40 s: four runs of 6 s, less than the files' ten, 5 s of the idle server before one of them.
#[test]
fn live555_plays_its_files_over_udp_and_tcp() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("live", ADDRESS).unwrap();
    let server = live555::start(&namespace, ADDRESS).unwrap();
    let film = format!("rtsp://{ADDRESS}/film.mkv");
    let stream = format!("rtsp://{ADDRESS}/film.ts");
    let fps = source_fps(&namespace, &film);
    let rows = [
        View::of("RTSP over UDP, Matroska", film.clone())
            .with(&["--set", &by("udp")])
            .watching(&server),
        View::of("RTSP over TCP, Matroska", film).with(&["--set", &by("tcp")]),
        View::of("RTSP over UDP, transport stream", stream.clone()).with(&["--set", &by("udp")]),
        View::of("RTSP over TCP, transport stream", stream).with(&["--set", &by("tcp")]),
    ]
    .map(|view| view.plays(&namespace, fps).row);
    table::has("Live555", table::Part::Main, &rows);
}

/// Over half a minute: a search, which holds its largest crowd twice.
#[test]
fn audio_that_live555_sends_in_bursts_to_one_viewer_as_to_all_fails_no_load() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("livepack", ADDRESS).unwrap();
    let server = live555::start(&namespace, ADDRESS).unwrap();
    live555::add_program_stream(&server).unwrap();
    let film = format!("rtsp://{ADDRESS}/film.mpg");
    let find = ["find", &film, "--set", &by("udp"), "--start", "1", "--ceiling", "3"];
    let short = ["--budget", "1m", "--quiet"];
    let ran = run(Some(&namespace), &[&find[..], &short].concat()).expect_code(0);
    assert_ne!(ran.summary()["capacity"]["verdict"], "never_passes", "{ran}");
}

/// The film has ten seconds. At its end Live555 sends no BYE, answers a second PLAY with 200, and
/// sends nothing then: it is played again in a new session. 26 s, over UDP and TCP at once.
#[test]
fn live555_plays_a_film_again_after_its_silent_end() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("liveagain", ADDRESS).unwrap();
    let _server = live555::start(&namespace, ADDRESS).unwrap();
    let film = format!("rtsp://{ADDRESS}/film.mkv");
    let (by_udp, by_tcp) = valid(|| {
        let [by_udp, by_tcp] = ["udp", "tcp"].map(|transport| {
            let transport = by(transport);
            let crowd = ["view", &film, "-n", "1", "--for", "25s", "--set", &transport];
            Running::start(Some(&namespace), &crowd)
        });
        (by_udp.wait(), by_tcp.wait())
    });
    for ran in [by_udp, by_tcp] {
        let ran = ran.expect_code(0);
        let summary = ran.summary();
        assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
        let frames = figure(&summary, "video.frames_complete");
        assert!(frames > 250.0, "{frames} frames, more than the film has\n{ran}");
        let events = RunFolder::read(ran.folder()).unwrap().events;
        let odd: Vec<_> =
            events.iter().filter(|event| event.kind.starts_with("protocol_anomaly_")).collect();
        let [silent] = odd[..] else { panic!("{odd:#?}\n{ran}") };
        assert!(silent.detail.contains("nothing came in 2 s"), "{silent:?}\n{ran}");
        assert_eq!(silent.count, 1, "{silent:?}\n{ran}");
    }
}
