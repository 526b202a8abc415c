//! Media that is missing: what hls.js fills, what it jumps over, and what ends it.

use std::collections::BTreeMap;

use super::live::{DATED, fixture as live, lowest, whole};
use super::segmented::{serve, sound_alone, transport_stream, with_sound};
use super::*;

mod formats;
mod places;

/// Packets of the tables that a segment begins with.
const TABLES_LEN: usize = 2 * 188;

/// A recording of segments of two seconds, which is played once.
fn recording(segments: &[Option<Vec<u8>>]) -> Fixture {
    recording_of(segments, PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) })
}

fn recording_of(segments: &[Option<Vec<u8>>], player: PlayerConfig) -> Fixture {
    let mut playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:VOD\n".to_owned();
    let mut files = BTreeMap::new();
    for (number, segment) in segments.iter().enumerate() {
        if segment.is_none() {
            playlist += "#EXT-X-GAP\n";
        }
        playlist += &format!("#EXTINF:2.0,\n{number}.ts\n");
        files.extend(segment.clone().map(|bytes| (format!("/{number}.ts"), bytes)));
    }
    files.insert("/a.m3u8".to_owned(), (playlist + "#EXT-X-ENDLIST\n").into());
    Fixture::at("http://10.0.0.1/a.m3u8", player, 1_000_000, serve(files))
}

fn pictures(number: u64) -> Vec<u8> {
    transport_stream(2 * number..2 * number + 2, 1_800)
}

#[test]
fn sound_that_is_missing_in_a_transport_stream_is_silence() {
    let segments = (0..5).map(|number| Some(with_sound(2 * number..2 * number + 2, 4_000..4_667)));
    let mut fixture = recording(&segments.collect::<Vec<_>>());
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    assert_eq!(fixture.requests.len(), 6, "each segment once: {:?}", fixture.requests);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (0, 0), "{totals:?}");
    assert!((9_990_000..10_030_000).contains(&totals.played_us), "{totals:?}");
    assert_eq!(fixture.frames_played(0), 250);
    let sound = fixture.frames_played(1);
    assert_eq!(sound, 438, "469 frames, of which 31 are missing");

    let mut fixture = live(
        lowest(),
        1_000_000,
        Box::new(|path, _| {
            let number = path.strip_prefix("/low-").and_then(|rest| rest.strip_suffix(".ts"));
            Some(match number.and_then(|number| number.parse::<u64>().ok()) {
                Some(number) => whole(with_sound(4 * number..4 * number + 4, 104_000..105_333)),
                None => DATED.answer(path),
            })
        }),
    );
    fixture.seconds(40);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (0, 0), "{totals:?}");
    assert!(totals.played_us > 38_000_000, "{totals:?}");
}

#[test]
fn sound_alone_gets_no_silence() {
    let sound = |number: u64| sound_alone(2 * number..2 * number + 2, 4_000..4_667);
    let mut fixture = recording(&(0..5).map(|number| Some(sound(number))).collect::<Vec<_>>());
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    let totals = fixture.totals();
    assert_eq!(totals.stall_count, 1, "{totals:?}");
    assert!((640_000..680_000).contains(&totals.skipped_us), "{totals:?}");
}

#[test]
fn a_hole_is_jumped_over_and_is_not_the_end() {
    let segments = (0..5).map(|number| (number != 2).then(|| pictures(number)));
    let mut fixture = recording(&segments.collect::<Vec<_>>());
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    assert_eq!(fixture.requests.len(), 5, "{:?}", fixture.requests);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (1, 2_000_000), "{totals:?}");
    assert!(totals.stall_us < 20_000, "{totals:?}");
    assert_eq!((totals.played_us, fixture.frames_played(0)), (8_000_000, 200));
}

#[test]
fn a_recording_that_begins_later_is_played_from_there() {
    let segments = (0..5).map(|number| (number > 1).then(|| pictures(number)));
    let mut fixture = recording(&segments.collect::<Vec<_>>());
    fixture.seconds(10);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    let totals = fixture.totals();
    assert_eq!(
        (totals.played_us, totals.stall_count, fixture.frames_played(0)),
        (6_000_000, 0, 150)
    );
}

#[test]
fn who_seeks_behind_the_last_frame_is_at_the_end_and_begins_anew() {
    // The last two seconds have tables and nothing else.
    let tables = pictures(4)[..TABLES_LEN].to_vec();
    let segments: Vec<_> = (0..4).map(pictures).chain([tables]).map(Some).collect();
    let habits = UserHabits { seek_every: Some(Duration::from_secs(5)), ..UserHabits::default() };
    let mut fixture = recording_of(&segments, PlayerConfig { habits, ..buffering(6) });
    fixture.seconds(200);
    assert!(fixture.ended.is_none() && fixture.totals().seek_count > 20, "{:?}", fixture.ended);
    for interval in fixture.intervals() {
        let waited = interval.start_awaited_since.map(|since| interval.ended_at - since);
        assert!(waited.is_none_or(|waited| waited < Duration::from_secs(1)), "{interval:?}");
    }
}

#[test]
fn who_begins_inside_a_hole_begins_behind_it() {
    // So much sound that no silence is put in: from 2 s to 14 s.
    let files = BTreeMap::from([
        ("/0.ts".to_owned(), with_sound(0..20, 2_000..14_000)),
        (
            "/a.m3u8".to_owned(),
            "#EXTM3U\n#EXT-X-TARGETDURATION:20\n#EXTINF:20,\n0.ts\n#EXT-X-ENDLIST\n".into(),
        ),
    ]);
    let position = PlaybackPosition::At(Duration::from_secs(5));
    let once = PlayerConfig { at_end: AtEnd::Leave, position, ..buffering(20) };
    let mut fixture = Fixture::at("http://10.0.0.1/a.m3u8", once, 5_000_000, serve(files));
    fixture.seconds(12);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.totals());
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (0, 0), "{totals:?}");
    assert!((5_900_000..6_100_000).contains(&totals.played_us), "{totals:?}");
}

#[test]
fn who_leaves_before_its_buffer_is_empty_has_failed_if_nothing_more_came() {
    let segments: Vec<_> = (0..5).map(|number| Some(pictures(number))).collect();
    let mut fixture = recording(&segments);
    let there = (0..2).map(|number| (format!("/{number}.ts"), pictures(number)));
    fixture.answers = serve(there.collect());
    fixture.seconds(2);
    assert_eq!(fixture.ended, None, "it has what it plays");
    let anomalies = fixture.anomalies();
    assert!(anomalies.iter().any(|text| text.contains("cannot fetch more: http_404")));
    fixture.viewer.handle(fixture.now, Input::Leave { others_follow: false });
    fixture.drain();
    assert!(
        fixture.failure().starts_with("http_404: http://10.0.0.1/2.ts"),
        "{}",
        fixture.failure()
    );
}

#[test]
fn what_is_buffered_is_played_before_a_missing_segment_ends_the_viewer() {
    let segments: Vec<_> = (0..5).map(|number| Some(pictures(number))).collect();
    let mut fixture = recording(&segments);
    let there = (0..2).map(|number| (format!("/{number}.ts"), pictures(number)));
    fixture.answers = serve(there.collect());
    fixture.seconds(3);
    assert_eq!(fixture.ended, None, "it has what it plays");
    assert!(fixture.requests.last().is_some_and(|last| last.starts_with("/2.ts")));
    fixture.seconds(3);
    assert!(
        fixture.failure().starts_with("http_404: http://10.0.0.1/2.ts"),
        "{}",
        fixture.failure()
    );
    let totals = fixture.totals();
    assert_eq!((totals.played_us, fixture.frames_played(0)), (4_000_000, 100), "{totals:?}");
    assert_eq!(totals.requests_failed, 1, "{:?}", fixture.requests);
}

/// A live stream whose segments lack their tables, as `lacks` says by their order.
fn without_tables(lacks: fn(usize) -> bool) -> Fixture {
    let mut order = Vec::new();
    let answers: Answers = Box::new(move |path, _| {
        let mut reply = DATED.answer(path);
        if path.ends_with(".ts") {
            if !order.contains(&path.to_owned()) {
                order.push(path.to_owned());
            }
            let at = order.iter().position(|known| known == path).unwrap_or_default();
            if lacks(at) {
                reply = whole(reply.body[TABLES_LEN..].to_vec());
            }
        }
        Some(reply)
    });
    let mut fixture = live(lowest(), 1_000_000, answers);
    fixture.seconds(30);
    fixture
}

#[test]
fn a_first_segment_without_tables_is_a_gap_and_later_ones_need_none() {
    // go2rtc begins each segment with the tables, but for the first one of a session.
    let first = without_tables(|at| at == 0);
    let totals = first.totals();
    assert_eq!((first.ended.is_none(), totals.stall_count, totals.missed), (true, 0, 1));
    assert_eq!(totals.skipped_us, 0, "it begins with the second one: {totals:?}");
    let frames = first.frames_played(0);
    assert!(frames.abs_diff(totals.played_us / 40_000) <= 2, "{frames} {totals:?}");
    assert!(first.anomalies().iter().any(|text| text.contains("never came")));

    let later = without_tables(|at| at > 0);
    let totals = later.totals();
    assert_eq!((totals.stall_count, totals.missed, totals.skipped_us), (0, 0, 0), "{totals:?}");
    assert_eq!(later.anomalies(), Vec::<&str>::new());
    assert!(later.frames_played(0) > 700, "{totals:?}");
}
