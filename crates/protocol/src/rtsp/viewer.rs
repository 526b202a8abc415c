//! The RTSP viewer: a participant that opens the connection, sets the tracks up, plays and leaves.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use throng_observation::{
    Failure, FailureReason, MediaPath, Observation, Outcome, Phase, RefusedDestination,
};
use throng_scenario::RtspTransport;
use url::Url;

use super::client::{Answer, Client};
use super::credentials::Credentials;
use super::description::Description;
use super::framing::{FRAME_HEADER_BYTES, Framing, Piece};
use super::receiver::Receiver;
use super::transport::{TrackTransport, rtcp_channel, rtp_channel};
use crate::participant::{Channel, ChannelError, Input, Open, Opening, Output, Participant, StreamPeer, Why};
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

/// Longer than any run.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Silence after which a recording that has reached its length counts as ended …
const END_PATIENCE: Duration = Duration::from_secs(1);
/// … and one whose end the server has announced: media may arrive after RTCP BYE, on another socket.
const BYE_PATIENCE: Duration = Duration::from_millis(200);
/// UDP and IP header, bytes.
const UDP_V4_BYTES: u32 = 28;
const UDP_V6_BYTES: u32 = 48;

/// What an RTSP viewer plays, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The presentation: `rtsp:` or `rtsps:`, without user info.
    pub url: Url,
    /// User name and password.
    pub credentials: Option<Credentials>,
    /// The transport of RTP.
    pub transport: RtspTransport,
}

/// A participant that plays one RTSP presentation.
pub struct Viewer {
    pub(super) config: Config,
    pub(super) options: ParticipantOptions,
    pub(super) client: Client,
    framing: Framing,
    /// The server's address, once connected.
    pub(super) server: Option<SocketAddr>,
    pub(super) description: Description,
    pub(super) receiver: Option<Receiver>,
    pub(super) tracks: Vec<TrackTransport>,
    pub(super) is_interleaved: bool,
    state: State,
    pub(super) started_at: Instant,
    /// When the present playback of a recording began.
    plays_since: Option<Instant>,
    pub(super) outputs: VecDeque<Output>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// The connection is being opened; so many have been opened before.
    Connecting,
    /// Requests up to PLAY.
    Joining,
    /// PLAY was answered.
    Playing,
    /// A recording has ended; it is played again once PLAY is answered.
    Restarting,
    Leaving {
        by: Instant,
        outcome: Outcome,
    },
    Over,
}

impl Viewer {
    /// A viewer that plays what `config` names.
    #[must_use]
    pub fn new(config: Config, options: ParticipantOptions) -> Self {
        let client = Client::new(config.url.clone(), config.credentials.clone(), options.timeouts.signalling);
        Self {
            is_interleaved: config.transport == RtspTransport::Tcp,
            started_at: options.clock.at,
            config,
            options,
            client,
            framing: Framing::default(),
            server: None,
            description: Description::default(),
            receiver: None,
            tracks: Vec::new(),
            state: State::Idle,
            plays_since: None,
            outputs: VecDeque::new(),
        }
    }

    pub(super) fn observe(&mut self, observation: Observation) {
        self.outputs.push_back(Output::Observed(observation));
    }

    fn connect(&mut self, now: Instant) {
        self.state = State::Connecting;
        self.framing = Framing::default();
        let url = self.config.url.clone();
        let is_tls = url.scheme() == "rtsps";
        let host = url.host_str().unwrap_or_default().to_owned();
        let port = url.port().unwrap_or(if is_tls { 322 } else { 554 });
        // The guard of the driver checks names by what they resolve to; addresses are checked here, to report them.
        if let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>()
            && !(self.options.may_reach)(ip)
        {
            let place = SocketAddr::new(ip, port);
            self.observe(Observation::Refused(RefusedDestination::Redirect, place));
            return self.fail(
                now,
                Failure::new(FailureReason::NotAllowed, format!("{place} is not an allowed target")),
            );
        }
        let tls = is_tls.then(|| host.clone());
        let open = Open::Stream { to: StreamPeer::Host { host, port }, tls };
        self.outputs.push_back(Output::Open(SIGNALLING, open));
    }

    fn connected(&mut self, now: Instant, opening: &Opening) {
        self.server = opening.remote;
        self.outputs.extend(opening.phases().map(Output::Observed));
        self.state = State::Joining;
        self.client.options(now);
    }

    fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        let mut framing = std::mem::take(&mut self.framing);
        let mut messages = Vec::new();
        let (mut skipped, mut frames) = (0, Frames { viewer: self, now });
        let result = framing.feed(bytes, |piece| match piece {
            Piece::Message(message) => messages.push(message),
            Piece::Frame { channel, packet } => frames.packet(channel, packet),
            Piece::Skipped(count) => skipped += count,
        });
        self.framing = framing;
        if skipped > 0 {
            let detail = format!("{skipped} bytes that are neither a message nor an interleaved frame");
            self.observe(Observation::ProtocolAnomaly { place: "rtsp", detail });
        }
        for message in messages {
            if matches!(self.state, State::Over) {
                return;
            }
            match self.client.message(now, *message) {
                Ok(answer) => self.answered(now, answer),
                Err(failure) => self.fail(now, failure),
            }
        }
        if let Err(error) = result {
            self.fail(now, Failure::new(FailureReason::Protocol, error.to_string()));
        }
    }

    fn answered(&mut self, now: Instant, answer: Answer) {
        match answer {
            Answer::Ready => self.client.describe(now),
            Answer::Described(description) => self.described(now, description),
            Answer::SetUp(at, granted) => self.was_set_up(now, at, granted),
            Answer::TransportRefused => self.transport_refused(now),
            Answer::Plays => self.plays(now),
            Answer::PlayRefused(status) => {
                let detail = format!(
                    "the recording could not be played again ({}); it is set up anew",
                    u16::from(status)
                );
                self.observe(Observation::ProtocolAnomaly { place: "rtsp", detail });
                self.set_up_again(now);
            }
            Answer::Moved(url) => self.moved(now, url),
            Answer::Gone => self.gone(now),
            Answer::Nothing => {}
        }
    }

    fn plays(&mut self, now: Instant) {
        self.plays_since = Some(now);
        match self.state {
            State::Restarting => {
                if let Some(receiver) = &mut self.receiver {
                    receiver.resume(now);
                }
            }
            _ => {
                let path = match (self.is_interleaved, self.config.url.scheme()) {
                    (false, _) => MediaPath::RtpUdp,
                    (true, "rtsps") => MediaPath::RtpTls,
                    (true, _) => MediaPath::RtpTcp,
                };
                self.observe(Observation::Path(path));
                self.observe(Observation::Reached(Phase::Playing, now));
            }
        }
        self.state = State::Playing;
    }

    /// The recording has ended: it is played again from its beginning, so that the load stays.
    fn restart(&mut self, now: Instant) {
        if let Some(receiver) = &mut self.receiver {
            receiver.pause(now);
        }
        self.state = State::Restarting;
        self.plays_since = None;
        self.client.play(now);
    }

    fn set_up_again(&mut self, now: Instant) {
        self.state = State::Restarting;
        if !self.client.tear_down(now) {
            self.gone(now);
        }
    }

    fn gone(&mut self, now: Instant) {
        if matches!(self.state, State::Restarting) {
            self.client.forget_session();
            return self.prepare(now, 0);
        }
        self.over();
    }

    fn moved(&mut self, now: Instant, mut url: Url) {
        // Credentials go to no other host than the one that they were given for.
        let is_same_host = url.host_str() == self.config.url.host_str();
        let credentials = self.config.credentials.clone().filter(|_| is_same_host);
        let _ = url.set_username("");
        let _ = url.set_password(None);
        self.outputs.push_back(Output::Close(SIGNALLING));
        self.close_ports();
        self.client.moved_to(url.clone(), credentials);
        self.config.url = url;
        self.connect(now);
    }

    fn datagram(&mut self, channel: Channel, source: SocketAddr, arrived_at: Instant, bytes: &[u8]) {
        let at = usize::from(channel.0.saturating_sub(1) / 2);
        let (Some(receiver), Some(track)) = (&mut self.receiver, self.tracks.get(at)) else { return };
        // Packets of other hosts are not the server's.
        let expected = track.peers.map(|(rtp, _)| rtp.ip()).or_else(|| self.server.map(|server| server.ip()));
        if expected.is_some_and(|ip| ip.to_canonical() != source.ip().to_canonical()) {
            return;
        }
        if channel == rtp_channel(at) {
            let overhead_bytes = if source.is_ipv4() { UDP_V4_BYTES } else { UDP_V6_BYTES };
            receiver.rtp(at, arrived_at, overhead_bytes, bytes);
        } else {
            receiver.rtcp(at, arrived_at, bytes);
        }
    }

    fn leave(&mut self, now: Instant) {
        let outcome = match &self.state {
            State::Leaving { .. } | State::Over => return,
            State::Playing | State::Restarting => Outcome::Completed,
            _ => Outcome::Failed(Failure::new(FailureReason::NotStarted, "left before it was connected")),
        };
        self.part(now, outcome);
    }

    pub(super) fn fail(&mut self, now: Instant, failure: Failure) {
        match self.state {
            State::Leaving { .. } => self.over(),
            State::Over => {}
            _ => self.part(now, Outcome::Failed(failure)),
        }
    }

    /// Says goodbye on RTCP and RTSP.
    fn part(&mut self, now: Instant, outcome: Outcome) {
        if let Some(receiver) = &mut self.receiver {
            receiver.finish(now);
            let goodbye = receiver.goodbye();
            for at in 0..self.tracks.len() {
                self.send_rtcp(at, goodbye.clone());
            }
        }
        self.take_observed();
        self.state = State::Leaving { by: now + self.options.timeouts.goodbye, outcome };
        if !self.client.tear_down(now) {
            self.over();
        }
    }

    /// Sends an RTCP packet of track `at`.
    fn send_rtcp(&mut self, at: usize, packet: Vec<u8>) {
        let Some(track) = self.tracks.get(at) else { return };
        if !self.is_interleaved {
            if let Some((_, rtcp)) = track.peers {
                self.send(rtcp_channel(at), rtcp, packet);
            }
            return;
        }
        let (Some((_, channel)), Some(server), Ok(length)) =
            (track.granted.channels, self.server, u16::try_from(packet.len()))
        else {
            return;
        };
        let [high, low] = length.to_be_bytes();
        let mut frame = vec![b'$', channel, high, low];
        frame.extend_from_slice(&packet);
        self.send(SIGNALLING, server, frame);
    }

    /// Moves what the dialogue sends and notices to the outputs.
    fn take_requests(&mut self) {
        while let Some(bytes) = self.client.poll_send() {
            if let Some(server) = self.server {
                self.send(SIGNALLING, server, bytes);
            }
        }
        for detail in self.client.take_anomalies() {
            self.observe(Observation::ProtocolAnomaly { place: "rtsp", detail });
        }
    }

    fn over(&mut self) {
        self.take_requests();
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => {}
            State::Leaving { outcome, .. } => self.outputs.push_back(Output::Ended(outcome)),
            _ => {
                let failure = Failure::new(FailureReason::SignallingClosed, "the session ended by itself");
                self.outputs.push_back(Output::Ended(Outcome::Failed(failure)));
            }
        }
    }

    fn closed(&mut self, now: Instant, channel: Channel, why: ChannelError) {
        if channel != SIGNALLING {
            return self.fail(now, why.into());
        }
        match self.state {
            State::Idle | State::Over => {}
            State::Connecting => self.fail(now, why.into()),
            State::Leaving { .. } => self.over(),
            _ => {
                let mut failure = why.after_opening();
                if self.framing.is_in_piece() {
                    failure.detail += ", in the middle of a message or frame";
                }
                self.client.forget_session();
                self.fail(now, failure);
            }
        }
    }

    fn take_observed(&mut self) {
        if let Some(receiver) = self.receiver.as_mut().filter(|receiver| receiver.has_observed()) {
            self.outputs.extend(receiver.take_observed().map(Output::Observed));
        }
    }

    fn tick(&mut self, now: Instant) {
        if let Err(failure) = self.client.timeout(now) {
            self.client.forget_session();
            self.fail(now, failure);
        }
        if let State::Leaving { by, outcome } = &self.state
            && now >= *by
        {
            if *outcome == Outcome::Completed {
                self.observe(Observation::LeaveUnanswered);
            }
            return self.over();
        }
        if matches!(self.state, State::Playing | State::Restarting | State::Joining)
            && let Some(receiver) = &mut self.receiver
        {
            receiver.timeout(now);
            while let Some((at, report)) = self.receiver.as_mut().and_then(|r| r.poll_report(now)) {
                if matches!(self.state, State::Playing) {
                    self.send_rtcp(at, report);
                }
            }
        }
        if matches!(self.state, State::Playing) {
            self.check_media(now);
        }
    }

    /// Whether the recording has ended, or media is missing.
    fn check_media(&mut self, now: Instant) {
        let (Some(receiver), Some(plays_since)) = (&self.receiver, self.plays_since) else { return };
        if self.end_at().is_some_and(|at| now >= at) {
            return self.restart(now);
        }
        let timeouts = self.options.timeouts;
        let Some(last) = receiver.last_media_at() else {
            if now >= plays_since + timeouts.first_media {
                let hint = if self.is_interleaved {
                    ""
                } else {
                    "; a firewall may drop UDP: target.rtsp_transport = \"tcp\""
                };
                let noticed = receiver.last_anomaly().map(|last| format!(" ({last})")).unwrap_or_default();
                let detail = format!("PLAY was answered, and no media came{noticed}{hint}");
                self.fail(now, Failure::new(FailureReason::NoMedia, detail));
            }
            return;
        };
        if now >= last + timeouts.silence {
            let detail = format!("no media for {:.0} s", timeouts.silence.as_secs_f64());
            self.fail(now, Failure::new(FailureReason::MediaLost, detail));
        }
    }

    /// When a recording that fell silent counts as ended.
    fn end_at(&self) -> Option<Instant> {
        let receiver = self.receiver.as_ref()?;
        let last = receiver.last_media_at()?;
        if receiver.has_ended() {
            return Some(last + BYE_PATIENCE);
        }
        Some((self.plays_since? + self.description.duration?).max(last) + END_PATIENCE)
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let mut all = vec![];
        all.extend(self.client.next_timeout());
        match &self.state {
            State::Leaving { by, .. } => all.push((*by, "goodbye overdue")),
            State::Playing => {
                let timeouts = self.options.timeouts;
                let last = self.receiver.as_ref().and_then(Receiver::last_media_at);
                all.extend(last.map(|last| (last + timeouts.silence, "media overdue")));
                all.extend(
                    self.plays_since
                        .map(|at| (at + timeouts.first_media, "first media overdue"))
                        .filter(|_| last.is_none()),
                );
                all.extend(self.end_at().map(|at| (at, "end of the recording")));
            }
            _ => {}
        }
        if matches!(self.state, State::Playing | State::Restarting | State::Joining) {
            all.extend(
                self.receiver.as_ref().map(|receiver| (receiver.next_timeout(), "meters and reports")),
            );
        }
        all.into_iter().min_by_key(|(at, _)| *at).unwrap_or((self.options.clock.at + NEVER, "nothing"))
    }
}

/// Delivers interleaved frames.
struct Frames<'a> {
    viewer: &'a mut Viewer,
    now: Instant,
}

impl Frames<'_> {
    fn packet(&mut self, channel: u8, packet: &[u8]) {
        let Viewer { tracks, receiver: Some(receiver), .. } = &mut *self.viewer else { return };
        let channels = tracks.iter().map(|track| track.granted.channels.unwrap_or((u8::MAX, u8::MAX)));
        for (at, (rtp, rtcp)) in channels.enumerate() {
            if channel == rtp {
                return receiver.rtp(at, self.now, FRAME_HEADER_BYTES as u32, packet);
            } else if channel == rtcp {
                return receiver.rtcp(at, self.now, packet);
            }
        }
    }
}

impl Participant for Viewer {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if matches!(self.state, State::Over) {
            return;
        }
        match input {
            Input::Start { .. } => {
                self.started_at = now;
                self.observe(Observation::Reached(Phase::Started, now));
                self.connect(now);
            }
            Input::Opened { channel: SIGNALLING, opening } => self.connected(now, &opening),
            Input::Opened { channel, opening } => self.ports_opened(now, channel, &opening),
            Input::Bytes { channel: SIGNALLING, bytes } => self.bytes(now, bytes),
            Input::Datagram { channel, source, arrived_at, bytes, .. } => {
                self.datagram(channel, source, arrived_at, bytes);
            }
            Input::Closed { channel, why } => self.closed(now, channel, why),
            Input::Leave { .. } => self.leave(now),
            // Due work is done when the outputs are drained.
            Input::Timeout => {}
            Input::Bytes { .. } | Input::Message { .. } | Input::Fetched { .. } | Input::Download { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if self.outputs.is_empty() && !matches!(self.state, State::Over) {
            self.tick(now);
            self.take_observed();
        }
        if !matches!(self.state, State::Over) {
            self.take_requests();
        }
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let (at, why) = self.next_deadline();
        // A deadline that has passed without any work would make the driver spin.
        Output::Timeout(at.max(now + Duration::from_millis(1)), why)
    }

    fn prefetch(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::prefetch)
    }
}
