//! Pictures that come seldom, or end before the sound: few frames are due. Where pictures are
//! missing, they are due all the same.

use std::collections::BTreeMap;

use super::segmented::{serve, transport_stream, with_sound};
use super::*;

/// Tables and the first frame of a transport stream.
const FIRST_FRAME_LEN: usize = (2 + 10) * 188;

/// The rate by which a second of a source of `fps` is judged: frames that came, and those that were
/// due.
fn rates(fixture: &Fixture, fps: f64) -> Vec<(f64, f64)> {
    let judged = fixture.track_intervals(0).filter(|interval| interval.frames_due_us >= 500_000);
    let rate = |interval: &TrackInterval| {
        let due_s = interval.frames_due_us as f64 / 1e6;
        let source = interval.source_fps.map_or(0.0, f64::from);
        assert!((source - fps).abs() < fps / 50.0, "{source} of {fps}");
        (interval.counters.frames_decodable as f64, fps * due_s)
    };
    judged.map(rate).collect()
}

#[test]
fn slides_are_due_when_they_are() {
    // A slide every two seconds, in segments of one slide.
    let slide = |number: u64| {
        let stream = transport_stream(2 * number..2 * number + 2, 1_800);
        (format!("/{number}.ts"), stream[..FIRST_FRAME_LEN].to_vec())
    };
    let mut files: BTreeMap<String, Vec<u8>> = (0..20).map(slide).collect();
    let listed = (0..20).map(|number| format!("#EXTINF:2.0,\n{number}.ts\n"));
    let listed = listed.collect::<String>();
    let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{listed}#EXT-X-ENDLIST\n");
    files.insert("/a.m3u8".to_owned(), text.into_bytes());
    let mut fixture = Fixture::at("http://10.0.0.1/a.m3u8", buffering(10), 1_000_000, serve(files));
    fixture.seconds(30);
    assert!((14..=15).contains(&fixture.frames_played(0)), "{}", fixture.frames_played(0));
    assert_eq!(fixture.anomalies(), Vec::<&str>::new());
    let rates = rates(&fixture, 0.5);
    assert!(rates.len() > 10, "{rates:?}");
    for (came, due) in rates {
        assert!((came - due).abs() < 0.01, "{came} of {due}");
    }
}

#[test]
fn a_file_whose_pictures_end_before_its_sound_is_no_slow_one() {
    let movie = movie::with_pictures(20, 8);
    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(5) };
    // So fast that it is not downloaded when the pictures have ended.
    let mut fixture = Fixture::of(once, movie.bytes_per_s * 12 / 10, &movie);
    fixture.seconds(25);
    assert_eq!(fixture.totals().stall_count, 0, "{:?}", fixture.totals());
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    assert_eq!(fixture.frames_played(0), 200);
    let rates = rates(&fixture, 25.0);
    assert!((8..=9).contains(&rates.len()), "none is due after 8 s: {rates:?}");
    for (came, due) in rates {
        assert!((came - due).abs() < 0.5, "{came} of {due}");
    }
}

#[test]
fn in_a_stall_frames_are_due() {
    let movie = movie(60, true);
    let mut fixture = Fixture::of(buffering(10), 20 * movie.bytes_per_s, &movie);
    fixture.seconds(5);
    fixture.bytes_per_s = 0;
    fixture.seconds(20);
    let (came, due) = rates(&fixture, 25.0).pop().unwrap();
    assert!(came == 0.0 && (24.0..26.0).contains(&due), "{came} of {due}");
}

/// A transport stream without the packets of its pictures.
fn without_pictures(stream: &[u8]) -> Vec<u8> {
    let is_sound = |packet: &&[u8]| (packet[1] & 0x1f, packet[2]) != (1, 0);
    stream.chunks(188).filter(is_sound).flatten().copied().collect()
}

#[test]
fn a_picture_that_stands_still_while_the_sound_goes_on_is_bad() {
    for missing in [0..0, 4..8] {
        // The pictures of 8 s are missing.
        let segment = |number: u64| {
            let stream = with_sound(2 * number..2 * number + 2, 0..0);
            let is_missing = missing.contains(&number);
            let stream = if is_missing { without_pictures(&stream) } else { stream };
            (format!("/{number}.ts"), stream)
        };
        let mut files: BTreeMap<String, Vec<u8>> = (0..15).map(segment).collect();
        let listed = (0..15).map(|number| format!("#EXTINF:2.0,\n{number}.ts\n"));
        let listed = listed.collect::<String>();
        let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{listed}#EXT-X-ENDLIST\n");
        files.insert("/a.m3u8".to_owned(), text.into_bytes());
        let mut fixture =
            Fixture::at("http://10.0.0.1/a.m3u8", buffering(10), 1_000_000, serve(files));
        fixture.seconds(25);
        let totals = fixture.totals();
        assert_eq!((totals.stall_count, totals.skipped_us), (0, 0), "{:?}", fixture.anomalies());
        let is_bad = |interval: &&TrackInterval| {
            let (frames, due_us) = (interval.counters.frames_decodable, interval.frames_due_us);
            let source = interval.source_fps.map_or(0.0, f64::from);
            TrackInterval::is_below_source(frames, due_us, source, 0.8)
        };
        let bad = fixture.track_intervals(0).filter(is_bad).count() as u64;
        let expect = 2 * (missing.end - missing.start);
        assert!(bad.abs_diff(expect) <= expect / 8, "{bad} s of {expect} s");
    }
}
