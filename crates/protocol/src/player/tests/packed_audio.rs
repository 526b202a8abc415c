//! HLS whose sound is packed audio (RFC 8216 section 3.4), alone and beside pictures.

use std::collections::BTreeMap;

use super::segmented::{serve, transport_stream};
use super::*;

/// A segment of two seconds: a tag with its time, and AAC at 48 kHz.
fn segment(number: u64) -> Vec<u8> {
    of_frames((2 * number * 90_000).div_ceil(1_920)..(2 * (number + 1) * 90_000).div_ceil(1_920))
}

/// The same of these frames, of 1024 samples: 1920 ticks.
fn of_frames(frames: std::ops::Range<u64>) -> Vec<u8> {
    let stamp = (126_000 + frames.start * 1_920).to_be_bytes();
    let owner = b"com.apple.streaming.transportStreamTimestamp\0";
    let head = [&b"PRIV"[..], &[0, 0, 0, 53, 0, 0], owner, &stamp].concat();
    let tag = [&b"ID3\x04\0\0\0\0\0"[..], &[head.len() as u8], &head].concat();
    let frame = [&[0xff, 0xf1, 0x4c, 0x80, 0x0c, 0x9f, 0xfc][..], &[0; 93]].concat();
    [tag, frame.repeat((frames.end - frames.start) as usize)].concat()
}

fn playlist(name: &str, ext: &str) -> Vec<u8> {
    let listed = (0..5).map(|number| format!("#EXTINF:2.0,\n{name}-{number}.{ext}\n"));
    let listed = listed.collect::<String>();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{listed}#EXT-X-ENDLIST\n").into_bytes()
}

fn site() -> BTreeMap<String, Vec<u8>> {
    let master = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",DEFAULT=YES,URI=\"sound.m3u8\"\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=400000,AUDIO=\"a\"\nlow.m3u8\n";
    let mut files = BTreeMap::from([
        ("/master.m3u8".to_owned(), master.into()),
        ("/low.m3u8".to_owned(), playlist("low", "ts")),
        ("/sound.m3u8".to_owned(), playlist("sound", "aac")),
    ]);
    for number in 0..5 {
        files.insert(format!("/sound-{number}.aac"), segment(number));
        let pictures = transport_stream(2 * number..2 * number + 2, 1_800);
        files.insert(format!("/low-{number}.ts"), pictures);
    }
    files
}

#[test]
fn packed_audio_is_played_alone_and_beside_pictures() {
    for (path, frames) in [("/sound.m3u8", &[469][..]), ("/master.m3u8", &[250, 469])] {
        let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) };
        let url = format!("http://10.0.0.1{path}");
        let mut fixture = Fixture::at(&url, once, 1_000_000, serve(site()));
        fixture.seconds(15);
        assert_eq!(fixture.ended, Some(Outcome::Completed), "{path}: {:?}", fixture.anomalies());
        let totals = fixture.totals();
        assert_eq!((totals.stall_count, totals.skipped_us), (0, 0), "{path}: {totals:?}");
        let tracks = 0..frames.len() as u16;
        let mut played: Vec<_> = tracks.map(|track| fixture.frames_played(track)).collect();
        played.sort_unstable();
        assert_eq!(played, frames, "{path}");
        assert_eq!(fixture.anomalies(), Vec::<&str>::new(), "{path}");
    }
}

/// hls.js puts silence into the sound of a rendition of its own too, though not into sound alone.
#[test]
fn missing_sound_is_silence_beside_pictures_and_a_hole_alone() {
    // The third segment has the frames from 188 on.
    let missing_us = 40 * 1_920 * 100 / 9;
    for (path, stalls, skipped_us) in [("/sound.m3u8", 1, missing_us), ("/master.m3u8", 0, 0)] {
        let mut files = site();
        files.insert("/sound-2.aac".to_owned(), of_frames(228..282));
        let once = PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) };
        let url = format!("http://10.0.0.1{path}");
        let mut fixture = Fixture::at(&url, once, 1_000_000, serve(files));
        fixture.seconds(15);
        assert_eq!(fixture.ended, Some(Outcome::Completed), "{path}: {:?}", fixture.anomalies());
        let totals = fixture.totals();
        assert_eq!(totals.stall_count, stalls, "{path}: {totals:?}");
        assert!(totals.skipped_us.abs_diff(skipped_us) < 2_000, "{path}: {totals:?}");
    }
}

#[test]
fn who_has_failed_while_its_buffer_was_full_sleeps_until_it_is_played() {
    // Pictures are requested before the sound that fills the buffer, and refused after it.
    let mut serve = serve(site());
    let answers: Answers = Box::new(move |path, range| match path {
        "/sound-2.aac" => {
            Some(Reply { not_before: Duration::from_millis(500), ..serve(path, range)? })
        }
        "/low-3.ts" => {
            Some(Reply { not_before: Duration::from_millis(700), ..Reply::of(404, &[]) })
        }
        _ => serve(path, range),
    });
    let url = "http://10.0.0.1/master.m3u8";
    let mut fixture = Fixture::at(url, buffering(5), 1_000_000, answers);
    fixture.seconds(1);
    assert!(fixture.anomalies().iter().any(|text| text.contains("cannot fetch more")));
    let before = fixture.wakes;
    fixture.seconds(4);
    assert_eq!(fixture.ended, None, "it has what it plays");
    let wakes = fixture.wakes - before;
    assert!(wakes < 20, "{wakes} in 4 s");
    fixture.seconds(3);
    assert!(fixture.failure().starts_with("http_404"), "{}", fixture.failure());
}
