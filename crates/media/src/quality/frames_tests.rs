//! Generated frames, packet by packet.

use super::*;
use crate::quality::Arrival;
use crate::quality::SequenceMeter;

/// A stream written as words: `3K` a key frame of three packets, `2P` a frame that others refer to,
/// `1d` a discardable one, `1_` padding. A suffix changes a packet: `!n` loses packet n, `>n` sends
/// packet n after the next frame, `<` leaves out the marker bit, `*n` sets it on packet n as well.
fn packets(words: &str) -> Vec<FramePacket> {
    let (mut out, mut held): (Vec<FramePacket>, Vec<FramePacket>) = (Vec::new(), Vec::new());
    let mut number = 65_530;
    for (frame, word) in words.split_whitespace().enumerate() {
        let mut chars = word.chars();
        let count = i64::from(chars.next().unwrap().to_digit(10).unwrap());
        let kind = chars.next().unwrap();
        let change: Vec<char> = chars.collect();
        let nth = |mark| {
            change
                .iter()
                .position(|&c| c == mark)
                .map(|i| i64::from(change[i + 1].to_digit(10).unwrap()))
        };
        let later: Vec<_> = std::mem::take(&mut held);
        for i in 0..count {
            let packet = FramePacket {
                number,
                timestamp: (frame as u32).wrapping_mul(3000).wrapping_sub(6000),
                marker: i == count - 1 && !change.contains(&'<') && kind != '_'
                    || nth('*') == Some(i),
                padding: kind == '_',
                facts: PayloadFacts {
                    starts_frame: i == 0 && kind != '_',
                    key_frame: kind == 'K',
                    discardable: kind == 'd',
                    ..PayloadFacts::default()
                },
                arrived_ns: 0,
                captured: None,
            };
            number += 1;
            if nth('>') == Some(i) {
                held.push(packet);
            } else if nth('!') != Some(i) {
                out.push(packet);
            }
        }
        out.extend(later);
    }
    out.extend(held);
    out
}

/// One letter an outcome: `K` decodable key frame, `+` decodable, `-` complete only, `x` dropped,
/// `m` missed.
fn letter(outcome: FrameOutcome) -> String {
    match outcome {
        FrameOutcome::Complete(f) if f.decodable && f.key_frame => "K".into(),
        FrameOutcome::Complete(f) if f.decodable => "+".into(),
        FrameOutcome::Complete(_) => "-".into(),
        FrameOutcome::Dropped(_) => "x".into(),
        FrameOutcome::Missed(n) => "m".repeat(n as usize),
    }
}

/// Outcomes of packets that arrive a millisecond apart and, after the bar, those at the end of the
/// patience.
fn verdicts(packets: &[FramePacket]) -> String {
    let mut sequence = SequenceMeter::new(1024, 32, 200);
    let mut frames = FrameMeter::new(24, true);
    let mut reported = String::new();
    let mut offset = None;
    for (at_ms, packet) in packets.iter().enumerate() {
        match sequence.packet(packet.number as u16, false, at_ms as u32) {
            Arrival::Next(n) | Arrival::Filled(n) => {
                let offset = *offset.get_or_insert(n - packet.number);
                frames.packet(&FramePacket { number: packet.number + offset, ..*packet });
            }
            other => panic!("{other:?}"),
        }
        frames.judge(sequence.resolved_below(), |v| reported.push_str(&letter(v)));
    }
    reported.push('|');
    sequence.give_up_all();
    frames.judge(sequence.resolved_below(), |v| reported.push_str(&letter(v)));
    reported
}

#[test]
fn frames_are_complete_decodable_or_dropped() {
    for (what, stream, expect) in [
        ("all there, over the wrap", "3K 2P 1P 4P 2K 1P", "K+++K+|"),
        ("joined before a key frame", "2P 2P 2K 1P", "--K+|"),
        ("joined in the middle of a frame", "3P!0 2P 2K 1P", "-K+|"),
        ("the middle of a frame is lost", "2K 3P!1 1P 1K 1P", "K|x-K+"),
        ("the end of a frame is lost", "2K 3P!2 1P 1K 1P", "K|x-K+"),
        ("the start of a frame is lost", "2K 3P!0 1P 1K 1P", "K|x-K+"),
        ("a whole frame is lost", "2K 1P!0 2P 1K", "K|m-K"),
        ("a key frame is broken", "3K!1 1P 1P 2K 1P", "x--K+|"),
        ("a discardable frame is broken", "2K 3d!1 1P 1P", "Kx++|"),
        ("the start of a discardable frame is lost", "2K 3d!0 1P 1P", "K|x++"),
        ("the marker of a discardable frame is lost", "2K 2d!1 1P 1P", "K|x++"),
        ("out of order within the patience", "2K 3P>1 1P 1P", "K+++|"),
        ("the last of a frame after the next", "2K 2P>1 2P 1P", "K+++|"),
        ("the first of a frame after the next", "2K 2P>0 2P 1P", "K+++|"),
        ("a single-packet frame after the next", "2K 1P>0 1P 1P", "K+++|"),
        ("no marker, but nothing is missing", "2K< 2P< 1P", "K++|"),
        ("padding between frames", "2K 3_ 2P 1_ 1P", "K++|"),
        ("a frame between paddings that wait comes last", "2K 1P!0 1_ 1P>0 1_ 2K", "K|m-K"),
        ("padding is lost: it cannot be distinguished from a frame", "2K 1_!0 2P 1K", "K|m-K"),
        ("part of a run of padding is lost", "2K 3_!1 2P 1K", "K|m-K"),
        ("the last frame is not yet there", "2K 3P!2", "K|"),
        ("two losses before a key frame", "1K 2P!0 2P!1 3P 1K 1P", "K|xx-K+"),
    ] {
        assert_eq!(verdicts(&packets(stream)), expect, "{what}: {stream}");
    }
}

#[test]
fn a_marker_inside_a_picture_ends_no_frame() {
    for (what, stream, expect) in [
        ("two markers a picture", "4K*1 4P*1 4P*1 1P", "K++|"),
        ("one picture has two", "2K 4P*1 2P 2P 1P", "K+++|"),
        ("its later packet came first", "4K>1*1 2P 2P 1P", "K++|"),
        ("the end of a picture is lost", "4K*1 4P*1!3 4P*1 1K 1P", "K|x-K"),
        ("the middle of a picture is lost", "4K*1 4P*1!1 4P*1 2K 1P", "K|x-K"),
        ("a slice after a marker is lost", "4K*1 4P*1!2 4P*1 1K 1P", "K|x-K"),
        ("the end of a picture is lost, with a marker", "4K*1 4P*1 4P*1!3 3P 1K 1P", "K+|x-K"),
        ("a whole picture is lost", "2K*0 2P*0 2P*0 1P!0 2P*0 2K*0 1P", "K+|+m-K"),
        ("and no end was sure before", "2K*0 2P*0 1P!0 2P*0 2K*0 1P", "K|+m-K"),
        ("a key frame ends the wait", "2P*0 3P!1 2K 1P 1P", "-xK+|"),
    ] {
        assert_eq!(verdicts(&packets(stream)), expect, "{what}: {stream}");
    }
}

#[test]
fn markers_are_trusted_until_one_is_inside_a_picture() {
    let mut frames = FrameMeter::new(24, true);
    let mut reported = String::new();
    for packet in packets("2K 2P 4P*1 2P 1P") {
        frames.packet(&packet);
        frames.judge(i64::MIN, |v| reported.push_str(&letter(v)));
        // The last packets of the first two frames, and the first half of the third.
        let ended = ["", "K", "K", "K+", "K+", "K++"];
        let at = (packet.number - 65_530) as usize;
        if let Some(ended) = ended.get(at) {
            assert_eq!(reported, *ended, "{at}");
        }
        assert_eq!(frames.has_inner_markers(), at >= 6, "{at}");
    }
    assert_eq!(reported, "K+++");
}

#[test]
fn a_key_frame_ends_a_wait_that_is_in_vain() {
    // Undecodable already, and the hole in the second frame still open: the key frame is shown at
    // once.
    assert_eq!(verdicts(&packets("2P 3P!1 2K 1P")), "-xK+|");
}

#[test]
fn following_picture_ids_prove_that_no_frame_was_lost() {
    for (bits, ids, expect) in [
        (15, [0x7FFE, 0x7FFF, 0], "K+|+"),  // the hole was padding
        (15, [0x7FFE, 0x7FFF, 1], "K+|m-"), // one frame
        (15, [0x7FFE, 0x7FFF, 2], "K+|m-"), // two, but only one packet was missing
        (7, [126, 127, 0], "K+|+"),
        (7, [126, 127, 1], "K+|m-"),
    ] {
        let mut packets = packets("1K 1P 1_!0 1P");
        for (packet, id) in packets.iter_mut().zip(ids) {
            packet.facts.picture_id = Some((id, bits));
        }
        assert_eq!(verdicts(&packets), expect, "{bits} bits, {ids:?}");
    }
}

#[test]
fn a_superframe_is_one_frame_and_its_layers_start_none() {
    let mut packets = packets("4K 4P 4P");
    for (i, packet) in packets.iter_mut().enumerate() {
        packet.facts.spatial_layer = (i % 4 / 2) as u8;
        packet.facts.starts_frame = i % 2 == 0;
    }
    assert_eq!(verdicts(&packets), "K++|");
    // Without its base layer the second superframe is no frame, although its upper layer arrived
    // and starts.
    packets.drain(4..6);
    assert_eq!(verdicts(&packets), "K|x-");
}

#[test]
fn a_frame_reports_the_figures_of_its_packets() {
    let mut packets = packets("3K");
    for (packet, at) in packets.iter_mut().zip([10, 30, 20]) {
        packet.arrived_ns = at;
    }
    let captured = CaptureTime { unix_ns: 9, basis: crate::quality::CaptureBasis::Mark };
    packets[1].captured = Some(captured);
    let mut frames = FrameMeter::new(4, true);
    packets.iter().for_each(|p| frames.packet(p));
    let mut reported = Vec::new();
    frames.judge(i64::MAX, |v| reported.push(v));
    let frame = CompleteFrame {
        timestamp: packets[0].timestamp,
        first: packets[0].number,
        arrived_ns: 30,
        decodable: true,
        key_frame: true,
        captured: Some(captured),
    };
    assert_eq!(reported, [FrameOutcome::Complete(frame)]);
}

#[test]
fn a_codec_whose_headers_are_not_read_shows_what_is_complete() {
    let mut frames = FrameMeter::new(24, false);
    let mut reported = String::new();
    for mut packet in packets("2P 2P 3P!1 2P 1P") {
        packet.facts = PayloadFacts::default();
        frames.packet(&packet);
        frames.judge(i64::MIN, |v| reported.push_str(&letter(v)));
    }
    frames.judge(i64::MAX, |v| reported.push_str(&letter(v)));
    assert!(frames.intact());
    // The first frame may have begun before the viewer joined.
    assert_eq!(reported, "+x++");
}

#[test]
fn a_restart_gives_up_what_is_not_complete_and_needs_a_key_frame() {
    let mut frames = FrameMeter::new(24, true);
    let mut reported = String::new();
    for packet in packets("2K 3P!1") {
        frames.packet(&packet);
        frames.judge(i64::MIN, |v| reported.push_str(&letter(v)));
    }
    frames.restart(|v| reported.push_str(&letter(v)));
    assert!(!frames.intact());
    for packet in packets("1P 1K") {
        frames.packet(&FramePacket { number: packet.number - 50_000, ..packet });
        frames.judge(i64::MIN, |v| reported.push_str(&letter(v)));
    }
    assert_eq!(reported, "Kx-K");
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let mut frames = FrameMeter::new(24, true);
    let mut random = 12345_u64;
    let mut dropped = 0;
    for _ in 0..20_000 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        frames.packet(&FramePacket {
            number: (random >> 50) as i64,
            timestamp: (random >> 40) as u32 & 0xFF,
            marker: random & 1 << 20 != 0,
            padding: random & 7 << 21 == 0,
            facts: PayloadFacts { starts_frame: random & 3 << 30 == 0, ..PayloadFacts::default() },
            arrived_ns: 0,
            captured: None,
        });
        frames.judge((random >> 51) as i64, |v| {
            dropped += i32::from(!matches!(v, FrameOutcome::Complete(_)));
        });
        assert!(frames.frames.len() <= 24 && frames.frames.capacity() <= 25);
    }
    assert!(dropped > 0);
}
