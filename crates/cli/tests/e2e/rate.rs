//! A publisher sends at the rate that the server allows: the limit of a room on the real Janus
//! VideoRoom.

use throng_observation::MediaKind;
use throng_sim::janus::{ADMIN_KEY, Janus};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::conference::ADDRESS;
use crate::throng::{Ran, Running, valid};

/// The video bit rate that one of two participants sends from the fifth second on, in a room with
/// `limit`.
fn sent_bps(limit: &[&str]) -> (Ran, f64) {
    let namespace = Namespace::with_veth("rate", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    // This room does not exist: the run creates it.
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/77");
    let key = format!("room.admin_key=\"{ADMIN_KEY}\"");
    let publish = r#"crowd.publish={video="360p"}"#;
    let view = ["view", &url, "-n", "2", "--every", "100ms", "--for", "14s"];
    let more = ["--set", &key, "--set", publish];
    let (ran, ()) = valid(|| {
        (Running::start(Some(&namespace), &[&view[..], &more, limit].concat()).wait(), ())
    });
    let run = RunFolder::read(ran.folder()).unwrap();
    let is_counted = |second: i64| (5..12).contains(&second);
    let rows = run.sent.iter().filter(|row| row.kind == MediaKind::Video && is_counted(row.second));
    let bytes: u64 =
        rows.map(|row| row.counters.wire_bytes + row.counters.retransmitted_bytes).sum();
    (ran, bytes as f64 * 8.0 / 7.0 / 2.0)
}

/// Half a minute: two runs of 14 s, without the limit and with it.
#[test]
fn a_publisher_keeps_to_the_limit_of_its_room() {
    if !requires_root() {
        return;
    }
    let limit_bps = 128_000.0;
    let (ran, free_bps) = sent_bps(&[]);
    assert!((0.8e6..1.3e6).contains(&free_bps), "{free_bps} without a limit\n{ran}");
    let (ran, kept_bps) = sent_bps(&["--set", r#"room.bitrate="128kbit/s""#]);
    assert!(
        (0.3 * limit_bps..1.3 * limit_bps).contains(&kept_bps),
        "{kept_bps} of {limit_bps}\n{ran}"
    );
    // It is still a video: both participants receive the other.
    let run = RunFolder::read(ran.folder()).unwrap();
    let played = run
        .tracks
        .iter()
        .filter(|t| t.kind == MediaKind::Video && t.counters.frames_decodable > 100);
    assert_eq!(played.count(), 2, "{ran}");
}
