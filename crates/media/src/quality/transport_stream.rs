//! Video in an MPEG transport stream over RTP (RFC 2250 section 2): what
//! [`FrameMeter`](super::FrameMeter) needs, from the transport packets of the first video stream.
//!
//! A frame is a PES packet with a presentation time; one without continues the frame before.
//! Transport packets say little without those before them. So RTP packets are read in the order of
//! their numbers: one that comes early waits until those before it arrive or are counted lost.
//!
//! Video packets are numbered without gaps, whatever is between them. After lost RTP packets the
//! continuity counter shows how many of the lost transport packets were video: often none. Its 4
//! bits are ambiguous when more than two RTP packets are lost; then some were. A jump of the
//! counter without a lost RTP packet is a loss on the way to the server, and a hole as well.

use super::frames::FramePacket;
use crate::codec::PayloadFacts;
use crate::codec::mp2t::{self, TransportPacket};
use crate::codec::pes::Pes;
use crate::codec::program::Programs;
use std::collections::BTreeMap;

/// Clock rate of presentation times, Hz.
pub(super) const CLOCK_HZ: u32 = 90_000;

/// RTP packets that wait for earlier ones: 100 ms at 50 Mbit/s.
const EARLY_MAX: usize = 512;

/// Transport packets in an RTP packet of usual size.
const PACKETS_PER_RTP: i64 = 7;

/// Values of the continuity counter.
const CONTINUITY: i64 = 16;

/// Reads the video of one transport stream.
#[derive(Debug, Default)]
pub(super) struct TransportStreamMeter {
    programs: Programs,
    /// The RTP packet to read next; `None` before the first.
    next: Option<i64>,
    /// RTP packets after a hole: when they arrived, and their payloads.
    early: BTreeMap<i64, (i64, Vec<u8>)>,
    /// RTP packets lost since the last transport packet of the video.
    lost: i64,
    continuity: Option<u8>,
    /// Number of the next transport packet of the video.
    number: i64,
    frame: Option<Frame>,
    stuffed: bool,
}

/// The frame that is being received.
#[derive(Clone, Copy, Debug)]
struct Frame {
    timestamp: u32,
    key_frame: bool,
    discardable: bool,
    /// Bytes until it ends, where its PES packet says so.
    left: Option<usize>,
}

impl TransportStreamMeter {
    /// An RTP packet arrived; `tell` gets its packets of the video when it is the next one. Call
    /// [`Self::resolve_next`] then.
    pub(super) fn packet(
        &mut self,
        number: i64,
        arrived_ns: i64,
        payload: &[u8],
        mut tell: impl FnMut(&FramePacket),
    ) {
        let next = *self.next.get_or_insert(number);
        if number == next {
            self.read(number, arrived_ns, payload, &mut tell);
        } else if number > next {
            self.early.insert(number, (arrived_ns, payload.to_vec()));
        }
    }

    /// Reads one RTP packet that waited, unless it has to wait longer: all below `resolved_below`
    /// have arrived or never will. To be called until it returns false, with frames judged in
    /// between.
    pub(super) fn resolve_next(
        &mut self,
        resolved_below: i64,
        mut tell: impl FnMut(&FramePacket),
    ) -> bool {
        let are_too_many = self.early.len() > EARLY_MAX;
        let Some(entry) = self.early.first_entry() else { return false };
        let number = *entry.key();
        if number > resolved_below && self.next != Some(number) && !are_too_many {
            return false;
        }
        let (arrived_ns, payload) = entry.remove();
        self.read(number, arrived_ns, &payload, &mut tell);
        true
    }

    /// Below this number all transport packets of the video have arrived or never will.
    pub(super) fn resolved_below(&self) -> i64 {
        self.number
    }

    /// Whether the last transport packet of the video was filled up, which muxers do at the end of
    /// a PES packet.
    pub(super) fn ends_with_stuffing(&self) -> bool {
        self.stuffed
    }

    /// The source restarts, perhaps with other programs.
    pub(super) fn restart(&mut self) {
        *self = Self { number: self.number, ..Self::default() };
    }

    fn read(
        &mut self,
        number: i64,
        arrived_ns: i64,
        payload: &[u8],
        tell: &mut impl FnMut(&FramePacket),
    ) {
        let next = self.next.replace(number + 1).unwrap_or(number);
        self.lost = self.lost.saturating_add(number.saturating_sub(next).max(0));
        for packet in mp2t::packets(payload) {
            if self.programs.video().is_some_and(|(stream, _)| stream == packet.stream) {
                self.video(&packet, arrived_ns, tell);
            } else {
                let before = self.programs.video();
                self.programs.packet(&packet);
                if before != self.programs.video() {
                    (self.continuity, self.frame) = (None, None);
                }
            }
        }
    }

    fn video(
        &mut self,
        packet: &TransportPacket<'_>,
        arrived_ns: i64,
        tell: &mut impl FnMut(&FramePacket),
    ) {
        let Some(hole) = self.hole_before(packet) else { return };
        self.number = self.number.saturating_add(hole);
        if hole > 0
            && let Some(frame) = &mut self.frame
        {
            // What follows may belong to another frame, whose beginning is in the hole.
            (frame.discardable, frame.left) = (false, None);
        }
        self.stuffed = packet.stuffed;
        let starts_frame = self.starts_frame(packet);
        let Some(frame) = &mut self.frame else { return };
        frame.left = frame.left.map(|left| left.saturating_sub(packet.data.len()));
        tell(&FramePacket {
            number: self.number,
            timestamp: frame.timestamp,
            marker: frame.left == Some(0),
            padding: false,
            facts: PayloadFacts {
                starts_frame,
                key_frame: starts_frame && frame.key_frame,
                discardable: frame.discardable,
                ..PayloadFacts::default()
            },
            arrived_ns,
            captured: None,
        });
        self.number += 1;
    }

    /// Transport packets of the video lost before this one; `None` for a repeated one (section
    /// 2.4.3.3 of ISO/IEC 13818-1 allows one repeat).
    fn hole_before(&mut self, packet: &TransportPacket<'_>) -> Option<i64> {
        let lost = std::mem::take(&mut self.lost).saturating_mul(PACKETS_PER_RTP);
        let Some(before) = self.continuity.replace(packet.continuity) else { return Some(0) };
        let step = i64::from(packet.continuity.wrapping_sub(before) & 0x0f);
        if lost >= CONTINUITY {
            return Some((step - 1).rem_euclid(CONTINUITY).max(1));
        }
        if packet.is_discontinuity {
            return Some(i64::from(lost > 0));
        }
        if step == 0 && lost == 0 {
            return None;
        }
        Some((step - 1).rem_euclid(CONTINUITY))
    }

    /// Whether a frame starts with this packet, which is then the one being received.
    fn starts_frame(&mut self, packet: &TransportPacket<'_>) -> bool {
        let coding = self.programs.video().map(|(_, coding)| coding);
        let Some(pes) =
            coding.filter(|_| packet.starts_unit).and_then(|coding| Pes::read(packet.data, coding))
        else {
            return false;
        };
        let Some(timestamp) = pes.shown_at else {
            // A second field, or the rest of a frame: where it ends is known from its own length.
            if let Some(frame) = &mut self.frame {
                (frame.left, frame.discardable) = (pes.len, frame.discardable && pes.discardable);
            }
            return false;
        };
        self.frame = Some(Frame {
            timestamp,
            key_frame: pes.key_frame || packet.random_access,
            discardable: pes.discardable,
            left: pes.len,
        });
        true
    }
}

#[cfg(test)]
#[path = "transport_stream_tests.rs"]
mod tests;
