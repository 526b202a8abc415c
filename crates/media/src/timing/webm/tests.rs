use super::ebml::tests::{id_bytes, make};
use super::*;

const TRACK_ENTRY: u32 = 0xae;

/// Elements of unknown size.
fn endless(id: u32, parts: &[&[u8]]) -> Vec<u8> {
    [&id_bytes(id)[..], &[0xff], &parts.concat()].concat()
}

fn track(number: u8, kind: u8, codec: &[u8]) -> Vec<u8> {
    make(TRACK_ENTRY, &[&make(0xd7, &[&[number]]), &make(0x83, &[&[kind]]), &make(0x86, &[codec])])
}

fn header() -> Vec<u8> {
    let tracks = make(
        TRACKS,
        &[&track(1, 1, b"V_VP8"), &track(2, 2, b"A_OPUS"), &track(3, 17, b"S_TEXT/UTF8")],
    );
    [
        make(EBML, &[]),
        endless(SEGMENT, &[&make(INFO, &[&make(0x4489, &[&2_000_f64.to_be_bytes()])]), &tracks]),
    ]
    .concat()
}

/// Track, presentation time, duration, bytes, whether it is a key frame.
type Seen = (u16, i64, u32, u32, bool);

fn read(file: &[u8], piece: usize) -> Result<Vec<Seen>, TimingError> {
    let mut reader = Webm::new(&IndexCache::default(), Some(file.len() as u64));
    for piece in file.chunks(piece) {
        reader.feed(piece)?;
    }
    reader.finish()?;
    assert_eq!(reader.duration_us(), Some(2_000_000));
    assert_eq!(reader.tracks().unwrap().len(), 2);
    let frames = std::iter::from_fn(|| reader.next_frame());
    Ok(frames.map(|f| (f.track, f.presentation_us, f.duration_us, f.bytes, f.is_key)).collect())
}

#[test]
fn blocks_of_clusters_of_any_size() {
    let at = make(TIMESTAMP, &[&[3, 0xe8]]);
    let key = make(SIMPLE_BLOCK, &[&[0x81, 0, 0, 0x80, 1, 2, 3]]);
    // A laced block of three Opus frames, in a group with a duration.
    let laced = make(
        BLOCK_GROUP,
        &[&make(BLOCK, &[&[0x82, 0, 5, 4, 2], &[0xfc; 30]]), &make(BLOCK_DURATION, &[&[60]])],
    );
    let inter = make(
        BLOCK_GROUP,
        &[&make(BLOCK, &[&[0x81, 0, 40, 0, 9]]), &make(REFERENCE_BLOCK, &[&[0xd8]])],
    );
    let opus = make(SIMPLE_BLOCK, &[&[0x82, 0, 65, 0, 0xfc, 9, 9]]);
    let text = make(SIMPLE_BLOCK, &[&[0x83, 0, 65, 0, 0xfc, 9, 9]]);
    let parts = [&at[..], &key, &make(0xec, &[&[0; 5]]), &laced, &inter, &opus, &text];
    let expect = [
        (0, 1_000_000, 0, 3, true),
        (1, 1_005_000, 20_000, 10, true),
        (1, 1_025_000, 20_000, 10, true),
        (1, 1_045_000, 20_000, 10, true),
        (0, 1_040_000, 0, 1, false),
        (1, 1_065_000, 20_000, 3, true),
    ];
    for cluster in [make(CLUSTER, &parts), endless(CLUSTER, &parts)] {
        let file = [&header()[..], &cluster, &cluster, &make(TAGS, &[&[0; 9]])].concat();
        for piece in [1, 2, 9, 10_000] {
            assert_eq!(read(&file, piece).unwrap(), [expect, expect].concat(), "{piece}");
        }
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let at = make(TIMESTAMP, &[&[0]]);
    let start = header().len() as u64;
    for (what, rest, place, problem) in [
        (
            "no header",
            make(CLUSTER, &[&make(SIMPLE_BLOCK, &[&[0x81]])]),
            "SimpleBlock",
            "ends inside its header",
        ),
        (
            "lace",
            make(CLUSTER, &[&at, &make(SIMPLE_BLOCK, &[&[0x81, 0, 0, 4, 2, 1]])]),
            "SimpleBlock",
            "does not divide",
        ),
        (
            "unknown size",
            make(CLUSTER, &[&endless(BLOCK_GROUP, &[])]),
            "BlockGroup",
            "unknown size",
        ),
        (
            "too long",
            make(CLUSTER, &[&[0xa3, 0xff - 1]]),
            "SimpleBlock",
            "longer than the element around",
        ),
        (
            "timestamp",
            make(CLUSTER, &[&make(TIMESTAMP, &[&[0; 9]])]),
            "Timestamp",
            "more than eight bytes",
        ),
        (
            "cut",
            make(CLUSTER, &[&at, &make(SIMPLE_BLOCK, &[&[0x81, 0, 0, 0, 1]])])[..25].to_vec(),
            "Cluster",
            "cut off",
        ),
        ("number", vec![0], "element 0x0", "more bytes than allowed"),
    ] {
        let error = read(&[header(), rest].concat(), 3).unwrap_err();
        assert!(error.place.contains(place) && error.problem.contains(problem), "{what}: {error}");
        assert!(error.offset >= start, "{what}: {error}");
    }
    let early = [make(EBML, &[]), endless(SEGMENT, &[&make(CLUSTER, &[&at])])].concat();
    assert!(read(&early, 99).unwrap_err().to_string().contains("before `Tracks`"));
}

#[test]
fn a_jump_into_a_cluster_goes_on_with_the_next_one() {
    let cluster = |ticks: u8, parts: &[&[u8]]| {
        make(CLUSTER, &[&make(TIMESTAMP, &[&[ticks]]), &make(SIMPLE_BLOCK, parts)])
    };
    let head: &[u8] = &[0x81, 0, 0, 0x80];
    // In the media are the bytes of the id of a cluster.
    let first = [header(), cluster(0, &[head, &id_bytes(CLUSTER), &[0x81, 0xff, 0xff]])].concat();
    let file = [&first[..], &cluster(5, &[head, &[1, 2, 3]])].concat();
    let mut reader = Webm::new(&IndexCache::default(), Some(file.len() as u64));
    reader.feed(&file).unwrap();
    assert_eq!(std::iter::from_fn(|| reader.next_frame()).count(), 2);
    for piece in [1, 3, 10_000] {
        for offset in header().len() + 1..=first.len() {
            reader.jumped(offset as u64);
            for piece in file[offset..].chunks(piece) {
                assert_eq!(reader.want(), Want::Deliver(file.len() as u64 - reader.position()));
                reader.feed(piece).unwrap();
                if reader.position() > first.len() as u64 {
                    break;
                }
            }
            let rest = &file[reader.position() as usize..];
            reader.feed(rest).unwrap();
            reader.finish().unwrap();
            let times: Vec<_> =
                std::iter::from_fn(|| reader.next_frame()).map(|frame| frame.decode_us).collect();
            assert_eq!(times, [5_000], "{piece} {offset}");
        }
    }
    reader.jumped(file.len() as u64 - 1);
    reader.feed(&file[file.len() - 1..]).unwrap();
    assert_eq!((reader.finish(), reader.next_frame()), (Ok(()), None), "none follows");
}
