//! HLS recordings: playlists, segments, renditions.

use std::collections::BTreeMap;

use super::*;

/// Packets of a transport stream: its tables, and seconds of H.264 frames with one key frame each.
pub(super) fn transport_stream(seconds: std::ops::Range<u64>, frame_bytes: usize) -> Vec<u8> {
    pictures(25 * seconds.start..25 * seconds.end, frame_bytes)
}

/// The same of frames by their numbers, of which 25 are a second.
pub(super) fn pictures(frames: std::ops::Range<u64>, frame_bytes: usize) -> Vec<u8> {
    program(frames, frame_bytes, None)
}

/// The same with AAC, without what begins between these milliseconds.
pub(super) fn with_sound(
    seconds: std::ops::Range<u64>,
    silent_ms: std::ops::Range<u64>,
) -> Vec<u8> {
    program(25 * seconds.start..25 * seconds.end, 1_800, Some(&silent_ms))
}

/// The same with AAC alone.
pub(super) fn sound_alone(
    seconds: std::ops::Range<u64>,
    silent_ms: std::ops::Range<u64>,
) -> Vec<u8> {
    program(25 * seconds.start..25 * seconds.end, 0, Some(&silent_ms))
}

/// Frames of AAC at 48 kHz have so many ticks of 90 kHz.
const SOUND_TICKS: u64 = 1_920;

/// Where the time stamps begin.
const FIRST_STAMP: u64 = 126_000;

/// With pictures of `frame_bytes`, if they have some.
fn program(
    frames: std::ops::Range<u64>,
    frame_bytes: usize,
    silent_ms: Option<&std::ops::Range<u64>>,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut counters = BTreeMap::<u16, u8>::new();
    let mut packet = |pid: u16, starts: bool, adaptation: &[u8], payload: &[u8]| {
        let room = 184 - payload.len();
        let stuffing = room > 0 || !adaptation.is_empty();
        out.extend([0x47, u8::from(starts) << 6 | (pid >> 8) as u8, pid as u8]);
        let counter = counters.entry(pid).or_default();
        out.push(if stuffing { 0x30 } else { 0x10 } | *counter & 0x0f);
        *counter = counter.wrapping_add(1);
        if stuffing {
            let length = room - 1;
            out.push(length as u8);
            if length > 0 {
                let flags = adaptation.first().copied().unwrap_or(0);
                out.push(flags);
                out.extend(std::iter::repeat_n(0xff, length - 1));
            }
        }
        out.extend_from_slice(payload);
    };
    let section = |mut body: Vec<u8>| {
        let mut all = vec![0];
        all.append(&mut body);
        all
    };
    let with_crc = |body: &[u8]| {
        let mut crc = u32::MAX;
        for byte in body {
            crc ^= u32::from(*byte) << 24;
            for _ in 0..8 {
                crc = if crc & 0x8000_0000 == 0 { crc << 1 } else { (crc << 1) ^ 0x04c1_1db7 };
            }
        }
        [body, &crc.to_be_bytes()].concat()
    };
    let pat = with_crc(&[0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0]);
    let sound: &[u8] = if silent_ms.is_some() { &[0x0f, 0xe1, 1, 0xf0, 0] } else { &[] };
    let video: &[u8] = if frame_bytes > 0 { &[0x1b, 0xe1, 0, 0xf0, 0] } else { &[] };
    let len = (13 + video.len() + sound.len()) as u8;
    let map = [2, 0xb0, len, 0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0];
    packet(0, true, &[], &section(pat));
    packet(0x1000, true, &[], &section(with_crc(&[&map[..], video, sound].concat())));
    let head = |stream: u8, ticks: u64| {
        let pts = FIRST_STAMP + ticks;
        let time = [
            0x21 | (pts >> 29) as u8 & 0x0e,
            (pts >> 22) as u8,
            1 | (pts >> 14) as u8 & 0xfe,
            (pts >> 7) as u8,
            1 | (pts << 1) as u8,
        ];
        [&[0, 0, 1, stream, 0, 0, 0x80, 0x80, 5][..], &time].concat()
    };
    for frame in frames {
        let mut pes = head(0xe0, frame * 3_600);
        let unit = if frame % 25 == 0 { 5 } else { 1 };
        pes.extend([0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x60 | unit, 0x88]);
        // Without pictures nothing is left of it.
        pes.resize(frame_bytes, 0x55);
        for (at, chunk) in pes.chunks(180).enumerate() {
            let adaptation: &[u8] = if at == 0 && frame % 25 == 0 { &[0x40] } else { &[0] };
            packet(0x100, at == 0, adaptation, chunk);
        }
        let Some(silent_ms) = silent_ms else { continue };
        for ticks in (frame * 3_600..(frame + 1) * 3_600).filter(|at| at % SOUND_TICKS == 0) {
            if !silent_ms.contains(&(ticks / 90)) {
                let adts = [0xff, 0xf1, 0x4c, 0x80, 0x0c, 0x9f, 0xfc];
                packet(0x101, true, &[0], &[&head(0xc0, ticks)[..], &adts, &[0; 93]].concat());
            }
        }
    }
    out
}

/// A recording of `count` segments of two seconds, in a low and a high rendition.
fn site(count: u64) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8\n";
    files.insert("/master.m3u8".to_owned(), master.into());
    for (name, frame_bytes) in [("low", 1_800), ("high", 7_200)] {
        let mut playlist =
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:VOD\n".to_owned();
        for number in 0..count {
            playlist += &format!("#EXTINF:2.0,\n{name}-{number}.ts\n");
            let bytes = transport_stream(2 * number..2 * number + 2, frame_bytes);
            files.insert(format!("/{name}-{number}.ts"), bytes);
        }
        files.insert(format!("/{name}.m3u8"), (playlist + "#EXT-X-ENDLIST\n").into());
    }
    files
}

pub(super) fn serve(files: BTreeMap<String, Vec<u8>>) -> Answers {
    Box::new(move |path, range| {
        Some(match (files.get(path), range) {
            (Some(body), None) => {
                let length = ("content-length", body.len().to_string());
                Reply { body: body.clone(), ..Reply::of(200, &[length]) }
            }
            (Some(body), range) => Reply::range(body, range),
            (None, _) => Reply::of(404, &[]),
        })
    })
}

fn fixture(player: PlayerConfig, bytes_per_s: u64, files: BTreeMap<String, Vec<u8>>) -> Fixture {
    Fixture::at("http://10.0.0.1/master.m3u8", player, bytes_per_s, serve(files))
}

fn paths(fixture: &Fixture) -> Vec<&str> {
    fixture.requests.iter().map(|request| request.split(' ').next().unwrap()).collect()
}

#[test]
fn segments_are_fetched_one_after_the_other_until_the_buffer_is_full() {
    let lowest =
        PlayerConfig { rendition: throng_scenario::RenditionPolicy::Lowest, ..buffering(6) };
    let mut fixture = fixture(lowest, 1_000_000, site(20));
    fixture.seconds(4);
    assert_eq!(
        paths(&fixture)[..5],
        ["/master.m3u8", "/low.m3u8", "/low-0.ts", "/low-1.ts", "/low-2.ts"]
    );
    fixture.seconds(8);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.requests_failed, totals.switches), (0, 0, 0));
    let segments = totals.requests - 2;
    assert!(
        (8..=10).contains(&segments),
        "12 s were played, up to 8 s are ahead: {:?}",
        fixture.requests
    );
    let played = fixture.frames_played(0);
    assert!((290..=300).contains(&played), "{played}");
    assert!(totals.other_bytes > 300 && totals.media_bytes > 16 * 45_000, "{totals:?}");
    let phases = [
        Phase::Described,
        Phase::Playing,
        Phase::FirstPacket,
        Phase::FirstFrame,
        Phase::PlaybackStarted,
    ];
    for pair in phases.windows(2) {
        assert!(fixture.reached(pair[0]).unwrap() <= fixture.reached(pair[1]).unwrap(), "{pair:?}");
    }
}

#[test]
fn playlists_import_the_variables_of_their_master_playlist() {
    let mut files = site(2);
    let master = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"of\",VALUE=\"low\"\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=400000\nvariant.m3u8\n";
    let variant = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-DEFINE:IMPORT=\"of\"\n\
                   #EXTINF:2.0,\n{$of}-0.ts\n#EXTINF:2.0,\n{$of}-1.ts\n#EXT-X-ENDLIST\n";
    files.insert("/master.m3u8".to_owned(), master.into());
    files.insert("/variant.m3u8".to_owned(), variant.into());
    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) };
    let mut fixture = fixture(once, 1_000_000, files);
    fixture.seconds(8);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.observed.last());
    assert_eq!(fixture.frames_played(0), 100, "{:?}", fixture.anomalies());
}

#[test]
fn every_frame_is_played_once_to_the_end() {
    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) };
    let mut fixture = fixture(once, 1_000_000, site(5));
    fixture.seconds(15);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.observed.last());
    assert_eq!(fixture.frames_played(0), 250, "{:?}", fixture.anomalies());
    assert_eq!(fixture.totals().stall_count, 0);
}

#[test]
fn what_was_read_once_is_not_read_again_where_the_server_says_that_it_is_the_same() {
    for has_validator in [true, false] {
        let lowest =
            PlayerConfig { rendition: throng_scenario::RenditionPolicy::Lowest, ..buffering(6) };
        let twice = PlayerConfig { at_end: AtEnd::Repeat, ..lowest };
        let mut serve = serve(site(5));
        let answers = move |path: &str, range| {
            let mut reply = serve(path, range)?;
            let validator = ("etag", format!("\"{path}\""));
            reply.headers.extend(Some(validator).filter(|_| has_validator));
            Some(reply)
        };
        let url = "http://10.0.0.1/master.m3u8";
        let mut fixture = Fixture::at(url, twice, 1_000_000, Box::new(answers));
        fixture.seconds(18);
        let totals = fixture.totals();
        assert!(fixture.frames_played(0) > 400, "{:?}", fixture.anomalies());
        assert_eq!((totals.stall_count, totals.requests_failed), (0, 0));
        // Five segments of about 100 kB, and then the first kilobyte of each.
        let all = totals.media_bytes + totals.other_bytes;
        let read = if has_validator { 450_000..600_000 } else { all - 20_000..all + 1 };
        assert!(read.contains(&fixture.delivered), "{} of {all}", fixture.delivered);
    }
}

#[test]
fn the_rendition_follows_the_rate() {
    let mut fixture = fixture(buffering(6), 1_000_000, site(40));
    fixture.seconds(12);
    assert!(paths(&fixture).contains(&"/high.m3u8"), "{:?}", fixture.requests);
    assert_eq!(fixture.totals().switches, 1);
    fixture.bytes_per_s = 100_000;
    fixture.seconds(30);
    let last = *paths(&fixture).last().unwrap();
    assert!(last.starts_with("/low-"), "0.8 Mbit/s: {last}");
    // Where the renditions meet, no frame is missing and none is played twice.
    let totals = fixture.totals();
    let frames = totals.played_us as f64 / 40_000.0;
    assert!((fixture.frames_played(0) as f64 - frames).abs() < 30.0, "{totals:?}");
}

#[test]
fn a_player_with_a_small_picture_takes_no_larger_rendition_whatever_the_rate() {
    let in_sizes = |low: &str, high: &str| {
        let mut files = site(20);
        let of = |bandwidth: u32, size: &str, name: &str| {
            format!("#EXT-X-STREAM-INF:BANDWIDTH={bandwidth},RESOLUTION={size}\n{name}.m3u8\n")
        };
        let master = format!("#EXTM3U\n{}{}", of(400_000, low, "low"), of(1_600_000, high, "high"));
        files.insert("/master.m3u8".to_owned(), master.into());
        files
    };
    let screen = |lines| PlayerConfig { screen_lines: Some(lines), ..buffering(6) };
    let highest = |lines| PlayerConfig {
        rendition: throng_scenario::RenditionPolicy::Highest,
        ..screen(lines)
    };
    for (player, low, high, plays_high) in [
        (screen(360), "640x360", "1280x720", false),
        (highest(360), "640x360", "1280x720", false),
        (screen(361), "640x360", "1280x720", true),
        // Held upright.
        (highest(360), "360x640", "720x1280", false),
        // Of one size the better is played.
        (highest(360), "640x360", "640x360", true),
    ] {
        let what = format!("{:?} of {low}, {high}", player.screen_lines);
        let mut fixture = fixture(player, 1_000_000, in_sizes(low, high));
        fixture.seconds(12);
        assert_eq!(paths(&fixture).contains(&"/high.m3u8"), plays_high, "{what}");
        assert_eq!(fixture.totals().stall_count, 0, "{what}");
    }
}

#[test]
fn a_segment_that_would_come_too_late_is_given_up_for_a_smaller_one() {
    let mut fixture = fixture(buffering(6), 1_000_000, site(60));
    fixture.seconds(12);
    assert!(paths(&fixture).last().unwrap().starts_with("/high-"), "{:?}", fixture.requests);
    // A segment of the high rendition, 376 kB, takes 14 s from now on, and there are six in the
    // buffer.
    fixture.bytes_per_s = 27_000;
    fixture.seconds(30);
    let requests = paths(&fixture);
    let given_up = requests.iter().find_map(|path| {
        let low = path.replace("/high-", "/low-");
        (path.starts_with("/high-") && requests.contains(&low.as_str())).then_some(low)
    });
    assert!(given_up.is_some(), "{requests:?}");
    assert_eq!(fixture.totals().requests_failed, 0, "giving up is no failure");
}

#[test]
fn playback_from_the_middle_begins_with_the_segment_there() {
    let position = PlayerConfig {
        position: PlaybackPosition::At(Duration::from_secs(21)),
        rendition: throng_scenario::RenditionPolicy::Lowest,
        ..buffering(6)
    };
    let mut fixture = fixture(position, 1_000_000, site(20));
    fixture.seconds(3);
    assert_eq!(paths(&fixture)[..3], ["/master.m3u8", "/low.m3u8", "/low-10.ts"]);
    let position_us = fixture.viewer.session.as_ref().unwrap().playout.position_us();
    assert!((23_500_000..24_000_000).contains(&position_us), "{position_us}");
}

#[test]
fn a_missing_segment_ends_the_viewer_and_a_failing_one_is_asked_for_again() {
    let mut files = site(20);
    files.remove("/low-2.ts");
    let lowest =
        PlayerConfig { rendition: throng_scenario::RenditionPolicy::Lowest, ..buffering(6) };
    let mut missing = fixture(lowest.clone(), 1_000_000, files);
    missing.seconds(5);
    assert!(
        missing.failure().starts_with("http_404: http://10.0.0.1/low-2.ts"),
        "{}",
        missing.failure()
    );

    let (files, mut refusals) = (site(20), 2);
    let mut answers = serve(files);
    let answers: Answers = Box::new(move |path, range| {
        if path == "/low-2.ts" && refusals > 0 {
            refusals -= 1;
            return Some(Reply::of(503, &[]));
        }
        answers(path, range)
    });
    let mut failing = Fixture::at("http://10.0.0.1/master.m3u8", lowest, 1_000_000, answers);
    failing.seconds(10);
    let totals = failing.totals();
    assert_eq!((totals.requests_failed, totals.stall_count), (2, 0), "{totals:?}");
}

#[test]
fn a_segment_that_one_rendition_lacks_is_that_of_another() {
    let mut files = site(20);
    files.remove("/low-2.ts");
    let mut fixture = fixture(buffering(6), 150_000, files);
    fixture.seconds(20);
    assert_eq!(fixture.ended, None, "{:?}", fixture.anomalies());
    let requests = paths(&fixture);
    let at = |path: &str| requests.iter().position(|known| *known == path);
    assert!(at("/low-2.ts").is_some() && at("/low-2.ts") < at("/high-2.ts"), "{requests:?}");
    assert!(at("/high-2.ts") < at("/low-3.ts"), "{requests:?}");
    assert_eq!(requests.iter().filter(|path| **path == "/low-2.ts").count(), 1, "{requests:?}");
    assert_eq!((fixture.totals().requests_failed, fixture.totals().skipped_us), (1, 0));

    let mut files = site(20);
    files.retain(|path, _| !path.ends_with("-2.ts"));
    let mut without =
        Fixture::at("http://10.0.0.1/master.m3u8", buffering(6), 150_000, serve(files));
    without.seconds(10);
    assert!(without.failure().starts_with("http_404"), "{}", without.failure());
    assert_eq!(without.frames_played(0), 100, "what came before is played");
}

#[test]
fn a_rendition_that_is_left_out_hides_no_other_one() {
    // The player begins with the one that is listed first, and tries the lower one before.
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nlow.m3u8\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=300000\nmissing.m3u8\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8\n";
    let mut files = site(5);
    files.insert("/master.m3u8".to_owned(), master.into());
    files.remove("/low-0.ts");
    let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) };
    let mut fixture = fixture(once, 1_000_000, files);
    fixture.seconds(15);
    let requests = paths(&fixture);
    assert_eq!(
        requests[..4],
        ["/master.m3u8", "/low.m3u8", "/low-0.ts", "/missing.m3u8"],
        "{requests:?}"
    );
    assert!(requests.contains(&"/high-0.ts"), "{requests:?}");
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
}

#[test]
fn manifests_that_cannot_be_played_are_failures_with_their_line() {
    for (text, expect) in [
        ("<html>", "protocol: http://10.0.0.1/master.m3u8: line 1"),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://192.168.0.1/a.m3u8\n",
            "not_allowed: 192.168.0.1:80",
        ),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nmaster.m3u8\n",
            "a master playlist where a media playlist",
        ),
    ] {
        let files = BTreeMap::from([("/master.m3u8".to_owned(), text.into())]);
        let mut fixture = fixture(buffering(6), 1_000_000, files);
        fixture.seconds(5);
        assert!(fixture.failure().contains(expect), "{}", fixture.failure());
    }
}
