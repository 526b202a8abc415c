use super::boxes::tests::make;
use super::*;

/// Big-endian words.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A table of this version with its entries counted.
fn table(kind: &[u8; 4], version: u32, width: usize, entries: &[u32]) -> Vec<u8> {
    make(kind, &[&words(&[version << 24, (entries.len() / width) as u32]), &words(entries)])
}

fn sizes(entries: &[u32]) -> Vec<u8> {
    make(b"stsz", &[&words(&[0, 0, entries.len() as u32]), &words(entries)])
}

/// A track with 1000 ticks a second.
fn track(id: u32, kind: &[u8; 4], tables: &[&[u8]]) -> Vec<u8> {
    let description = make(
        b"stsd",
        &[&words(&[0, 1]), &make(if kind == b"vide" { b"avc1" } else { b"Opus" }, &[&[0; 78]])],
    );
    let tables = make(b"stbl", &[&description, &tables.concat()]);
    let media = [
        make(b"mdhd", &[&words(&[0, 0, 0, 1_000, 0, 0])]),
        make(b"hdlr", &[&words(&[0, 0]), kind, &[0; 13]]),
        make(b"minf", &[&tables]),
    ];
    make(
        b"trak",
        &[&make(b"tkhd", &[&words(&[0, 0, 0, id, 0, 0])]), &make(b"mdia", &[&media.concat()])],
    )
}

fn movie(parts: &[&[u8]]) -> Vec<u8> {
    make(b"moov", &[&make(b"mvhd", &[&words(&[0, 0, 0, 1_000, 2_000])]), &parts.concat()])
}

fn read(file: &[u8]) -> (Mp4, Vec<TimedFrame>, Result<(), TimingError>) {
    let mut reader = Mp4::new(&IndexCache::default(), Some(file.len() as u64));
    let result = reader.feed(file).and_then(|()| reader.finish());
    let frames = std::iter::from_fn(|| reader.next_frame()).collect();
    (reader, frames, result)
}

/// Decoding and presentation time in milliseconds, bytes, whether it is a key frame.
fn brief(frames: &[TimedFrame]) -> Vec<(i64, i64, u32, bool)> {
    frames
        .iter()
        .map(|f| (f.decode_us / 1_000, f.presentation_us / 1_000, f.bytes, f.is_key))
        .collect()
}

#[test]
fn tables_of_every_kind() {
    let media = make(b"mdat", &[&[0; 100]]);
    // Three chunks: of two samples, two, and one. The second is before the first in the file.
    let places = table(b"stsc", 0, 3, &[1, 2, 1, 3, 1, 1]);
    let times = table(b"stts", 0, 2, &[3, 40, 2, 20]);
    let keys = table(b"stss", 0, 1, &[1, 4]);
    let shifts = table(b"ctts", 0, 2, &[1, 40, 1, 120, 3, 0]);
    let stz2 = make(b"stz2", &[&words(&[0, 4, 5]), &[0x98, 0x76, 0x50]]);
    let co64 = table(b"co64", 0, 2, &[0, 40, 0, 8, 0, 80]);
    for (what, sizes, chunks) in [
        ("32 bits", sizes(&[9, 8, 7, 6, 5]), table(b"stco", 0, 1, &[40, 8, 80])),
        ("64-bit offsets, 4-bit sizes", stz2, co64),
    ] {
        let tables = [&places[..], &times, &keys, &shifts, &sizes, &chunks];
        let file = [&media[..], &movie(&[&track(1, b"vide", &tables)])].concat();
        let (reader, frames, result) = read(&file);
        result.unwrap();
        assert_eq!(reader.duration_us(), Some(2_000_000));
        assert_eq!(
            brief(&frames),
            [
                (0, 40, 9, true),
                (40, 160, 8, false),
                (80, 80, 7, false),
                (120, 120, 6, true),
                (140, 140, 5, false)
            ],
            "{what}"
        );
        assert_eq!(
            frames.iter().map(|frame| frame.duration_us / 1_000).collect::<Vec<_>>(),
            [40, 40, 40, 20, 20]
        );
        let mut reader = reader;
        for (offset, left) in [(8, 5), (9, 4), (40, 3), (49, 2), (80, 1), (81, 0)] {
            reader.jumped(offset);
            reader.ignored(100 - offset).unwrap();
            let frames: Vec<_> = std::iter::from_fn(|| reader.next_frame()).collect();
            // Of what lies behind the place, each sample once; the chunks are out of order.
            assert!(frames.len() <= left.max(3), "{what}: {offset}: {frames:?}");
            assert!(frames.len() >= usize::from(left > 0), "{what}: {offset}");
        }
    }
}

#[test]
fn frames_come_when_their_last_byte_has() {
    let tables = [
        table(b"stsc", 0, 3, &[1, 2, 1]),
        table(b"stts", 0, 2, &[2, 40]),
        sizes(&[10, 20]),
        table(b"stco", 0, 1, &[0]),
    ];
    let index_len = movie(&[&track(1, b"vide", &[&tables.concat()])]).len() as u32;
    let tables =
        [&tables[0][..], &tables[1], &tables[2], &table(b"stco", 0, 1, &[index_len + 8])].concat();
    let file = [movie(&[&track(1, b"vide", &[&tables])]), make(b"mdat", &[&[0; 30]])].concat();
    let mut reader = Mp4::new(&IndexCache::default(), None);
    reader.feed(&file[..index_len as usize]).unwrap();
    assert_eq!(reader.want(), Want::Ignore(38));
    reader.ignored(17).unwrap();
    assert_eq!(reader.next_frame(), None);
    reader.ignored(1).unwrap();
    assert_eq!(reader.next_frame().unwrap().bytes, 10);
    assert_eq!(
        reader.finish().unwrap_err().to_string(),
        format!("MP4: box `mdat` at offset {} is cut off; {}", index_len + 18, super::super::CUT)
    );
    reader.feed(&file[index_len as usize + 18..]).unwrap();
    assert_eq!((reader.next_frame().unwrap().bytes, reader.want()), (20, Want::Done));
    reader.finish().unwrap();
}

#[test]
fn the_index_is_looked_for_behind_the_media() {
    let tables = [
        table(b"stsc", 0, 3, &[1, 1, 1]),
        table(b"stts", 0, 2, &[1, 40]),
        sizes(&[10]),
        table(b"stco", 0, 1, &[16]),
    ];
    let index = movie(&[&track(1, b"vide", &[&tables.concat()])]);
    let mut reader = Mp4::new(&IndexCache::default(), None);
    // A box of 2^33 bytes.
    reader.feed(&[&words(&[1])[..], b"mdat", &words(&[2, 0])].concat()).unwrap();
    assert_eq!(reader.want(), Want::Jump(1 << 33));
    reader.jumped(1 << 33);
    reader.feed(&index).unwrap();
    assert_eq!((reader.next_frame(), reader.want()), (None, Want::Jump(16)));
    reader.jumped(16);
    assert_eq!(reader.want(), Want::Ignore(10));
    reader.ignored(10).unwrap();
    assert!(reader.next_frame().is_some());

    for (what, head) in [("without size", words(&[0])), ("to the end", words(&[1_000]))] {
        let mut reader = Mp4::new(&IndexCache::default(), Some(1_000));
        let error = reader.feed(&[&head[..], b"mdat"].concat()).unwrap_err().to_string();
        assert!(error.contains("has no index (`moov`)"), "{what}: {error}");
    }
}

#[test]
fn fragments_with_defaults_and_offsets_of_all_kinds() {
    let extends = |id: u32| make(b"trex", &[&words(&[0, id, 1, 40, 10, 0x0101_0000])]);
    let index = movie(&[
        &track(1, b"vide", &[]),
        &track(2, b"soun", &[]),
        &make(b"mvex", &[&extends(1), &extends(2)]),
    ]);
    let start = index.len() as u32;
    let time = |ticks: u32| make(b"tfdt", &[&words(&[0, ticks])]);
    // Defaults of trex, and flags of the first sample; then data after those of the run before,
    // sizes and signed shifts.
    let video = |data: u32| {
        make(
            b"traf",
            &[
                &make(b"tfhd", &[&words(&[0x02_0000, 1])]),
                &time(1_000),
                &make(b"trun", &[&words(&[0x05, 2, data, 0])]),
                &make(b"trun", &[&words(&[0x01_000a00, 2, 7, (-40_i32) as u32, 8, 40])]),
            ],
        )
    };
    // Its own duration and size; continues in time after what was before.
    let audio = make(
        b"traf",
        &[
            &make(b"tfhd", &[&words(&[0x02_0018, 2, 20, 5])]),
            &make(b"trun", &[&words(&[0x01, 3, 0])]),
        ],
    );
    let plain = |data: u32| {
        let audio_at = data + 35;
        let mut audio = audio.clone();
        let at = audio.len() - 4;
        audio[at..].copy_from_slice(&audio_at.to_be_bytes());
        make(b"moof", &[&make(b"mfhd", &[&[0; 8]]), &video(data), &audio])
    };
    let fragment = plain(plain(0).len() as u32 + 8);
    let file = [&index[..], &fragment, &make(b"mdat", &[&[0; 50]])].concat();
    let (reader, frames, result) = read(&file);
    result.unwrap();
    assert_eq!(reader.offset_for(0), None);
    let video: Vec<_> = frames.iter().filter(|frame| frame.track == 0).copied().collect();
    // The shift of -40 moves all decoding times.
    assert_eq!(
        brief(&video),
        [
            (960, 1_000, 10, true),
            (1_000, 1_040, 10, false),
            (1_040, 1_040, 7, false),
            (1_080, 1_160, 8, false)
        ]
    );
    let audio: Vec<_> = frames.iter().filter(|frame| frame.track == 1).copied().collect();
    assert_eq!(brief(&audio), [(0, 0, 5, true), (20, 20, 5, true), (40, 40, 5, true)]);

    let (_, frames, result) = read(&file[..file.len() - 1]);
    assert_eq!(frames.len(), 6);
    assert_eq!(result.unwrap_err().offset, u64::from(start) + fragment.len() as u64 + 57);
}

#[test]
fn hostile_counts_are_refused_before_they_cost_anything() {
    let hostile = |kind: &[u8; 4]| make(kind, &[&words(&[0, u32::MAX, 7])]);
    let fragment = |run: &[u32]| {
        let index = movie(&[
            &track(1, b"vide", &[]),
            &make(b"mvex", &[&make(b"trex", &[&words(&[0, 1, 1, 40, 0, 0])])]),
        ]);
        let run = make(b"trun", &[&words(run)]);
        let track = make(b"traf", &[&make(b"tfhd", &[&words(&[0, 1])]), &run]);
        [index, make(b"moof", &[&track]), make(b"mdat", &[])].concat()
    };
    for (file, expect) in [
        (movie(&[&track(1, b"vide", &[&hostile(b"stts")])]), "box `stts`"),
        (movie(&[&track(1, b"vide", &[&hostile(b"stsc")])]), "box `stsc`"),
        (movie(&[&track(1, b"vide", &[&hostile(b"co64")])]), "box `co64`"),
        (
            movie(&[&track(1, b"vide", &[&make(b"stsz", &[&words(&[0, 0, u32::MAX])])])]),
            "announces 4294967295 entries",
        ),
        (
            movie(&[&track(1, b"vide", &[&table(b"stsc", 0, 3, &[2, 1, 1])])]),
            "not in ascending order",
        ),
        (
            movie(&[&track(1, b"vide", &[&table(b"stsc", 0, 3, &[1, 0, 1])])]),
            "chunks without samples",
        ),
        (
            movie(&[&track(
                1,
                b"vide",
                &[
                    &table(b"stsc", 0, 3, &[1, 1, 1]),
                    &sizes(&[9]),
                    &table(b"co64", 0, 2, &[u32::MAX, u32::MAX]),
                ],
            )]),
            "beyond any file",
        ),
        (movie(&[]), "no track of audio or video"),
        (make(b"moov", &[&[0; 8]]), "has no `mvhd`"),
        (fragment(&[0, u32::MAX]), "without an entry for each"),
        (fragment(&[0x200, u32::MAX, 1, 2]), "has room for 2"),
        (fragment(&[1, 1, (-9_i32) as u32]), "before its own fragment"),
        ([&words(&[u32::MAX])[..], b"moov"].concat(), "larger than 64 MiB"),
        (make(b"moof", &[&[0; 9]]), "before any `moov`"),
    ] {
        let error = read(&file).2.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
}

#[test]
fn a_compressed_header_is_another_format_and_no_damage() {
    let error = read(&movie(&[&make(b"cmov", &[&[0; 8]])])).2.unwrap_err();
    assert!(error.is_of_other_format(), "{error}");
    assert!(error.to_string().contains("box `cmov` at offset"), "{error}");
}

#[test]
fn viewers_of_a_file_share_its_index() {
    let tables = [
        table(b"stsc", 0, 3, &[1, 1, 1]),
        table(b"stts", 0, 2, &[1, 40]),
        sizes(&[10]),
        table(b"stco", 0, 1, &[16]),
    ];
    let index = movie(&[&track(1, b"vide", &[&tables.concat()])]);
    let indexes = IndexCache::default();
    let mut readers = [0, 1].map(|_| Mp4::new(&indexes, None));
    for byte in &index {
        readers.iter_mut().for_each(|reader| reader.feed(std::slice::from_ref(byte)).unwrap());
    }
    let [a, b] = readers.map(|reader| reader.movie().unwrap());
    assert!(Arc::ptr_eq(&a, &b));
    // What a viewer has of its own, with two tracks.
    let own = size_of::<Mp4>()
        + 2 * (size_of::<Option<track::Cursor>>()
            + size_of::<TrackInfo>()
            + size_of::<Continues>());
    assert!(own < 1_024, "{own} bytes");
}
