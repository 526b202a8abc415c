//! A hole at each place of a segment, in each format of segments.

use std::ops::Range;

use super::super::fragmented::{FPS, fragment};
use super::super::segmented;
use super::formats::{dash, hls};
use super::*;

/// 0.8 s of ten are missing in all that follows.
const HOLE_US: u64 = 800_000;
const SEGMENT_FRAMES: u32 = 2 * FPS;

/// Five segments by the frames that each has, without those that are missing.
fn without(missing: &Range<u32>) -> Vec<Vec<Range<u32>>> {
    let segment = |number: u32| {
        let (from, to) = (number * SEGMENT_FRAMES, (number + 1) * SEGMENT_FRAMES);
        let pieces = [from..missing.start.clamp(from, to), missing.end.clamp(from, to)..to];
        pieces.into_iter().filter(|frames| !frames.is_empty()).collect()
    };
    (0..5).map(segment).collect()
}

/// The same as MP4.
fn in_fragments(segments: Vec<Vec<Range<u32>>>) -> Vec<Vec<u8>> {
    let segment = |pieces: Vec<Range<u32>>| pieces.into_iter().flat_map(fragment).collect();
    segments.into_iter().map(segment).collect()
}

/// It is played to its end, once; so often it stalls for a moment, and jumps over the hole.
#[track_caller]
fn assert_plays(mut fixture: Fixture, what: &str, jumps: u64, played_us: &Range<u64>) {
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{what}: {:?}", fixture.anomalies());
    let totals = fixture.totals();
    let jumped = (totals.stall_count, totals.skipped_us);
    assert_eq!(jumped, (jumps, jumps * HOLE_US), "{what}: {totals:?}");
    assert!(totals.stall_us < 20_000, "{what}: {totals:?}");
    assert!(played_us.contains(&totals.played_us), "{what}: {totals:?}");
    assert_eq!(fixture.frames_played(0), 230, "{what}: {totals:?}");
}

/// Without the hole.
const REST_US: Range<u64> = 9_199_000..9_201_000;

#[test]
fn a_hole_in_mp4_is_jumped_over_wherever_it_is() {
    for (what, missing, jumps) in [
        // What comes first is played first.
        ("the begin of all", 0..20, 0),
        ("the begin of a segment", 100..120, 1),
        ("the middle of a segment", 110..130, 1),
        ("the end of a segment", 130..150, 1),
        ("two segments", 140..160, 1),
        ("the end of all", 230..250, 0),
    ] {
        let segments = in_fragments(without(&missing));
        assert_plays(hls(5, "", &segments), &format!("HLS: {what}"), jumps, &REST_US);
        let times = r#"<S t="0" d="2000" r="4"/>"#;
        assert_plays(dash(times, &segments), &format!("DASH: {what}"), jumps, &REST_US);
    }
}

/// The times begin anew with the third segment: where that begins is where its media does.
#[test]
fn a_hole_behind_a_discontinuity_is_jumped_over() {
    for (what, missing, jumps) in
        [("its begin", 100..120, 0), ("its middle", 110..130, 1), ("its end", 130..150, 1)]
    {
        let mut segments = without(&missing);
        for frames in segments.iter_mut().skip(2).flatten() {
            *frames = frames.start - 100..frames.end - 100;
        }
        let fixture = hls(5, "#EXT-X-DISCONTINUITY\n", &in_fragments(segments));
        assert_plays(fixture, what, jumps, &REST_US);
    }
}

/// hls.js makes MP4 of them, in which a picture lasts until the next one.
#[test]
fn pictures_that_are_missing_in_a_transport_stream_leave_no_hole() {
    for (what, missing) in [("the begin", 100..120), ("the end", 130..150)] {
        let segment = |pieces: Vec<Range<u32>>| {
            let pieces = pieces.into_iter();
            let frames = pieces.map(|frames| u64::from(frames.start)..u64::from(frames.end));
            frames.flat_map(|frames| segmented::pictures(frames, 1_800)).collect::<Vec<u8>>()
        };
        let segments = without(&missing).into_iter().map(|pieces| Some(segment(pieces)));
        let fixture = recording(&segments.collect::<Vec<_>>());
        assert_plays(fixture, what, 0, &(9_990_000..10_010_000));
    }
}

#[test]
fn what_is_buffered_of_mp4_is_played_before_a_missing_segment_ends_the_viewer() {
    let all = in_fragments(without(&(0..0)));
    let (there, times) = (&all[..2], r#"<S t="0" d="2000" r="4"/>"#);
    for (what, mut fixture) in [("HLS", hls(5, "", there)), ("DASH", dash(times, there))] {
        fixture.seconds(3);
        assert_eq!(fixture.ended, None, "{what}: it has what it plays");
        fixture.seconds(3);
        let failure = fixture.failure();
        assert!(failure.starts_with("http_404: http://10.0.0.1/2.m4s"), "{what}: {failure}");
        let totals = fixture.totals();
        let played = (totals.played_us, fixture.frames_played(0), totals.requests_failed);
        assert_eq!(played, (4_000_000, 100, 1), "{what}: {totals:?}");
    }
}
