//! A viewer against a server's end in memory: no sockets, time moved by hand, datagrams passed one by one.

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
    FailureReason, MediaKind, Observation, Outcome, Phase, Refused, TrackCounters, TrackInterval,
};

use super::sdp::Description;
use super::session::{LaterOffer, Session, SessionOutput};
use super::srtp::{Opener, RTP_GROWTH_MAX, Sealer};
use super::viewer::{Patience, Viewer, ViewerOptions};
use crate::participant::{Channel, Input, Opening, Output, Participant, Why};
use crate::signalling::{SignalInput, SignalOutput, Signalling};

const SERVER: &str = "10.0.0.1:5000";
const VIEWER: &str = "10.0.0.2:6000";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Passes descriptions between the viewer and the test.
#[derive(Clone, Default)]
struct Desk(Arc<Mutex<DeskState>>);

#[derive(Default)]
struct DeskState {
    to_viewer: VecDeque<SignalOutput>,
    offer: Option<String>,
    answer: Option<String>,
    said_goodbye: bool,
}

impl Signalling for Desk {
    fn handle(&mut self, _: Instant, input: SignalInput<'_>) {
        let mut desk = self.0.lock().unwrap();
        match input {
            SignalInput::Start if desk.to_viewer.is_empty() => {
                desk.to_viewer.push_back(SignalOutput::WantOffer);
            }
            SignalInput::Offer(sdp) => desk.offer = Some(sdp),
            SignalInput::Answer(sdp) => desk.answer = Some(sdp),
            SignalInput::Leave => {
                desk.said_goodbye = true;
                desk.to_viewer.push_back(SignalOutput::Goodbye);
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

/// What the server heard from the viewer.
#[derive(Default)]
struct Heard {
    fractions_lost: Vec<u8>,
    last_sr: Vec<u32>,
    nacked: Vec<u16>,
    plis: usize,
    firs: usize,
    told_arrived: usize,
    told_missing: usize,
    bandwidth_estimates: usize,
    byes: usize,
    reports: usize,
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
    desk: Desk,
    server: Session,
    opener: Option<Opener>,
    sealer: Option<Sealer>,
    ids: ExtensionIds,
    transport_sequence: u16,
    video: Stream,
    audio: Stream,
    heard: Heard,
    observed: Vec<Observation>,
    ended: Option<Outcome>,
    to_viewer: Vec<Vec<u8>>,
    /// Says whether the media packet is lost: (is retransmission, count).
    lose: fn(bool, u32) -> bool,
    /// Says whether the media packet comes 3 ms after those that were sent behind it, by the count of packets.
    delay: fn(u32) -> bool,
    delayed: Vec<(Instant, Vec<u8>)>,
    /// A stream of video that a later offer added.
    more_video: Stream,
    plays: bool,
    answers_media: bool,
    /// What to change in the server's answer.
    mend: fn(String) -> String,
}

impl World {
    fn new() -> Self {
        // Instants before the process began cannot be made everywhere, so time starts later.
        let now = Instant::now() + Duration::from_secs(1);
        let desk = Desk::default();
        let options = ViewerOptions {
            may_reach: Arc::new(|ip| ip.to_string().starts_with("10.")),
            clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
            toward: Some(address(SERVER)),
            seed: 3,
            patience: Patience::default(),
        };
        Self {
            now,
            began: now,
            viewer: Viewer::new(Box::new(desk.clone()), options),
            desk,
            server: Session::server(now).unwrap(),
            opener: None,
            sealer: None,
            ids: ExtensionIds::default(),
            transport_sequence: 65_000,
            video: Stream { sequence: 65_500, rtx_sequence: 9, ..Stream::default() },
            audio: Stream { sequence: 7, ..Stream::default() },
            heard: Heard::default(),
            observed: Vec::new(),
            ended: None,
            to_viewer: Vec::new(),
            lose: |_, _| false,
            delay: |_| false,
            delayed: Vec::new(),
            more_video: Stream::default(),
            plays: true,
            answers_media: true,
            mend: |answer| answer,
        }
    }

    fn start(&mut self) {
        self.server.add_local_candidate(address(SERVER)).unwrap();
        self.viewer.handle(self.now, Input::Start { intended_at: self.now });
    }

    fn answer(&mut self) {
        let Some(offer) = self.desk.0.lock().unwrap().offer.take() else { return };
        let (answer, negotiated) = self.server.accept_offer(&offer).unwrap();
        self.ids = negotiated.answer.extension_ids();
        for section in &negotiated.answer.sections {
            let (stream, codec) = match section.kind.unwrap() {
                MediaKind::Audio => (&mut self.audio, throng_observation::Codec::Opus),
                MediaKind::Video => (&mut self.video, throng_observation::Codec::Vp8),
            };
            let format = section.formats.iter().find(|format| format.codec == codec).unwrap();
            stream.payload_type = format.payload_type;
            let rtx = section.formats.iter().find(|format| format.repeats == Some(stream.payload_type));
            stream.rtx_payload_type = rtx.map_or(0, |format| format.payload_type);
            stream.ssrc = section.ssrcs.first().copied().unwrap_or(1_000);
            stream.rtx_ssrc = section.retransmissions.first().map_or(2_000, |pair| pair.1);
        }
        let answer = (self.mend)(answer);
        self.desk.0.lock().unwrap().to_viewer.push_back(SignalOutput::RemoteAnswer(answer));
        self.poke();
    }

    /// Lets `duration` pass in steps of a millisecond.
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
                let (source, arrived_at) = (address(SERVER), self.now);
                let input = Input::Datagram { channel: Channel(1), source, arrived_at, bytes: &mut bytes };
                self.viewer.handle(self.now, input);
            }
        }
        self.drain_viewer();
    }

    fn drain_viewer(&mut self) {
        for _ in 0..10_000 {
            match self.viewer.poll_output(self.now) {
                Output::Timeout(at, _) => return assert!(at > self.now),
                Output::Open(channel, _) => {
                    let opening = Opening { local: Some(address(VIEWER)), ..Opening::default() };
                    self.viewer.handle(self.now, Input::Opened { channel, opening });
                }
                Output::Send(_, transmit) => self.carry_to_server(transmit.bytes),
                Output::Observed(observation) => self.observed.push(observation),
                Output::Ended(outcome) => self.ended = Some(outcome),
                other => panic!("{other:?}"),
            }
        }
        panic!("the viewer never waits");
    }

    fn carry_to_server(&mut self, mut bytes: Vec<u8>) {
        match classify(&bytes) {
            PacketKind::Stun | PacketKind::Dtls if self.answers_media => {
                let _ = self.server.datagram(self.now, address(VIEWER), address(SERVER), &bytes);
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
        for packet in Compound::new(bytes) {
            match packet {
                Ok(Rtcp::ReceiverReport(report)) => {
                    self.heard.reports += 1;
                    for block in report.reports().filter(|block| block.ssrc == self.video.ssrc) {
                        self.heard.fractions_lost.push(block.fraction_lost);
                        self.heard.last_sr.push(block.last_sr);
                    }
                }
                Ok(Rtcp::Nack(nack)) => repeat.extend(nack.sequences()),
                Ok(Rtcp::PictureLoss(_)) => self.heard.plis += 1,
                Ok(Rtcp::FullIntraRequest(_)) => self.heard.firs += 1,
                Ok(Rtcp::TransportFeedback(feedback)) => {
                    for status in feedback.packets() {
                        let arrived = format!("{status:?}").contains("Some");
                        *if arrived { &mut self.heard.told_arrived } else { &mut self.heard.told_missing } +=
                            1;
                    }
                }
                Ok(Rtcp::Remb(_)) => self.heard.bandwidth_estimates += 1,
                Ok(Rtcp::Bye(_)) => self.heard.byes += 1,
                Ok(_) => {}
                Err(_) => self.heard.bad += 1,
            }
        }
        for sequence in repeat {
            self.heard.nacked.push(sequence);
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

    /// 30 frames of three packets a second, a key frame each second; 50 audio packets; a sender report each second.
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
                self.video.sent.insert(fields.sequence, (timestamp, fields.marker, payload.clone()));
                self.send(fields, self.video.sequence, &payload, false);
            }
        }
        if ms.is_multiple_of(33) && self.more_video.ssrc != 0 {
            let stream = &mut self.more_video;
            stream.sequence += 1;
            stream.packets += 1;
            let (sequence, payload_type, ssrc) = (stream.sequence, stream.payload_type, stream.ssrc);
            let timestamp = (ms / 33 * 2_970) as u32;
            let fields =
                HeaderFields { payload_type, marker: true, sequence: sequence as u16, timestamp, ssrc };
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
        let extensions =
            Extensions { transport_sequence: Some(self.transport_sequence), ..Extensions::default() };
        let mut packet = Vec::new();
        let header_len = write_header(&mut packet, &fields, &self.ids, &extensions);
        packet.extend_from_slice(payload);
        let plain_len = packet.len();
        packet.resize(plain_len + RTP_GROWTH_MAX, 0);
        let sealer = self.sealer.as_ref().unwrap();
        let sealed = sealer.seal_rtp(&mut packet, plain_len, header_len, fields.ssrc, index).unwrap();
        packet.truncate(sealed);
        if fields.ssrc != self.audio.ssrc && (self.lose)(retransmission, self.video.packets) {
            return;
        }
        if fields.ssrc == self.video.ssrc && (self.delay)(self.video.packets) {
            return self.delayed.push((self.now + Duration::from_millis(3), packet));
        }
        self.to_viewer.push(packet);
    }

    /// The server offers again and takes the answer; returns what it offered.
    fn offer_again(&mut self, later: LaterOffer) -> Description {
        let offer = self.server.create_later_offer(later).unwrap();
        self.desk.0.lock().unwrap().to_viewer.push_back(SignalOutput::RemoteOffer(offer.clone()));
        self.poke();
        let answer = self.desk.0.lock().unwrap().answer.take();
        self.server.accept_answer(&answer.expect("the viewer answers")).unwrap();
        Description::parse(&offer)
    }

    /// Has the viewer ask its adapter, which it does when something concerns it.
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

#[test]
fn a_viewer_connects_plays_reports_and_leaves() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(6));
    let expect = [
        Phase::Started,
        Phase::Negotiated,
        Phase::IceConnected,
        Phase::DtlsConnected,
        Phase::FirstPacket,
        Phase::FirstFrame,
    ];
    assert_eq!(world.phases(), expect);
    world.plays = false;
    world.viewer.handle(world.now, Input::Leave);
    world.run(Duration::from_millis(5));
    assert_eq!(world.ended, Some(Outcome::Completed));
    assert!(world.desk.0.lock().unwrap().said_goodbye);
    assert_eq!(world.heard.byes, 1);
    assert_eq!(world.heard.bad, 0);

    let (video, audio) = (world.total(MediaKind::Video), world.total(MediaKind::Audio));
    assert_eq!(video.packets_received, u64::from(world.video.packets), "all of {video:?}");
    assert_eq!(audio.packets_received, u64::from(world.audio.packets));
    assert_eq!((video.packets_lost, video.nack_sent, video.packets_discarded), (0, 0, 0));
    assert!(world.heard.fractions_lost.iter().all(|lost| *lost == 0));
    assert!(
        (4..=12).contains(&world.heard.fractions_lost.len()),
        "{} reports",
        world.heard.fractions_lost.len()
    );
    assert!(world.heard.last_sr.iter().filter(|compact| **compact != 0).count() >= 3, "LSR is filled");
    let sent = (world.video.packets + world.audio.packets) as usize;
    assert!(world.heard.told_arrived > sent * 9 / 10 && world.heard.told_missing == 0, "arrivals are told");
    assert!(video.frames_decodable > 100, "{video:?}");
}

#[test]
fn lost_packets_are_asked_for_and_recovered() {
    let mut world = World::new();
    world.lose = |retransmission, count| !retransmission && count % 20 == 7;
    world.start();
    world.run(Duration::from_secs(6));
    let lost_on_the_way = world.video.packets / 20;
    world.plays = false;
    world.viewer.handle(world.now, Input::Leave);
    world.run(Duration::from_millis(5));
    let video = world.total(MediaKind::Video);
    assert!(video.nack_sent > 0 && video.packets_recovered + 2 >= u64::from(lost_on_the_way), "{video:?}");
    assert!(world.heard.nacked.len() as u64 >= video.packets_recovered);
    assert!(world.heard.told_missing > 0, "transport feedback shows the gaps");
    assert!(video.frames_decodable > 100, "{video:?}");
}

#[test]
fn loss_that_stays_is_reported_and_a_key_frame_is_asked_for() {
    let mut world = World::new();
    world.lose = |retransmission, count| count > 60 && (retransmission || count % 10 == 3);
    world.start();
    world.run(Duration::from_secs(8));
    let mean = world.heard.fractions_lost.iter().map(|lost| f64::from(*lost) / 256.0).sum::<f64>()
        / world.heard.fractions_lost.len() as f64;
    assert!((0.05..0.15).contains(&mean), "a tenth is lost, {mean} is reported");
    assert!(world.heard.plis > 0, "a picture cannot be decoded and no key frame is asked for");
    let video = world.total(MediaKind::Video);
    assert_eq!(video.pli_sent, world.heard.plis as u64);
    assert!(video.packets_lost > 0);
}

#[test]
fn reordered_packets_are_counted_and_neither_lost_nor_late() {
    let mut world = World::new();
    world.delay = |count| count % 10 == 4;
    world.start();
    world.run(Duration::from_secs(5));
    world.plays = false;
    world.run(Duration::from_millis(10));
    world.viewer.handle(world.now, Input::Leave);
    world.run(Duration::from_millis(5));
    let video = world.total(MediaKind::Video);
    assert_eq!(video.packets_received, u64::from(world.video.packets), "{video:?}");
    assert_eq!((video.packets_lost, video.packets_late), (0, 0), "{video:?}");
    // The last of a frame's three packets has none behind it that could overtake it.
    let overtaken = (1..=world.video.packets).filter(|count| count % 10 == 4 && count % 3 != 0).count();
    assert_eq!(video.packets_reordered, overtaken as u64, "{video:?}");
    assert!(video.frames_decodable > 100, "{video:?}");
}

#[test]
fn a_peer_without_transport_feedback_is_told_the_bandwidth() {
    let mut world = World::new();
    world.mend = |answer| answer.replace(" transport-cc", " goog-remb");
    world.start();
    world.run(Duration::from_secs(5));
    assert!(world.heard.bandwidth_estimates >= 3, "{} estimates", world.heard.bandwidth_estimates);
    assert_eq!((world.heard.told_arrived, world.heard.bad), (0, 0));
}

#[test]
fn a_peer_that_knows_no_pli_is_asked_by_fir() {
    let mut world = World::new();
    world.mend = |answer| answer.replace(" nack pli", " nack");
    world.lose = |retransmission, count| count > 60 && (retransmission || count % 10 == 3);
    world.start();
    world.run(Duration::from_secs(8));
    assert!(world.heard.firs > 0 && world.heard.plis == 0 && world.heard.bad == 0, "{} FIR", world.heard.firs);
}

#[test]
fn a_later_offer_adds_a_stream_and_disturbs_no_other() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    let offered = world.offer_again(LaterOffer::MoreVideo);
    let section = offered.sections.last().unwrap();
    world.more_video.payload_type = world.video.payload_type;
    world.more_video.ssrc = *section.ssrcs.first().unwrap();
    world.run(Duration::from_secs(3));
    world.plays = false;
    world.viewer.handle(world.now, Input::Leave);
    world.run(Duration::from_millis(5));
    assert_eq!(world.ended, Some(Outcome::Completed));
    let opened =
        world.observed.iter().filter(|observation| matches!(observation, Observation::TrackOpened { .. }));
    assert_eq!(opened.count(), 3);
    let video = world.total(MediaKind::Video);
    let sent = u64::from(world.video.packets + world.more_video.packets);
    assert_eq!((video.packets_received, video.packets_lost), (sent, 0), "{video:?}");
    assert!(world.more_video.packets > 80);
    assert!(!world.observed.iter().any(|o| matches!(o, Observation::Odd { .. })), "{:?}", world.observed);
}

#[test]
fn an_ice_restart_goes_on_playing() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    let before = world.intervals(MediaKind::Video).count();
    world.offer_again(LaterOffer::IceRestart);
    // Longer than any patience with lost consent or silence.
    world.run(Duration::from_secs(40));
    assert_eq!(world.ended, None);
    assert!(world.intervals(MediaKind::Video).count() >= before + 39);
    let video = world.total(MediaKind::Video);
    assert_eq!((video.packets_lost, video.packets_discarded), (0, 0), "{video:?}");
    assert_eq!(world.heard.bad, 0);
}

#[test]
fn silence_after_connecting_is_no_media() {
    let mut world = World::new();
    world.plays = false;
    world.start();
    world.run(Duration::from_secs(12));
    assert_eq!(world.failure(), FailureReason::NoMedia);
}

#[test]
fn media_that_stops_is_lost() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    world.plays = false;
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::MediaLost);
}

#[test]
fn a_server_without_ears_fails_ice() {
    let mut world = World::new();
    world.answers_media = false;
    world.start();
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::Ice);
}

#[test]
fn no_answer_is_a_signalling_timeout_and_rubbish_is_a_protocol_error() {
    let mut world = World::new();
    world.mend = |_| "v=0\r\nrubbish".to_owned();
    world.start();
    world.run(Duration::from_millis(20));
    assert_eq!(world.failure(), FailureReason::Protocol);

    let mut world = World::new();
    world.viewer.handle(world.now, Input::Start { intended_at: world.now });
    world.drain_viewer();
    world.now += Duration::from_secs(11);
    world.drain_viewer();
    assert_eq!(world.failure(), FailureReason::SignallingTimeout);
}

#[test]
fn candidates_beyond_reach_are_refused_and_never_sent_to() {
    let mut world = World::new();
    world.mend = |answer| answer.replace("10.0.0.1", "172.16.0.1");
    world.start();
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::Ice);
    let refused =
        |observation: &&Observation| matches!(observation, Observation::Refused(Refused::IceCandidate, _));
    assert_eq!(world.observed.iter().filter(refused).count(), 1);
}

#[test]
fn garbage_and_bent_packets_do_not_end_a_session() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(1));
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..5_000 {
        let len = random.usize(0..200);
        let mut bytes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
        if let Some(first) = bytes.first_mut() {
            *first = match round % 4 {
                0 => 0x80 | (*first & 0x3f),
                1 => *first & 3,
                _ => *first,
            };
        }
        // DTLS alerts in the clear are judged by DTLS itself.
        let (source, arrived_at) = (address(SERVER), world.now);
        world.viewer.handle(
            world.now,
            Input::Datagram { channel: Channel(1), source, arrived_at, bytes: &mut bytes },
        );
        if round % 100 == 0 {
            world.run(Duration::from_millis(10));
        }
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.ended, None);
    let oddities =
        world.observed.iter().filter(|observation| matches!(observation, Observation::Odd { .. })).count();
    assert!((1..10).contains(&oddities), "{oddities} oddities: each is told once");
}

#[test]
fn bent_descriptions_fail_with_a_reason_and_without_panic() {
    let mut server = Session::server(Instant::now()).unwrap();
    let mut client = Session::viewer(Instant::now()).unwrap();
    let offer = client.create_offer().unwrap();
    server.add_local_candidate(address(SERVER)).unwrap();
    let (answer, _) = server.accept_offer(&offer).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let (mut agreed, mut refused) = (0, 0);
    for round in 0..400 {
        let source = if round % 2 == 0 { &offer } else { &answer };
        let mut lines: Vec<&str> = source.lines().collect();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..lines.len());
            match random.u8(0..3) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[random.usize(..lines.len())]),
                _ => {
                    let line = lines[at];
                    let cut = (0..line.len()).rev().find(|cut| line.is_char_boundary(*cut)).unwrap_or(0);
                    lines[at] = &line[..random.usize(..=cut)];
                }
            }
        }
        let bent = lines.join("\r\n") + "\r\n";
        let mut session = Session::viewer(Instant::now()).unwrap();
        let result = if round % 2 == 0 {
            session.accept_offer(&bent).map(drop)
        } else {
            session.create_offer().unwrap();
            session.accept_answer(&bent).map(drop)
        };
        match result {
            Ok(()) => agreed += 1,
            Err(error) => {
                assert!(!error.to_string().contains("library failed"), "str0m panicked on:\n{bent}");
                refused += 1;
            }
        }
        let _ = Description::parse(&bent);
    }
    assert!(agreed > 0 && refused > 0, "{agreed} {refused}");
}

#[test]
fn the_offer_names_every_codec_and_feedback() {
    let offer = Description::parse(&Session::viewer(Instant::now()).unwrap().create_offer().unwrap());
    let formats = || offer.sections.iter().flat_map(|section| &section.formats);
    for name in ["H264", "H265", "VP8", "VP9", "AV1", "opus", "PCMU", "PCMA", "rtx"] {
        assert!(formats().any(|format| format.name.eq_ignore_ascii_case(name)), "{name}");
    }
    let video = formats().find(|format| format.name == "VP8").unwrap().feedback;
    assert!(video.nack && video.pli && video.fir && video.transport_cc);
    let ids = offer.extension_ids();
    for extension in [Extension::AbsCaptureTime, Extension::TransportSequence, Extension::Mid] {
        assert!(ids.id(extension).is_some(), "{extension:?}");
    }
}
