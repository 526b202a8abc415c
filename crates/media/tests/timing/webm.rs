//! WebM and Matroska files.

use throng_media::timing::{IndexCache, InitSegment, TimingReader, Want};
use throng_observation::Codec;

use crate::driver::{Exactness, compare, drain, play};
use crate::ffmpeg::{make, probe, probe_duration_us};

/// ffprobe tells times in ticks of the file, a millisecond, from which it also takes the codec's
/// delay. It guesses decoding times, and the durations that the file does not have.
const NEAR: Exactness = Exactness { time_us: 501, duration: false, decode: false, size: true };

#[test]
fn frames_are_those_of_ffprobe() {
    for (options, name, codecs) in [
        (
            "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 12 -c:a libopus",
            "a.webm",
            [Codec::Vp9, Codec::Opus],
        ),
        (
            "-c:v libvpx -deadline realtime -cpu-used 8 -g 12 -c:a libvorbis",
            "a.webm",
            [Codec::Vp8, Codec::Other],
        ),
        (
            "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus -cluster_time_limit 300",
            "a.webm",
            [Codec::Vp9, Codec::Opus],
        ),
        // As a live stream: sizes of segment and clusters are unknown.
        (
            "-c:v libvpx -deadline realtime -cpu-used 8 -g 12 -c:a libopus -live 1 -f webm",
            "a.webm",
            [Codec::Vp8, Codec::Opus],
        ),
        ("-c:v libx264 -preset veryfast -g 12 -bf 2 -c:a aac", "a.mkv", [Codec::H264, Codec::Aac]),
        ("-c:v mpeg2video -g 9 -bf 2 -c:a mp2", "a.mkv", [Codec::MpegVideo, Codec::MpegAudio]),
    ] {
        let Some(made) = make(&format!("-t 1.1 {options}"), name) else { continue };
        let (file, probed) = (made.bytes(), probe(&made.path()));
        for (seed, piece_max) in [(1, 7), (2, 1_500), (3, 1 << 20)] {
            let mut reader =
                TimingReader::new(IndexCache::default(), (seed > 1).then_some(file.len() as u64));
            let played = play(&file, &mut reader, seed, piece_max);
            let tracks = reader.tracks().unwrap();
            assert_eq!(
                tracks.iter().map(|track| track.codec).collect::<Vec<_>>(),
                codecs,
                "{options}"
            );
            for ((track, frames), (kind, probed)) in tracks.iter().zip(&played.tracks).zip(&probed)
            {
                assert_eq!(track.kind, *kind);
                compare(&format!("{options}: {kind:?}"), frames, probed, NEAR);
                if track.codec == Codec::Opus {
                    assert!(
                        frames[..frames.len() - 1].iter().all(|frame| frame.duration_us == 20_000),
                        "{options}"
                    );
                }
            }
            assert!(piece_max > 10 || played.ignored > played.delivered, "{options}");
            if !options.contains("live") {
                let probed_us = probe_duration_us(&made.path()).unwrap() as u64;
                assert!(reader.duration_us().unwrap().abs_diff(probed_us) <= 1_000, "{options}");
            }
        }
    }
}

#[test]
fn seeks_by_the_index_at_the_end() {
    let options = "-c:v libvpx -deadline realtime -cpu-used 8 -g 12 -keyint_min 12 -c:a libopus -cluster_time_limit 400";
    let Some(made) = make(options, "a.webm") else { return };
    let (file, probed) = (made.bytes(), probe(&made.path()));
    let mut reader = TimingReader::new(IndexCache::default(), Some(file.len() as u64));
    while reader.tracks().is_none() {
        let at = reader.position() as usize;
        reader.feed(&file[at..at + 10]).unwrap();
    }
    assert_eq!(reader.offset_for(1_000_000), None);
    let index = reader.seek_index().unwrap();
    assert!(index as usize > file.len() / 2);
    reader.jumped(index);
    while reader.seek_index().is_some() {
        let at = reader.position() as usize;
        assert!(matches!(reader.want(), Want::Deliver(_)));
        reader.feed(&file[at..at + 1]).unwrap();
    }
    for time_us in [0, 479_000, 480_000, 1_500_000, 9_000_000] {
        let (offset, actual_us) = reader.offset_for(time_us).unwrap();
        reader.jumped(offset);
        let played = play(&file, &mut reader, 1, 3_000);
        let video = &played.tracks[0];
        let first = video.iter().find(|frame| frame.is_key).unwrap();
        assert_eq!(first.presentation_us as u64, actual_us, "{time_us}");
        let keys = probed[0]
            .1
            .iter()
            .filter(|frame| frame.is_key)
            .filter_map(|frame| frame.presentation_us);
        assert_eq!(
            actual_us as i64,
            keys.filter(|key| *key <= time_us as i64).max().unwrap_or(actual_us as i64),
            "{time_us}"
        );
        let rest = &probed[0].1[probed[0].1.len() - video.len()..];
        compare("after a seek", video, rest, NEAR);
    }
}

#[test]
fn segments_of_dash_follow_their_initialisation() {
    let options = "-an -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 12 -keyint_min 12 -f dash -dash_segment_type webm -seg_duration 0.4";
    let Some(made) = make(options, "a.mpd") else { return };
    let at = |name: &str| std::fs::read(made.path().with_file_name(name));
    let init_bytes = at("init-stream0.webm").unwrap();
    let init = InitSegment::parse(&init_bytes).unwrap();
    assert_eq!(init.tracks()[0].codec, Codec::Vp9);
    let (mut tracks, mut whole) = (vec![Vec::new()], init_bytes);
    for number in 1.. {
        let Ok(segment) = at(&format!("chunk-stream0-{number:05}.webm")) else { break };
        let mut reader = TimingReader::segment(IndexCache::default(), Some(&init));
        tracks[0].extend(play(&segment, &mut reader, number, 999).tracks.remove(0));
        assert!(reader.next_frame().is_none());
        drain(&mut reader, &mut tracks);
        whole.extend(segment);
    }
    let path = made.path().with_file_name("whole.webm");
    std::fs::write(&path, whole).unwrap();
    compare("DASH", &tracks[0], &probe(&path)[0].1, Exactness { duration: false, ..NEAR });
}
