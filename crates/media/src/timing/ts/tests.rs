use super::*;
use crate::codec::program::tests::{packets, sections};

const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;

/// A transport packet of a stream; the data are filled up by an adaptation field.
fn packet(pid: u16, starts: bool, continuity: u8, data: &[u8]) -> Vec<u8> {
    let flags = if starts { 0x40 } else { 0 } | (pid >> 8) as u8;
    let mut packet = vec![0x47, flags, pid as u8, 0x30 | continuity & 0x0f];
    let fields = 184 - data.len() - 1;
    packet.push(fields as u8);
    if fields > 0 {
        packet.push(0);
        packet.resize(4 + 1 + fields, 0xff);
    }
    packet.extend_from_slice(data);
    assert_eq!(packet.len(), PACKET_LEN);
    packet
}

/// The beginning of a PES packet with a presentation time, and this length.
fn pes(stamp: u64, len: u16, payload: &[u8]) -> Vec<u8> {
    let time = [
        0x21 | (stamp >> 29) as u8 & 0x0e,
        (stamp >> 22) as u8,
        (stamp >> 14) as u8 | 1,
        (stamp >> 7) as u8,
        (stamp << 1) as u8 | 1,
    ];
    [&[0, 0, 1, 0xe0][..], &len.to_be_bytes(), &[0x80, 0x80, 5], &time, payload].concat()
}

fn tables(streams: &[(u8, u16)]) -> Vec<u8> {
    let [association, map] = sections(streams);
    [packets(0, &association), packets(0x1000, &map)].concat()
}

fn read(file: &[u8]) -> (Ts, Vec<TimedFrame>, Result<(), TimingError>) {
    let mut reader = Ts::new(Framing::find(file).unwrap(), None);
    reader.feed(file).unwrap();
    let result = reader.finish();
    let frames = std::iter::from_fn(|| reader.next_frame()).collect();
    (reader, frames, result)
}

#[test]
fn a_picture_is_complete_when_the_next_begins() {
    let mut file = tables(&[(0x1b, VIDEO)]);
    file.extend(packet(VIDEO, true, 0, &pes(90_000, 0, &[0, 0, 1, 0x65, 1, 2])));
    file.extend(packet(VIDEO, false, 1, &[7; 100]));
    let mut reader = Ts::new(Framing::find(&file).unwrap(), None);
    reader.feed(&file).unwrap();
    assert_eq!(reader.next_frame(), None);
    reader.feed(&packet(VIDEO, true, 2, &pes(93_600, 0, &[0, 0, 1, 0x41, 1]))).unwrap();
    let first = TimedFrame {
        track: 0,
        decode_us: 1_000_000,
        presentation_us: 1_000_000,
        duration_us: 40_000,
        bytes: 106,
        is_key: true,
    };
    assert_eq!(reader.next_frame(), Some(first));
    reader.finish().unwrap();
    let second = TimedFrame {
        decode_us: 1_040_000,
        presentation_us: 1_040_000,
        bytes: 5,
        is_key: false,
        ..first
    };
    assert_eq!(reader.next_frame(), Some(second));
}

#[test]
fn headers_may_be_spread_over_packets() {
    let whole = pes(90_000, 0, &[0, 0, 1, 0x65, 1]);
    for cut in 1..whole.len() {
        let mut file = tables(&[(0x1b, VIDEO)]);
        file.extend(packet(VIDEO, true, 0, &whole[..cut]));
        file.extend(packet(VIDEO, false, 1, &whole[cut..]));
        let (_, frames, result) = read(&file);
        result.unwrap();
        assert_eq!(frames.len(), 1, "{cut}");
        assert_eq!((frames[0].bytes, frames[0].is_key), (5, true), "{cut}");
    }
}

#[test]
fn tables_that_come_late_lose_nothing() {
    let video = |number: u8| {
        let stamp = 90_000 + 3_600 * u64::from(number);
        packet(VIDEO, true, number, &pes(stamp, 0, &[0, 0, 1, 0x65, 1]))
    };
    let frame = [&[0xff, 0xf1, 0x50, 0x80, 0x0c, 0x9f, 0xfc][..], &[0; 93]].concat();
    let audio = |number: u8| {
        packet(AUDIO, true, number, &pes(90_000 + 2_090 * u64::from(number), 0, &frame))
    };
    let of = |numbers: std::ops::Range<u8>| {
        numbers.flat_map(|number| [video(number), audio(number)].concat()).collect::<Vec<u8>>()
    };
    let both = tables(&[(0x1b, VIDEO), (0x0f, AUDIO)]);
    for (what, file) in [
        ("first", [&both[..], &of(0..9)].concat()),
        ("after a third", [&of(0..3)[..], &both, &of(3..9)].concat()),
        ("last", [&of(0..9)[..], &both].concat()),
        ("one stream first", [&tables(&[(0x1b, VIDEO)])[..], &of(0..3), &both, &of(3..9)].concat()),
    ] {
        let (reader, frames, result) = read(&file);
        result.unwrap();
        let count = |track| frames.iter().filter(|frame| frame.track == track).count();
        assert_eq!((count(0), count(1)), (9, 9), "{what}: {frames:?}");
        assert_eq!(reader.anomalies(), Anomalies::default(), "{what}");
    }
}

#[test]
fn of_streams_that_no_table_names_little_is_kept_once_there_was_a_map() {
    let frame = [&[0xff, 0xf1, 0x50, 0x80, 0x0c, 0x9f, 0xfc][..], &[0; 93]].concat();
    let audio = (0..3_000_u32).map(|number| {
        let stamp = 90_000 + 2_090 * u64::from(number);
        packet(AUDIO, true, number as u8, &pes(stamp, 0, &frame))
    });
    let audio = audio.collect::<Vec<_>>().concat();
    let video = tables(&[(0x1b, VIDEO)]);
    let both = tables(&[(0x1b, VIDEO), (0x0f, AUDIO)]);
    let kept = UNNAMED_BY_MAP_LEN_MAX / PACKET_LEN;
    for (what, before, after, lens) in [
        ("no map", &[][..], &both[..], 3_000..3_001),
        ("a map", &video[..], &both[..], kept / 2..kept + 1),
        ("no map but this", &[][..], &video[..], 0..1),
    ] {
        let mut reader = Ts::new(Framing::find(&video).unwrap(), None);
        [before, &audio, after].iter().for_each(|part| reader.feed(part).unwrap());
        assert!(reader.unnamed.len() <= UNNAMED_BY_MAP_LEN_MAX, "{what}");
        assert!(reader.unnamed.capacity() <= 2 * UNNAMED_BY_MAP_LEN_MAX, "{what}");
        reader.finish().unwrap();
        assert_eq!(reader.unnamed.capacity(), 0, "{what}");
        let frames = std::iter::from_fn(|| reader.next_frame()).count();
        assert!(lens.contains(&frames), "{what}: {frames}");
    }
}

#[test]
fn a_segment_without_tables_goes_on_with_the_streams_of_the_one_before() {
    let picture = |stream| packet(stream, true, 0, &pes(90_000, 0, &[0, 0, 1, 0x65, 1]));
    let file = [tables(&[(0x1b, VIDEO)]), picture(VIDEO)].concat();
    let program = read(&file).0.streams().unwrap();
    let next = |file: &[u8]| {
        let mut reader = Ts::new(Framing::find(file).unwrap(), None);
        reader.go_on_with(&program);
        reader.feed(file).unwrap();
        let frames: Vec<_> = {
            reader.finish().unwrap();
            std::iter::from_fn(|| reader.next_frame()).collect()
        };
        (frames.len(), frames.iter().all(|frame| frame.track == 0), reader.tracks().unwrap().len())
    };
    assert_eq!(next(&picture(VIDEO)), (1, true, 1), "it has none");
    assert_eq!(next(&file), (1, true, 1), "it has the same");
    // As go2rtc fills the packets of its tables.
    let zeros = |stream, section: &[u8]| {
        let mut packet = packets(stream, section);
        packet[5 + section.len()..].fill(0);
        packet
    };
    let [association, map] = sections(&[(0x1b, VIDEO)]);
    let filled = [zeros(0, &association), zeros(0x1000, &map), picture(VIDEO)].concat();
    assert_eq!(next(&filled), (1, true, 1), "it has the same, and zeros behind them");
    let other = [tables(&[(0x24, 0x200)]), picture(0x200)].concat();
    assert_eq!(next(&other), (1, true, 1), "it has others");
    let error = read(&picture(VIDEO)).2.unwrap_err().to_string();
    assert!(error.contains("program map at offset 188 never came"), "{error}");
}

#[test]
fn a_repeated_packet_counts_once() {
    let mut file = tables(&[(0x1b, VIDEO)]);
    let first = packet(VIDEO, true, 4, &pes(90_000, 0, &[0, 0, 1, 0x65, 1]));
    file.extend(first.repeat(2));
    let (reader, frames, _) = read(&file);
    assert_eq!((frames.len(), frames[0].bytes), (1, 5));
    assert_eq!(reader.anomalies(), Anomalies::default());
}

#[test]
fn files_that_end_early_say_where() {
    let frame = [&[0xff, 0xf1, 0x50, 0x80, 0x25, 0x7f, 0xfc][..], &[0; 292]].concat();
    for (what, payload, len, cut, expect) in [
        ("a PES packet", &frame[..100], 8 + 299, 0, "frame of stream 257 at offset 564 is cut off"),
        ("a frame of audio", &frame[..100], 0, 0, "frame of stream 257 at offset 564 is cut off"),
        ("a transport packet", &frame[..100], 0, 10, "packet at offset 376 is cut off"),
    ] {
        let mut file = tables(&[(0x0f, AUDIO)]);
        file.extend(packet(AUDIO, true, 0, &pes(90_000, len, payload)));
        let (_, frames, result) = read(&file[..file.len() - cut]);
        assert!(frames.is_empty(), "{what}");
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expect), "{what}: {error}");
    }
    let (_, _, result) = read(&tables(&[(0x05, 0x102)]));
    assert!(result.unwrap_err().to_string().contains("program map at offset 376 never came"));
}

#[test]
fn a_file_without_packets_is_given_up() {
    let mut file = tables(&[(0x1b, VIDEO)]);
    file.extend(vec![0; 2 << 20]);
    let mut reader = Ts::new(Framing::find(&file[..376]).unwrap(), None);
    let error = reader.feed(&file).unwrap_err();
    assert_eq!(error.offset, 376);
    assert!(error.to_string().contains("sync byte"), "{error}");
}

#[test]
fn other_streams_cost_nothing() {
    let mut file = tables(&[(0x1b, VIDEO), (0x06, 0x102)]);
    for pid in [0x102, 0x200, 0x1fff] {
        file.extend(packet(pid, true, 0, &pes(90_000, 0, &[1])));
    }
    let mut scrambled = packet(VIDEO, true, 0, &pes(90_000, 0, &[1]));
    scrambled[3] |= 0x80;
    file.extend(scrambled);
    let (reader, frames, result) = read(&file);
    result.unwrap();
    assert!(frames.is_empty());
    assert_eq!(reader.anomalies().scrambled_packets, 1);
    assert_eq!(reader.tracks().unwrap().len(), 1);
}
