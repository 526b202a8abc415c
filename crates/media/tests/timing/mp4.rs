//! MP4 and QuickTime files.

use throng_media::timing::{IndexCache, TimingReader};
use throng_observation::{Codec, MediaKind};

use crate::driver::{EXACT, Played, compare, drain, play};
use crate::ffmpeg::{Made, make, make_of, probe, probe_duration_us};

const X264: &str = "-c:v libx264 -preset veryfast -g 12 -bf 2";

/// Plays a file in pieces of three sizes, and compares all of its frames with ffprobe's.
fn check(options: &str, name: &str, codecs: &[Codec]) -> Option<(Made, Played)> {
    let made = make(options, name)?;
    let played = same_as_ffprobe(options, &made, codecs);
    Some((made, played))
}

fn same_as_ffprobe(what: &str, made: &Made, codecs: &[Codec]) -> Played {
    let (file, probed) = (made.bytes(), probe(&made.path()));
    let indexes = IndexCache::default();
    let mut all = Vec::new();
    for (seed, piece_max) in [(1, 7), (2, 1_500), (3, 1 << 20)] {
        let mut reader = TimingReader::new(indexes.clone(), Some(file.len() as u64));
        let played = play(&file, &mut reader, seed, piece_max);
        let tracks = reader.tracks().unwrap();
        assert_eq!(tracks.iter().map(|track| track.codec).collect::<Vec<_>>(), codecs, "{what}");
        assert_eq!(tracks.len(), probed.len());
        for ((track, frames), (kind, probed)) in tracks.iter().zip(&played.tracks).zip(&probed) {
            assert_eq!(track.kind, *kind, "{what}");
            compare(&format!("{what}: {kind:?}"), frames, probed, EXACT);
        }
        let duration_us = reader.duration_us().unwrap_or_default() as i64;
        assert!(
            duration_us.abs_diff(probe_duration_us(&made.path()).unwrap()) <= 1_000,
            "{what}: {duration_us}"
        );
        all.push(played);
    }
    all.remove(1)
}

#[test]
fn the_index_first() {
    let options = format!("{X264} -c:a aac -movflags +faststart");
    let Some((_, played)) = check(&options, "a.mp4", &[Codec::H264, Codec::Aac]) else { return };
    assert!(played.jumps.is_empty(), "{:?}", played.jumps);
    assert!(played.ignored > 4 * played.delivered, "{} {}", played.ignored, played.delivered);
}

#[test]
fn the_index_last() {
    let options = format!("{X264} -c:a aac");
    let Some((made, played)) = check(&options, "a.mp4", &[Codec::H264, Codec::Aac]) else { return };
    let file = made.bytes();
    let at = |kind: &[u8]| file.windows(4).rposition(|word| word == kind).unwrap() as u64 - 4;
    // To the index behind the media, and back to their first byte.
    assert_eq!(played.jumps.len(), 2);
    assert_eq!(played.jumps[0], at(b"moov"));
    assert!(played.jumps[1] < 100);

    // A driver that takes all bytes in order needs no jumps.
    let mut reader = TimingReader::new(IndexCache::default(), None);
    let mut tracks = Vec::new();
    for piece in file.chunks(1_000) {
        reader.feed(piece).unwrap();
        drain(&mut reader, &mut tracks);
    }
    reader.finish().unwrap();
    assert_eq!(tracks, played.tracks);
}

#[test]
fn other_codecs_and_tables() {
    for (options, name, codecs) in [
        (
            "-c:v libx265 -preset ultrafast -g 12 -x265-params log-level=none -c:a aac",
            "a.mp4",
            [Codec::H265, Codec::Aac],
        ),
        (
            "-c:v mpeg4 -g 9 -bf 2 -c:a libmp3lame -movflags +faststart",
            "a.mp4",
            [Codec::Mpeg4Visual, Codec::MpegAudio],
        ),
        ("-c:v mpeg2video -g 9 -bf 2 -c:a libopus", "a.mp4", [Codec::MpegVideo, Codec::Opus]),
        (
            "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a aac",
            "a.mp4",
            [Codec::Vp9, Codec::Aac],
        ),
        (
            "-c:v libx264 -bf 3 -movflags +negative_cts_offsets -c:a aac",
            "a.mp4",
            [Codec::H264, Codec::Aac],
        ),
        // Uncompressed sound: a sample is one fraction of a millisecond.
        ("-c:v mjpeg -c:a pcm_s16le", "a.mov", [Codec::Jpeg, Codec::Other]),
        ("-c:v mpeg4 -c:a pcm_mulaw -ar 8000", "a.mov", [Codec::Mpeg4Visual, Codec::Pcmu]),
    ] {
        check(options, name, &codecs);
    }
}

#[test]
fn tracks_that_are_shifted_or_far_apart() {
    // The sound begins 0.7 s after the picture: an empty edit.
    let inputs =
        "-f lavfi -i testsrc2=s=160x90:r=25:d=1 -itsoffset 0.7 -f lavfi -i sine=r=44100:d=1";
    let options = format!("{X264} -c:a aac");
    if let Some(made) = make_of(inputs, &options, "a.mp4") {
        same_as_ffprobe("shifted", &made, &[Codec::H264, Codec::Aac]);
    }
    // All of the sound is behind all of the picture.
    let inputs =
        "-f lavfi -i testsrc2=s=160x90:r=25:d=1 -itsoffset 20 -f lavfi -i sine=r=44100:d=1";
    if let Some(made) = make_of(inputs, &options, "a.mp4") {
        same_as_ffprobe("far apart", &made, &[Codec::H264, Codec::Aac]);
    }
}

#[test]
fn seeks_continue_with_the_key_frame_before() {
    for order in ["", " -movflags +faststart"] {
        let options = format!("{X264} -c:a aac{order}");
        let Some(made) = make(&options, "a.mp4") else { return };
        let (file, probed) = (made.bytes(), probe(&made.path()));
        let keys = |time_us: i64| {
            let keys = probed[0]
                .1
                .iter()
                .filter(|frame| frame.is_key)
                .filter_map(|frame| frame.presentation_us);
            keys.filter(|key| *key <= time_us).max().unwrap()
        };
        for time_us in [0, 1, 479_999, 480_000, 999_999, 1_500_000, 2_100_000, 9_000_000] {
            let mut reader = TimingReader::new(IndexCache::default(), Some(file.len() as u64));
            // Until the index is known.
            let mut tracks = Vec::new();
            while reader.tracks().is_none() {
                let at = reader.position() as usize;
                match reader.want() {
                    throng_media::timing::Want::Jump(offset) => reader.jumped(offset),
                    _ => reader.feed(&file[at..file.len().min(at + 16)]).unwrap(),
                }
            }
            drain(&mut reader, &mut tracks);
            let (offset, actual_us) = reader.offset_for(time_us).unwrap();
            assert_eq!(actual_us as i64, keys(time_us as i64), "{time_us}");
            reader.jumped(offset);
            let played = play(&file, &mut reader, time_us, 5_000);
            for (track, (kind, probed)) in played.tracks.iter().zip(&probed) {
                let rest = &probed[probed.len() - track.len()..];
                compare(&format!("{kind:?} after a seek to {time_us}"), track, rest, EXACT);
                let first_us = match kind {
                    MediaKind::Video => {
                        track.iter().find(|frame| frame.is_key).unwrap().presentation_us
                    }
                    MediaKind::Audio => track[0].presentation_us,
                };
                assert!(first_us <= actual_us as i64, "{kind:?}: {first_us} for {time_us}");
                assert!(
                    first_us > actual_us as i64 - 600_000,
                    "{kind:?}: {first_us} for {time_us}"
                );
            }
        }
    }
}
