//! Live555 with few open files, and with frames that are too large for it.

use std::net::Ipv4Addr;
use std::time::Duration;

use throng_sim::namespace::Namespace;
use throng_sim::real::live555::{self, PROGRAM};

use super::super::{by, can_run};
use super::Limit;
use crate::throng::figure;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 84, 3, 1);

/// It logs nothing. A file that it cannot open is none to it.
const NO_FILES: Limit =
    Limit { log: None, finding: Some("file_descriptors"), failure: Some("rtsp_404") };
/// A viewer of a transport stream takes four: its connection, the file, RTP and RTCP. With two more
/// it looks for a free port for ever.
const FILES: usize = 3 * 4;

/// 17 s: 5 s of the idle server, and 10 s of viewers, the length of the file.
#[test]
fn live555_without_a_free_descriptor_is_named_with_its_limit() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("livemax", ADDRESS).unwrap();
    let server = live555::start(&namespace, ADDRESS).unwrap();
    // The connection by which its port was found is not to be counted among its files.
    std::thread::sleep(Duration::from_millis(500));
    server.allow_more_files(FILES).unwrap();
    let film = format!("rtsp://{ADDRESS}/film.ts");
    let crowd = ["view", &film, "-n", "8", "--every", "500ms", "--for", "10s"];
    let ran = NO_FILES.is_met(&server, &crowd);
    assert_eq!(figure(&ran.summary(), "participants.playing"), 3.0, "{ran}");
}

/// It cuts the frame off, whoever plays it and however many: no load is the reason.
const LARGE_FRAMES: Limit = Limit {
    log: Some(("The input frame data was too large for our buffer size (", "frame_too_large")),
    finding: None,
    failure: None,
};

/// 12 s: 5 s of the idle server, and 5 s of a viewer.
#[test]
fn live555_says_that_it_cuts_large_frames() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("livelarge", ADDRESS).unwrap();
    let server = live555::start(&namespace, ADDRESS).unwrap();
    live555::add_film_of_large_frames(&server).unwrap();
    let film = format!("rtsp://{ADDRESS}/large.mkv");
    let crowd = ["view", &film, "-n", "1", "--for", "5s", "--set", &by("tcp")];
    LARGE_FRAMES.is_met(&server, &crowd);
}
