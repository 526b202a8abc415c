//! What is made of each packet that arrives.

use super::{FramesDue, TrackMeter};
use crate::quality::decode_order::Ordered;
use crate::quality::packet::{CaptureTime, Packet};
use crate::quality::sequence::Arrival;
use crate::quality::video::Judged;
use std::time::{Duration, Instant};
use throng_observation::CaptureBasis;

impl TrackMeter {
    /// Takes one packet. Call in the order of arrival; `arrived_at` is the only clock.
    pub fn packet(&mut self, packet: &Packet) {
        self.packet_with_payload(packet, &[]);
    }

    /// As [`Self::packet`], with the payload. An MPEG transport stream (`Codec::Mp2t`) needs it,
    /// because an RTP packet contains parts of several streams; other codecs ignore it.
    pub fn packet_with_payload(&mut self, packet: &Packet, payload: &[u8]) {
        self.counters.wire_bytes += u64::from(packet.wire_bytes);
        if self.may_break_until_ms.is_some() {
            self.meet_break(packet);
        }
        if self.pictures.is_none()
            && let FramesDue::Awaited(_) = self.frames_due
        {
            self.frames_due = FramesDue::Since(packet.arrived_at);
        }
        let now_ms = self.ms(packet.arrived_at);
        match self.sequence.packet(packet.sequence, packet.retransmitted, now_ms) {
            Arrival::Probation => {
                let kept = if self.is_transport_stream() { payload } else { &[] };
                self.suspect = Some((*packet, kept.into()));
            }
            Arrival::Restarted => self.restarted(packet, payload),
            arrival => {
                self.route(packet, payload, arrival, now_ms);
                self.judge_frames(packet.arrived_at);
            }
        }
        if self.may_break_until_ms.take_if(|until_ms| now_ms >= *until_ms).is_some() {
            self.sequence.excuse_below(now_ms.saturating_add(1));
        }
    }

    /// The sender was asked for another position of a recording, or to go on after a pause. What
    /// comes then need not follow what came before, of which the last may still be under way. Until
    /// `until`, and with the first packet after that, a break in sequence numbers or timestamps is
    /// therefore no loss, no reordering and no jump of the source's clock; where there is none,
    /// everything goes on.
    pub fn may_break(&mut self, until: Instant) {
        if self.may_break_until_ms.replace(self.ms(until)).is_none() {
            // What is missing now was lost before.
            self.sequence.give_up_all();
        }
        self.sequence.excuse_below(u32::MAX);
    }

    /// The next packet, where it need not follow those before it.
    fn meet_break(&mut self, packet: &Packet) {
        let (arrived_ns, timestamp) = (self.ns(packet.arrived_at), packet.timestamp);
        let begins_anew = self.sequence.is_behind(packet.sequence)
            && !self.jitter.may_be_reordered(arrived_ns, timestamp);
        if self.sequence.is_far(packet.sequence) || begins_anew {
            self.source_changed(packet.arrived_at);
        } else if self.jitter.is_apart(arrived_ns, timestamp) {
            self.timeline_shifted();
        }
    }

    /// The source has restarted, as shown by this packet and the one before it.
    fn restarted(&mut self, packet: &Packet, payload: &[u8]) {
        let first = self.suspect.take();
        self.source_changed(packet.arrived_at);
        let now_ms = self.ms(packet.arrived_at);
        let first = first.as_ref().map(|(packet, payload)| (packet, &**payload));
        for (packet, payload) in first.into_iter().chain([(packet, payload)]) {
            let arrival = self.sequence.packet(packet.sequence, packet.retransmitted, now_ms);
            self.route(packet, payload, arrival, now_ms);
        }
        self.judge_frames(packet.arrived_at);
    }

    fn route(&mut self, packet: &Packet, payload: &[u8], arrival: Arrival, now_ms: u32) {
        let payload_bytes = u64::from(packet.payload_bytes);
        self.counters.payload_bytes += payload_bytes;
        self.counters.header_bytes += u64::from(packet.header_bytes);
        self.counters.rtx_packets_received += u64::from(packet.retransmitted);
        let (number, came_late, recovered) = match arrival {
            Arrival::Next(number) => {
                let missing =
                    u16::try_from(self.sequence.missing_before(number)).unwrap_or(u16::MAX);
                if missing > 0 {
                    self.nacks.missing(packet.sequence.wrapping_sub(missing), missing, now_ms);
                }
                (number, false, packet.retransmitted)
            }
            Arrival::Filled(number) => {
                let asked = self.nacks.arrived(packet.sequence, now_ms);
                let recovered = asked || packet.retransmitted;
                self.counters.packets_reordered += u64::from(!recovered);
                (number, false, recovered)
            }
            Arrival::Late(number) => {
                let asked = self.nacks.arrived(packet.sequence, now_ms);
                let recovered = asked || packet.retransmitted;
                self.counters.packets_late += u64::from(!recovered);
                (number, true, recovered)
            }
            Arrival::Duplicate | Arrival::Probation | Arrival::Restarted => {
                self.counters.packets_duplicate += 1;
                self.counters.repeated_bytes += payload_bytes;
                return;
            }
        };
        if packet.retransmitted {
            self.reception.retransmission();
        }
        if recovered {
            self.counters.packets_recovered += 1;
            self.counters.repeated_bytes += payload_bytes;
        } else {
            let follows = matches!(
                arrival,
                Arrival::Next(number) if self.sequence.missing_before(number) == 0
            );
            self.first_transmission(packet, matches!(arrival, Arrival::Next(_)), follows);
        }
        if !came_late {
            self.media(packet, payload, number);
        }
    }

    /// `follows`: no packet is missing before it.
    fn first_transmission(&mut self, packet: &Packet, is_in_order: bool, follows: bool) {
        self.counters.packets_original += 1;
        let arrived_ns = self.ns(packet.arrived_at);
        // What the network reordered is jitter; what the sender sent in the order of decoding is
        // not.
        if !is_in_order || !self.sent_order.is_reordered(packet.timestamp) {
            let has_jumped = self.jitter.packet(arrived_ns, packet.timestamp);
            let has_jumped = has_jumped && follows || self.sent_order.take_jump_back();
            self.time_jumps += u32::from(has_jumped && self.pictures.is_some());
        }
        self.oven.packet(arrived_ns, packet.timestamp, self.pictures.is_none() || packet.marker);
    }

    /// A packet that arrived in time for its frame.
    fn media(&mut self, packet: &Packet, payload: &[u8], number: i64) {
        let arrived_ns = self.ns(packet.arrived_at);
        let marked = packet
            .facts
            .mark
            .map(|mark| CaptureTime { unix_ns: mark.captured_unix_ns, basis: CaptureBasis::Mark });
        let captured = packet.captured.or(marked);
        if let Some(pictures) = &mut self.pictures {
            pictures.packet(packet, payload, number, arrived_ns, captured);
        } else if packet.payload_bytes > 0 {
            self.first_frame_at.get_or_insert(packet.arrived_at);
            self.counters.frames_complete += 1;
            self.counters.frames_decodable += 1;
            self.playout.ordered(Ordered::Pair(arrived_ns, packet.timestamp));
            self.playout.captured(
                self.clock.unix_ns(packet.arrived_at),
                packet.timestamp,
                captured,
            );
        }
    }

    /// Judges all frames that can be.
    pub(super) fn judge_frames(&mut self, now: Instant) {
        // Its presentation times are not on the clock of RTP, which sender reports map to
        // wall-clock time.
        let is_transport_stream = self.is_transport_stream();
        let Some(pictures) = &mut self.pictures else { return };
        let (playout, clock, announced_at) = (&mut self.playout, &self.clock, self.announced_at);
        let key_frame = &mut self.key_frame;
        let settled = pictures.judge_frames(
            self.sequence.resolved_below(),
            now,
            &mut self.counters,
            |judged| {
                let frame = match judged {
                    Judged::Order(ordered) => return playout.ordered(ordered),
                    Judged::Complete(frame) => frame,
                };
                let arrived_at = announced_at
                    + Duration::from_nanos(u64::try_from(frame.arrived_ns).unwrap_or(0));
                if !is_transport_stream {
                    playout.captured(clock.unix_ns(arrived_at), frame.timestamp, frame.captured);
                }
                if frame.decodable && frame.key_frame {
                    *key_frame = Some((frame.timestamp, arrived_at));
                }
            },
        );
        if let Some(first) = settled.key_frame {
            self.nacks.forget_before(first as u16);
        }
        if settled.decoded {
            self.first_frame_at.get_or_insert(now);
            if let FramesDue::Awaited(_) = self.frames_due {
                self.frames_due = FramesDue::Since(now);
            }
        }
        if self.nacks.take_overflow() {
            pictures.need.broken(now);
        }
    }
}
