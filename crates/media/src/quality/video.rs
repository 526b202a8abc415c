//! The video part of a track: frame assembly, freezes, source frame rate, key frame requests.

use super::decode_order::{DecodeOrder, Ordered};
use super::frames::{CompleteFrame, FrameMeter, FrameOutcome, FramePacket};
use super::freeze::FreezeMeter;
use super::key_frame::KeyFrameRequester;
use super::packet::{CaptureTime, Packet};
use super::source_rate::SourceRateMeter;
use super::transport_stream::{self, TransportStreamMeter};
use crate::prefetch::Prefetcher;
use std::time::Instant;
use throng_observation::{Codec, TrackCounters};

/// Frames kept that are not judged yet: 200 ms at 120 frames a second.
const FRAMES: usize = 24;

/// The video side of a track.
#[derive(Debug)]
pub(super) struct VideoMeter {
    frames: FrameMeter,
    pub(super) freeze: FreezeMeter,
    pub(super) source_rate: SourceRateMeter,
    pub(super) need: KeyFrameRequester,
    order: DecodeOrder,
    /// Of a transport stream, whose frames do not follow from RTP headers.
    transport: Option<Box<TransportStreamMeter>>,
}

/// What judging frames yields for other meters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judged<'a> {
    /// A complete frame.
    Complete(&'a CompleteFrame),
    /// An arrival, and the timestamp whose turn it was; or that those before were wrong.
    Order(Ordered),
}

/// The result of judging frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JudgedFrames {
    /// A frame was decodable.
    pub(super) decoded: bool,
    /// The first number of a key frame that was decodable.
    pub(super) key_frame: Option<i64>,
}

impl VideoMeter {
    pub(super) fn new(clock_rate_hz: u32, codec: Codec) -> Self {
        let is_transport = codec == Codec::Mp2t;
        let clock_rate_hz = if is_transport { transport_stream::CLOCK_HZ } else { clock_rate_hz };
        Self {
            order: DecodeOrder::default(),
            transport: is_transport.then(Box::default),
            frames: FrameMeter::new(FRAMES, codec != Codec::Other),
            freeze: FreezeMeter::default(),
            source_rate: SourceRateMeter::new(clock_rate_hz),
            need: KeyFrameRequester::default(),
        }
    }

    /// Whether the source sets the marker inside pictures. In a transport stream it has another
    /// meaning (RFC 2250 section 2).
    pub(super) fn has_inner_markers(&self) -> bool {
        self.transport.is_none() && self.frames.has_inner_markers()
    }

    pub(super) fn packet(
        &mut self,
        packet: &Packet,
        payload: &[u8],
        number: i64,
        arrived_ns: i64,
        captured: Option<CaptureTime>,
    ) {
        if !self.frames.intact() {
            self.need.waiting_since(packet.arrived_at);
        }
        if let Some(transport) = &mut self.transport {
            let frames = &mut self.frames;
            return transport.packet(number, arrived_ns, payload, |packet| frames.packet(packet));
        }
        self.frames.packet(&FramePacket {
            number,
            timestamp: packet.timestamp,
            marker: packet.marker,
            padding: packet.payload_bytes == 0,
            facts: packet.facts,
            arrived_ns,
            captured,
        });
    }

    /// The last packet arrived. The last frame of a transport stream has no other sign of its end
    /// than stuffing.
    pub(super) fn finish(&mut self) {
        if self.transport.as_ref().is_some_and(|transport| transport.ends_with_stuffing()) {
            self.frames.end_last();
        }
    }

    /// Judges frames, counts them, and tells the complete ones.
    pub(super) fn judge_frames(
        &mut self,
        resolved_below: i64,
        now: Instant,
        counters: &mut TrackCounters,
        mut tell: impl FnMut(Judged<'_>),
    ) -> JudgedFrames {
        let mut settled = JudgedFrames::default();
        let was_intact = self.frames.intact();
        let Self { frames, freeze, source_rate, need, order, transport } = self;
        let mut judge = |outcome| {
            count(&outcome, counters, source_rate);
            let ordered = match outcome {
                FrameOutcome::Complete(frame) => {
                    order.frame(frame.timestamp, Some(frame.arrived_ns))
                }
                FrameOutcome::Dropped(timestamp) => order.frame(timestamp, None),
                FrameOutcome::Missed(_) => return order.gap(),
            };
            tell(Judged::Order(ordered));
            let FrameOutcome::Complete(frame) = outcome else { return };
            tell(Judged::Complete(&frame));
            if frame.decodable {
                freeze.frame(now);
                settled.decoded = true;
                if frame.key_frame {
                    need.satisfied();
                    settled.key_frame = Some(frame.first);
                }
            }
        };
        if let Some(transport) = transport {
            frames.judge(transport.resolved_below(), &mut judge);
            while transport.resolve_next(resolved_below, |packet| frames.packet(packet)) {
                frames.judge(transport.resolved_below(), &mut judge);
            }
        } else {
            frames.judge(resolved_below, judge);
        }
        if (was_intact || settled.key_frame.is_some()) && !self.frames.intact() {
            self.need.broken(now);
        }
        // Its number is that of a transport packet, which no NACK can name.
        settled.key_frame = settled.key_frame.filter(|_| self.transport.is_none());
        settled
    }

    /// The source restarts.
    pub(super) fn restart(&mut self, now: Instant, counters: &mut TrackCounters) {
        let source_rate = &mut self.source_rate;
        self.frames.restart(|outcome| count(&outcome, counters, source_rate));
        self.source_rate.restart();
        self.order.restart();
        if let Some(transport) = &mut self.transport {
            transport.restart();
        }
        if !self.frames.intact() {
            self.need.waiting_since(now);
        }
    }

    /// Arrival times and timestamps of the next frame do not follow those of the last; its
    /// references are the same.
    pub(super) fn timeline_shifted(&mut self) {
        self.frames.timeline_shifted();
        self.freeze = FreezeMeter::default();
        self.source_rate.restart();
        self.order.restart();
    }

    /// What the next packet needs: see [`crate::prefetch`].
    pub(super) fn prefetch(&self, prefetcher: &mut Prefetcher<'_>) {
        self.frames.prefetch(prefetcher);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [self.freeze.next_timeout(), self.need.next_timeout()].into_iter().flatten().min()
    }

    /// Most memory of this struct with its meters, bytes.
    #[cfg(test)]
    pub(super) fn memory_max(&self) -> usize {
        size_of::<Self>() + self.frames.memory_max()
    }
}

fn count(outcome: &FrameOutcome, counters: &mut TrackCounters, source_rate: &mut SourceRateMeter) {
    match *outcome {
        FrameOutcome::Complete(frame) => {
            source_rate.frame(frame.timestamp);
            counters.frames_complete += 1;
            counters.frames_decodable += u64::from(frame.decodable);
            counters.key_frames += u64::from(frame.decodable && frame.key_frame);
        }
        FrameOutcome::Dropped(timestamp) => {
            source_rate.frame(timestamp);
            counters.frames_dropped += 1;
        }
        FrameOutcome::Missed(frames) => counters.frames_dropped += u64::from(frames),
    }
}
