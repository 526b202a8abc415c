//! The media that a viewer receives: RTP to the meters, RTCP reports back. Media is in the clear,
//! so that nothing here is in common with SRTP but the meters.

use std::time::{Duration, Instant};

use throng_media::assemble::{FrameAssembler, MediaPacket};
use throng_media::codec::{CodecError, PayloadFacts, PayloadReader};
use throng_media::prefetch::Prefetcher;
use throng_media::quality::{Packet, TrackConfig, TrackMeter, WallClock};
use throng_media::rtcp::{Compound, Report, ReportBlock, Rtcp, RtcpWriter};
use throng_media::rtp::RtpHeader;
use throng_observation::{
    Detail, MediaKind, Missing, Observation, Phase, SENDER_CLOCK_PLACE, TIME_JUMP_PLACE, TrackId,
    TrackInterval,
};

use super::description::{Companion, MediaDescription};
use super::playback::END_UNSURE;
use crate::reports::{LastSenderReport, TIME_JUMP, cname, coded_frame, next_second};
use crate::shown_size::{Shown, ShownSize};

/// Mean time between receiver reports of a track (RFC 3550 section 6.2 and its minimum, which RTSP
/// players use); each is drawn between half and one and a half of it.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// One received stream.
struct Track {
    id: TrackId,
    config: TrackConfig,
    payload_type: u8,
    companions: Vec<Companion>,
    meter: TrackMeter,
    payloads: PayloadReader,
    ssrc: Option<u32>,
    last_sender_report: LastSenderReport,
    next_report_at: Instant,
    /// When its last packet came, or media was expected anew.
    silent_since: Instant,
    /// Media came since it was last expected anew.
    has_media: bool,
    /// The first and the last second whose interval was put off since then, because it may be over.
    put_off: Option<(Instant, Instant)>,
    first_frame_reported: bool,
    /// The server has sent RTCP BYE: its end was reached.
    has_ended: bool,
    assembler: Option<Box<FrameAssembler>>,
    picture: ShownSize,
}

/// Anomalies, each reported once, so that a hostile server cannot fill the run with them.
#[derive(Clone, Copy)]
enum Anomaly {
    BadRtp = 1,
    BadRtcp = 2,
    UnknownPayload = 4,
    BadPayload = 8,
    SenderClock = 16,
    ManySources = 32,
    InnerMarkers = 64,
    TimeJump = 128,
}

/// The settings of a [`Receiver`].
#[derive(Clone, Copy)]
pub(super) struct ReceiverOptions {
    pub(super) clock: WallClock,
    /// Intervals end on whole seconds after it.
    pub(super) joined_at: Instant,
    pub(super) seed: u64,
    pub(super) is_tapped: bool,
    /// The presentation has a length.
    pub(super) is_recording: bool,
}

/// What is done with RTP packets that arrive.
enum Arrivals {
    Metered,
    /// They are of the position before a seek: the viewer does not want them any more.
    Unwanted,
    /// The seek is not answered yet: only its answer tells which position they are of.
    Held(Vec<HeldPacket>),
}

/// A packet whose position is not known yet.
struct HeldPacket {
    at: usize,
    arrived_at: Instant,
    overhead_bytes: u32,
    bytes: Vec<u8>,
}

/// When media of every track is expected.
#[derive(Clone, Copy)]
struct Expected {
    since: Instant,
    /// The end of a recording.
    until: Option<Instant>,
}

/// Packets that are held for a seek's answer, at most: 2 MB. More are metered as they come.
const HELD_MAX: usize = 1_500;
/// How long after the answer to PLAY packets of the position before may come: on other sockets.
const BREAK_PATIENCE: Duration = Duration::from_millis(200);
/// Shorter silences end nothing: no freeze has begun yet.
const SILENCE_MIN: Duration = Duration::from_millis(150);

/// Seconds before these are one interval where they were put off: a track that the server has ended
/// may be silent for hours before it goes on.
const PUT_OFF_MAX: Duration = Duration::from_secs(60);

/// Receives the tracks of one session.
pub(super) struct Receiver {
    options: ReceiverOptions,
    tracks: Vec<Track>,
    ssrc: u32,
    cname: String,
    random: fastrand::Rng,
    next_interval_at: Instant,
    /// What arrived so long before now is known.
    lag: Duration,
    last_media_at: Option<Instant>,
    expected: Option<Expected>,
    first_packet_seen: bool,
    first_frame_seen: bool,
    is_paused: bool,
    arrivals: Arrivals,
    source_changes: u8,
    observed: Vec<Observation>,
    anomalies: u8,
    last_anomaly: Option<String>,
    /// Control packets came.
    has_control: bool,
}

/// Changes of a stream's source that are followed; more are an anomaly.
const SOURCE_CHANGES_MAX: u8 = 100;

impl Receiver {
    pub(super) fn new(options: ReceiverOptions, media: &[MediaDescription], now: Instant) -> Self {
        let mut random = fastrand::Rng::with_seed(options.seed);
        let cname = cname(&mut random);
        let ssrc = random.u32(1..);
        let mut observed = Vec::new();
        let tracks = media.iter().enumerate().map(|(at, media)| {
            let id = TrackId(u16::try_from(at).unwrap_or(u16::MAX));
            let (kind, codec, is_recording) = (media.kind, media.codec, options.is_recording);
            observed.push(Observation::TrackOpened { track: id, kind, codec, is_recording });
            let config = TrackConfig {
                track: id,
                kind: media.kind,
                codec: media.codec,
                clock_rate_hz: media.clock_rate_hz,
                nack: false,
            };
            Track {
                id,
                config,
                payload_type: media.payload_type,
                companions: media.companions.clone(),
                meter: TrackMeter::new(config, options.clock, now),
                payloads: PayloadReader::new(media.codec),
                ssrc: None,
                last_sender_report: LastSenderReport::default(),
                next_report_at: now + REPORT_INTERVAL.mul_f64(0.5 + random.f64()) / 2,
                silent_since: now,
                has_media: false,
                put_off: None,
                first_frame_reported: false,
                has_ended: false,
                assembler: (options.is_tapped && media.kind == MediaKind::Video)
                    .then(|| Box::new(FrameAssembler::new(media.codec))),
                picture: ShownSize::default(),
            }
        });
        let tracks = tracks.collect();
        Self {
            options,
            tracks,
            ssrc,
            cname,
            random,
            next_interval_at: next_second(options.joined_at, now),
            lag: Duration::ZERO,
            last_media_at: None,
            expected: None,
            first_packet_seen: false,
            first_frame_seen: false,
            is_paused: false,
            arrivals: Arrivals::Metered,
            source_changes: 0,
            observed,
            anomalies: 0,
            last_anomaly: None,
            has_control: false,
        }
    }

    /// Takes an RTP packet of track `at`; `overhead_bytes` are those of the headers below it on the
    /// wire.
    pub(super) fn rtp(
        &mut self,
        at: usize,
        arrived_at: Instant,
        overhead_bytes: u32,
        bytes: &[u8],
    ) {
        match &mut self.arrivals {
            Arrivals::Metered => {}
            Arrivals::Unwanted => return,
            Arrivals::Held(held) if held.len() < HELD_MAX => {
                return held.push(HeldPacket {
                    at,
                    arrived_at,
                    overhead_bytes,
                    bytes: bytes.to_vec(),
                });
            }
            Arrivals::Held(_) => self.begin_position(arrived_at, &[]),
        }
        self.meter(at, arrived_at, overhead_bytes, bytes);
    }

    fn meter(&mut self, at: usize, arrived_at: Instant, overhead_bytes: u32, bytes: &[u8]) {
        let Some(track) = self.tracks.get_mut(at) else { return };
        let Ok(header) = RtpHeader::parse(bytes) else {
            return self.anomaly(Anomaly::BadRtp, "rtp", "an RTP packet is malformed");
        };
        let is_of = |it: &&Companion| it.payload_type == header.payload_type;
        let companion = track.companions.iter().find(is_of).copied();
        if header.payload_type != track.payload_type && companion.is_none() {
            return self.unknown_payload(at, arrived_at, overhead_bytes, &header, bytes);
        }
        track.goes_on(self.expected, &mut self.observed);
        track.silent_since = arrived_at;
        let Ok(payload) = header.payload(bytes) else {
            track.meter.discarded();
            return self.anomaly(Anomaly::BadRtp, "rtp", "padding is longer than the payload");
        };
        // What comes between the packets of the media has their numbers, and is no part of it.
        let is_video = track.config.kind == MediaKind::Video;
        let is_between = companion.is_some_and(|companion| !companion.has_media || is_video);
        let payload: &[u8] = if is_between { &[] } else { payload };
        if !track.comes_from(header.ssrc, arrived_at, &mut self.source_changes) {
            return self.anomaly(Anomaly::ManySources, "rtp", "its SSRC changes again and again");
        }
        // A malformed payload still counts as a packet of its frame.
        let read = match companion {
            Some(_) => Ok(PayloadFacts::default()),
            None => track.payloads.read(payload),
        };
        let packet = Packet {
            arrived_at,
            sequence: header.sequence,
            timestamp: header.timestamp,
            marker: header.marker,
            facts: read.unwrap_or_default(),
            payload_bytes: payload.len() as u32,
            header_bytes: (bytes.len() - payload.len()) as u32,
            wire_bytes: overhead_bytes + bytes.len() as u32,
            retransmitted: false,
            captured: None,
        };
        track.has_media = true;
        track.meter.packet_with_payload(&packet, payload);
        self.observed.extend(track.size_change(header.timestamp, payload));
        if read.is_ok() {
            track.assemble(&packet, payload, &self.options.clock, &mut self.observed);
        }
        self.last_media_at = Some(arrived_at);
        self.report_first(at, arrived_at);
        self.report_anomalies(at, read.err());
    }

    /// Reports what is odd about track `at` and the payload of its last packet.
    fn report_anomalies(&mut self, at: usize, malformed: Option<CodecError>) {
        let Some(Track { meter, .. }) = self.tracks.get(at) else { return };
        let (has_inner_markers, time_jumps) = (meter.has_inner_markers(), meter.time_jumps());
        if has_inner_markers {
            let detail = "the RTP marker is set inside pictures; frames are counted by timestamps";
            self.anomaly(Anomaly::InnerMarkers, "rtp", detail);
        }
        if let Some(error) = malformed {
            self.anomaly(Anomaly::BadPayload, "payload", error);
        }
        if time_jumps > 0 {
            self.anomaly(Anomaly::TimeJump, TIME_JUMP_PLACE, TIME_JUMP);
        }
    }

    /// A packet of a payload type that was not described cannot be played. It is still one of the
    /// source that sends the track: it was not lost.
    fn unknown_payload(
        &mut self,
        at: usize,
        arrived_at: Instant,
        overhead_bytes: u32,
        header: &RtpHeader,
        bytes: &[u8],
    ) {
        let Some(track) = self.tracks.get_mut(at) else { return };
        if track.ssrc == Some(header.ssrc) {
            track.meter.packet(&Packet {
                arrived_at,
                sequence: header.sequence,
                timestamp: header.timestamp,
                marker: header.marker,
                facts: PayloadFacts::default(),
                payload_bytes: 0,
                header_bytes: bytes.len() as u32,
                wire_bytes: overhead_bytes + bytes.len() as u32,
                retransmitted: false,
                captured: None,
            });
        }
        let detail = format!(
            "payload type {} where {} was described",
            header.payload_type, track.payload_type
        );
        self.anomaly(Anomaly::UnknownPayload, "rtp", detail);
    }

    /// Reports the first packet and frame of the session and of track `at`.
    fn report_first(&mut self, at: usize, arrived_at: Instant) {
        if !self.first_packet_seen {
            self.first_packet_seen = true;
            self.observed.push(Observation::Reached(Phase::FirstPacket, arrived_at));
        }
        let expects_video = self.tracks.iter().any(|track| track.config.kind == MediaKind::Video);
        let Some(track) = self.tracks.get_mut(at) else { return };
        let Some(first_frame_at) = track.meter.first_frame_at() else { return };
        if !track.first_frame_reported {
            track.first_frame_reported = true;
            self.observed
                .push(Observation::TrackFirstFrame { track: track.id, at: first_frame_at });
        }
        if !self.first_frame_seen && (track.config.kind == MediaKind::Video || !expects_video) {
            self.first_frame_seen = true;
            self.observed.push(Observation::Reached(Phase::FirstFrame, first_frame_at));
        }
    }

    /// Takes an RTCP packet of track `at`.
    pub(super) fn rtcp(&mut self, at: usize, arrived_at: Instant, bytes: &[u8]) {
        let Some(track) = self.tracks.get_mut(at) else { return };
        self.has_control = true;
        let (mut is_bad, mut is_other_clock) = (false, false);
        for packet in Compound::new(bytes) {
            match packet {
                Ok(Rtcp::SenderReport(report)) => {
                    let sender = report.sender;
                    track.last_sender_report.arrived(sender.ntp, arrived_at);
                    if !sender.ntp.is_unknown() {
                        let ntp_unix_ns = sender.ntp.to_unix_ns();
                        is_other_clock |= !track.meter.sender_report(
                            ntp_unix_ns,
                            sender.rtp_timestamp,
                            arrived_at,
                        );
                    }
                }
                Ok(Rtcp::Bye(_)) => track.has_ended = true,
                Ok(_) => {}
                Err(_) => is_bad = true,
            }
        }
        if is_other_clock {
            let detail = "sender reports have no wall clock: their NTP time is more than a day \
                          from this host's, or runs at another rate; one-way delay is not \
                          computed from them";
            self.anomaly(Anomaly::SenderClock, SENDER_CLOCK_PLACE, detail);
        }
        if is_bad {
            self.anomaly(Anomaly::BadRtcp, "rtcp", "a control packet is malformed");
        }
    }

    /// Whether the server has ended every track.
    pub(super) fn has_ended(&self) -> bool {
        !self.tracks.is_empty() && self.tracks.iter().all(|track| track.has_ended)
    }

    /// No media is expected until [`Self::resume`] or [`Self::go_on`].
    pub(super) fn pause(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.is_paused, true) {
            self.tracks.iter_mut().for_each(|track| track.meter.pause());
            self.end_intervals(now, TrackMeter::take_interval);
        }
        self.expected = None;
    }

    /// The same, and what comes next is of another position of the recording: it has other
    /// pictures, and may have other sequence numbers and timestamps. It may come before PLAY is
    /// answered.
    pub(super) fn end_position(&mut self, now: Instant) {
        self.tracks.iter_mut().for_each(|track| track.meter.source_changed(now));
        self.pause(now);
        // A server may take another source for each position.
        self.source_changes = 0;
    }

    /// Media is expected again, from another position.
    pub(super) fn resume(&mut self, now: Instant) {
        self.is_paused = false;
        self.last_media_at = self.last_media_at.map(|_| now);
        for track in &mut self.tracks {
            track.meter.resume(now);
            (track.silent_since, track.has_media) = (now, false);
        }
    }

    /// Media is expected again from where it was paused: it may come before PLAY is answered, and
    /// servers leave packets out where they paused.
    pub(super) fn go_on(&mut self, now: Instant) {
        for track in &mut self.tracks {
            track.meter.timeline_shifted();
            track.meter.may_break(now + BREAK_PATIENCE);
        }
        self.resume(now);
    }

    /// The viewer seeks: media of another position is expected from now on, and none of the present
    /// one wanted.
    pub(super) fn seek(&mut self, now: Instant) {
        self.end_position(now);
        self.resume(now);
        self.arrivals = Arrivals::Unwanted;
    }

    /// The other position was requested.
    pub(super) fn await_position(&mut self) {
        if matches!(self.arrivals, Arrivals::Unwanted) {
            self.arrivals = Arrivals::Held(Vec::new());
        }
    }

    /// PLAY was answered: what comes begins with these sequence numbers, where the server says
    /// them; packets before are of the old position. Where it does not, only a break tells them
    /// apart. What said that the old one ended says nothing of this one.
    pub(super) fn begin_position(&mut self, now: Instant, first: &[Option<u16>]) {
        for (at, track) in self.tracks.iter_mut().enumerate() {
            track.has_ended = false;
            if first.get(at).copied().flatten().is_none() {
                track.meter.may_break(now + BREAK_PATIENCE);
            }
        }
        let Arrivals::Held(held) = std::mem::replace(&mut self.arrivals, Arrivals::Metered) else {
            return;
        };
        for packet in held {
            let first = first.get(packet.at).copied().flatten();
            let is_old = RtpHeader::parse(&packet.bytes).is_ok_and(|header| {
                first.is_some_and(|first| header.sequence.wrapping_sub(first) > u16::MAX / 2)
            });
            if !is_old {
                self.meter(packet.at, packet.arrived_at, packet.overhead_bytes, &packet.bytes);
            }
        }
    }

    /// Performs due actions: gives up late packets, and ends the interval when its second is over.
    pub(super) fn timeout(&mut self, now: Instant) {
        // What arrived since may be still to come.
        let heard = now.checked_sub(self.lag).unwrap_or(now);
        for track in self.tracks.iter_mut().filter(|_| !self.is_paused) {
            if track.meter.next_timeout().is_some_and(|at| heard >= at) {
                track.meter.timeout(heard);
                // The request is for feedback that was not negotiated; taking it sets its next
                // time.
                let _ = track.meter.wants_key_frame(heard);
            }
        }
        if heard >= self.next_interval_at {
            if !self.is_paused {
                self.end_seconds(heard);
            }
            self.next_interval_at = next_second(self.next_interval_at, heard);
        }
    }

    /// The server plays: every track that was set up has media until the recording ends, if it
    /// does.
    pub(super) fn expect(&mut self, since: Instant, until: Option<Instant>) {
        self.expected = Some(Expected { since, until });
    }

    /// The server was asked to stop.
    pub(super) fn expect_nothing(&mut self) {
        self.expected = None;
    }

    /// Ends the intervals of a second. That of a track that may be over is put off: if it is, its
    /// silence does not count, and if it is not, all of it does.
    fn end_seconds(&mut self, now: Instant) {
        let second = self.next_interval_at;
        let over_since = over_since(&self.tracks, self.expected, now);
        for (track, over_since) in self.tracks.iter_mut().zip(over_since) {
            if over_since.is_some() {
                let (first, _) = track.put_off.unwrap_or((second, second));
                track.put_off = Some((first, second));
                continue;
            }
            track.goes_on(self.expected, &mut self.observed);
            let interval = track.interval(self.expected, now, TrackMeter::take_interval);
            self.observed.push(interval);
        }
    }

    /// Ends the intervals of all tracks; of one that may be over, where its silence began.
    fn end_intervals(&mut self, now: Instant, take: fn(&mut TrackMeter, Instant) -> TrackInterval) {
        let over_since = over_since(&self.tracks, self.expected, now);
        for (track, over_since) in self.tracks.iter_mut().zip(over_since) {
            if over_since.is_some() {
                track.meter.pause();
                track.put_off = None;
            }
            track.goes_on(self.expected, &mut self.observed);
            let ends_at = over_since.unwrap_or(now);
            self.observed.push(track.interval(self.expected, ends_at, take));
        }
    }

    /// The next receiver report that is due, with its track.
    pub(super) fn poll_report(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        let (at, track) =
            self.tracks.iter_mut().enumerate().find(|(_, track)| now >= track.next_report_at)?;
        track.next_report_at = now + REPORT_INTERVAL.mul_f64(0.5 + self.random.f64());
        let ssrc = track.ssrc;
        let block = ssrc.zip(track.meter.reception()).map(|(ssrc, reception)| {
            let (last_sr, delay_since_last_sr) = track.last_sender_report.lsr_and_dlsr(now);
            ReportBlock {
                ssrc,
                fraction_lost: reception.fraction_lost,
                cumulative_lost: reception.cumulative_lost,
                highest_sequence: reception.extended_highest_sequence,
                jitter: reception.jitter,
                last_sr,
                delay_since_last_sr,
            }
        });
        Some((at, self.report(block.as_slice())))
    }

    /// A report without sources, which opens the path through a NAT.
    pub(super) fn empty_report(&self) -> Vec<u8> {
        self.report(&[])
    }

    fn report(&self, blocks: &[ReportBlock]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(96);
        let _ = RtcpWriter::compound(&mut packet, Report::Receiver(self.ssrc), blocks, &self.cname);
        packet
    }

    /// The RTCP BYE of a track.
    pub(super) fn goodbye(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(96);
        let report = Report::Receiver(self.ssrc);
        let _ = RtcpWriter::compound(&mut packet, report, &[], &self.cname).bye(&[self.ssrc]);
        packet
    }

    /// Ends every track's last interval, as of the time until which all that arrived is known.
    pub(super) fn finish(&mut self, now: Instant) {
        let heard = now.checked_sub(self.lag).unwrap_or(now);
        if !self.is_paused {
            self.end_intervals(heard, TrackMeter::finish);
        }
    }

    /// When to call [`Self::timeout`] and [`Self::poll_report`] next.
    pub(super) fn next_timeout(&self) -> Instant {
        let tracks = self.tracks.iter().map(|track| {
            let meter = track.meter.next_timeout().filter(|_| !self.is_paused);
            meter.map_or(track.next_report_at, |at| (at + self.lag).min(track.next_report_at))
        });
        tracks.fold(self.next_interval_at + self.lag, Instant::min)
    }

    /// When media last came, or was expected anew after some had come.
    pub(super) fn last_media_at(&self) -> Option<Instant> {
        self.last_media_at
    }

    /// Whether media came since PLAY was last answered.
    pub(super) fn has_media(&self) -> bool {
        self.tracks.iter().any(|track| track.has_media)
    }

    /// Whether anything came that is no media as described, such as control packets.
    pub(super) fn has_noticed(&self) -> bool {
        self.has_control || self.last_anomaly.is_some()
    }

    /// The last protocol anomaly, for the failure that explains why no media played.
    pub(super) fn last_anomaly(&self) -> Option<&str> {
        self.last_anomaly.as_deref()
    }

    pub(super) fn has_observed(&self) -> bool {
        !self.observed.is_empty()
    }

    pub(super) fn take_observed(&mut self) -> std::vec::Drain<'_, Observation> {
        self.observed.drain(..)
    }

    /// See [`crate::participant::Participant::receive_lag`].
    pub(super) fn receive_lag(&mut self, lag: Duration) {
        self.lag = lag;
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match level.checked_sub(1) {
            Some(level) => {
                self.tracks
                    .iter()
                    .take(2)
                    .for_each(|track| track.meter.prefetch(level, prefetcher));
            }
            None => self.tracks.iter().take(2).for_each(|track| prefetcher.value(track)),
        }
    }

    fn anomaly(&mut self, anomaly: Anomaly, place: &'static str, detail: impl std::fmt::Display) {
        if self.anomalies & anomaly as u8 == 0 {
            self.anomalies |= anomaly as u8;
            let detail = Detail::from(detail.to_string());
            if !matches!(anomaly, Anomaly::SenderClock | Anomaly::InnerMarkers | Anomaly::TimeJump)
            {
                self.last_anomaly = Some(detail.to_string());
            }
            self.observed.push(Observation::ProtocolAnomaly { place, detail });
        }
    }
}

/// Since when each track is silent that may be over at `now`. One that had no media is over with
/// the last of those that had: until then it is missing. Where none had any, there may be none.
fn over_since(tracks: &[Track], expected: Option<Expected>, now: Instant) -> Vec<Option<Instant>> {
    let is_silent = |track: &Track| now >= track.silent_since + SILENCE_MIN;
    let are_all_silent = tracks.iter().filter(|track| track.has_media).all(is_silent);
    let own = |track: &Track| track.over_since(expected, now, are_all_silent);
    let later = |one: Option<Instant>, other: Option<Instant>| Some(one?.max(other?));
    let last = tracks.iter().filter(|track| track.has_media).map(own).reduce(later);
    let of = |track: &Track| if track.has_media { own(track) } else { last.unwrap_or(own(track)) };
    tracks.iter().map(of).collect()
}

impl Track {
    /// Since when it is silent, if it may be over at `now`: the server has said so, or it fell
    /// silent so near the end of the recording that only more media refutes it; with all the others
    /// also long after the end, which a slow server reaches late.
    fn over_since(
        &self,
        expected: Option<Expected>,
        now: Instant,
        are_all_silent: bool,
    ) -> Option<Instant> {
        let is_near = |until: Instant| {
            let late = self.silent_since.saturating_duration_since(until);
            now + END_UNSURE >= until && (are_all_silent || late <= END_UNSURE)
        };
        let may_be_over = expected?.until.is_some_and(is_near) || self.has_ended;
        (may_be_over && now >= self.silent_since + SILENCE_MIN).then_some(self.silent_since)
    }

    /// It was not over: the intervals that were put off end where they would have.
    fn goes_on(&mut self, expected: Option<Expected>, observed: &mut Vec<Observation>) {
        let Some((first, last)) = self.put_off.take() else { return };
        let mut second = last.checked_sub(PUT_OFF_MAX).map_or(first, |at| at.max(first));
        while second <= last {
            observed.push(self.interval(expected, second, TrackMeter::take_interval));
            second += Duration::from_secs(1);
        }
    }

    /// A packet comes from this source. False where there were too many others before.
    fn comes_from(&mut self, ssrc: u32, now: Instant, source_changes: &mut u8) -> bool {
        if self.ssrc == Some(ssrc) {
            return true;
        }
        if self.ssrc.is_some() {
            *source_changes = source_changes.saturating_add(1);
            if *source_changes > SOURCE_CHANGES_MAX {
                return false;
            }
            self.meter.source_changed(now);
        }
        self.ssrc = Some(ssrc);
        self.last_sender_report = LastSenderReport::default();
        true
    }

    /// The size of its picture has changed, as a packet of this payload shows or one before.
    fn size_change(&mut self, timestamp: u32, payload: &[u8]) -> Option<Observation> {
        // Parameter sets may come in packets of their own.
        self.picture.packet(self.config.codec, timestamp, payload);
        if !self.picture.awaits_key_frame() {
            return None;
        }
        let (timestamp, at) = self.meter.last_key_frame()?;
        let (from, to) = self.picture.shown(timestamp).and_then(Shown::change)?;
        Some(Observation::SizeChanged { track: self.id, from, to, at })
    }

    /// Adds a packet to the frames of the tap.
    fn assemble(
        &mut self,
        packet: &Packet,
        payload: &[u8],
        clock: &WallClock,
        observed: &mut Vec<Observation>,
    ) {
        let Some(assembler) = &mut self.assembler else { return };
        let Packet { arrived_at, sequence, timestamp, marker, facts, captured, .. } = *packet;
        let packet =
            MediaPacket { arrived_at, sequence, timestamp, marker, facts, captured, payload };
        let (id, codec) = (self.id, self.config.codec);
        assembler.packet(&packet, |frame| observed.push(coded_frame(id, codec, clock, frame)));
    }

    /// Its interval that ends at `now`.
    fn interval(
        &mut self,
        expected: Option<Expected>,
        now: Instant,
        take: fn(&mut TrackMeter, Instant) -> TrackInterval,
    ) -> Observation {
        let due = expected.filter(|_| self.meter.is_quiet(now));
        let has_stopped = self.meter.has_begun();
        let mut interval = take(&mut self.meter, now);
        interval.missing = due.map(|due| Missing { since: due.since, has_stopped });
        interval.picture_lines = self.picture.lines();
        Observation::Interval(Box::new(interval))
    }
}
