//! MPEG transport streams.

use throng_media::timing::{Anomalies, IndexCache, TimingReader, Want};
use throng_observation::{Codec, MediaKind};

use crate::driver::{Exactness, Played, compare, drain, play};
use crate::ffmpeg::{make, make_of, probe};

/// Two ticks of 90 kHz: ffmpeg adds up rounded durations of audio frames. It does not tell
/// durations of video that the stream does not have.
const NEAR: Exactness = Exactness { time_us: 23, duration: false, decode: true, size: true };

fn read(file: &[u8], seed: u64, piece_max: u64) -> (TimingReader, Played) {
    let mut reader = TimingReader::new(IndexCache::default(), Some(file.len() as u64));
    let played = play(file, &mut reader, seed, piece_max);
    (reader, played)
}

#[test]
fn frames_are_those_of_ffprobe() {
    for (video, audio, codecs) in [
        ("-c:v mpeg2video -g 9 -bf 2", "-c:a mp2", [Codec::MpegVideo, Codec::MpegAudio]),
        ("-c:v libx264 -preset veryfast -g 12 -bf 2", "-c:a aac", [Codec::H264, Codec::Aac]),
        (
            "-c:v libx265 -preset ultrafast -g 12 -x265-params log-level=none",
            "-c:a libmp3lame",
            [Codec::H265, Codec::MpegAudio],
        ),
        ("-c:v mpeg4 -g 9", "-c:a ac3", [Codec::Mpeg4Visual, Codec::Other]),
        ("-c:v libx264 -preset ultrafast -b:v 4M", "-c:a eac3", [Codec::H264, Codec::Other]),
        ("-c:v libx264 -preset ultrafast", "-c:a libopus", [Codec::H264, Codec::Opus]),
        (
            "-c:v libx264 -preset ultrafast",
            "-c:a aac -mpegts_flags latm",
            [Codec::H264, Codec::Aac],
        ),
        (
            "-c:v libx264 -preset ultrafast -b:v 2M -muxrate 4M",
            "-c:a mp2 -ar 44100",
            [Codec::H264, Codec::MpegAudio],
        ),
        (
            "-c:v mpeg2video -b:v 6M",
            "-c:a ac3 -mpegts_m2ts_mode 1",
            [Codec::MpegVideo, Codec::Other],
        ),
    ] {
        let what = format!("{video} {audio}");
        let Some(made) = make(&format!("{what} -f mpegts"), "a.ts") else { continue };
        let (file, probed) = (made.bytes(), probe(&made.path()));
        for (seed, piece_max) in [(1, 50), (2, 1_500), (3, 1 << 20)] {
            let (reader, played) = read(&file, seed, piece_max);
            let tracks = reader.tracks().unwrap();
            assert_eq!(
                tracks.iter().map(|track| track.codec).collect::<Vec<_>>(),
                codecs,
                "{what}"
            );
            assert_eq!(reader.anomalies(), Anomalies::default(), "{what}");
            for ((frames, (kind, probed)), codec) in played.tracks.iter().zip(&probed).zip(codecs) {
                // FFmpeg's Opus packets and those of LATM have other lengths than what is in the
                // stream, and its pictures of H.265 end after the first zero of the next.
                let size = !matches!(codec, Codec::Opus | Codec::H265) && !audio.contains("latm");
                compare(&format!("{what}: {kind:?}"), frames, probed, Exactness { size, ..NEAR });
            }
            let video = &played.tracks[0];
            assert!(
                video
                    .iter()
                    .all(|frame| frame.duration_us == 40_000
                        || frame.decode_us == video[0].decode_us)
            );
        }
    }
}

#[test]
fn time_stamps_wrap() {
    // The 33 bits wrap one second after the start.
    let options = "-c:v mpeg2video -g 9 -bf 2 -c:a mp2 -output_ts_offset 95441 -f mpegts";
    let Some(made) = make(options, "a.ts") else { return };
    let (_, played) = read(&made.bytes(), 1, 5_000);
    for (frames, (kind, mut probed)) in played.tracks.iter().zip(probe(&made.path())) {
        // Where the line begins is arbitrary: ffprobe tells negative times.
        let shift_us = frames[0].presentation_us - probed[0].presentation_us.unwrap();
        for frame in &mut probed {
            frame.presentation_us = frame.presentation_us.map(|time_us| time_us + shift_us);
            frame.decode_us = frame.decode_us.map(|time_us| time_us + shift_us);
        }
        compare(&format!("{kind:?}"), frames, &probed, NEAR);
        assert!(frames.last().unwrap().decode_us > 95_444_000_000);
    }
}

#[test]
fn damage_is_passed_over_and_counted() {
    let Some(made) = make("-c:v mpeg2video -g 9 -bf 2 -c:a mp2 -f mpegts", "a.ts") else { return };
    let file = made.bytes();
    let (_, whole) = read(&file, 1, 5_000);
    let count = |played: &Played| played.tracks.iter().map(Vec::len).sum::<usize>();
    let middle = file.len() / 2 / 188 * 188;
    let without = [&file[..middle], &file[middle + 188 * 3..]].concat();
    let cut_inside = [&file[..middle], &file[middle + 100..]].concat();
    let garbage = [&file[..middle], &[0x47; 777], &file[middle..]].concat();
    let mut flagged = file.clone();
    flagged[middle + 1] |= 0x80;
    for (what, file, sync_losses, gaps) in [
        ("packets are missing", &without, 0, 1..=2),
        ("a part of a packet is missing", &cut_inside, 1, 1..=2),
        ("garbage", &garbage, 1, 0..=1),
        ("a packet is marked as damaged", &flagged, 0, 1..=1),
    ] {
        for piece_max in [70, 3_000, 1 << 20] {
            let (reader, played) = read(file, 7, piece_max);
            let anomalies = reader.anomalies();
            assert_eq!(anomalies.sync_losses, sync_losses, "{what}: {anomalies:?}");
            assert!(gaps.contains(&anomalies.continuity_gaps), "{what}: {anomalies:?}");
            assert!(
                count(&played) >= count(&whole) - 4 && count(&played) <= count(&whole),
                "{what}"
            );
        }
    }
}

#[test]
fn streams_change_and_follow_each_other() {
    let first = make("-c:v mpeg2video -g 9 -c:a mp2 -f mpegts", "a.ts");
    let inputs = "-f lavfi -i sine=r=48000:d=1 -f lavfi -i testsrc2=s=160x90:r=25:d=1";
    let second = make_of(
        inputs,
        "-map 0 -map 1 -c:v libx264 -g 12 -c:a aac -mpegts_flags resend_headers -f mpegts",
        "b.ts",
    );
    let (Some(first), Some(second)) = (first, second) else { return };
    let both = [first.bytes(), second.bytes()].concat();
    let (reader, played) = read(&both, 5, 2_000);
    let codecs: Vec<_> = reader.tracks().unwrap().iter().map(|track| track.codec).collect();
    assert_eq!(codecs, [Codec::MpegVideo, Codec::MpegAudio, Codec::Aac, Codec::H264]);
    let (one, two) = (probe(&first.path()), probe(&second.path()));
    let expect = [&one[0].1, &one[1].1, &two[0].1, &two[1].1];
    for (frames, probed) in played.tracks.iter().zip(expect) {
        assert_eq!(frames.len(), probed.len());
        let times = frames.iter().zip(probed);
        assert!(times.clone().all(|(frame, probed)| {
            probed.presentation_us.unwrap().abs_diff(frame.presentation_us) < 23
        }));
    }
}

#[test]
fn seeks_are_estimated_from_the_rate() {
    let Some(made) = make(
        "-c:v mpeg2video -g 9 -bf 2 -b:v 1M -minrate 1M -maxrate 1M -bufsize 500k -c:a mp2 -muxrate 2M -f mpegts",
        "a.ts",
    ) else {
        return;
    };
    let file = made.bytes();
    let mut reader = TimingReader::new(IndexCache::default(), Some(file.len() as u64));
    let mut tracks = Vec::new();
    assert_eq!(reader.offset_for(1_000_000), None);
    reader.feed(&file[..file.len() * 2 / 3]).unwrap();
    drain(&mut reader, &mut tracks);
    let first_us = tracks[0][0].decode_us as u64;
    let (offset, _) = reader.offset_for(first_us + 1_000_000).unwrap();
    reader.jumped(offset);
    assert!(matches!(reader.want(), Want::Deliver(_)));
    tracks.clear();
    reader.feed(&file[offset as usize..]).unwrap();
    drain(&mut reader, &mut tracks);
    let at_us = tracks[0][0].decode_us as u64;
    assert!(at_us.abs_diff(first_us + 1_000_000) < 300_000, "{at_us} {first_us}");
    assert_eq!(reader.anomalies().sync_losses, 0);
    assert_eq!(reader.tracks().unwrap()[0].kind, MediaKind::Video);
    assert!(tracks[0].len() > 20);
}

#[test]
fn segments_of_hls_are_read_one_by_one() {
    let options =
        "-c:v libx264 -preset veryfast -g 12 -bf 2 -c:a aac -f hls -hls_time 0.5 -hls_list_size 0";
    let Some(made) = make(options, "a.m3u8") else { return };
    let mut tracks = vec![Vec::new(); 2];
    let mut all = Vec::new();
    for number in 0.. {
        let Ok(segment) = std::fs::read(made.path().with_file_name(format!("a{number}.ts"))) else {
            break;
        };
        let mut reader = TimingReader::segment(IndexCache::default(), None);
        let played = play(&segment, &mut reader, number, 2_000);
        tracks.iter_mut().zip(played.tracks).for_each(|(all, new)| all.extend(new));
        all.extend(segment);
    }
    let whole = made.path().with_file_name("whole.ts");
    std::fs::write(&whole, all).unwrap();
    for (frames, (kind, probed)) in tracks.iter().zip(probe(&whole)) {
        compare(&format!("{kind:?}"), frames, &probed, NEAR);
    }
}
