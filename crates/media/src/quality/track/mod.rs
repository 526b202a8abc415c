//! The meter of one received track: passes every packet to the meters of single figures.

use super::capture::CaptureMeter;
use super::delay::DelayMeter;
use super::freeze::FreezeMeter;
use super::jitter::JitterMeter;
use super::nack::NackList;
use super::oven_rtc_tester::OvenRtcTesterMeter;
use super::packet::Packet;
use super::presentation_order::PresentationOrder;
use super::reception::{Reception, ReceptionMeter};
use super::samples::Samples;
use super::sequence::SequenceMeter;
use super::transport_stream;
use super::video::VideoMeter;
use super::wall_clock::WallClock;
use crate::prefetch::Prefetcher;
use std::time::{Duration, Instant};
use throng_observation::{CaptureBasis, Codec, MediaKind, TrackCounters, TrackId};

mod arrivals;
mod interval;
mod playout;

use playout::Playout;

/// How long a missing packet may still arrive when retransmission was negotiated: two attempts at
/// 100 ms, and the length of a real-time player's jitter buffer.
const RETRANSMISSION_PATIENCE_MS: u32 = 200;

/// How long a packet may be out of order without retransmission.
const REORDER_PATIENCE_MS: u32 = 100;

/// A track as negotiated.
#[derive(Clone, Copy, Debug)]
pub struct TrackConfig {
    /// Its id within the participant.
    pub track: TrackId,
    /// Audio or video.
    pub kind: MediaKind,
    /// Its codec.
    pub codec: Codec,
    /// RTP clock rate, Hz.
    pub clock_rate_hz: u32,
    /// Whether retransmission was negotiated (`a=rtcp-fb … nack`).
    pub nack: bool,
}

/// All measurements of one received track.
///
/// The driver passes packets and reports, calls [`Self::timeout`], [`Self::take_nacks`] and
/// [`Self::wants_key_frame`] at [`Self::next_timeout`] (all three: the deadline may be that of
/// any), and takes an interval once a second.
#[derive(Debug)]
pub struct TrackMeter {
    config: TrackConfig,
    clock: WallClock,
    announced_at: Instant,
    interval_began: Instant,
    first_frame_at: Option<Instant>,
    frames_due: FramesDue,
    /// Of the last decodable key frame: RTP timestamp, and when its last packet arrived.
    key_frame: Option<(u32, Instant)>,
    counters: TrackCounters,
    /// How often the source's clock jumped.
    time_jumps: u32,
    sequence: SequenceMeter,
    /// The packet after which the next one may show that the source has restarted.
    suspect: Option<(Packet, Box<[u8]>)>,
    /// Until when packets need not follow those before, ms: see [`Self::may_break`].
    may_break_until_ms: Option<u32>,
    nacks: NackList,
    reception: ReceptionMeter,
    /// Of packets, for [`Self::jitter`].
    sent_order: PresentationOrder,
    jitter: JitterMeter,
    oven: OvenRtcTesterMeter,
    playout: Playout,
    /// `None` for audio, where every packet is a frame.
    pictures: Option<Box<VideoMeter>>,
}

/// From when on frames of video are expected.
#[derive(Clone, Copy, Debug)]
enum FramesDue {
    /// Since then the first decodable frame is awaited.
    Awaited(Instant),
    /// It arrived then.
    Since(Instant),
}

impl TrackMeter {
    /// A meter of a track announced at `now`.
    #[must_use]
    pub fn new(config: TrackConfig, clock: WallClock, now: Instant) -> Self {
        let is_video = config.kind == MediaKind::Video;
        let patience_ms =
            if config.nack { RETRANSMISSION_PATIENCE_MS } else { REORDER_PATIENCE_MS };
        // Audio has 50 packets a second, video hundreds; the memory of each meter follows from
        // that.
        let delay_clock_hz = if config.codec == Codec::Mp2t {
            transport_stream::CLOCK_HZ
        } else {
            config.clock_rate_hz
        };
        let (window, holes, nacks) = if is_video { (2048, 64, 192) } else { (256, 16, 24) };
        Self {
            config,
            clock,
            announced_at: now,
            interval_began: now,
            first_frame_at: None,
            frames_due: FramesDue::Awaited(now),
            key_frame: None,
            counters: TrackCounters::default(),
            time_jumps: 0,
            sequence: SequenceMeter::new(window, holes, patience_ms),
            suspect: None,
            may_break_until_ms: None,
            nacks: NackList::new(if config.nack { nacks } else { 0 }),
            reception: ReceptionMeter::default(),
            sent_order: PresentationOrder::new(config.clock_rate_hz),
            jitter: JitterMeter::new(config.clock_rate_hz),
            oven: OvenRtcTesterMeter::new(config.clock_rate_hz),
            playout: Playout {
                delay: DelayMeter::new(delay_clock_hz),
                capture: CaptureMeter::new(config.clock_rate_hz),
                relative_us: Samples::default(),
                absolute_us: Samples::default(),
            },
            pictures: is_video
                .then(|| Box::new(VideoMeter::new(config.clock_rate_hz, config.codec))),
        }
    }

    /// What the next packet needs beside this value itself: see [`crate::prefetch`]. Levels count
    /// from 0.
    pub fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match (level, &self.pictures) {
            (0, pictures) => {
                self.sequence.prefetch(prefetcher);
                self.playout.relative_us.prefetch(prefetcher);
                self.playout.absolute_us.prefetch(prefetcher);
                if let Some(pictures) = pictures {
                    prefetcher.value(&**pictures);
                }
            }
            (1, Some(pictures)) => pictures.prefetch(prefetcher),
            _ => {}
        }
    }

    /// A datagram of this track's SSRCs that could not be decrypted or parsed.
    pub fn discarded(&mut self) {
        self.counters.packets_unreadable += 1;
    }

    /// Bytes on the wire of a datagram of the track without a packet of it (padding on RTX).
    pub fn overhead(&mut self, wire_bytes: u32) {
        self.counters.wire_bytes += u64::from(wire_bytes);
    }

    /// Takes the sender's RTCP report: its NTP time as nanoseconds since the Unix epoch, and the
    /// RTP timestamp of the same moment. False where that is not wall-clock time: then it is used
    /// neither for the one-way delay nor for the media clock's rate, because it may be the media
    /// clock itself.
    pub fn sender_report(
        &mut self,
        ntp_unix_ns: u64,
        rtp_timestamp: u32,
        arrived_at: Instant,
    ) -> bool {
        let arrived_unix_ns = self.clock.unix_ns(arrived_at);
        let is_wall_clock =
            self.playout.capture.sender_report(ntp_unix_ns, rtp_timestamp, arrived_unix_ns);
        if is_wall_clock && !self.is_transport_stream() {
            self.playout.delay.sender_report(ntp_unix_ns, rtp_timestamp);
        }
        if !is_wall_clock && self.capture_basis().is_none() {
            self.playout.absolute_us.clear();
        }
        is_wall_clock
    }

    /// The track continues with another source (new SSRC), with other sequence numbers and
    /// timestamps.
    pub fn source_changed(&mut self, now: Instant) {
        self.sequence.restart();
        self.suspect = None;
        self.nacks.clear();
        self.reception.restart(&self.sequence);
        self.jitter.restart();
        self.sent_order.restart();
        self.playout.delay.restart();
        self.playout.capture.restart();
        if let Some(pictures) = &mut self.pictures {
            pictures.restart(now, &mut self.counters);
        }
        self.count_losses();
    }

    /// Drops packets and frames that are too late, and detects freezes.
    pub fn timeout(&mut self, now: Instant) {
        let now_ms = self.ms(now);
        if self.sequence.next_timeout_ms().is_some_and(|at_ms| now_ms >= at_ms) {
            self.sequence.timeout(now_ms);
            self.judge_frames(now);
        }
        if let Some(pictures) = &mut self.pictures {
            pictures.freeze.timeout(now);
        }
    }

    /// When to call [`Self::timeout`], [`Self::take_nacks`] and [`Self::wants_key_frame`] next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let packets_ms = [self.sequence.next_timeout_ms(), self.nacks.next_timeout_ms()]
            .into_iter()
            .flatten()
            .min();
        let packets = packets_ms.map(|ms| self.announced_at + Duration::from_millis(ms.into()));
        let pictures = self.pictures.as_ref().and_then(|pictures| pictures.next_timeout());
        [packets, pictures].into_iter().flatten().min()
    }

    /// Appends to `out` the sequence numbers to request now, ascending; they are sent in one RTCP
    /// Generic NACK (RFC 4585 §6.2.1), which is counted when there are any.
    ///
    /// `heard` is the moment until which all that arrived is known, `now` or earlier.
    pub fn take_nacks(&mut self, now: Instant, heard: Instant, out: &mut Vec<u16>) {
        let (now_ms, heard_ms) = (self.ms(now), self.ms(heard));
        if self.nacks.take(now_ms, heard_ms, out) > 0 {
            self.counters.nack_sent += 1;
        }
    }

    /// Whether to request a key frame now. `true` starts the rate limit, so call it only when able
    /// to send; then call [`Self::pli_sent`] or [`Self::fir_sent`].
    #[must_use]
    pub fn wants_key_frame(&mut self, now: Instant) -> bool {
        self.pictures.as_mut().is_some_and(|pictures| pictures.need.take(now))
    }

    /// A Picture Loss Indication was sent.
    pub fn pli_sent(&mut self) {
        self.counters.pli_sent += 1;
    }

    /// A Full Intra Request was sent.
    pub fn fir_sent(&mut self) {
        self.counters.fir_sent += 1;
    }

    /// The fields of the next receiver report block; the fraction counts from the previous call.
    /// `None` before the first packet.
    pub fn reception(&mut self) -> Option<Reception> {
        self.reception.report(&self.sequence, self.jitter.ticks())
    }

    /// No media is expected for now: a picture that does not change is not a freeze.
    pub fn pause(&mut self) {
        if let Some(pictures) = &mut self.pictures {
            pictures.freeze = FreezeMeter::default();
        }
    }

    /// The sender stopped for a while and goes on where it was: sequence numbers and pictures
    /// continue, but arrival times and perhaps timestamps have a gap, which is neither delay,
    /// jitter nor a freeze (RTSP PAUSE; RFC 2326 appendix B).
    pub fn timeline_shifted(&mut self) {
        self.jitter.restart();
        self.sent_order.restart();
        self.playout.delay.restart();
        self.playout.capture.restart();
        if let Some(pictures) = &mut self.pictures {
            pictures.timeline_shifted();
        }
    }

    /// When the first frame could be decoded (audio: the first packet).
    #[must_use]
    pub fn first_frame_at(&self) -> Option<Instant> {
        self.first_frame_at
    }

    /// The last key frame that could be decoded: its RTP timestamp (of a transport stream: its
    /// presentation time), and when it was complete. `None` for audio.
    #[must_use]
    pub fn last_key_frame(&self) -> Option<(u32, Instant)> {
        self.key_frame
    }

    /// Whether the source of this video sets the RTP marker inside pictures. Frames are counted by
    /// their timestamps all the same; a browser ends a picture at each marker, and may show none.
    #[must_use]
    pub fn has_inner_markers(&self) -> bool {
        self.pictures.as_ref().is_some_and(|pictures| pictures.has_inner_markers())
    }

    /// How often the RTP time of video jumped by more than a second: ahead with no packet missing,
    /// or back by what could be the order of frames. Browsers hold such frames back or drop them,
    /// which no figure here shows.
    #[must_use]
    pub fn time_jumps(&self) -> u32 {
        self.time_jumps
    }

    /// The basis of the absolute delays of this track so far.
    #[must_use]
    pub fn capture_basis(&self) -> Option<CaptureBasis> {
        self.playout.capture.basis()
    }

    /// Estimated skew of the source's clock against the local one, parts per million; positive when
    /// the source is slow.
    #[must_use]
    pub fn skew_ppm(&self) -> f64 {
        self.playout.delay.skew_ppm()
    }

    fn is_transport_stream(&self) -> bool {
        self.config.codec == Codec::Mp2t
    }

    fn count_losses(&mut self) {
        let lost = self.sequence.take_lost();
        self.counters.packets_lost += lost;
        if self.pictures.is_none() {
            // In audio every packet is a frame; a late one was not played.
            self.counters.frames_dropped += u64::try_from(lost).unwrap_or(0);
        }
    }

    fn ns(&self, at: Instant) -> i64 {
        i64::try_from(at.saturating_duration_since(self.announced_at).as_nanos())
            .unwrap_or(i64::MAX)
    }

    fn ms(&self, at: Instant) -> u32 {
        u32::try_from(at.saturating_duration_since(self.announced_at).as_millis())
            .unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests;
