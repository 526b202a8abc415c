//! Generated transport streams, with losses of every kind.

use super::super::frames::{FrameMeter, FrameOutcome};
use super::*;
use crate::codec::program::tests::{packets, sections};
use proptest::prelude::*;

const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;

/// A muxer with one H.264 and one audio stream.
#[derive(Default)]
struct Muxer {
    continuity: u8,
    out: Vec<u8>,
}

impl Muxer {
    fn new() -> Self {
        let [association, map] = sections(&[(0x0f, AUDIO), (0x1b, VIDEO)]);
        Self { continuity: 0, out: [packets(0, &association), packets(0x1000, &map)].concat() }
    }

    fn packet(&mut self, stream: u16, starts: bool, data: &[u8]) {
        let flags = (stream >> 8) as u8 | if starts { 0x40 } else { 0 };
        let room = 184 - data.len();
        let control = if room > 0 { 0x30 } else { 0x10 };
        self.out.extend([0x47, flags, stream as u8, control | self.continuity]);
        if stream == VIDEO {
            self.continuity = (self.continuity + 1) & 15;
        }
        if room > 0 {
            self.out.push(room as u8 - 1);
            self.out.extend(std::iter::repeat_n(0, usize::from(room > 1)));
            self.out.extend(std::iter::repeat_n(0xff, room.saturating_sub(2)));
        }
        self.out.extend_from_slice(data);
    }

    /// A picture of `len` bytes, with an audio packet in its midst.
    fn picture(&mut self, shown_at: u32, nal: u8, len: usize) {
        let t = u64::from(shown_at);
        let time = [
            0x21 | (t >> 29 & 0x0e) as u8,
            (t >> 22) as u8,
            (t >> 14) as u8 | 1,
            (t >> 7) as u8,
            (t << 1) as u8 | 1,
        ];
        let head = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5][..], &time, &[0, 0, 0, 1, nal]].concat();
        let mut data = head;
        data.resize(len, 0x55);
        for (i, piece) in data.chunks(184).enumerate() {
            self.packet(VIDEO, i == 0, piece);
            if i == 1 {
                self.packet(AUDIO, false, &[1; 184]);
            }
        }
    }
}

/// 60 frames with a key frame every 15 and B-frames between, as RTP payloads.
fn stream() -> Vec<Vec<u8>> {
    let mut muxer = Muxer::new();
    for i in 0..60_u32 {
        let (nal, len) = match i % 15 {
            0 => (0x65, 5000),
            j if j % 3 == 0 => (0x41, 2000),
            _ => (0x01, 300),
        };
        muxer.picture(i * 3000, nal, len);
    }
    muxer.out.chunks(7 * mp2t::PACKET_LEN).map(<[u8]>::to_vec).collect()
}

/// Frames complete, decodable, key, and dropped.
fn frames(payloads: impl IntoIterator<Item = (i64, Vec<u8>)>, lost_at_the_end: bool) -> [u32; 4] {
    let (mut transport, mut meter) = (TransportStreamMeter::default(), FrameMeter::new(24, true));
    let mut counts = [0; 4];
    let mut count = |outcome: FrameOutcome| match outcome {
        FrameOutcome::Complete(frame) => {
            counts[0] += 1;
            counts[1] += u32::from(frame.decodable);
            counts[2] += u32::from(frame.key_frame);
        }
        FrameOutcome::Dropped(_) => counts[3] += 1,
        FrameOutcome::Missed(n) => counts[3] += n,
    };
    let mut highest = 0;
    for (number, payload) in payloads {
        highest = number.max(highest);
        transport.packet(number, number, &payload, |packet| meter.packet(packet));
        meter.judge(transport.resolved_below(), &mut count);
        // A packet may come four behind.
        while transport.resolve_next(highest - 4, |packet| meter.packet(packet)) {
            meter.judge(transport.resolved_below(), &mut count);
        }
    }
    while transport.resolve_next(i64::MAX, |packet| meter.packet(packet)) {
        meter.judge(transport.resolved_below(), &mut count);
    }
    if transport.ends_with_stuffing() && !lost_at_the_end {
        meter.end_last();
    }
    meter.judge(transport.resolved_below(), &mut count);
    counts
}

fn numbered() -> Vec<(i64, Vec<u8>)> {
    (100..).zip(stream()).collect()
}

#[test]
fn every_frame_of_a_clean_stream_is_complete() {
    assert_eq!(frames(numbered(), false), [60, 60, 4, 0]);
}

#[test]
fn packets_out_of_order_are_put_back() {
    let mut packets = numbered();
    for at in (1..packets.len() - 3).step_by(5) {
        packets.swap(at, at + 2);
    }
    assert_eq!(frames(packets, false), [60, 60, 4, 0]);
}

#[test]
fn a_lost_packet_costs_the_frames_that_it_had_parts_of() {
    let packets = numbered();
    let all = packets.len();
    for lost in 1..all - 1 {
        let rest = packets.iter().filter(|(number, _)| *number != 100 + lost as i64).cloned();
        let [complete, decodable, _, dropped] = frames(rest, false);
        assert!((54..60).contains(&complete), "{lost}: {complete}");
        assert!(decodable <= complete && dropped > 0 && complete + dropped <= 60, "{lost}");
    }
}

#[test]
fn lost_packets_of_other_streams_cost_no_frame() {
    let mut muxer = Muxer::new();
    for i in 0..20 {
        muxer.picture(i * 3000, 0x65, 184 * 7);
        (0..6).for_each(|_| muxer.packet(AUDIO, false, &[1; 184]));
    }
    // Each picture is two RTP packets: one with audio in its midst, one with its last and six of
    // audio.
    let packets = muxer.out[2 * mp2t::PACKET_LEN..].chunks(7 * mp2t::PACKET_LEN);
    let sections = muxer.out[..2 * mp2t::PACKET_LEN].to_vec();
    let whole = std::iter::once(sections).chain(packets.map(<[u8]>::to_vec));
    let mut numbered: Vec<_> = (0..).zip(whole).collect();
    let audio: Vec<_> = (0..7).flat_map(|_| numbered[2].1[188..376].to_vec()).collect();
    numbered.insert(3, (3, audio));
    for (i, packet) in numbered.iter_mut().enumerate() {
        packet.0 = i as i64;
    }
    assert_eq!(frames(numbered.clone(), true)[3], 0);
    numbered.remove(3);
    assert_eq!(frames(numbered, true)[3], 0);
}

#[test]
fn a_loss_before_the_server_breaks_its_frame() {
    let mut out: Vec<u8> = stream().concat();
    let at = 20 * mp2t::PACKET_LEN;
    out.drain(at..at + mp2t::PACKET_LEN);
    let packets = (0..).zip(out.chunks(7 * mp2t::PACKET_LEN).map(<[u8]>::to_vec));
    let [complete, _, _, dropped] = frames(packets, false);
    assert_eq!((complete, dropped), (59, 1));
}

proptest! {
    /// Damage anywhere, in any order: no panic, and never more frames than there are beginnings of
    /// units.
    #[test]
    fn any_bytes_are_survived(
        damage in proptest::collection::vec((0_usize..60_000, any::<u8>()), 0..60),
        order in proptest::collection::vec(0_i64..40, 1..80),
    ) {
        let mut out: Vec<u8> = stream().concat();
        for (at, byte) in damage {
            let len = out.len();
            out[at % len] = byte;
        }
        let payloads: Vec<_> = out.chunks(7 * mp2t::PACKET_LEN).map(<[u8]>::to_vec).collect();
        let packets = order.iter().map(|&at| (at, payloads[at as usize % payloads.len()].clone()));
        let [complete, decodable, key, _] = frames(packets, false);
        prop_assert!(decodable <= complete && key <= complete && complete as usize <= 7 * order.len());
    }
}
