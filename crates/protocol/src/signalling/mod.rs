//! How a WebRTC participant negotiates a session with a server: one adapter per file, behind
//! [`Signalling`].

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{Failure, RefusedDestination, Url};
use throng_scenario::{Secret, TurnHost, TurnServer, TurnUri};

mod response_deadline;
mod sections;
mod server_message;

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
use crate::participant::{
    Channel, ChannelError, FetchId, Message, Open, Opening, Request, Response, Why,
};

/// One server's exchange of offer, answer and candidates; sans-IO, like the participant that owns
/// it.
///
/// Inputs are those of the participant that concern the signalling channel ([`SIGNALLING`]) and
/// fetches; outputs are drained until `None`.
pub trait Signalling: Send {
    /// Handles an event.
    fn handle(&mut self, now: Instant, input: SignalInput<'_>);

    /// The next output, or `None`.
    fn poll_output(&mut self) -> Option<SignalOutput>;

    /// When it next needs [`SignalInput::Timeout`] (keepalives, answers overdue), and why.
    fn next_timeout(&self) -> Option<(Instant, Why)>;
}

/// The signalling channel of every adapter. Datagram and relay channels of the session have higher
/// numbers.
pub const SIGNALLING: Channel = Channel(0);

/// An event for an adapter.
#[derive(Debug)]
pub enum SignalInput<'a> {
    /// Begin.
    Start,
    /// The signalling channel is open.
    Opened(&'a Opening),
    /// A message arrived on it.
    Message(&'a Message),
    /// It could not be opened, or was closed.
    Closed(ChannelError),
    /// A fetch ended.
    Fetched(FetchId, Result<&'a Response, ChannelError>),
    /// The local offer, requested with [`SignalOutput::WantOffer`].
    Offer(String),
    /// The local answer to [`SignalOutput::RemoteOffer`].
    Answer(String),
    /// A local candidate, as an `a=candidate` value without the `a=`, found after the offer or
    /// answer was sent.
    Candidate(&'a str),
    /// No more local candidates.
    CandidatesDone,
    /// The media transport is up (ICE and DTLS).
    Connected,
    /// The deadline of [`Signalling::next_timeout`].
    Timeout,
    /// Sign off; [`SignalOutput::Goodbye`] follows when that is done.
    Leave,
}

/// A request or report of an adapter.
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
    /// When the name was resolved and the server reached by this connection (fetch-based adapters).
    Reached(Opening),
    /// Make an offer; answered by [`SignalInput::Offer`].
    WantOffer,
    /// The server's offer (SDP); answered by [`SignalInput::Answer`]. A later one renegotiates.
    RemoteOffer(String),
    /// The server's answer (SDP) to the local offer.
    RemoteAnswer(String),
    /// A candidate of the server, `candidate:…`.
    RemoteCandidate(String),
    /// A TURN server that the server announced, with its credentials.
    Relay(RelayServer),
    /// The server named an address that is not an allowed target; nothing was sent there.
    Refused(RefusedDestination, SocketAddr),
    /// A protocol anomaly.
    Anomaly(String),
    /// The server ended or refused the session.
    Failed(Failure),
    /// The adapter has signed off, or cannot.
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
    /// The URL's host is a name, the same as that of the signalling server, so its address is
    /// known.
    pub is_signalling_host: bool,
}

impl RelayServer {
    /// The TURN server of a scenario, for participants of `target`.
    #[must_use]
    pub fn of_scenario(turn: &TurnServer, password: Secret, target: &Url) -> Self {
        let (url, username) = (turn.uri.clone(), turn.username.clone());
        Self { url, username, credential: password, is_signalling_host: false }
            .with_signalling_host(target.host_str())
    }

    /// The same, with its host compared to that of the signalling server.
    #[must_use]
    pub fn with_signalling_host(mut self, signalling_host: Option<&str>) -> Self {
        let place = TurnUri::parse(&self.url).ok();
        self.is_signalling_host = match (place.map(|place| place.host), signalling_host) {
            (Some(TurnHost::Name(name)), Some(host)) => name.eq_ignore_ascii_case(host),
            _ => false,
        };
        self
    }
}
