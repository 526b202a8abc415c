//! Live555: a Matroska file, a transport stream and a program stream by RTSP.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::live555::{self, PROGRAM};

use super::{View, by, can_run, source_fps, table};
use crate::throng::run;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 3, 1);

/// 35 s: three runs of 6 s, less than the files' ten, 5 s of the idle server before one of them.
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
        View::of("RTSP over UDP, transport stream", stream).with(&["--set", &by("udp")]),
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
