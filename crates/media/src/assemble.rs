//! Coded frames from RTP packets, for the few tracks that are decoded. Packets wait for missing
//! ones before them, bounded in number, bytes and time; after an incomplete frame no frame is
//! returned until the next key frame, as in a browser's jitter buffer.
//!
//! A frame is the packets of one timestamp; the marker tells its end early, where the source does
//! not set it inside frames too.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use throng_observation::Codec;

use crate::codec::PayloadFacts;
use crate::depacketise;
use crate::quality::CaptureTime;

/// Most packets that may wait; some seconds of a usual stream.
const PACKETS_MAX: usize = 2_048;
/// Bytes that may wait.
const BYTES_MAX: usize = 4 << 20;
/// How long to wait for a hole: two rounds of a slow retransmission.
const PATIENCE: Duration = Duration::from_millis(400);

/// A packet of a video track.
#[derive(Clone, Copy, Debug)]
pub struct MediaPacket<'a> {
    /// When it arrived.
    pub arrived_at: Instant,
    /// RTP sequence number; for a retransmission, that of the original packet.
    pub sequence: u16,
    /// RTP timestamp.
    pub timestamp: u32,
    /// RTP marker.
    pub marker: bool,
    /// Facts from its payload.
    pub facts: PayloadFacts,
    /// When its frame was captured, if the packet carries it.
    pub captured: Option<CaptureTime>,
    /// The payload, padding stripped.
    pub payload: &'a [u8],
}

/// A frame of which every packet arrived, ready for a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct AssembledFrame {
    /// RTP timestamp.
    pub timestamp: u32,
    /// It can be decoded without others.
    pub key_frame: bool,
    /// Frames before it were dropped: the decoder has to be reset.
    pub after_break: bool,
    /// When its last packet arrived.
    pub arrived_at: Instant,
    /// When it was captured, if one of its packets carries it.
    pub captured: Option<CaptureTime>,
    /// The coded frame: see [`depacketise::frame`].
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
struct Waiting {
    arrived_at: Instant,
    timestamp: u32,
    marker: bool,
    starts_frame: bool,
    key_frame: bool,
    captured: Option<CaptureTime>,
    payload: Vec<u8>,
}

/// Assembles the frames of one video track.
#[derive(Debug)]
pub struct FrameAssembler {
    codec: Codec,
    waiting: BTreeMap<i64, Waiting>,
    waiting_bytes: usize,
    highest: Option<i64>,
    /// The first number of the next frame; `None` before the beginning of a frame was received.
    next: Option<i64>,
    needs_key_frame: bool,
    is_broken: bool,
    /// The timestamp of the last frame that was finished.
    finished: Option<u32>,
    /// The marker was seen inside a frame: it ends none.
    has_inner_markers: bool,
}

impl FrameAssembler {
    /// An assembler that waits for its first key frame.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            highest: None,
            next: None,
            needs_key_frame: true,
            is_broken: false,
            finished: None,
            has_inner_markers: false,
        }
    }

    /// The source restarts: waiting packets are dropped, and a key frame is needed.
    pub fn restart(&mut self) {
        *self = Self { is_broken: true, ..Self::new(self.codec) };
    }

    /// Takes a packet, in any order, and calls `tell` with the frames that it completes, in order.
    pub fn packet(&mut self, packet: &MediaPacket<'_>, mut tell: impl FnMut(AssembledFrame)) {
        let number = match self.highest {
            None => i64::from(packet.sequence),
            Some(highest) => {
                highest + i64::from(packet.sequence.wrapping_sub(highest as u16).cast_signed())
            }
        };
        self.highest = Some(self.highest.map_or(number, |highest| highest.max(number)));
        if self.next.is_some_and(|next| number < next) || self.waiting.contains_key(&number) {
            return;
        }
        let facts = &packet.facts;
        self.waiting_bytes += packet.payload.len();
        self.waiting.insert(
            number,
            Waiting {
                arrived_at: packet.arrived_at,
                timestamp: packet.timestamp,
                marker: packet.marker,
                starts_frame: facts.starts_frame,
                key_frame: facts.key_frame,
                captured: packet.captured,
                payload: packet.payload.to_vec(),
            },
        );
        while self.take_first(packet.arrived_at, &mut tell) {}
    }

    /// Handles the first waiting frame, if possible: passes it to `tell`, or drops it.
    fn take_first(&mut self, now: Instant, tell: &mut impl FnMut(AssembledFrame)) -> bool {
        let Some((&first, packet)) = self.waiting.first_key_value() else { return false };
        if self.next.is_none() {
            // The rest of a frame whose beginning was lost cannot be decoded.
            if packet.starts_frame {
                self.next = Some(first);
            } else {
                self.drop_below(first + 1);
            }
            return true;
        }
        if self.next == Some(first) {
            if packet.payload.is_empty() {
                self.drop_below(first + 1);
                self.next = Some(first + 1);
                return true;
            }
            if self.finished == Some(packet.timestamp) {
                // The rest of a frame that was cut at a marker inside it.
                self.drop_below(first + 1);
                self.next = Some(first + 1);
                self.has_inner_markers = true;
                (self.needs_key_frame, self.is_broken) = (true, true);
                return true;
            }
            if let Some(end) = self.end_of_frame(first) {
                self.finish(first, end, tell);
                return true;
            }
        }
        let is_late = now.saturating_duration_since(packet.arrived_at) > PATIENCE;
        let is_full = self.waiting.len() >= PACKETS_MAX || self.waiting_bytes >= BYTES_MAX;
        if is_late || is_full {
            self.give_up_first();
            return true;
        }
        false
    }

    /// The number after the frame that begins with `first`, if that frame is complete.
    fn end_of_frame(&self, first: i64) -> Option<i64> {
        let timestamp = self.waiting.get(&first)?.timestamp;
        let mut expected = first;
        let mut end = None;
        for (&number, packet) in self.waiting.range(first..) {
            if number != expected || end.is_some() && packet.payload.is_empty() {
                return end;
            }
            // Some senders set no marker; the next frame's first packet ends the frame as well.
            if packet.timestamp != timestamp {
                return Some(number);
            }
            expected += 1;
            end = (packet.marker && !self.has_inner_markers).then_some(expected);
        }
        end
    }

    fn finish(&mut self, first: i64, end: i64, tell: &mut impl FnMut(AssembledFrame)) {
        let mut bytes = Vec::new();
        let packets = || self.waiting.range(first..end).map(|(_, packet)| packet);
        let key_frame = packets().any(|packet| packet.key_frame);
        let made = depacketise::frame(
            self.codec,
            packets().map(|packet| packet.payload.as_slice()),
            &mut bytes,
        );
        let is_usable = made.is_ok() && !bytes.is_empty();
        let frame = packets().next().map(|packet| AssembledFrame {
            timestamp: packet.timestamp,
            key_frame,
            after_break: self.is_broken,
            arrived_at: packets()
                .map(|packet| packet.arrived_at)
                .max()
                .unwrap_or(packet.arrived_at),
            captured: packets().find_map(|packet| packet.captured),
            bytes,
        });
        self.drop_below(end);
        self.next = Some(end);
        self.finished = frame.as_ref().map(|frame| frame.timestamp);
        match frame {
            Some(frame) if is_usable && (key_frame || !self.needs_key_frame) => {
                (self.needs_key_frame, self.is_broken) = (false, false);
                tell(frame);
            }
            _ if is_usable => {}
            _ => (self.needs_key_frame, self.is_broken) = (true, true),
        }
    }

    /// Drops the first frame and continues at the next packet that begins one.
    fn give_up_first(&mut self) {
        let timestamp = self.waiting.first_key_value().map(|(_, packet)| packet.timestamp);
        let begins = |packet: &Waiting| packet.starts_frame && Some(packet.timestamp) != timestamp;
        // A hole before a frame's first packet does not make that frame incomplete.
        let is_whole = |(number, packet): &(&i64, &Waiting)| {
            begins(packet) || (packet.starts_frame && self.next.is_some_and(|next| **number > next))
        };
        let next = self.waiting.iter().find(is_whole).map(|(number, _)| *number);
        self.drop_below(next.unwrap_or(i64::MAX));
        self.next = next;
        (self.needs_key_frame, self.is_broken) = (true, true);
    }

    fn drop_below(&mut self, number: i64) {
        let kept = self.waiting.split_off(&number);
        let dropped = std::mem::replace(&mut self.waiting, kept);
        self.waiting_bytes -= dropped.values().map(|packet| packet.payload.len()).sum::<usize>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::PayloadReader;
    use crate::packetise::vp8;

    /// Frames of three packets each as (sequence, frame, payload); the first is a key frame, and
    /// every tenth.
    fn packets(frames: u16, first: u16) -> Vec<(u16, u16, bool, Vec<u8>)> {
        let mut sequence = first;
        let mut all = Vec::new();
        for frame in 0..frames {
            let body: Vec<u8> =
                [&[u8::from(!frame.is_multiple_of(10))][..], &[frame as u8; 29]].concat();
            let mut payloads = Vec::new();
            vp8::packetise(&body, frame, 14, &mut payloads);
            let last = payloads.len() - 1;
            for (index, payload) in payloads.into_iter().enumerate() {
                all.push((sequence, frame, index == last, payload));
                sequence = sequence.wrapping_add(1);
            }
        }
        all
    }

    fn feed(packets: &[(u16, u16, bool, Vec<u8>)]) -> Vec<AssembledFrame> {
        let start = Instant::now();
        let (mut assembler, mut reader) =
            (FrameAssembler::new(Codec::Vp8), PayloadReader::new(Codec::Vp8));
        let mut reported = Vec::new();
        for (sequence, frame, marker, payload) in packets {
            let packet = MediaPacket {
                arrived_at: start + Duration::from_millis(u64::from(*frame) * 33),
                sequence: *sequence,
                timestamp: u32::from(*frame) * 3000,
                marker: *marker,
                facts: reader.read(payload).unwrap(),
                captured: None,
                payload,
            };
            assembler.packet(&packet, |frame| reported.push(frame));
        }
        assert!(assembler.waiting_bytes <= BYTES_MAX && assembler.waiting.len() <= PACKETS_MAX);
        reported
    }

    fn numbers(frames: &[AssembledFrame]) -> Vec<u32> {
        frames.iter().map(|frame| frame.timestamp / 3000).collect()
    }

    #[test]
    fn frames_come_whole_and_in_order_across_the_wrap() {
        let frames = feed(&packets(25, 65_500));
        assert_eq!(numbers(&frames), (0..25).collect::<Vec<_>>());
        for (number, frame) in frames.iter().enumerate() {
            assert_eq!((frame.bytes.len(), frame.key_frame), (30, number % 10 == 0));
            assert_eq!(frame.bytes[1..], [number as u8; 29]);
            assert!(!frame.after_break);
        }
    }

    #[test]
    fn a_marker_inside_frames_ends_none_of_them() {
        let mut marked = packets(40, 0);
        marked.iter_mut().step_by(3).for_each(|first| first.2 = true);
        let frames = feed(&marked);
        // The first is cut, as nothing was known yet; the last has no end that is sure.
        assert_eq!(numbers(&frames), std::iter::once(0).chain(10..39).collect::<Vec<_>>());
        assert!(frames[1].after_break && frames[1..].iter().all(|frame| frame.bytes.len() == 30));
    }

    #[test]
    fn disorder_and_repeats_change_nothing() {
        let mut disordered = packets(25, 9);
        disordered.swap(7, 11);
        disordered.swap(30, 31);
        disordered.insert(40, disordered[38].clone());
        assert_eq!(numbers(&feed(&disordered)), (0..25).collect::<Vec<_>>());
    }

    #[test]
    fn after_a_loss_nothing_is_given_until_the_next_key_frame() {
        let mut lossy = packets(40, 0);
        lossy.remove(3 * 4 + 1); // from the middle of frame 4
        let frames = feed(&lossy);
        assert_eq!(numbers(&frames), (0..4).chain(10..40).collect::<Vec<_>>());
        assert_eq!(
            frames
                .iter()
                .filter(|frame| frame.after_break)
                .map(|f| f.timestamp)
                .collect::<Vec<_>>(),
            [30_000]
        );
    }

    #[test]
    fn a_whole_frame_lost_is_a_break_too() {
        let mut lossy = packets(40, 0);
        lossy.drain(12..15);
        assert_eq!(numbers(&feed(&lossy)), (0..4).chain(10..40).collect::<Vec<_>>());
    }

    #[test]
    fn a_late_consumer_begins_with_the_next_key_frame() {
        let all = packets(25, 0);
        assert_eq!(numbers(&feed(&all[4..])), (10..25).collect::<Vec<_>>());
    }

    #[test]
    fn what_never_ends_is_given_up_and_stays_bounded() {
        // One frame without an end, without a marker, with a hole that is never filled.
        let mut endless: Vec<_> =
            (0..9_000_u16).map(|n| (n.wrapping_mul(2), 1, false, vec![0x10, 0, 1, 2])).collect();
        endless[0].3 = vec![0x10, 0];
        assert!(feed(&endless).is_empty());
    }
}
