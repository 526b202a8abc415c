//! Holes in other formats than HLS of transport streams.

use super::super::fragmented::{self, FPS, fragment};
use super::super::movie::SIZE;
use super::*;

/// A player that plays a recording once.
fn once() -> PlayerConfig {
    PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) }
}

/// Ten seconds in segments of two, without the first 0.8 s of the third.
fn without_a_beginning() -> Vec<Vec<u8>> {
    let segment = |number: u32| {
        let missing = if number == 2 { 20 } else { 0 };
        fragment(2 * number * FPS + missing..2 * (number + 1) * FPS)
    };
    (0..5).map(segment).collect()
}

/// A server of segments of MP4, and of what names them.
fn of_segments(path: &str, text: String, segments: &[Vec<u8>]) -> Fixture {
    let numbered = segments.iter().enumerate();
    let mut files: BTreeMap<String, Vec<u8>> =
        numbered.map(|(number, bytes)| (format!("/{number}.m4s"), bytes.clone())).collect();
    files.insert("/init.mp4".to_owned(), fragmented::init(SIZE));
    files.insert(path.to_owned(), text.into_bytes());
    Fixture::at(&format!("http://10.0.0.1{path}"), once(), 1_000_000, serve(files))
}

/// It is played to its end, once, and this hole is jumped over.
#[track_caller]
fn assert_jumps(mut fixture: Fixture, hole_us: u64) {
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (1, hole_us), "{totals:?}");
    assert!(totals.stall_us < 20_000, "{totals:?}");
    let played_us = 10_000_000 - hole_us;
    assert_eq!((totals.played_us, fixture.frames_played(0)), (played_us, played_us / 40_000));
    let mut requests = fixture.requests.clone();
    requests.sort();
    requests.dedup();
    assert_eq!(requests.len(), fixture.requests.len(), "each once: {:?}", fixture.requests);
}

/// A recording that lists so many segments, with `before_third` before the third one.
pub(super) fn hls(count: usize, before_third: &str, segments: &[Vec<u8>]) -> Fixture {
    let listed = (0..count).map(|number| {
        let before = if number == 2 { before_third } else { "" };
        format!("{before}#EXTINF:2,\n{number}.m4s\n")
    });
    let text = format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"init.mp4\"\n{}#EXT-X-ENDLIST\n",
        listed.collect::<String>()
    );
    of_segments("/a.m3u8", text, segments)
}

#[test]
fn a_hole_in_hls_of_mp4_is_jumped_over() {
    assert_jumps(hls(5, "", &without_a_beginning()), 800_000);
}

/// A recording whose segments have these times.
pub(super) fn dash(times: &str, segments: &[Vec<u8>]) -> Fixture {
    let text = format!(
        r#"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"
           mediaPresentationDuration="PT10S"><Period><AdaptationSet contentType="video">
           <SegmentTemplate timescale="1000" startNumber="0" initialization="init.mp4"
           media="$Number$.m4s"><SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>
           <Representation id="v" bandwidth="400000"/></AdaptationSet></Period></MPD>"#
    );
    of_segments("/a.mpd", text, segments)
}

#[test]
fn a_hole_in_dash_is_jumped_over() {
    let segments = without_a_beginning();
    assert_jumps(dash(r#"<S t="0" d="2000" r="4"/>"#, &segments), 800_000);
    // The manifest knows of it.
    let segments = [0..2, 2..4, 6..8, 8..10].map(fragmented::seconds);
    let times = r#"<S t="0" d="2000" r="1"/><S t="6000" d="2000" r="1"/>"#;
    assert_jumps(dash(times, &segments), 2_000_000);
}

/// A media element that loads a file by itself has no ranges at whose end it stops: its clock goes
/// on, and the last picture stays.
#[test]
fn a_file_is_played_on_where_something_is_missing_in_it() {
    let media = [0..4, 6..10].map(fragmented::seconds).concat();
    let body = [fragmented::init(SIZE), media].concat();
    let answers: Answers = Box::new(move |_, range| Some(Reply::range(&body, range)));
    let mut fixture = Fixture::new(once(), 1_000_000, answers);
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (0, 0), "{totals:?}");
    assert_eq!((totals.played_us, fixture.frames_played(0)), (10_000_000, 200), "{totals:?}");
}
