//! What only a video track has: frames to put together, freezes, a source frame rate, the need of a key frame.

use super::frames::{CompleteFrame, FrameMeter, FramePacket, Verdict};
use super::freeze::FreezeMeter;
use super::key_frame::KeyFrameNeed;
use super::packet::{Captured, Packet};
use super::source_rate::SourceRateMeter;
use std::time::Instant;
use throng_observation::{Codec, TrackCounters};

/// Frames kept that are not judged yet: 200 ms at 120 frames a second.
const FRAMES: usize = 24;

/// The video side of a track.
#[derive(Debug)]
pub(super) struct Pictures {
    frames: FrameMeter,
    pub(super) freeze: FreezeMeter,
    pub(super) source_rate: SourceRateMeter,
    pub(super) need: KeyFrameNeed,
}

/// What came of judging frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settled {
    /// A frame was decodable.
    pub(super) decoded: bool,
    /// The first number of a key frame that was decodable.
    pub(super) key_frame: Option<i64>,
}

impl Pictures {
    pub(super) fn new(clock_rate_hz: u32, codec: Codec) -> Self {
        Self {
            frames: FrameMeter::new(FRAMES, codec != Codec::Other),
            freeze: FreezeMeter::default(),
            source_rate: SourceRateMeter::new(clock_rate_hz),
            need: KeyFrameNeed::default(),
        }
    }

    pub(super) fn packet(
        &mut self,
        packet: &Packet,
        number: i64,
        arrived_ns: i64,
        captured: Option<Captured>,
    ) {
        if !self.frames.intact() {
            self.need.waiting_since(packet.arrived_at);
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

    /// Judges frames, counts them, and hands the complete ones on.
    pub(super) fn settle(
        &mut self,
        settled_below: i64,
        now: Instant,
        counters: &mut TrackCounters,
        mut complete: impl FnMut(&CompleteFrame),
    ) -> Settled {
        let mut settled = Settled::default();
        let was_intact = self.frames.intact();
        let Self { frames, freeze, source_rate, need } = self;
        frames.judge(settled_below, |verdict| {
            count(&verdict, counters, source_rate);
            let Verdict::Complete(frame) = verdict else { return };
            complete(&frame);
            if frame.decodable {
                freeze.frame(now);
                settled.decoded = true;
                if frame.key_frame {
                    need.satisfied();
                    settled.key_frame = Some(frame.first);
                }
            }
        });
        if (was_intact || settled.key_frame.is_some()) && !self.frames.intact() {
            self.need.broken(now);
        }
        settled
    }

    /// The source begins anew.
    pub(super) fn restart(&mut self, now: Instant, counters: &mut TrackCounters) {
        let source_rate = &mut self.source_rate;
        self.frames.restart(|verdict| count(&verdict, counters, source_rate));
        self.source_rate.restart();
        if !self.frames.intact() {
            self.need.waiting_since(now);
        }
    }

    /// Reads a little of what the next packet will need.
    pub(super) fn warm(&self) -> u64 {
        self.frames.warm() ^ u64::from(self.freeze.next_timeout().is_some())
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [self.freeze.next_timeout(), self.need.next_timeout()].into_iter().flatten().min()
    }

    /// Bytes of memory that the pictures may take, themselves included.
    #[cfg(test)]
    pub(super) fn memory_max(&self) -> usize {
        size_of::<Self>() + self.frames.memory_max()
    }
}

fn count(verdict: &Verdict, counters: &mut TrackCounters, source_rate: &mut SourceRateMeter) {
    match *verdict {
        Verdict::Complete(frame) => {
            source_rate.frame(frame.timestamp);
            counters.frames_complete += 1;
            counters.frames_decodable += u64::from(frame.decodable);
            counters.key_frames += u64::from(frame.decodable && frame.key_frame);
        }
        Verdict::Dropped(timestamp) => {
            source_rate.frame(timestamp);
            counters.frames_dropped += 1;
        }
        Verdict::Missed(frames) => counters.frames_dropped += u64::from(frames),
    }
}
