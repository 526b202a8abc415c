//! How a participant of a conference negotiates with its server: several peer connections over one
//! signalling channel, and whose streams each of them carries. One adapter per file, behind
//! [`RoomSignalling`].

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{Failure, Layer, MediaKind, RefusedDestination};

use super::RelayServer;
use crate::participant::{ChannelError, FetchId, Message, Open, Opening, Request, Response, Why};

/// A peer connection of the participant; the adapter numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u16);

impl PeerId {
    /// The one that sends what the participant publishes.
    pub const PUBLISHER: Self = Self(0);
}

/// From which senders a participant wants media of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subscription {
    /// All senders.
    #[default]
    All,
    /// No sender.
    None,
    /// The senders with these names.
    Named(BTreeSet<String>),
}

impl Subscription {
    /// Whether it includes `name`.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Named(names) => names.contains(name),
        }
    }
}

/// What a participant subscribes to, separately for audio and video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscriptions {
    /// The senders whose audio it receives.
    pub audio: Subscription,
    /// The senders whose video it receives.
    pub video: Subscription,
}

impl Subscriptions {
    /// Whether it includes `kind` of `name`.
    #[must_use]
    pub fn wants(&self, name: &str, kind: MediaKind) -> bool {
        match kind {
            MediaKind::Audio => self.audio.wants(name),
            MediaKind::Video => self.video.wants(name),
        }
    }
}

/// A stream that the server sends on a peer connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomStream {
    /// `a=mid` of its media section.
    pub mid: String,
    /// The name of its sender; `None` without a sender.
    pub from: Option<String>,
    /// Its sender is mute, as far as the server signals that: no media is expected for now.
    pub is_muted: bool,
    /// Audio or video.
    pub kind: MediaKind,
    /// The layers in which it is sent, with the width and height of each in pixels, where the
    /// server signals them.
    pub layers: Vec<(Layer, u16, u16)>,
    /// The server signals when it forwards another layer of it: [`RoomOutput::LayerSent`].
    pub tells_layers: bool,
}

impl RoomStream {
    /// Whether media is expected.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.from.is_some() && !self.is_muted
    }
}

/// One server's conference signalling; sans-IO, like the participant that owns it.
pub trait RoomSignalling: Send {
    /// Handles an event.
    fn handle(&mut self, now: Instant, input: RoomInput<'_>);

    /// The next output, or `None`.
    fn poll_output(&mut self) -> Option<RoomOutput>;

    /// When it next needs [`RoomInput::Timeout`], and why.
    fn next_timeout(&self) -> Option<(Instant, Why)>;
}

/// An event for an adapter.
#[derive(Debug)]
pub enum RoomInput<'a> {
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
    /// The local offer, requested with [`RoomOutput::WantOffer`].
    Offer(PeerId, String),
    /// The local answer to [`RoomOutput::RemoteOffer`].
    Answer(PeerId, String),
    /// A local candidate, as an `a=candidate` value without the `a=`, found after the offer or
    /// answer was sent.
    Candidate(PeerId, &'a str),
    /// No more local candidates follow.
    CandidatesDone(PeerId),
    /// A peer connection is up.
    Connected(PeerId),
    /// A peer connection failed; the adapter drops its state.
    Lost(PeerId),
    /// Subscribe to this from now on.
    Subscribe(&'a Subscriptions),
    /// Local media of a kind is mute from now on, or no longer; the adapter signals it to the
    /// others. Sent at each change, and once more for each mute kind when the publisher's
    /// connection is up.
    Mute(MediaKind, bool),
    /// Request this layer of every simulcast video from now on.
    Layer(Layer),
    /// The deadline of [`RoomSignalling::next_timeout`].
    Timeout,
    /// Sign off; [`RoomOutput::Goodbye`] follows when that is done.
    Leave {
        /// Whether other participants will join the room, so that it must not be destroyed.
        others_follow: bool,
    },
}

/// A request or report of an adapter.
#[derive(Debug)]
pub enum RoomOutput {
    /// Open the signalling channel.
    Open(Open),
    /// Send a message on it.
    Signal(Message),
    /// Close it.
    Close,
    /// Fetch over HTTP.
    Fetch(FetchId, Box<Request>),
    /// The server was reached by this connection (fetch-based adapters).
    Reached(Opening),
    /// The participant joined the room.
    Joined,
    /// Make an offer of the media to publish; answered by [`RoomInput::Offer`].
    WantOffer(PeerId),
    /// The server's offer, first or later; answered by [`RoomInput::Answer`].
    RemoteOffer(PeerId, String),
    /// The server's answer to the local offer.
    RemoteAnswer(PeerId, String),
    /// A candidate of the server.
    RemoteCandidate(PeerId, String),
    /// The streams that the server sends on a peer connection from now on; reported before the
    /// offer that contains them.
    Streams(PeerId, Vec<RoomStream>),
    /// The server now forwards this layer of the stream in section `a=mid` of a peer connection.
    LayerSent(PeerId, String, Layer),
    /// The names of the other senders in the room, at each change.
    Publishers(BTreeSet<String>),
    /// The server muted media of a kind that this participant sends, or unmuted it.
    Muted(MediaKind, bool),
    /// A peer connection is no longer needed.
    ClosePeer(PeerId),
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
