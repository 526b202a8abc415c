//! A viewer and a server's peer connection in memory: no sockets, simulated time, datagrams passed
//! one by one.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_media::rtcp::{Compound, Report, Rtcp, RtcpWriter, SenderInfo};
use throng_media::rtp::{
    Extension, ExtensionIds, Extensions, HeaderFields, NtpTime, PacketKind, classify, write_header,
    write_rtx_payload,
};
use throng_observation::{
    FailureReason, MediaKind, Observation, Outcome, Phase, RefusedDestination, TrackCounters,
    TrackInterval,
};

use super::options::{ParticipantOptions, StepTimeouts};
use super::reflexive::tests::STUN;
use super::relay::tests::{Fixture, RELAYED};
use super::sdp::Description;
use super::session::{LaterOffer, Session, SessionOutput};
use super::srtp::{Opener, RTP_GROWTH_MAX, Sealer};
use super::viewer::Viewer;
use crate::participant::{Channel, Input, Opening, Output, Participant, Why};
use crate::signalling::{SignalInput, SignalOutput, Signalling};

mod failing;
mod first_source;
mod playing;
mod reflexive;
mod relayed;
mod renegotiating;
mod unknown_sources;

const SERVER: &str = "10.0.0.1:5000";
const VIEWER: &str = "10.0.0.2:6000";
const TO_RELAY: &str = "10.0.0.2:6001";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Passes descriptions between the viewer and the test.
#[derive(Clone, Default)]
struct TestSignalling(Arc<Mutex<TestSignallingState>>);

#[derive(Default)]
struct TestSignallingState {
    to_viewer: VecDeque<SignalOutput>,
    offer: Option<String>,
    answer: Option<String>,
    candidates: Vec<String>,
    candidates_done: usize,
    said_goodbye: bool,
}

impl Signalling for TestSignalling {
    fn handle(&mut self, _: Instant, input: SignalInput<'_>) {
        let mut signalling = self.0.lock().unwrap();
        match input {
            SignalInput::Start if signalling.to_viewer.is_empty() => {
                signalling.to_viewer.push_back(SignalOutput::WantOffer);
            }
            SignalInput::Offer(sdp) => signalling.offer = Some(sdp),
            SignalInput::Answer(sdp) => signalling.answer = Some(sdp),
            SignalInput::Candidate(candidate) => signalling.candidates.push(candidate.to_owned()),
            SignalInput::CandidatesDone => signalling.candidates_done += 1,
            SignalInput::Leave => {
                signalling.said_goodbye = true;
                signalling.to_viewer.push_back(SignalOutput::Goodbye);
            }
            _ => {}
        }
    }

    fn poll_output(&mut self) -> Option<SignalOutput> {
        self.0.lock().unwrap().to_viewer.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        None
    }
}

/// What the server received from the viewer.
#[derive(Default)]
struct Received {
    fractions_lost: Vec<u8>,
    /// Video: packets lost so far, and the highest sequence number.
    lost_of: Vec<(i32, u32)>,
    last_sr: Vec<u32>,
    nacked: Vec<u16>,
    plis: usize,
    firs: usize,
    reported_arrived: usize,
    reported_missing: usize,
    bandwidth_estimates: usize,
    byes: usize,
    reports: usize,
    /// Audio receiver reports.
    audio_reports: usize,
    /// Reports on more than one stream.
    crowded_reports: usize,
    /// Requests in a datagram whose first report block belongs to another stream.
    astray: usize,
    bad: usize,
}

/// One stream of the server.
#[derive(Clone, Default)]
struct Stream {
    payload_type: u8,
    ssrc: u32,
    rtx_payload_type: u8,
    rtx_ssrc: u32,
    sequence: u64,
    rtx_sequence: u64,
    packets: u32,
    sent: BTreeMap<u16, (u32, bool, Vec<u8>)>,
}

struct World {
    now: Instant,
    began: Instant,
    viewer: Viewer,
    signalling: TestSignalling,
    server: Session,
    opener: Option<Opener>,
    sealer: Option<Sealer>,
    ids: ExtensionIds,
    transport_sequence: u16,
    video: Stream,
    audio: Stream,
    received: Received,
    observed: Vec<Observation>,
    ended: Option<Outcome>,
    opened: Vec<Channel>,
    closed: Vec<Channel>,
    to_viewer: Vec<Vec<u8>>,
    /// Whether a media packet is lost: (is retransmission, count).
    lose: fn(bool, u32) -> bool,
    /// Whether a media packet arrives 3 ms late, behind those sent after it; by the count of
    /// packets.
    delay: fn(u32) -> bool,
    delayed: Vec<(Instant, Vec<u8>)>,
    /// A stream of video that a later offer added.
    more_video: Stream,
    /// The only path between the two, if set.
    relay: Option<Fixture>,
    plays: bool,
    answers_media: bool,
    /// How many of the viewer's first DTLS datagrams are lost.
    dtls_lost: usize,
    /// Changes the server's answer.
    edit_answer: fn(String) -> String,
    /// The source address of the server's datagrams.
    sends_from: &'static str,
    /// The requests to the STUN server.
    asked: Vec<Vec<u8>>,
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// A world whose viewer has changed options.
    fn with(change: impl FnOnce(&mut ParticipantOptions)) -> Self {
        // Some platforms cannot represent instants before the process began, so time starts later.
        let now = Instant::now() + Duration::from_secs(1);
        let signalling = TestSignalling::default();
        let mut options = ParticipantOptions {
            may_reach: Arc::new(|_, to| to.ip().to_string().starts_with("10.")),
            clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
            toward: Some(address(SERVER)),
            seed: 3,
            timeouts: StepTimeouts::default(),
            is_tapped: true,
            relay_only: false,
            stun: None,
            turn: None,
        };
        change(&mut options);
        Self {
            now,
            began: now,
            viewer: Viewer::new(Box::new(signalling.clone()), options),
            signalling,
            server: Session::server(now).unwrap(),
            opener: None,
            sealer: None,
            ids: ExtensionIds::default(),
            transport_sequence: 65_000,
            video: Stream { sequence: 65_500, rtx_sequence: 9, ..Stream::default() },
            audio: Stream { sequence: 7, ..Stream::default() },
            received: Received::default(),
            observed: Vec::new(),
            ended: None,
            opened: Vec::new(),
            closed: Vec::new(),
            to_viewer: Vec::new(),
            lose: |_, _| false,
            delay: |_| false,
            delayed: Vec::new(),
            more_video: Stream::default(),
            relay: None,
            plays: true,
            answers_media: true,
            dtls_lost: 0,
            edit_answer: |answer| answer,
            sends_from: SERVER,
            asked: Vec::new(),
        }
    }

    fn start(&mut self) {
        self.server.add_local_candidate(address(SERVER)).unwrap();
        self.viewer.handle(self.now, Input::Start { intended_at: self.now });
    }

    fn answer(&mut self) {
        let Some(offer) = self.signalling.0.lock().unwrap().offer.take() else { return };
        let (answer, negotiated) = self.server.accept_offer(&offer).unwrap();
        self.ids = negotiated.answer.extension_ids();
        for section in &negotiated.answer.sections {
            let (stream, codec) = match section.kind.unwrap() {
                MediaKind::Audio => (&mut self.audio, throng_observation::Codec::Opus),
                MediaKind::Video => (&mut self.video, throng_observation::Codec::Vp8),
            };
            let format = section.formats.iter().find(|format| format.codec == codec).unwrap();
            stream.payload_type = format.payload_type;
            let rtx =
                section.formats.iter().find(|format| format.repeats == Some(stream.payload_type));
            stream.rtx_payload_type = rtx.map_or(0, |format| format.payload_type);
            stream.ssrc = section.ssrcs.first().copied().unwrap_or(1_000);
            stream.rtx_ssrc = section.retransmissions.first().map_or(2_000, |pair| pair.1);
        }
        let answer = (self.edit_answer)(answer);
        self.signalling.0.lock().unwrap().to_viewer.push_back(SignalOutput::RemoteAnswer(answer));
        self.poke();
    }

    /// Advances time by `duration` in steps of a millisecond.
    fn run(&mut self, duration: Duration) {
        for _ in 0..duration.as_millis() {
            self.now += Duration::from_millis(1);
            self.drain_viewer();
            self.answer();
            self.drain_server();
            if self.plays && self.sealer.is_some() {
                self.play();
            }
            let due = self.delayed.iter().take_while(|(at, _)| *at <= self.now).count();
            self.to_viewer.extend(self.delayed.drain(..due).map(|(_, bytes)| bytes));
            for mut bytes in std::mem::take(&mut self.to_viewer) {
                let (source, arrived_at) = (address(self.sends_from), self.now);
                if let Some(relay) = &mut self.relay {
                    relay.hear_peer(self.now, source, &bytes);
                    continue;
                }
                let input = Input::Datagram {
                    channel: Channel(1),
                    source,
                    local: None,
                    arrived_at,
                    bytes: &mut bytes,
                };
                self.viewer.handle(self.now, input);
            }
            self.turn_relay();
        }
        self.drain_viewer();
    }

    /// Forwards the relay's datagrams to both sides.
    fn turn_relay(&mut self) {
        let Some(relay) = &mut self.relay else { return };
        relay.turn(self.now);
        let (to_server, to_viewer) =
            (std::mem::take(&mut relay.to_peers), std::mem::take(&mut relay.to_client));
        for (to, bytes) in to_server {
            assert_eq!(to, address(SERVER));
            self.carry_to_server(address(RELAYED), bytes);
        }
        for bytes in to_viewer {
            self.viewer.handle(self.now, Input::Bytes { channel: Channel(2), bytes: &bytes });
        }
    }

    fn drain_viewer(&mut self) {
        for _ in 0..10_000 {
            match self.viewer.poll_output(self.now) {
                Output::Timeout(at, _) => return assert!(at > self.now),
                Output::Open(channel, _) => {
                    self.opened.push(channel);
                    let local = if channel == Channel(2) { TO_RELAY } else { VIEWER };
                    let opening = Opening { local: Some(address(local)), ..Opening::default() };
                    self.viewer.handle(self.now, Input::Opened { channel, opening });
                }
                Output::Send(_, transmit) if transmit.to == address(STUN) => {
                    self.asked.push(transmit.bytes);
                }
                Output::Send(channel, transmit) => match &mut self.relay {
                    None => self.carry_to_server(address(VIEWER), transmit.bytes),
                    Some(relay) if channel == Channel(2) => {
                        relay.hear_client(self.now, &transmit.bytes);
                    }
                    Some(_) => {}
                },
                Output::Close(channel) => self.closed.push(channel),
                Output::Observed(observation) => self.observed.push(observation),
                Output::Ended(outcome) => self.ended = Some(outcome),
                other => panic!("{other:?}"),
            }
        }
        panic!("the viewer never waits");
    }

    fn carry_to_server(&mut self, source: SocketAddr, mut bytes: Vec<u8>) {
        match classify(&bytes) {
            PacketKind::Dtls if self.dtls_lost > 0 => self.dtls_lost -= 1,
            PacketKind::Stun | PacketKind::Dtls if self.answers_media => {
                let _ = self.server.datagram(self.now, source, address(SERVER), &bytes);
            }
            PacketKind::Rtcp => {
                let len = self.opener.as_ref().unwrap().open_rtcp(&mut bytes).unwrap();
                self.hear(&bytes[..len]);
            }
            _ => {}
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let mut repeat = Vec::new();
        let mut about = None;
        for packet in Compound::new(bytes) {
            let asked_of = match &packet {
                Ok(Rtcp::Nack(nack)) => Some(nack.media_ssrc),
                Ok(Rtcp::PictureLoss(pli)) => Some(pli.media_ssrc),
                _ => None,
            };
            self.received.astray += usize::from(asked_of.is_some() && asked_of != about);
            match packet {
                Ok(Rtcp::ReceiverReport(report)) => {
                    about = about.or(report.reports().next().map(|block| block.ssrc));
                    self.received.reports += 1;
                    self.received.crowded_reports += usize::from(report.reports().count() > 1);
                    self.received.audio_reports +=
                        report.reports().filter(|block| block.ssrc == self.audio.ssrc).count();
                    for block in report.reports().filter(|block| block.ssrc == self.video.ssrc) {
                        self.received.fractions_lost.push(block.fraction_lost);
                        self.received.lost_of.push((block.cumulative_lost, block.highest_sequence));
                        self.received.last_sr.push(block.last_sr);
                    }
                }
                Ok(Rtcp::Nack(nack)) => repeat.extend(nack.sequences()),
                Ok(Rtcp::PictureLoss(_)) => self.received.plis += 1,
                Ok(Rtcp::FullIntraRequest(_)) => self.received.firs += 1,
                Ok(Rtcp::TransportFeedback(feedback)) => {
                    for status in feedback.packets() {
                        let arrived = format!("{status:?}").contains("Some");
                        *if arrived {
                            &mut self.received.reported_arrived
                        } else {
                            &mut self.received.reported_missing
                        } += 1;
                    }
                }
                Ok(Rtcp::Remb(_)) => self.received.bandwidth_estimates += 1,
                Ok(Rtcp::Bye(_)) => self.received.byes += 1,
                Ok(_) => {}
                Err(_) => self.received.bad += 1,
            }
        }
        for sequence in repeat {
            self.received.nacked.push(sequence);
            if let Some((timestamp, marker, payload)) = self.video.sent.get(&sequence).cloned() {
                let mut rtx = Vec::new();
                write_rtx_payload(&mut rtx, sequence, &payload);
                let sequence = self.video.rtx_sequence;
                self.video.rtx_sequence += 1;
                let fields = HeaderFields {
                    payload_type: self.video.rtx_payload_type,
                    marker,
                    sequence: sequence as u16,
                    timestamp,
                    ssrc: self.video.rtx_ssrc,
                };
                self.send(fields, sequence, &rtx, true);
            }
        }
    }

    fn drain_server(&mut self) {
        let _ = self.server.timeout(self.now);
        loop {
            match self.server.poll_output() {
                Ok(SessionOutput::Timeout(_)) | Err(_) => return,
                Ok(SessionOutput::Transmit { bytes, .. }) => self.to_viewer.push(bytes),
                Ok(SessionOutput::Connected(keys)) => {
                    self.opener = Some(keys.opener().unwrap());
                    self.sealer = Some(keys.sealer().unwrap());
                    self.began = self.now;
                }
                Ok(_) => {}
            }
        }
    }

    /// 30 frames of three packets a second, a key frame each second; 50 audio packets; a sender
    /// report each second.
    fn play(&mut self) {
        let ms = self.now.duration_since(self.began).as_millis() as u64;
        if ms.is_multiple_of(20) {
            let fields = self.next(false, ms as u32 * 48, false);
            self.send(fields, self.audio.sequence, &[0xfc, 1, 2, 3], false);
        }
        if ms.is_multiple_of(33) {
            let frame = ms / 33;
            for part in 0..3 {
                let start = [
                    0x10,
                    if frame.is_multiple_of(30) { 0 } else { 1 },
                    0,
                    0,
                    0x9d,
                    0x01,
                    0x2a,
                    64,
                    0,
                    64,
                    0,
                ];
                let payload = if part == 0 { start.to_vec() } else { vec![0; 500] };
                let timestamp = (frame * 2_970) as u32;
                let fields = self.next(true, timestamp, part == 2);
                self.video
                    .sent
                    .insert(fields.sequence, (timestamp, fields.marker, payload.clone()));
                self.send(fields, self.video.sequence, &payload, false);
            }
        }
        if ms.is_multiple_of(33) && self.more_video.ssrc != 0 {
            let stream = &mut self.more_video;
            stream.sequence += 1;
            stream.packets += 1;
            let (sequence, payload_type, ssrc) =
                (stream.sequence, stream.payload_type, stream.ssrc);
            let timestamp = (ms / 33 * 2_970) as u32;
            let fields = HeaderFields {
                payload_type,
                marker: true,
                sequence: sequence as u16,
                timestamp,
                ssrc,
            };
            self.send(fields, sequence, &[0x10, 0, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 64, 0], false);
        }
        if ms % 1_000 == 500 {
            let ntp = NtpTime::from_unix_ns(1_700_000_000_000_000_000 + ms * 1_000_000);
            let sender = SenderInfo {
                ssrc: self.video.ssrc,
                ntp,
                rtp_timestamp: ms as u32 * 90,
                packet_count: self.video.packets,
                octet_count: 0,
            };
            let mut packet = Vec::new();
            let _ = RtcpWriter::compound(&mut packet, Report::Sender(&sender), &[], "server");
            self.sealer.as_mut().unwrap().seal_rtcp(&mut packet).unwrap();
            self.to_viewer.push(packet);
        }
    }

    fn next(&mut self, video: bool, timestamp: u32, marker: bool) -> HeaderFields {
        let stream = if video { &mut self.video } else { &mut self.audio };
        stream.sequence += 1;
        stream.packets += 1;
        let (payload_type, ssrc) = (stream.payload_type, stream.ssrc);
        HeaderFields { payload_type, marker, sequence: stream.sequence as u16, timestamp, ssrc }
    }

    fn send(&mut self, fields: HeaderFields, index: u64, payload: &[u8], retransmission: bool) {
        self.transport_sequence = self.transport_sequence.wrapping_add(1);
        let extensions = Extensions {
            transport_sequence: Some(self.transport_sequence),
            ..Extensions::default()
        };
        let mut packet = Vec::new();
        let header_len = write_header(&mut packet, &fields, &self.ids, &extensions);
        packet.extend_from_slice(payload);
        let plain_len = packet.len();
        packet.resize(plain_len + RTP_GROWTH_MAX, 0);
        let sealer = self.sealer.as_ref().unwrap();
        let sealed =
            sealer.seal_rtp(&mut packet, plain_len, header_len, fields.ssrc, index).unwrap();
        packet.truncate(sealed);
        if fields.ssrc != self.audio.ssrc && (self.lose)(retransmission, self.video.packets) {
            return;
        }
        if fields.ssrc == self.video.ssrc && (self.delay)(self.video.packets) {
            return self.delayed.push((self.now + Duration::from_millis(3), packet));
        }
        self.to_viewer.push(packet);
    }

    /// The server offers again and applies the answer; returns its offer.
    fn offer_again(&mut self, later: LaterOffer) -> Description {
        let offer = self.server.create_later_offer(later).unwrap();
        self.signalling
            .0
            .lock()
            .unwrap()
            .to_viewer
            .push_back(SignalOutput::RemoteOffer(offer.clone()));
        self.poke();
        let answer = self.signalling.0.lock().unwrap().answer.take();
        self.server.accept_answer(&answer.expect("the viewer answers")).unwrap();
        Description::parse(&offer)
    }

    /// Makes the viewer poll its adapter, which it does after any input.
    fn poke(&mut self) {
        let message = crate::participant::Message::Text(String::new());
        self.viewer.handle(self.now, Input::Message { channel: Channel(0), message });
    }

    fn intervals(&self, kind: MediaKind) -> impl Iterator<Item = &TrackInterval> {
        self.observed.iter().filter_map(move |observation| match observation {
            Observation::Interval(interval) if interval.kind == kind => Some(&**interval),
            _ => None,
        })
    }

    fn total(&self, kind: MediaKind) -> TrackCounters {
        let mut total = TrackCounters::default();
        self.intervals(kind).for_each(|interval| total += interval.counters);
        total
    }

    fn phases(&self) -> Vec<Phase> {
        let phase = |observation: &Observation| match observation {
            Observation::Reached(phase, _) => Some(*phase),
            _ => None,
        };
        self.observed.iter().filter_map(phase).collect()
    }

    fn failure(&self) -> FailureReason {
        match &self.ended {
            Some(Outcome::Failed(failure)) => failure.reason.clone(),
            other => panic!("{other:?} after {:?}", self.phases()),
        }
    }
}
