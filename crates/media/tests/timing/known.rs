//! Segments that one reader reads for others.

use throng_media::timing::{IndexCache, InitSegment, SegmentId, TimedFrame, TimingReader, Want};

use crate::driver::{Played, drain, play};
use crate::ffmpeg::make;

fn id(bytes: u64) -> SegmentId {
    SegmentId { place: "server/live/1.ts".into(), range: None, validator: "\"1\"".into(), bytes }
}

fn segments() -> Vec<(Vec<u8>, Option<InitSegment>)> {
    let coded =
        "-c:v libx264 -preset veryfast -g 12 -bf 2 -c:a aac -f hls -hls_time 0.5 -hls_list_size 0";
    let read = |path: std::path::PathBuf| std::fs::read(path).unwrap();
    let ts = make(coded, "a.m3u8").map(|made| (read(made.path().with_file_name("a1.ts")), None));
    let fragmented = make(&format!("{coded} -hls_segment_type fmp4"), "a.m3u8").map(|made| {
        let init = InitSegment::parse(&read(made.path().with_file_name("init.mp4"))).unwrap();
        (read(made.path().with_file_name("a1.m4s")), Some(init))
    });
    [ts, fragmented].into_iter().flatten().collect()
}

fn reader(indexes: &IndexCache, init: Option<&InitSegment>, id: Option<SegmentId>) -> TimingReader {
    let mut reader = TimingReader::segment(indexes.clone(), init);
    id.into_iter().for_each(|id| reader.identify(id));
    reader
}

fn same(a: &Played, b: &Played) {
    assert_eq!(a.tracks, b.tracks);
    assert!(a.tracks.iter().map(Vec::len).sum::<usize>() > 20);
}

#[test]
fn what_one_has_read_others_learn_from_its_first_kilobyte() {
    for (bytes, init) in segments() {
        let (indexes, init) = (IndexCache::default(), init.as_ref());
        let is_ts = init.is_none();
        let id = || Some(id(bytes.len() as u64));
        let alone = play(&bytes, &mut reader(&IndexCache::default(), init, None), 1, 3_000);
        let mut first = reader(&indexes, init, id());
        let mut beside = reader(&indexes, init, id());
        same(&alone, &play(&bytes, &mut first, 2, 5_000));
        let beside = play(&bytes, &mut beside, 3, 5_000);
        same(&alone, &beside);
        assert!(
            beside.delivered > 1_500,
            "it began while the first one read: {}",
            beside.delivered
        );
        for seed in 4..8 {
            let mut later = reader(&indexes, init, id());
            let learnt = play(&bytes, &mut later, seed, 300_000);
            same(&alone, &learnt);
            assert_eq!((later.tracks(), later.container()), (first.tracks(), first.container()));
            assert_eq!((later.program(), later.program().is_some()), (first.program(), is_ts));
        }
        let mut exact = reader(&indexes, init, id());
        assert_eq!(exact.want(), Want::Deliver(1_024));
        exact.feed(&bytes[..1_024]).unwrap();
        assert_eq!(exact.want(), Want::Ignore(bytes.len() as u64 - 1_024));
    }
}

#[test]
fn a_frame_is_complete_for_all_after_the_same_bytes() {
    for (bytes, init) in segments() {
        let (indexes, init) = (IndexCache::default(), init.as_ref());
        let id = || Some(id(bytes.len() as u64));
        let told = |id: Option<SegmentId>| -> Vec<(u64, TimedFrame)> {
            let mut reader = reader(&indexes, init, id);
            let mut told = Vec::new();
            for piece in bytes.chunks(512) {
                reader.feed(piece).unwrap();
                let position = reader.position();
                told.extend(
                    std::iter::from_fn(|| reader.next_frame()).map(|frame| (position, frame)),
                );
            }
            reader.finish().unwrap();
            let end = reader.position();
            told.extend(std::iter::from_fn(|| reader.next_frame()).map(|frame| (end, frame)));
            told
        };
        let alone = told(None);
        assert_eq!(told(id()), alone);
        assert_eq!(told(id()), alone, "as it was recorded");
    }
}

#[test]
fn other_bytes_with_the_same_validator_are_read_and_a_short_segment_is_cut_off() {
    let all = segments();
    let [(ts, None), (_, Some(_))] = &all[..] else { return };
    let indexes = IndexCache::default();
    let id = || Some(id(ts.len() as u64));
    let _ = play(ts, &mut reader(&indexes, None, id()), 1, 5_000);
    // The same segment begun a packet later, and ended by one of nothing.
    let padding = [&[0x47, 0x1f, 0xff, 0x10][..], &[0xff; 184]].concat();
    let other = [&ts[188..], &padding[..]].concat();
    let alone = play(&other, &mut reader(&IndexCache::default(), None, None), 1, 3_000);
    for seed in 0..4 {
        let read = play(&other, &mut reader(&indexes, None, id()), seed, 700);
        assert_eq!(read.tracks, alone.tracks);
    }
    let mut cut = reader(&indexes, None, id());
    cut.feed(&ts[..2_000]).unwrap();
    cut.ignored(ts.len() as u64 - 2_001);
    drain(&mut cut, &mut Vec::new());
    assert!(cut.finish().unwrap_err().to_string().contains("is cut off"));
    // Who reads less than was announced has nothing to tell.
    let indexes = IndexCache::default();
    let longer = || Some(SegmentId { bytes: ts.len() as u64 + 1, ..self::id(0) });
    let _ = play(ts, &mut reader(&indexes, None, longer()), 1, 5_000);
    assert!(play(ts, &mut reader(&indexes, None, longer()), 1, 5_000).delivered > 2_048);
}
