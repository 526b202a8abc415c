//! What viewers and publishers have in common: the connection, the dialogue, and the tracks with
//! their transports.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use rtsp_types::Message;
use throng_observation::{
    Detail, Failure, FailureReason, MediaPath, Observation, Outcome, RefusedDestination, Url,
};
use throng_scenario::{IpProtocol, RtspTransport};

use super::client::Client;
use super::credentials::Credentials;
use super::framing::{Framing, Piece};
use super::transport::{Mode, Track, rtcp_channel, rtp_channel};
use crate::life::Life;
use crate::participant::{Channel, ChannelError, Open, Opening, Output, StreamPeer, Transmit};
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

/// What an RTSP participant plays or publishes, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The presentation: `rtsp:` or `rtsps:`, without user info.
    pub url: Url,
    /// User name and password.
    pub credentials: Option<Credentials>,
    /// The transport of RTP.
    pub transport: RtspTransport,
}

/// The session of a participant.
pub(super) struct Session {
    pub(super) config: Config,
    pub(super) options: ParticipantOptions,
    pub(super) client: Client,
    pub(super) mode: Mode,
    pub(super) life: Life<Stage>,
    framing: Framing,
    /// The server's address, once connected.
    pub(super) server: Option<SocketAddr>,
    pub(super) tracks: Vec<Track>,
    pub(super) is_interleaved: bool,
    pub(super) started_at: Instant,
}

/// The stage of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The connection is being opened.
    Connecting,
    /// Requests up to PLAY or RECORD.
    Joining,
    /// PLAY or RECORD was answered.
    Active,
}

impl Session {
    pub(super) fn new(config: Config, mode: Mode, options: ParticipantOptions) -> Self {
        let client = Client::new(
            config.url.clone(),
            config.credentials.clone(),
            options.timeouts.signalling,
        );
        Self {
            is_interleaved: config.transport == RtspTransport::Tcp,
            started_at: options.clock.at,
            config,
            options,
            client,
            mode,
            life: Life::new(),
            framing: Framing::default(),
            server: None,
            tracks: Vec::new(),
        }
    }

    pub(super) fn anomaly(&mut self, place: &'static str, detail: impl Into<Detail>) {
        self.life.anomaly(place, detail);
    }

    /// The participant joins.
    pub(super) fn start(&mut self, now: Instant) {
        self.started_at = now;
        self.life.start(now, Stage::Connecting);
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// The URL names an address that is not allowed.
    pub(super) fn connect(&mut self) -> Result<(), Failure> {
        self.life.enter(Stage::Connecting);
        self.framing = Framing::default();
        let url = self.config.url.clone();
        let (is_tls, host, port) = origin(&url);
        let host = host.to_owned();
        // The guard of the driver checks names by what they resolve to; addresses are checked here,
        // to report them.
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if let Ok(place) = literal.map(|ip| SocketAddr::new(ip, port))
            && !(self.options.may_reach)(IpProtocol::Tcp, place)
        {
            self.life.observe(Observation::Refused(RefusedDestination::Redirect, place));
            let detail = format!("{place} is not an allowed target");
            return Err(Failure::new(FailureReason::NotAllowed, detail));
        }
        let tls = is_tls.then(|| host.clone());
        let open = Open::Stream { to: StreamPeer::Host { host, port }, tls };
        self.life.push(Output::Open(SIGNALLING, open));
        Ok(())
    }

    pub(super) fn connected(&mut self, now: Instant, opening: &Opening) {
        self.server = opening.remote;
        self.life.extend(opening.phases().map(Output::Observed));
        self.life.enter(Stage::Joining);
        self.client.options(now);
    }

    /// Continues at another URL.
    ///
    /// # Errors
    /// As [`Self::connect`], or it leads from TLS to clear text.
    pub(super) fn moved(&mut self, mut url: Url) -> Result<(), Failure> {
        if self.config.url.scheme() == "rtsps" && url.scheme() != "rtsps" {
            let detail = format!("the server refers from TLS to clear text: {url}");
            return Err(Failure::new(FailureReason::MixedContent, detail));
        }
        // Credentials go to no other origin than the one that they were given for, nor back from
        // there.
        if origin(&url) != origin(&self.config.url) {
            self.config.credentials = None;
        }
        url.remove_user();
        self.life.push(Output::Close(SIGNALLING));
        self.close_ports();
        // Who leaves goes to no other place, where it would begin anew.
        if self.life.is_leaving() {
            self.over();
            return Ok(());
        }
        self.client.moved_to(url.clone(), self.config.credentials.clone());
        self.config.url = url;
        self.connect()
    }

    /// Cuts what arrived on the connection. Packets of tracks are passed to `packet`, with the
    /// track's index and whether they are RTCP; messages are returned, and why the stream cannot be
    /// continued.
    pub(super) fn cut(
        &mut self,
        bytes: &[u8],
        mut packet: impl FnMut(usize, bool, &[u8]),
    ) -> (Vec<Message<Vec<u8>>>, Option<Failure>) {
        let (mut messages, mut skipped) = (Vec::new(), 0);
        let Self { framing, tracks, .. } = self;
        let result = framing.feed(bytes, |piece| match piece {
            Piece::Message(message) => messages.push(*message),
            Piece::Frame { channel, packet: bytes } => {
                let channels =
                    tracks.iter().map(|track| track.granted.channels.unwrap_or((u8::MAX, u8::MAX)));
                let of =
                    channels.enumerate().find(|(_, (rtp, rtcp))| [*rtp, *rtcp].contains(&channel));
                if let Some((at, (rtp, _))) = of {
                    packet(at, channel != rtp, bytes);
                }
            }
            Piece::Skipped(count) => skipped += count,
        });
        if skipped > 0 {
            let detail =
                format!("{skipped} bytes that are neither a message nor an interleaved frame");
            self.anomaly("rtsp", detail);
        }
        let failure =
            result.err().map(|error| Failure::new(FailureReason::Protocol, error.to_string()));
        (messages, failure)
    }

    /// The track of a datagram on `channel`, and whether it is RTCP; `None` if it is not the
    /// server's.
    pub(super) fn track_of(&self, channel: Channel, source: SocketAddr) -> Option<(usize, bool)> {
        let at = usize::from(channel.0.saturating_sub(1) / 2);
        let track = self.tracks.get(at)?;
        let expected =
            track.peers.map(|(rtp, _)| rtp.ip()).or_else(|| self.server.map(|server| server.ip()));
        let is_other = expected.is_some_and(|ip| ip.to_canonical() != source.ip().to_canonical());
        (!is_other).then_some((at, channel != rtp_channel(at)))
    }

    /// The path of media.
    pub(super) fn path(&self) -> MediaPath {
        match (self.is_interleaved, self.config.url.scheme()) {
            (false, _) => MediaPath::RtpUdp,
            (true, "rtsps") => MediaPath::RtpTls,
            (true, _) => MediaPath::RtpTcp,
        }
    }

    pub(super) fn send(&mut self, channel: Channel, to: SocketAddr, bytes: Vec<u8>) {
        self.life.push(Output::Send(channel, Transmit { to, from: None, bytes }));
    }

    /// Sends an RTCP packet of track `at`.
    pub(super) fn send_rtcp(&mut self, at: usize, packet: Vec<u8>) {
        let Some(track) = self.tracks.get(at) else { return };
        if !self.is_interleaved {
            if let Some((_, rtcp)) = track.peers {
                self.send(rtcp_channel(at), rtcp, packet);
            }
            return;
        }
        let (Some((_, channel)), Some(server)) = (track.granted.channels, self.server) else {
            return;
        };
        let mut frame = Vec::with_capacity(packet.len() + 4);
        if interleave(&mut frame, channel, &packet) {
            self.send(SIGNALLING, server, frame);
        }
    }

    /// Moves what the dialogue sends and notices to the outputs.
    pub(super) fn take_requests(&mut self) {
        while let Some(bytes) = self.client.poll_send() {
            if let Some(server) = self.server {
                self.send(SIGNALLING, server, bytes);
            }
        }
        for detail in self.client.take_anomalies() {
            self.anomaly("rtsp", detail);
        }
    }

    /// Ends the session on RTSP: TEARDOWN if there is one, and then its end.
    pub(super) fn part(&mut self, now: Instant, outcome: Outcome) {
        let by = now + self.options.timeouts.goodbye;
        if self.life.leave(Some(by), outcome) && !self.client.tear_down(now) {
            self.over();
        }
    }

    /// Ends a session whose TEARDOWN was not answered in time; whether it has.
    pub(super) fn give_up_goodbye(&mut self, now: Instant) -> bool {
        if self.life.is_leaving() {
            self.take_requests();
            self.life.give_up_goodbye(now, |outcome| *outcome == Outcome::Completed);
        }
        self.life.is_over()
    }

    pub(super) fn over(&mut self) {
        self.take_requests();
        self.life.end_with("the session");
    }

    /// The next output, after what the dialogue has to send.
    pub(super) fn next_output(&mut self) -> Option<Output> {
        if !self.life.is_over() {
            self.take_requests();
        }
        self.life.pop()
    }

    pub(super) fn is_active(&self) -> bool {
        self.life.live() == Some(&Stage::Active)
    }

    /// The outcome of a participant that is asked to leave.
    pub(super) fn outcome_of_leaving(&self) -> Outcome {
        if self.is_active() {
            Outcome::Completed
        } else {
            Outcome::not_started("left before it was connected")
        }
    }

    /// A channel was closed: the failure that it means, if it means one.
    pub(super) fn closed(&mut self, channel: Channel, why: ChannelError) -> Option<Failure> {
        if channel != SIGNALLING {
            return Some(why.into());
        }
        match self.life.live().copied() {
            // There is nothing that could answer the goodbye.
            None if self.life.is_leaving() => {
                self.over();
                None
            }
            None => None,
            Some(Stage::Connecting) => Some(why.into()),
            Some(Stage::Joining | Stage::Active) => {
                let mut failure = why.after_opening();
                if self.framing.is_in_piece() {
                    failure.detail += ", in the middle of a message or frame";
                }
                self.client.forget_session();
                Some(failure)
            }
        }
    }
}

/// Appends an interleaved frame (RFC 2326 section 10.12); false if the packet is too long for one.
pub(super) fn interleave(out: &mut Vec<u8>, channel: u8, packet: &[u8]) -> bool {
    let Ok(length) = u16::try_from(packet.len()) else { return false };
    let [high, low] = length.to_be_bytes();
    out.extend_from_slice(&[b'$', channel, high, low]);
    out.extend_from_slice(packet);
    true
}

/// Whether an RTSP URL is one over TLS, its host and its port: its origin, which the URL type knows
/// of no scheme of RTSP.
fn origin(url: &Url) -> (bool, &str, u16) {
    let is_tls = url.scheme() == "rtsps";
    let port = url.port().unwrap_or(if is_tls { 322 } else { 554 });
    (is_tls, url.host_str().unwrap_or_default(), port)
}
