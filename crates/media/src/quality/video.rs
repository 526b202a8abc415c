//! The video part of a track: frame assembly, freezes, source frame rate, key frame requests.

use super::frames::{CompleteFrame, FrameMeter, FrameOutcome, FramePacket};
use super::freeze::FreezeMeter;
use super::key_frame::KeyFrameRequester;
use super::packet::{CaptureTime, Packet};
use super::source_rate::SourceRateMeter;
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
        Self {
            frames: FrameMeter::new(FRAMES, codec != Codec::Other),
            freeze: FreezeMeter::default(),
            source_rate: SourceRateMeter::new(clock_rate_hz),
            need: KeyFrameRequester::default(),
        }
    }

    pub(super) fn packet(
        &mut self,
        packet: &Packet,
        number: i64,
        arrived_ns: i64,
        captured: Option<CaptureTime>,
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

    /// A packet of a frame, found in a transport stream.
    pub(super) fn frame_packet(&mut self, packet: &FramePacket) {
        self.frames.packet(packet);
    }

    /// Judges frames, counts them, and returns the complete ones.
    pub(super) fn judge_frames(
        &mut self,
        resolved_below: i64,
        now: Instant,
        counters: &mut TrackCounters,
        mut complete: impl FnMut(&CompleteFrame),
    ) -> JudgedFrames {
        let mut settled = JudgedFrames::default();
        let was_intact = self.frames.intact();
        let Self { frames, freeze, source_rate, need } = self;
        frames.judge(resolved_below, |outcome| {
            count(&outcome, counters, source_rate);
            let FrameOutcome::Complete(frame) = outcome else { return };
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

    /// The source restarts.
    pub(super) fn restart(&mut self, now: Instant, counters: &mut TrackCounters) {
        let source_rate = &mut self.source_rate;
        self.frames.restart(|outcome| count(&outcome, counters, source_rate));
        self.source_rate.restart();
        if !self.frames.intact() {
            self.need.waiting_since(now);
        }
    }

    /// Reads a part of the data that the next packet needs, which loads it into the CPU cache.
    pub(super) fn prefetch(&self) -> u64 {
        self.frames.prefetch() ^ u64::from(self.freeze.next_timeout().is_some())
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
