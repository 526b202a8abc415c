//! Matroska: seeks before the index is known, and files that are cut off.

use super::*;

/// An element with these contents (RFC 8794).
fn element(id: u32, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let id = id.to_be_bytes().into_iter().skip_while(|byte| *byte == 0);
    let size = (1 << 56 | body.len() as u64).to_be_bytes();
    id.chain(size).chain(body).collect()
}

/// Coded size of a frame.
const FRAME_BYTES: usize = 2_000;
const BYTES_PER_S: u64 = 25 * FRAME_BYTES as u64;

/// A file of so many seconds of VP8 at 25 frames a second, in clusters of one second, without an
/// index.
fn file(seconds: u16) -> Vec<u8> {
    with_clusters(seconds, 0..seconds)
}

/// The same with the clusters of these seconds alone.
fn with_clusters(seconds: u16, clusters: impl Iterator<Item = u16>) -> Vec<u8> {
    let duration = f64::from(seconds) * 1_000.0;
    let info = element(0x1549_a966, &[&element(0x4489, &[&duration.to_be_bytes()])]);
    let track = [element(0xd7, &[&[1]]), element(0x83, &[&[1]]), element(0x86, &[b"V_VP8"])];
    let tracks = element(0x1654_ae6b, &[&element(0xae, &[&track.concat()])]);
    let clusters = clusters.flat_map(|second| {
        let mut parts = element(0xe7, &[&(u32::from(second) * 1_000).to_be_bytes()]);
        for frame in 0..25_u16 {
            let [high, low] = (frame * 40).to_be_bytes();
            let flags = if frame == 0 { 0x80 } else { 0 };
            parts.extend(element(0xa3, &[&[0x81, high, low, flags], &[0x55; FRAME_BYTES]]));
        }
        element(0x1f43_b675, &[&parts])
    });
    let all = [info, tracks, clusters.collect()].concat();
    [element(0x1a45_dfa3, &[]), element(0x1853_8067, &[&all])].concat()
}

fn fixture(player: PlayerConfig, body: Vec<u8>) -> Fixture {
    let answers: Answers = Box::new(move |_, range| Some(Reply::range(&body, range)));
    Fixture::at("http://10.0.0.1/x.webm", player, 10 * BYTES_PER_S, answers)
}

#[test]
fn a_seek_without_an_index_goes_on_with_the_next_cluster() {
    for (at_ms, expect_s) in [(10_000, 9.0..13.0), (25_333, 24.0..29.0), (39_900, 37.0..40.1)] {
        let position = PlaybackPosition::At(Duration::from_millis(at_ms));
        let player = PlayerConfig { at_end: AtEnd::Leave, ..from(position) };
        let mut fixture = fixture(player, file(40));
        fixture.run(Duration::from_millis(900));
        let playing = fixture.viewer.session.as_ref().map(|session| session.playout.position_us());
        let at_s = playing.map_or(0.0, |us| us as f64 / 1e6);
        assert!(expect_s.contains(&at_s), "{at_ms}: {at_s} {:?}", fixture.ended);
        fixture.seconds(35);
        assert_eq!(fixture.ended, Some(Outcome::Completed), "{at_ms}: {:?}", fixture.anomalies());
        let begun_s = 40.0 - fixture.frames_played(0) as f64 / 25.0;
        assert!(begun_s < at_s && at_s < begun_s + 0.9, "from {begun_s} s: {at_s}");
    }
}

#[test]
fn a_file_that_is_cut_off_ends_as_one_that_is_not_and_is_played_again() {
    let mut whole = file(4);
    whole.truncate(whole.len() - 10_000);
    let again = PlayerConfig { at_end: AtEnd::Repeat, ..buffering(5) };
    let mut again = fixture(again, whole.clone());
    again.seconds(12);
    assert_eq!(again.ended, None);
    let loops = again.totals().played_us as f64 / 3_800_000.0;
    assert!((2.7..3.2).contains(&loops), "{loops}: {:?}", again.totals());
    assert!(again.anomalies().iter().all(|text| text.contains("is cut off")));

    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(5) };
    let mut once = fixture(once, whole);
    once.seconds(6);
    assert_eq!(once.ended, Some(Outcome::Completed));
    assert_eq!(once.frames_played(0), 95, "100 without the last five");
}

/// As of a file of MP4: its clock goes on, and the last picture stays.
#[test]
fn a_file_is_played_on_where_clusters_are_missing() {
    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) };
    let mut fixture = fixture(once, with_clusters(10, (0..4).chain(6..10)));
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (0, 0), "{totals:?}");
    assert!((9_950_000..=10_000_000).contains(&totals.played_us), "{totals:?}");
    assert_eq!(fixture.frames_played(0), 200, "{totals:?}");
}
