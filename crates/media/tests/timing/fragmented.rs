//! Fragmented MP4: as one file, and as the segments of HLS and DASH.

use std::path::Path;
use throng_media::mark::MarkFinder;

use throng_media::timing::{IndexCache, InitSegment, SegmentIndex, TimingReader};
use throng_observation::{Codec, MediaKind};

use crate::driver::{EXACT, Exactness, compare, drain, play};
use crate::ffmpeg::{Made, make, make_of, probe};

const CODED: &str = "-c:v libx264 -preset veryfast -g 12 -bf 2 -c:a aac";

/// `late_us`: ffprobe tells the times of this much later, of a file with negative composition
/// offsets.
fn same_as_ffprobe(what: &str, path: &Path, late_us: i64) -> TimingReader {
    let (file, mut probed) = (std::fs::read(path).unwrap(), probe(path));
    for frame in probed
        .iter_mut()
        .filter(|(kind, _)| *kind == MediaKind::Video)
        .flat_map(|(_, frames)| frames)
    {
        frame.presentation_us = frame.presentation_us.map(|time_us| time_us - late_us);
        frame.decode_us = frame.decode_us.map(|time_us| time_us - late_us);
    }
    let indexes = IndexCache::default();
    let mut readers = [(1, 7), (2, 1_500), (3, 1 << 20)].map(|(seed, piece_max)| {
        let mut reader =
            TimingReader::new(indexes.clone(), (seed > 1).then_some(file.len() as u64));
        let played = play(&file, &mut reader, seed, piece_max);
        assert!(played.jumps.is_empty(), "{what}: {:?}", played.jumps);
        // The beginning of the first picture is looked at for a mark.
        let read = played.delivered.saturating_sub(MarkFinder::BYTES_MAX as u64);
        assert!(piece_max > 10 || played.ignored > 3 * read, "{what}: {played:?}");
        assert_eq!(played.tracks.len(), probed.len(), "{what}");
        for (frames, (kind, probed)) in played.tracks.iter().zip(&probed) {
            // ffmpeg fills the gap before the sound with its first frame, which ffprobe does not
            // tell.
            let exact = Exactness { duration: *kind == MediaKind::Video, ..EXACT };
            compare(&format!("{what}: {kind:?}"), frames, probed, exact);
        }
        Some(reader)
    });
    readers[1].take().unwrap()
}

#[test]
fn fragments_in_one_file() {
    let Some(coded) = make(CODED, "coded.mp4") else { return };
    let coded = format!("-i {}", coded.path().display());
    for flags in [
        "frag_keyframe+empty_moov",
        "frag_keyframe+empty_moov+default_base_moof",
        "frag_keyframe+empty_moov+omit_tfhd_offset",
        "frag_keyframe+delay_moov",
        "frag_keyframe+empty_moov+separate_moof",
        "frag_every_frame+empty_moov",
        "frag_keyframe", // the first samples are in the tables of moov
        "cmaf",
        "dash",
    ] {
        let Some(made) = make_of(&coded, &format!("-c copy -movflags {flags}"), "a.mp4") else {
            return;
        };
        same_as_ffprobe(flags, &made.path(), if flags == "cmaf" { 40_000 } else { 0 });
    }
}

#[test]
fn seeks_by_the_index_of_segments() {
    let Some(made) = make(&format!("{CODED} -movflags dash+global_sidx"), "a.mp4") else { return };
    let mut reader = same_as_ffprobe("global_sidx", &made.path(), 0);
    let (file, probed) = (made.bytes(), probe(&made.path()));
    let frames = &probed[0].1;
    assert!(
        reader.duration_us().unwrap().abs_diff(2_200_000) < 50_000,
        "{:?}",
        reader.duration_us()
    );
    for time_us in [0, 480_000, 500_000, 1_999_999, 2_100_000] {
        let (offset, actual_us) = reader.offset_for(time_us).unwrap();
        assert!(actual_us <= time_us && time_us < actual_us + 480_001, "{time_us}: {actual_us}");
        reader.jumped(offset);
        let played = play(&file, &mut reader, 1, 4_000);
        let video = &played.tracks[0];
        // ffmpeg writes decoding times into the index.
        assert!(
            video[0].presentation_us.abs_diff(actual_us as i64) <= 80_000,
            "{:?} {actual_us}",
            video[0]
        );
        assert!(video[0].is_key);
        compare("after a seek", video, &frames[frames.len() - video.len()..], EXACT);
    }
    assert_eq!(reader.offset_for(99_000_000), None);

    // As a player of DASH reads it: the range of the index alone.
    let at = file.windows(4).position(|word| word == b"sidx").unwrap() - 4;
    let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let index =
        SegmentIndex::parse(&IndexCache::default(), &file[at..at + len], at as u64).unwrap();
    let segments: Vec<_> = index.segments().collect();
    assert_eq!(segments.len(), 5);
    assert!(segments.iter().all(|segment| segment.starts_with_key && !segment.is_index));
    assert!(segments.windows(2).all(|pair| pair[0].offset + pair[0].bytes == pair[1].offset));
    for segment in segments {
        assert_eq!(&file[segment.offset as usize..][4..8], b"moof");
        assert_eq!(reader.offset_for(segment.time_us), Some((segment.offset, segment.time_us)));
    }
}

/// Reads segments one by one after their initialisation segment; the frames must be those of the
/// whole.
fn segments_are_whole(what: &str, init: &Path, segments: &[Vec<u8>], codecs: &[Codec]) {
    let init_bytes = std::fs::read(init).unwrap();
    let whole = init.with_file_name("whole.mp4");
    std::fs::write(&whole, [&init_bytes[..], &segments.concat()].concat()).unwrap();
    let init = InitSegment::parse(&init_bytes).unwrap();
    assert_eq!(init.tracks().iter().map(|track| track.codec).collect::<Vec<_>>(), codecs);
    let mut tracks = vec![Vec::new(); codecs.len()];
    for (seed, segment) in (1..).zip(segments) {
        let mut reader = TimingReader::segment(IndexCache::default(), Some(&init));
        assert_eq!(reader.tracks(), Some(init.tracks()));
        let played = play(segment, &mut reader, seed, 3_000);
        tracks.resize(tracks.len().max(played.tracks.len()), Vec::new());
        for (all, new) in tracks.iter_mut().zip(played.tracks) {
            all.extend(new);
        }
    }
    for (frames, (kind, probed)) in tracks.iter().zip(probe(&whole)) {
        compare(&format!("{what}: {kind:?}"), frames, &probed, EXACT);
    }
    assert!(InitSegment::parse(&init_bytes[..init_bytes.len() - 9]).is_err());
    assert!(
        InitSegment::parse(segments[0].as_slice())
            .unwrap_err()
            .to_string()
            .contains("before any `moov`")
    );
    let mut cut = TimingReader::segment(IndexCache::default(), Some(&init));
    cut.feed(&segments[0][..segments[0].len() - 1]).unwrap();
    drain(&mut cut, &mut tracks);
    assert!(cut.finish().unwrap_err().to_string().contains("`mdat`"));
}

fn named(made: &Made, begins: &str, ends: &str) -> Vec<Vec<u8>> {
    let folder = made.path().parent().unwrap().to_owned();
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = names
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(begins) && name.ends_with(ends)
        })
        .collect();
    names.sort();
    names.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn segments_of_hls_and_dash() {
    let hls = format!(
        "{CODED} -f hls -hls_time 0.5 -hls_list_size 0 -hls_segment_type fmp4 -hls_segment_filename s%03d.m4s"
    );
    if let Some(made) = make(&hls, "a.m3u8") {
        let init = made.path().with_file_name("init.mp4");
        segments_are_whole("HLS", &init, &named(&made, "s", ".m4s"), &[Codec::H264, Codec::Aac]);
    }
    let dash = format!("{CODED} -f dash -seg_duration 0.5 -use_template 1 -use_timeline 1");
    if let Some(made) = make(&dash, "a.mpd") {
        for (stream, codec) in [(0, Codec::H264), (1, Codec::Aac)] {
            let init = made.path().with_file_name(format!("init-stream{stream}.m4s"));
            let segments = named(&made, &format!("chunk-stream{stream}"), ".m4s");
            segments_are_whole(&format!("DASH {codec:?}"), &init, &segments, &[codec]);
        }
    }
}
