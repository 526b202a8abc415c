//! The frames that one stream sent in the last second, from which packets are rebuilt for
//! retransmission.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use std::sync::Arc;
use throng_media::prefetch::Prefetcher;
use throng_media::source::{Clip, PlayedFrame};

/// How long packets can be retransmitted: libwebrtc's minimum
/// (`RtpPacketHistory::kMinPacketDurationMs`). Later retransmissions would miss their playout
/// anyway.
const KEPT_FOR: Duration = Duration::from_secs(1);
/// The largest number of frames: 100 frames a second.
const FRAMES_MAX: usize = 100;

/// The recent frames of a stream.
#[derive(Default)]
pub(super) struct History {
    frames: VecDeque<SentFrame>,
    /// Transport-wide sequence numbers of the packets of `frames`, and of those after them that
    /// were sent; empty for a stream that retransmits no numbered packets unchanged.
    numbers: VecDeque<u16>,
    /// Extended sequence number of the packet with the first of them.
    numbered_from: u64,
}

/// A sent frame.
#[derive(Clone)]
pub(super) struct SentFrame {
    /// Extended sequence number of its first packet.
    pub(super) first: u64,
    pub(super) frame: PlayedFrame,
    pub(super) captured_at: Instant,
    /// Its clip: a stream may switch to another one.
    pub(super) clip: Arc<Clip>,
    /// Whether it carries speech.
    pub(super) is_voice: bool,
    /// Whether it begins a talkspurt (RFC 3551 section 4.1).
    pub(super) marker: bool,
}

impl SentFrame {
    pub(super) fn packets(&self) -> u64 {
        self.clip.packet_count(&self.frame) as u64
    }
}

impl History {
    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self, prefetcher: &mut Prefetcher<'_>) {
        [self.frames.front(), self.frames.back()]
            .into_iter()
            .flatten()
            .for_each(|frame| prefetcher.value(frame));
    }

    /// Adds `sent`, the frame after those in the history.
    pub(super) fn keep(&mut self, sent: SentFrame) {
        let is_old = |first: &SentFrame| {
            sent.captured_at.saturating_duration_since(first.captured_at) > KEPT_FOR
        };
        while self.frames.len() >= FRAMES_MAX || self.frames.front().is_some_and(is_old) {
            let packets = self.frames.pop_front().map_or(0, |old| old.packets());
            let forgotten = self.numbers.len().min(packets as usize);
            self.numbers.drain(..forgotten);
            self.numbered_from += forgotten as u64;
        }
        self.frames.push_back(sent);
    }

    /// Packet `index`, the successor of the previous one, was sent with transport-wide sequence
    /// number `number`.
    pub(super) fn number(&mut self, index: u64, number: u16) {
        if self.numbers.is_empty() {
            self.numbered_from = index;
        }
        self.numbers.push_back(number);
    }

    /// The transport-wide sequence number of packet `index`.
    pub(super) fn number_of(&self, index: u64) -> Option<u16> {
        let at = usize::try_from(index.checked_sub(self.numbered_from)?).ok()?;
        self.numbers.get(at).copied()
    }

    /// The frame of packet `index`, and the packet's position in it.
    pub(super) fn find(&self, index: u64) -> Option<(&SentFrame, usize)> {
        let after = self.frames.partition_point(|sent| sent.first <= index);
        let sent = self.frames.get(after.checked_sub(1)?)?;
        let packet = index - sent.first;
        (packet < sent.packets()).then_some((sent, packet as usize))
    }
}
