//! The meter of one received track: passes every packet to the meters of single figures.

use super::capture::CaptureMeter;
use super::decode_order::Ordered;
use super::delay::DelayMeter;
use super::freeze::FreezeMeter;
use super::jitter::JitterMeter;
use super::nack::NackList;
use super::oven_rtc_tester::OvenRtcTesterMeter;
use super::packet::{CaptureTime, Packet};
use super::presentation_order::PresentationOrder;
use super::reception::{Reception, ReceptionMeter};
use super::samples::Samples;
use super::sequence::{Arrival, SequenceMeter};
use super::transport_stream;
use super::video::{Judged, VideoMeter};
use super::wall_clock::WallClock;
use crate::prefetch::Prefetcher;
use std::time::{Duration, Instant};
use throng_observation::{CaptureBasis, Codec, MediaKind, TrackCounters, TrackId, TrackInterval};

/// How long a missing packet may still arrive when retransmission was negotiated: two attempts at
/// 100 ms, and the length of a real-time player's jitter buffer.
const RETRANSMISSION_PATIENCE_MS: u32 = 200;

/// Shorter silences do not count: audio in DTX has 400 ms between packets.
const QUIET: Duration = Duration::from_millis(500);

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

/// Measurements of complete frames.
#[derive(Debug)]
struct Playout {
    delay: DelayMeter,
    capture: CaptureMeter,
    relative_us: Samples<u32>,
    absolute_us: Samples<i32>,
}

impl Playout {
    /// What the order of frames says about delay.
    fn ordered(&mut self, ordered: Ordered) {
        match ordered {
            Ordered::Pair(arrived_ns, timestamp) => {
                self.relative_us.push(self.delay.frame(arrived_ns, timestamp));
            }
            Ordered::Deeper => self.delay.forget_floor(),
            Ordered::Waiting => {}
        }
    }

    /// A frame with a timestamp of the RTP clock.
    fn captured(&mut self, arrived_unix_ns: u64, timestamp: u32, captured: Option<CaptureTime>) {
        let before = self.capture.basis();
        if let Some(delay_us) = self.capture.frame(arrived_unix_ns, timestamp, captured) {
            if self.capture.basis() != before {
                self.absolute_us.clear(); // an interval's delays are all by one basis
            }
            self.absolute_us.push(delay_us);
        }
    }
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

    /// Takes one packet. Call in the order of arrival; `arrived_at` is the only clock.
    pub fn packet(&mut self, packet: &Packet) {
        self.packet_with_payload(packet, &[]);
    }

    /// As [`Self::packet`], with the payload. An MPEG transport stream ([`Codec::Mp2t`]) needs it,
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

    /// The figures since the previous interval (or since the track was announced), which ended no
    /// later.
    pub fn take_interval(&mut self, now: Instant) -> TrackInterval {
        let now = now.max(self.interval_began);
        self.timeout(now);
        self.count_losses();
        let began = std::mem::replace(&mut self.interval_began, now);
        let active = now.saturating_duration_since(began);
        let (frames_due, first_frame_awaited_since) = match self.frames_due {
            _ if self.pictures.is_none() => (active, None),
            FramesDue::Awaited(since) => (Duration::ZERO, Some(since)),
            FramesDue::Since(at) => (now.saturating_duration_since(at.max(began)), None),
        };
        let mut counters = std::mem::take(&mut self.counters);
        counters.active_us = micros(active);
        if let Some(pictures) = &mut self.pictures {
            let frozen = pictures.freeze.take(now);
            counters.freeze_count = frozen.count;
            counters.freeze_us = micros(frozen.time);
        }
        TrackInterval {
            track: self.config.track,
            kind: self.config.kind,
            ended_at: now,
            counters,
            jitter_us: self.jitter.micros(),
            relative_delay_us: self.playout.relative_us.take(),
            capture_basis: self.capture_basis().filter(|_| !self.playout.absolute_us.is_empty()),
            absolute_delay_us: self.playout.absolute_us.take(),
            oven_rtc_tester_delay_us: self.oven.delay_us(),
            source_fps: self
                .pictures
                .as_ref()
                .and_then(|pictures| pictures.source_rate.frames_per_second()),
            picture_lines: None,
            frames_due_us: micros(frames_due),
            first_frame_awaited_since,
            missing: None,
        }
    }

    /// Whether it began since it was announced or resumed: a packet came that is not perhaps of the
    /// position before, of video enough frames to tell how often the source has one.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        let knows_pace = self.pictures.as_ref().is_none_or(|it| it.freeze.knows_pace());
        let is_sure = self.may_break_until_ms.is_none();
        matches!(self.frames_due, FramesDue::Since(_)) && knows_pace && is_sure
    }

    /// Whether nothing arrived since the previous interval although a source of its pace would have
    /// sent something: for video by its usual interval between frames, for audio because even
    /// silence has a packet in 400 ms (RFC 7587 3.1.3).
    #[must_use]
    pub fn is_quiet(&self, now: Instant) -> bool {
        let came = self.counters.packets_original + self.counters.packets_recovered;
        let is_slow = self.pictures.as_ref().and_then(|pictures| pictures.freeze.next_timeout());
        came == 0
            && now.saturating_duration_since(self.interval_began) >= QUIET
            && is_slow.is_none_or(|at| at <= now)
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

    /// Media is expected again from `now` on; the time since the previous interval does not count
    /// as active, and video waits for a decodable frame again.
    pub fn resume(&mut self, now: Instant) {
        self.interval_began = now;
        self.frames_due = FramesDue::Awaited(now);
    }

    /// The last interval: missing packets count as lost, so that the intervals of a life add up to
    /// expected = received + recovered + lost.
    pub fn finish(&mut self, now: Instant) -> TrackInterval {
        self.sequence.give_up_all();
        self.judge_frames(now);
        if let Some(pictures) = &mut self.pictures {
            pictures.finish();
        }
        self.judge_frames(now);
        self.take_interval(now)
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
    fn judge_frames(&mut self, now: Instant) {
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

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "track_tests.rs"]
mod tests;
