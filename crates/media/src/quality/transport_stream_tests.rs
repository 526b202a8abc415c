//! Transport streams of known frames, whole and with holes.

use super::*;
use crate::codec::program::tests::{packets, sections};
use crate::quality::frames::{FrameMeter, FrameOutcome};

const VIDEO: u16 = 0x100;

/// A stream of `frames` pictures of five transport packets each, an I picture every tenth, as RTP payloads of seven.
fn payloads(frames: u32) -> Vec<Vec<u8>> {
    let [association, map] = sections(&[(0x02, VIDEO), (0x03, 0x101)]);
    let mut stream = [packets(0, &association), packets(0x1000, &map)].concat();
    let mut continuity = 0_u8;
    for frame in 0..frames {
        let shown_at = u64::from(frame) * 3_600;
        let pts = [
            0x21 | (shown_at >> 29) as u8 & 0x0e,
            (shown_at >> 22) as u8,
            (shown_at >> 14) as u8 | 1,
            (shown_at >> 7) as u8,
            (shown_at << 1) as u8 | 1,
        ];
        let kind = if frame % 10 == 0 { 0x0f } else { 0x17 };
        let head = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5][..], &pts, &[0, 0, 1, 0, 0, kind]].concat();
        for part in 0..5 {
            let start = if part == 0 { 0x40 } else { 0 };
            let mut packet = vec![0x47, start | 1, 0, 0x10 | continuity];
            continuity = (continuity + 1) % 16;
            if part == 0 {
                packet.extend_from_slice(&head);
            }
            packet.resize(mp2t::PACKET_LEN, 0xff);
            stream.extend(packet);
            // Sound between.
            if part == 2 {
                let mut sound = vec![0x47, 1, 1, 0x10];
                sound.resize(mp2t::PACKET_LEN, 0xff);
                stream.extend(sound);
            }
        }
    }
    stream.chunks(7 * mp2t::PACKET_LEN).map(<[u8]>::to_vec).collect()
}

/// Complete, decodable and dropped frames of the payloads with these numbers, in this order.
fn judged(order: impl Iterator<Item = i64>, resolved: impl Fn(i64) -> i64) -> (u32, u32, u32) {
    let payloads = payloads(40);
    let (mut meter, mut frames) = (TransportStreamMeter::default(), FrameMeter::new(24, true));
    let (mut complete, mut decodable, mut dropped) = (0, 0, 0);
    for number in order {
        let payload = &payloads[number as usize];
        meter.packet(number, number * 1_000_000, payload, |packet| frames.packet(packet));
        meter.resolve(resolved(number), |packet| frames.packet(packet));
        frames.judge(meter.resolved_below(), |outcome| match outcome {
            FrameOutcome::Complete(frame) => {
                complete += 1;
                decodable += u32::from(frame.decodable);
            }
            FrameOutcome::Dropped(_) => dropped += 1,
            FrameOutcome::Missed(count) => dropped += count,
        });
    }
    (complete, decodable, dropped)
}

#[test]
fn every_picture_is_a_frame() {
    let count = payloads(40).len() as i64;
    // The end of the last is not known: none follows it.
    assert_eq!(judged(0..count, |number| number + 1), (39, 39, 0));
}

#[test]
fn reordered_packets_make_no_hole() {
    let count = payloads(40).len() as i64;
    let swapped = (0..count)
        .map(|number| if number % 2 == 0 && number + 1 < count { number + 1 } else { (number - 1).max(0) });
    let swapped: Vec<i64> = std::iter::once(0).chain(swapped.filter(|number| *number > 0)).collect();
    let (complete, decodable, dropped) = judged(swapped.into_iter(), |_| 0);
    assert!(complete >= 37 && decodable == complete && dropped == 0, "{complete} {decodable} {dropped}");
}

#[test]
fn a_lost_rtp_packet_breaks_its_frames_and_those_that_refer_to_them() {
    let count = payloads(40).len() as i64;
    let (complete, decodable, dropped) =
        judged((0..count).filter(|number| *number != 10), |number| number + 1);
    assert!((1..=3).contains(&dropped), "{dropped} dropped");
    // A frame whose beginning was lost too may count as a part of the one before.
    assert!((38..=39).contains(&(complete + dropped)), "{complete} complete, {dropped} dropped");
    // Until the next I picture.
    assert!(decodable < complete && decodable >= 28, "{decodable} of {complete}");
}
