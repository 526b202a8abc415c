//! How a WebRTC participant and a server agree on a session: one adapter a file, behind [`Signalling`].

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{Failure, RefusedDestination};
use throng_scenario::{Secret, TurnHost, TurnServer, TurnUri};
use url::Url;

mod response_deadline;
mod said;
mod sections;

pub mod janus;
pub mod livekit;
mod names;
pub mod ome;
pub mod room;
pub mod whep;
pub mod whip;

#[cfg(test)]
mod tests;

pub use self::names::RunMark;
use crate::participant::{Channel, ChannelError, FetchId, Message, Open, Opening, Request, Response, Why};

/// One server's way to exchange offer, answer and candidates; sans-IO, as the participant that owns it.
///
/// Inputs are those of the participant that concern the signalling channel ([`SIGNALLING`]) and fetches; outputs are
/// drained until `None`.
pub trait Signalling: Send {
    /// Tells it what happened.
    fn handle(&mut self, now: Instant, input: SignalInput<'_>);

    /// The next thing it wants, or `None`.
    fn poll_output(&mut self) -> Option<SignalOutput>;

    /// When it next needs [`SignalInput::Timeout`] (keepalives, answers overdue), and why.
    fn next_timeout(&self) -> Option<(Instant, Why)>;
}

/// The channel that every adapter signals on. Datagram and relay channels of the session have higher numbers.
pub const SIGNALLING: Channel = Channel(0);

/// What an adapter is told.
#[derive(Debug)]
pub enum SignalInput<'a> {
    /// Begin.
    Start,
    /// The signalling channel is open.
    Opened(&'a Opening),
    /// A message came on it.
    Message(&'a Message),
    /// It could not be opened, or closed.
    Closed(ChannelError),
    /// A fetch ended.
    Fetched(FetchId, Result<&'a Response, ChannelError>),
    /// Our offer, asked for with [`SignalOutput::WantOffer`].
    Offer(String),
    /// Our answer to [`SignalOutput::RemoteOffer`].
    Answer(String),
    /// A candidate of ours, as an `a=candidate` value without the `a=`, found after offer or answer went out.
    Candidate(&'a str),
    /// No more candidates of ours.
    CandidatesDone,
    /// The media transport is up (ICE and DTLS).
    Connected,
    /// The deadline of [`Signalling::next_timeout`].
    Timeout,
    /// Say goodbye; [`SignalOutput::Goodbye`] follows when it is said.
    Leave,
}

/// What an adapter wants.
#[derive(Debug)]
pub enum SignalOutput {
    /// Open the signalling channel.
    Open(Open),
    /// Send a message on it.
    Signal(Message),
    /// Close it.
    Close,
    /// Fetch over HTTP.
    Fetch(FetchId, Box<Request>),
    /// The name was resolved and the server reached at this moment by this connection (fetch-based adapters).
    Reached(Opening),
    /// Make an offer to receive; answered by [`SignalInput::Offer`].
    WantOffer,
    /// The server's offer (SDP); answered by [`SignalInput::Answer`]. A later one renegotiates.
    RemoteOffer(String),
    /// The server's answer (SDP) to our offer.
    RemoteAnswer(String),
    /// A candidate of the server, `candidate:…`.
    RemoteCandidate(String),
    /// A TURN server that the server wants us to use, with its credentials.
    Relay(RelayServer),
    /// The server named a place outside what is allowed; nothing was sent there.
    Refused(RefusedDestination, SocketAddr),
    /// A message that breaks the protocol and could be ignored.
    Anomaly(String),
    /// The server ended or refused the session.
    Failed(Failure),
    /// Goodbye is said, or cannot be.
    Goodbye,
}

/// A TURN server (RFC 8656) as a signalling server announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayServer {
    /// `turn:HOST:PORT?transport=tcp`.
    pub url: String,
    /// Long-term credential user name.
    pub username: String,
    /// Long-term credential password.
    pub credential: Secret,
    /// The URL's host is a name, and the one that signalling itself speaks with: its address is known.
    pub is_signalling_host: bool,
}

impl RelayServer {
    /// The TURN server of a scenario, for participants of `target`.
    #[must_use]
    pub fn of_scenario(turn: &TurnServer, password: Secret, target: &Url) -> Self {
        let (url, username) = (turn.uri.clone(), turn.username.clone());
        Self { url, username, credential: password, is_signalling_host: false }.beside(target.host_str())
    }

    /// The same, having compared its host with that of the signalling server.
    #[must_use]
    pub fn beside(mut self, signalling_host: Option<&str>) -> Self {
        let place = TurnUri::parse(&self.url).ok();
        self.is_signalling_host = match (place.map(|place| place.host), signalling_host) {
            (Some(TurnHost::Name(name)), Some(host)) => name.eq_ignore_ascii_case(host),
            _ => false,
        };
        self
    }
}
