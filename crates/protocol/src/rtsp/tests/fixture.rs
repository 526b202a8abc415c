//! A participant whose server is a test: what it sends is taken, and answered by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::{FailureReason, Observation, Outcome, Phase, TrackInterval, Url};
use throng_scenario::{PlaybackScript, RtspTransport};

use crate::participant::{Channel, Input, Open, Opening, Output, Participant, StreamPeer};
use crate::rtsp::{Config, Credentials, Viewer};
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

pub(super) const SERVER: &str = "127.0.0.1:8554";
pub(super) const SDP: &str = "v=0\r\ns=x\r\na=control:*\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:stream=0\r\n";
pub(super) const RECORDING: &str = "v=0\r\na=range:npt=0-20\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:stream=0\r\n";

/// A second track, of audio.
pub(super) const AUDIO: &str = "m=audio 0 RTP/AVP 0\r\na=control:stream=1\r\n";
/// As MediaMTX describes a path whose media it encrypts.
pub(super) const SECURE: &str = "v=0\r\nm=video 0 RTP/SAVP 96\r\na=key-mgmt:mikey AQAAA\r\na=rtpmap:96 H264/90000\r\na=control:stream=0\r\n";

/// A participant, and what it has sent and reported.
pub(super) struct Fixture {
    participant: Box<dyn Participant>,
    pub(super) now: Instant,
    pub(super) opened: Vec<(Channel, Open)>,
    /// Requests, without those that were taken.
    pub(super) requests: Vec<String>,
    pub(super) datagrams: Vec<(Channel, SocketAddr, Vec<u8>)>,
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) observed: Vec<Observation>,
    pub(super) ended: Option<Outcome>,
}

pub(super) fn options(now: Instant) -> ParticipantOptions {
    ParticipantOptions {
        may_reach: Arc::new(|_, to| to.ip().is_loopback()),
        ..ParticipantOptions::for_tests(now)
    }
}

pub(super) fn config(transport: RtspTransport, credentials: Option<Credentials>) -> Config {
    Config { url: Url::parse("rtsp://127.0.0.1:8554/cam").unwrap(), credentials, transport }
}

impl Fixture {
    pub(super) fn of(transport: RtspTransport, credentials: Option<Credentials>) -> Self {
        let script = PlaybackScript::default();
        Self::with(|now| {
            Box::new(Viewer::with_playback(config(transport, credentials), script, options(now)))
        })
    }

    /// A participant that `make` makes, connected.
    pub(super) fn with(make: impl FnOnce(Instant) -> Box<dyn Participant>) -> Self {
        let now = Instant::now();
        let mut fixture = Self {
            participant: make(now),
            now,
            opened: Vec::new(),
            requests: Vec::new(),
            datagrams: Vec::new(),
            frames: Vec::new(),
            observed: Vec::new(),
            ended: None,
        };
        fixture.input(Input::Start { intended_at: now });
        fixture.connected();
        fixture
    }

    pub(super) fn new(transport: RtspTransport) -> Self {
        Self::of(transport, None)
    }

    /// A viewer of a URL with `rtsps:`.
    pub(super) fn over_tls(transport: RtspTransport) -> Self {
        let url = Url::parse("rtsps://127.0.0.1:8554/cam").unwrap();
        let config = Config { url, credentials: None, transport };
        Self::with(|now| Box::new(Viewer::new(config, options(now))))
    }

    pub(super) fn connected(&mut self) {
        let Some((SIGNALLING, Open::Stream { to: StreamPeer::Host { .. }, .. })) =
            self.opened.pop()
        else {
            panic!("no connection is opened")
        };
        let opening = Opening { remote: SERVER.parse().ok(), ..Opening::default() };
        self.input(Input::Opened { channel: SIGNALLING, opening });
    }

    pub(super) fn input(&mut self, input: Input<'_>) {
        self.participant.handle(self.now, input);
        self.drain();
    }

    pub(super) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until && self.ended.is_none() {
            self.now = (self.now + Duration::from_millis(100)).min(until);
            self.input(Input::Timeout);
        }
    }

    pub(super) fn drain(&mut self) {
        loop {
            match self.participant.poll_output(self.now) {
                Output::Open(channel, open) => self.opened.push((channel, open)),
                Output::Send(SIGNALLING, sent) if sent.bytes.starts_with(b"$") => {
                    self.frames.push(sent.bytes);
                }
                Output::Send(SIGNALLING, sent) => {
                    self.requests.push(String::from_utf8(sent.bytes).unwrap());
                }
                Output::Send(channel, sent) => self.datagrams.push((channel, sent.to, sent.bytes)),
                Output::Observed(observation) => self.observed.push(observation),
                Output::Ended(outcome) => self.ended = Some(outcome),
                Output::Timeout(..) => return,
                Output::Close(_)
                | Output::Signal(..)
                | Output::Fetch(..)
                | Output::Download(..)
                | Output::Demand(..)
                | Output::Cancel(_) => {}
            }
            if self.ended.is_some() {
                return;
            }
        }
    }

    /// The next request's method and its `CSeq`.
    #[track_caller]
    pub(super) fn request(&mut self) -> (String, String) {
        assert!(!self.requests.is_empty(), "no request; ended: {:?}", self.ended);
        let text = self.requests.remove(0);
        let cseq = text.lines().find_map(|line| line.strip_prefix("CSeq: ")).unwrap().to_owned();
        (text, cseq)
    }

    pub(super) fn receives(&mut self, bytes: &[u8]) {
        self.input(Input::Bytes { channel: SIGNALLING, bytes });
    }

    /// Answers the next request, which must be `method`.
    #[track_caller]
    pub(super) fn answers(
        &mut self,
        method: &str,
        status: &str,
        headers: &str,
        body: &str,
    ) -> String {
        let (text, cseq) = self.request();
        assert!(text.starts_with(method), "{text}");
        let length = body.len();
        let answer = format!(
            "RTSP/1.0 {status}\r\nCSeq: {cseq}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.receives(answer.as_bytes());
        text
    }

    #[track_caller]
    pub(super) fn described(&mut self, sdp: &str) {
        self.answers("OPTIONS", "200 OK", "Public: DESCRIBE, GET_PARAMETER\r\n", "");
        self.answers("DESCRIBE", "200 OK", "Content-Base: rtsp://127.0.0.1:8554/cam/\r\n", sdp);
    }

    /// Opens the ports that were asked for.
    pub(super) fn ports(&mut self, first: u16) {
        let Some((rtp, Open::RtpPair { rtcp, .. })) = self.opened.pop() else {
            panic!("no ports are opened")
        };
        for (channel, port) in [(rtp, first), (rtcp, first + 1)] {
            let local = Some(SocketAddr::from(([127, 0, 0, 1], port)));
            let opening = Opening { local, ..Opening::default() };
            self.input(Input::Opened { channel, opening });
        }
    }

    /// A viewer that plays over the RTSP connection.
    #[track_caller]
    pub(super) fn playing(sdp: &str) -> Self {
        let mut fixture = Self::new(RtspTransport::Tcp);
        fixture.described(sdp);
        fixture.answers(
            "SETUP",
            "200 OK",
            "Session: 77;timeout=20\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
            "",
        );
        fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
        fixture
    }

    /// A viewer of `sdp` by `script` that was set up over `transport`, before PLAY is answered.
    #[track_caller]
    pub(super) fn set_up(transport: RtspTransport, script: PlaybackScript, sdp: &str) -> Self {
        let mut fixture = Self::with(|now| {
            Box::new(Viewer::with_playback(config(transport, None), script, options(now)))
        });
        fixture.described(sdp);
        fixture.sets_up(transport, sdp);
        fixture
    }

    /// Each track of `sdp` is set up over `transport`.
    #[track_caller]
    pub(super) fn sets_up(&mut self, transport: RtspTransport, sdp: &str) {
        for at in 0..sdp.matches("\nm=").count() as u16 {
            let granted = if transport == RtspTransport::Tcp {
                format!("RTP/AVP/TCP;unicast;interleaved={}-{}", 2 * at, 2 * at + 1)
            } else {
                let (client, server) = (50_000 + 2 * at, 6_000 + 2 * at);
                if !self.opened.is_empty() {
                    self.ports(client);
                }
                let client = format!("client_port={client}-{}", client + 1);
                format!("RTP/AVP;unicast;{client};server_port={server}-{}", server + 1)
            };
            let headers = format!("Session: 77;timeout=200\r\nTransport: {granted}\r\n");
            self.answers("SETUP", "200 OK", &headers, "");
        }
    }

    /// What an interleaved frame has arrives, over `transport`.
    pub(super) fn arrives(&mut self, transport: RtspTransport, frame: &[u8]) {
        if transport == RtspTransport::Tcp {
            return self.receives(frame);
        }
        let (head, packet) = frame.split_at(4);
        self.input(Input::Datagram {
            channel: Channel(u16::from(head[1]) + 1),
            source: "127.0.0.1:6000".parse().unwrap(),
            local: None,
            arrived_at: self.now,
            bytes: &mut packet.to_vec(),
        });
    }

    pub(super) fn anomalies(&self) -> Vec<&str> {
        let details = self.observed.iter().filter_map(|observation| match observation {
            Observation::ProtocolAnomaly { detail, .. } => Some(detail.as_str()),
            _ => None,
        });
        details.collect()
    }

    /// The intervals of received tracks so far.
    pub(super) fn intervals(&self) -> Vec<&TrackInterval> {
        let intervals = self.observed.iter().filter_map(|observation| match observation {
            Observation::Interval(interval) => Some(&**interval),
            _ => None,
        });
        intervals.collect()
    }

    #[track_caller]
    pub(super) fn failed(&self) -> (FailureReason, &str) {
        let Some(Outcome::Failed(failure)) = &self.ended else { panic!("{:?}", self.ended) };
        (failure.reason.clone(), &failure.detail)
    }

    pub(super) fn has_reached(&self, phase: Phase) -> bool {
        self.observed
            .iter()
            .any(|observation| matches!(observation, Observation::Reached(it, _) if *it == phase))
    }
}

/// An interleaved frame with a video packet: a whole IDR picture.
pub(super) fn frame(channel: u8, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 0x80 | 96];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(u32::from(sequence) * 3_000).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 9, 0x65, 0x88, 1, 2]);
    let mut frame = vec![b'$', channel];
    frame.extend_from_slice(&(packet.len() as u16).to_be_bytes());
    frame.extend_from_slice(&packet);
    frame
}

/// An interleaved frame with RTCP of a source that has ended.
pub(super) fn bye(channel: u8, source: u8) -> Vec<u8> {
    let report = [0x80, 201, 0, 1, 0, 0, 0, source];
    [&[b'$', channel, 0, 16][..], &report, &[0x81, 203, 0, 1, 0, 0, 0, source]].concat()
}

/// An interleaved frame with 20 ms of audio, of this payload type.
pub(super) fn audio(channel: u8, payload_type: u8, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, payload_type];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(u32::from(sequence) * 160).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 7]);
    packet.extend_from_slice(&[0x55; 160]);
    let mut frame = vec![b'$', channel];
    frame.extend_from_slice(&(packet.len() as u16).to_be_bytes());
    frame.extend_from_slice(&packet);
    frame
}
