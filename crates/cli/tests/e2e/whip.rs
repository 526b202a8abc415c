//! WHIP publishers: into the real LiveKit, whose participants receive them, and into throng's own
//! stage.

use std::net::Ipv4Addr;
use std::time::Duration;

use throng_observation::MediaKind;
use throng_sim::livekit::{LiveKit, PORT};
use throng_sim::namespace::Namespace;
use throng_store::RunFolder;

use crate::livekit::{access, browser, can_run};
use crate::throng::{Running, Stage, figure, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 82, 0, 1);

#[test]
fn publishers_by_whip_are_seen_in_livekits_room() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("whip", ADDRESS).unwrap();
    let server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let access = access();
    let whip = format!("whip+http://{ADDRESS}:{PORT}/whip/v1");
    let room = format!("livekit+ws://{ADDRESS}:{PORT}/studio");
    let set: Vec<&str> = access.iter().map(String::as_str).collect();
    let publish = [
        &["view", whip.as_str()],
        set.as_slice(),
        &["--set", "target.room=studio", "--set", "crowd.subscribe=none"],
        &["-n", "3", "--every", "200ms", "--for", "13s"],
    ]
    .concat();
    let watch = [
        &["view", room.as_str()],
        set.as_slice(),
        &["--set", "crowd.publish=none", "-n", "1", "--for", "7s"],
    ]
    .concat();
    // A real Chromium in the room: the WHIP video moves.
    let mut browser = browser::member(&namespace, ADDRESS, "studio");
    let (watched, (published, known, numbers)) = valid(|| {
        let mut publishing = Running::start(Some(&namespace), &publish);
        publishing.when_connected(3);
        let watching = Running::start(Some(&namespace), &watch);
        let numbers = browser::numbers(&mut browser, 3, Duration::from_secs(4));
        let known = server.participants("studio").unwrap();
        (watching.wait(), (publishing.wait(), known, numbers))
    });
    drop(browser);
    let (watched, published) = (watched.expect_code(0), published.expect_code(0));
    assert_eq!(known.len(), 5, "three publishers, one viewer, and Chromium: {known:?}");
    assert!(numbers.iter().all(|numbers| numbers.len() >= 5), "{numbers:?} {published}");
    let run = RunFolder::read(watched.folder()).unwrap();
    for kind in [MediaKind::Video, MediaKind::Audio] {
        let mut seen: Vec<_> = run
            .tracks
            .iter()
            .filter(|track| track.kind == kind && track.counters.frames_decodable > 50)
            .filter_map(|track| track.from.as_deref())
            .filter(|from| *from != "chromium")
            // For the viewers these publishers belong to another run, so its mark follows their
            // names.
            .filter_map(|from| Some(from.rsplit_once('-')?.0))
            .collect();
        seen.sort();
        assert_eq!(seen, ["throng-whip-0", "throng-whip-1", "throng-whip-2"], "{kind:?} {watched}");
    }
    let summary = published.summary();
    assert_eq!(figure(&summary, "participants.connected"), 3.0, "{published}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{published}");
    // DELETE ended each session at once; only the browser may remain.
    let left = server.participants("studio").unwrap();
    assert!(left.iter().all(|person| person["identity"] == "chromium"), "{left:?}");
}

#[test]
fn a_publisher_by_whip_reaches_the_stages_viewers() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let whip = format!("whip+{}", stage.whep.replace("/whep", "/whip"));
    // In the codec that viewers take first: of another one the stage shows them its test card.
    let video = "crowd.publish={video=\"144p\",codec=\"h264\"}";
    let publish = [
        &["view", &whip, "--set", "crowd.subscribe=none", "--set", video][..],
        &["-n", "1", "--for", "8s"],
    ]
    .concat();
    let mut publishing = Running::start(None, &publish);
    publishing.when_connected(1);
    let watch = ["view", &stage.target(), "-n", "2", "--for", "4s"];
    let watched = Running::start(None, &watch).wait();
    let published = publishing.wait().expect_code(0);
    assert_eq!(figure(&published.summary(), "participants.failed"), 0.0, "{published}");
    let summary = watched.summary();
    assert_eq!(figure(&summary, "participants.playing"), 2.0, "{watched}");
    // The test card has more than 1 Mbit/s for each viewer.
    let received = figure(&summary, "received_bps");
    assert!((20e3..800e3).contains(&received), "{received} bit/s: {watched}");
}
