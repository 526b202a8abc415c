//! The receive path of a connection: decrypts a packet, finds its track, updates the track's meter.
//! For a packet of a known stream nothing here allocates, logs or locks.

use std::time::{Duration, Instant};

use throng_media::assemble::{FrameAssembler, MediaPacket};
use throng_media::codec::{PayloadFacts, PayloadReader};
use throng_media::prefetch::Prefetcher;
use throng_media::quality::{
    CaptureBasis, CaptureTime, Packet, TrackConfig, TrackMeter, WallClock,
};
use throng_media::rtcp::{Compound, Rtcp};
use throng_media::rtp::{ExtensionIds, Extensions, RtpHeader, original_packet};
use throng_observation::{Codec, MediaKind, Observation, Phase, TrackId, TrackInterval};

use super::feedback::{ReportState, Reporter};
use super::layer_switches::LayerSwitches;
use super::payload::Assignments;
use super::session::Negotiated;
use super::srtp::{IndexEstimator, Opener, SessionKeys, SrtpError};
use crate::reports::{coded_frame, next_second};

mod anomalies;
mod binding;
mod expected;
mod tracks;

use self::anomalies::{AnomalyKind, AnomalyLog};
use self::expected::ExpectedMedia;

/// How many SSRCs are tracked: a hundred streams with their retransmissions stay below it.
const SOURCES_MAX: usize = 512;

/// Receives the media of one peer connection.
pub struct Receiver {
    opener: Opener,
    assignments: Assignments,
    extension_ids: ExtensionIds,
    sources: Vec<Source>,
    tracks: Vec<Track>,
    due: ExpectedMedia,
    reporter: Reporter,
    clock: WallClock,
    first_track: u16,
    next_interval_at: Instant,
    /// What arrived so long before now is known.
    lag: Duration,
    last_media_at: Option<Instant>,
    first_packet_seen: bool,
    first_frame_seen: bool,
    is_tapped: bool,
    observed: Vec<Observation>,
    anomalies: AnomalyLog,
}

/// One SSRC of the peer.
struct Source {
    ssrc: u32,
    payload_type: u8,
    index: IndexEstimator,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Media packets of `tracks[i]`.
    Media(usize),
    /// Retransmissions of `tracks[i]`.
    Retransmission(usize),
    /// Packets that were not negotiated.
    Ignored,
}

/// Whether a track has a sender. A server may assign a track to different senders in turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SenderState {
    /// It has one.
    Active,
    /// It will have one; the next packet is the first of that sender.
    Awaited,
    /// It has none; packets that still arrive were in flight before.
    Absent,
}

/// One received stream.
pub(super) struct Track {
    pub(super) meter: TrackMeter,
    pub(super) ssrc: u32,
    pub(super) section: u16,
    pub(super) codec: Codec,
    pub(super) kind: MediaKind,
    pub(super) report_state: ReportState,
    payloads: PayloadReader,
    layer_switches: LayerSwitches,
    first_frame_told: bool,
    config: TrackConfig,
    sender_state: SenderState,
    /// Assembles its frames, if the participant is tapped.
    assembler: Option<Box<FrameAssembler>>,
}

impl Track {
    /// Reports what the last decodable key frame shows first: the layer that was requested, or a
    /// change of size that nobody requested.
    fn tell_size(&mut self, track: TrackId, observed: &mut Vec<Observation>) {
        if self.layer_switches.awaits_key_frame()
            && let Some((timestamp, at)) = self.meter.last_key_frame()
        {
            let switch = self.layer_switches.shown(track, timestamp, at);
            observed.extend(switch.map(Observation::LayerSwitched));
            let changed = self.layer_switches.take_change();
            observed.extend(changed.map(|(from, to, at)| Observation::SizeChanged {
                track,
                from,
                to,
                at,
            }));
        }
    }

    /// Whether a packet that arrived then is measured; with it a sender that was awaited begins.
    #[inline]
    fn takes_packet(&mut self, arrived_at: Instant, clock: WallClock) -> bool {
        match self.sender_state {
            SenderState::Active => true,
            SenderState::Absent => false,
            SenderState::Awaited => {
                self.meter = TrackMeter::new(self.config, clock, arrived_at);
                self.sender_state = SenderState::Active;
                true
            }
        }
    }

    /// Adds a packet to its frame, where the participant is tapped, and reports the frames that are
    /// whole with it.
    #[inline]
    fn assemble(
        &mut self,
        id: TrackId,
        packet: &MediaPacket<'_>,
        clock: &WallClock,
        observed: &mut Vec<Observation>,
    ) {
        let codec = self.codec;
        if let Some(assembler) = &mut self.assembler {
            assembler.packet(packet, |frame| observed.push(coded_frame(id, codec, clock, frame)));
        }
    }

    /// Ends its interval.
    fn end_interval(
        &mut self,
        now: Instant,
        take: fn(&mut TrackMeter, Instant) -> TrackInterval,
    ) -> TrackInterval {
        let picture_lines = self.layer_switches.lines();
        TrackInterval { picture_lines, ..take(&mut self.meter, now) }
    }

    /// Whether it is measured and reported on: key frames are not requested for a track without a
    /// sender.
    pub(super) fn has_sender(&self) -> bool {
        self.sender_state == SenderState::Active
    }

    /// Whether any packet of it arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.ssrc != 0
    }
}

impl Receiver {
    /// A receiver with the keys of a session. Track ids count from `first_track`; intervals end on
    /// whole seconds after `joined_at`.
    ///
    /// # Errors
    /// When the cryptographic library refuses the keys.
    pub fn new(
        keys: &SessionKeys,
        negotiated: &Negotiated,
        options: ReceiverOptions,
        now: Instant,
    ) -> Result<Self, SrtpError> {
        let mut receiver = Self {
            opener: keys.opener()?,
            assignments: Assignments::default(),
            extension_ids: ExtensionIds::default(),
            sources: Vec::new(),
            tracks: Vec::new(),
            due: ExpectedMedia::new(options.is_told),
            reporter: Reporter::new(keys.control_sealer()?, options.seed, options.clock),
            clock: options.clock,
            first_track: options.first_track,
            next_interval_at: next_second(options.joined_at, now),
            lag: Duration::ZERO,
            last_media_at: None,
            first_packet_seen: false,
            first_frame_seen: false,
            is_tapped: options.is_tapped,
            observed: Vec::new(),
            anomalies: AnomalyLog::default(),
        };
        receiver.renegotiated(negotiated, now);
        Ok(receiver)
    }

    /// A later offer and answer changed the negotiated parameters; continuing streams keep their
    /// state.
    pub fn renegotiated(&mut self, negotiated: &Negotiated, now: Instant) {
        self.assignments = Assignments::of(negotiated);
        self.extension_ids = negotiated.answer.extension_ids();
        let transport_cc = self.assignments.any(|feedback| feedback.transport_cc);
        let remb = self.assignments.any(|feedback| feedback.remb);
        self.reporter.agreed(transport_cc, remb, self.assignments.reduced_size_rtcp);
        // Payload types may have another meaning from now on.
        self.sources.iter_mut().for_each(|source| source.payload_type = u8::MAX);
        self.review(now);
    }

    /// See [`crate::participant::Participant::receive_lag`].
    pub(super) fn receive_lag(&mut self, lag: Duration) {
        self.lag = lag;
    }

    /// Up to when all that arrived is known.
    fn heard_until(&self, now: Instant) -> Instant {
        now.checked_sub(self.lag).unwrap_or(now)
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        // Two tracks for audio and video; the tracks of a conference do not all receive at the same
        // time.
        let tracks = self.tracks.iter().take(2);
        match level.checked_sub(1) {
            Some(level) => tracks.for_each(|track| track.meter.prefetch(level, prefetcher)),
            None => {
                prefetcher.value(&*self.sources);
                tracks.for_each(|track| prefetcher.value(track));
            }
        }
    }

    /// Handles a datagram that is RTP by its first bytes, and decrypts it in place. Returns whether
    /// it was authentic.
    pub fn rtp(&mut self, arrived_at: Instant, ip_udp_bytes: u32, datagram: &mut [u8]) -> bool {
        let wire_bytes = ip_udp_bytes + datagram.len() as u32;
        let Ok(header) = RtpHeader::parse(datagram) else {
            self.anomaly(AnomalyKind::BadRtp, "rtp", "a datagram starts like RTP but is malformed");
            return false;
        };
        let known = self.sources.iter().position(|source| source.ssrc == header.ssrc);
        let estimator = known.map(|at| self.sources[at].index).unwrap_or_default();
        let index = estimator.estimate(header.sequence);
        let Ok(payload) = self.opener.open_rtp(datagram, header.header_len, header.ssrc, index)
        else {
            self.undecryptable(known);
            return false;
        };
        let plain = &datagram[..payload.end];
        let extensions = self.extension_ids.read(&header, plain);
        if let Some(sequence) = extensions.transport_sequence {
            self.reporter.arrived(sequence, arrived_at);
        }
        self.reporter.received(wire_bytes);
        let Some(at) = known.or_else(|| self.add_source(header.ssrc)) else { return true };
        self.sources[at].index.accept(index);
        if self.sources[at].payload_type != header.payload_type {
            let role = self.bind(&header, &extensions, arrived_at);
            let source = &mut self.sources[at];
            source.role = role;
            // A retransmission of a stream that is still unknown is looked up again at its next
            // packet.
            source.payload_type = if role == Role::Ignored { u8::MAX } else { header.payload_type };
        }
        self.deliver(self.sources[at].role, &header, &extensions, plain, arrived_at, wire_bytes);
        true
    }

    fn deliver(
        &mut self,
        role: Role,
        header: &RtpHeader,
        extensions: &Extensions<'_>,
        plain: &[u8],
        arrived_at: Instant,
        wire_bytes: u32,
    ) {
        let (at_track, retransmitted) = match role {
            Role::Media(at) => (at, false),
            Role::Retransmission(at) => (at, true),
            Role::Ignored => return self.unplayed(header, plain, arrived_at, wire_bytes),
        };
        let Some(track) = self.tracks.get_mut(at_track) else { return };
        // Media that was not negotiated cannot be played, so it does not count here.
        self.last_media_at = Some(arrived_at);
        let Ok(payload) = header.payload(plain) else {
            track.meter.discarded();
            return self.anomaly(AnomalyKind::BadRtp, "rtp", "padding is longer than the payload");
        };
        if !track.takes_packet(arrived_at, self.clock) {
            return;
        }
        let (sequence, payload) = if retransmitted {
            // Padding on the retransmission stream probes the path and repeats no packet.
            let Some(original) = original_packet(payload) else {
                return track.meter.overhead(wire_bytes);
            };
            original
        } else {
            (header.sequence, payload)
        };
        let captured = extensions.abs_capture_time.map(|time| CaptureTime {
            unix_ns: time.captured_unix_ns(),
            basis: CaptureBasis::AbsCaptureTime,
        });
        let described = extensions.dependency_descriptor;
        // A malformed payload still counts as a packet of its frame.
        let (facts, malformed) = match track.payloads.read_described(payload, described) {
            Ok(facts) => (facts, None),
            Err(error) => (PayloadFacts::default(), Some(error)),
        };
        if facts.key_frame && track.kind == MediaKind::Video {
            track.layer_switches.key_packet(track.codec, header.timestamp, payload);
        }
        track.meter.packet(&Packet {
            arrived_at,
            sequence,
            timestamp: header.timestamp,
            marker: header.marker,
            facts,
            payload_bytes: payload.len() as u32,
            header_bytes: (plain.len() - payload.len()) as u32,
            wire_bytes,
            retransmitted,
            captured,
        });
        let id = TrackId(self.first_track.saturating_add(at_track as u16));
        if malformed.is_none() {
            let (timestamp, marker) = (header.timestamp, header.marker);
            let packet =
                MediaPacket { arrived_at, sequence, timestamp, marker, facts, captured, payload };
            track.assemble(id, &packet, &self.clock, &mut self.observed);
        }
        track.tell_size(id, &mut self.observed);
        let has_inner_markers = track.meter.has_inner_markers();
        let has_jumped = track.meter.time_jumps() > 0;
        if !(self.first_packet_seen && self.first_frame_seen && track.first_frame_told) {
            self.report_firsts(at_track, id, arrived_at);
        }
        if has_inner_markers || has_jumped || malformed.is_some() {
            self.packet_anomalies(has_inner_markers, malformed, has_jumped);
        }
    }

    /// Reports the first packet and the first frames, once each.
    fn report_firsts(&mut self, at_track: usize, id: TrackId, arrived_at: Instant) {
        let Some(track) = self.tracks.get_mut(at_track) else { return };
        if !self.first_packet_seen {
            self.first_packet_seen = true;
            self.observed.push(Observation::Reached(Phase::FirstPacket, arrived_at));
        }
        if !track.first_frame_told
            && let Some(at) = track.meter.first_frame_at()
        {
            track.first_frame_told = true;
            self.observed.push(Observation::TrackFirstFrame { track: id, at });
        }
        let counts = track.kind == MediaKind::Video || !self.assignments.expects_video;
        if !self.first_frame_seen
            && counts
            && let Some(seen_at) = track.meter.first_frame_at()
        {
            self.first_frame_seen = true;
            self.observed.push(Observation::Reached(Phase::FirstFrame, seen_at));
        }
    }

    /// A packet of a payload type that was not agreed cannot be played. On the SSRC of a track it
    /// has a number of that track all the same: it was not lost.
    fn unplayed(&mut self, header: &RtpHeader, plain: &[u8], arrived_at: Instant, wire_bytes: u32) {
        let is_source = |track: &&mut Track| {
            track.ssrc == header.ssrc && track.sender_state == SenderState::Active
        };
        let Some(track) = self.tracks.iter_mut().find(is_source) else { return };
        track.meter.packet(&Packet {
            arrived_at,
            sequence: header.sequence,
            timestamp: header.timestamp,
            marker: header.marker,
            facts: PayloadFacts::default(),
            payload_bytes: 0,
            header_bytes: plain.len() as u32,
            wire_bytes,
            retransmitted: false,
            captured: None,
        });
    }

    fn undecryptable(&mut self, source: Option<usize>) {
        if let Some(Role::Media(at) | Role::Retransmission(at)) =
            source.map(|at| self.sources[at].role)
            && let Some(track) = self.tracks.get_mut(at)
        {
            track.meter.discarded();
        }
        self.anomaly(AnomalyKind::Undecryptable, "srtp", "a packet was not authentic");
    }

    /// Handles a datagram that is RTCP by its first bytes. Returns whether it was authentic.
    pub fn rtcp(&mut self, arrived_at: Instant, datagram: &mut [u8]) -> bool {
        let Ok(len) = self.opener.open_rtcp(datagram) else {
            self.anomaly(AnomalyKind::Undecryptable, "srtcp", "a packet was not authentic");
            return false;
        };
        let (mut bad, mut other_clock) = (false, false);
        for packet in Compound::new(&datagram[..len]) {
            match packet {
                Ok(Rtcp::SenderReport(report)) => {
                    let sender = report.sender;
                    if let Some(track) =
                        self.tracks.iter_mut().find(|track| track.ssrc == sender.ssrc)
                    {
                        track.report_state.sender_report(sender.ntp, arrived_at);
                        if !sender.ntp.is_unknown() {
                            let (ntp_unix_ns, timestamp) =
                                (sender.ntp.to_unix_ns(), sender.rtp_timestamp);
                            other_clock |=
                                !track.meter.sender_report(ntp_unix_ns, timestamp, arrived_at);
                        }
                    }
                }
                Ok(_) => {}
                Err(_) => bad = true,
            }
        }
        if other_clock {
            self.sender_clock_anomaly();
        }
        if bad {
            self.anomaly(AnomalyKind::BadRtcp, "rtcp", "a control packet is malformed");
        }
        true
    }

    /// Performs due actions: gives up late packets, and ends the interval when its second is over.
    pub fn timeout(&mut self, now: Instant) {
        let heard = self.heard_until(now);
        if heard >= self.next_interval_at {
            self.next_interval_at = next_second(self.next_interval_at, heard);
            self.end_intervals(heard, TrackMeter::take_interval);
        }
    }

    /// The next sealed RTCP datagram that is due, if any.
    pub fn poll_feedback(&mut self, now: Instant) -> Option<Vec<u8>> {
        let heard = self.heard_until(now);
        self.reporter.due(now, heard, &mut self.tracks)
    }

    /// The RTCP BYE datagram.
    pub fn goodbye(&mut self) -> Option<Vec<u8>> {
        self.reporter.goodbye()
    }

    /// Ends every track's last interval, as of the time until which all that arrived is known.
    pub fn finish(&mut self, now: Instant) {
        for (at, track) in self.tracks.iter_mut().enumerate() {
            let id = TrackId(self.first_track.saturating_add(at as u16));
            self.observed.extend(track.layer_switches.give_up(id).map(Observation::LayerSwitched));
        }
        self.end_intervals(self.heard_until(now), TrackMeter::finish);
    }

    /// When to call [`Self::timeout`] and [`Self::poll_feedback`] next.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        let held = self.tracks.iter().filter(|track| track.has_sender());
        let tracks = held.map(|track| {
            let report_at = track.report_state.next_report_at();
            track.meter.next_timeout().map_or(report_at, |at| (at + self.lag).min(report_at))
        });
        tracks.chain(self.reporter.next_at()).fold(self.next_interval_at + self.lag, Instant::min)
    }

    /// When the last authentic packet of a track arrived.
    #[must_use]
    pub fn last_media_at(&self) -> Option<Instant> {
        self.last_media_at
    }

    /// The last protocol anomaly, for the failure that explains why no media played.
    pub(super) fn last_anomaly(&self) -> Option<&str> {
        self.anomalies.last()
    }

    /// Whether [`Self::take_observed`] has observations.
    #[must_use]
    pub fn has_observed(&self) -> bool {
        !self.observed.is_empty()
    }

    /// The observations since the last call, in order.
    pub fn take_observed(&mut self) -> std::vec::Drain<'_, Observation> {
        self.observed.drain(..)
    }
}

/// The configuration of a [`Receiver`].
#[derive(Clone, Copy, Debug)]
pub struct ReceiverOptions {
    /// Converts moments to wall time.
    pub clock: WallClock,
    /// When the participant joined: intervals end on whole seconds after it.
    pub joined_at: Instant,
    /// The id of the first track.
    pub first_track: u16,
    /// Seed of the report intervals, the SSRC and the canonical name.
    pub seed: u64,
    /// Whole coded frames are reported too.
    pub is_tapped: bool,
    /// Whether signalling reports the sections in which a participant sends; otherwise media is
    /// expected in each negotiated section.
    pub is_told: bool,
}

#[cfg(test)]
#[path = "fixture_tests.rs"]
mod fixture;
#[cfg(test)]
mod lag_tests;
#[cfg(test)]
mod unplayed_tests;
