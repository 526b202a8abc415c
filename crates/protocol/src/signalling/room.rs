//! How a participant of a conference and its server agree: several peer connections over one signalling channel, and
//! whose streams each of them carries. One adapter a file, behind [`RoomSignalling`].

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

/// Which senders a participant wants media of one kind from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subscription {
    /// All senders.
    #[default]
    All,
    /// No sender.
    Nobody,
    /// The senders of these names.
    Named(BTreeSet<String>),
}

impl Subscription {
    /// Whether it wants `name`.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Nobody => false,
            Self::Named(names) => names.contains(name),
        }
    }
}

/// What a participant subscribes to, separately for sound and pictures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscriptions {
    /// The senders that it hears.
    pub audio: Subscription,
    /// The senders that it sees.
    pub video: Subscription,
}

impl Subscriptions {
    /// Whether it wants `kind` of `name`.
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
    /// The name of its sender; `None` while there is none.
    pub from: Option<String>,
    /// Whoever sends it is mute, as far as the server says so: nothing is to come for the time being.
    pub is_muted: bool,
    /// Audio or video.
    pub kind: MediaKind,
    /// The layers in which it is sent, and the width and height of each in pixels, where the server says so.
    pub layers: Vec<(Layer, u16, u16)>,
    /// The server says when it forwards another layer of it: [`RoomOutput::LayerSent`].
    pub tells_layers: bool,
}

impl RoomStream {
    /// Whether something is to come of it.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.from.is_some() && !self.is_muted
    }
}

/// One server's way to hold a conference; sans-IO, as the participant that owns it.
pub trait RoomSignalling: Send {
    /// Tells it what happened.
    fn handle(&mut self, now: Instant, input: RoomInput<'_>);

    /// The next thing it wants, or `None`.
    fn poll_output(&mut self) -> Option<RoomOutput>;

    /// When it next needs [`RoomInput::Timeout`], and why.
    fn next_timeout(&self) -> Option<(Instant, Why)>;
}

/// What an adapter is told.
#[derive(Debug)]
pub enum RoomInput<'a> {
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
    /// Our offer, asked for with [`RoomOutput::WantOffer`].
    Offer(PeerId, String),
    /// Our answer to [`RoomOutput::RemoteOffer`].
    Answer(PeerId, String),
    /// A candidate of ours, as an `a=candidate` value without the `a=`, found after offer or answer went out.
    Candidate(PeerId, &'a str),
    /// No more candidates of ours follow.
    CandidatesDone(PeerId),
    /// A peer connection is up.
    Connected(PeerId),
    /// A peer connection failed; the adapter gives up what belongs to it.
    Lost(PeerId),
    /// Subscribe to this from here on.
    Subscribe(&'a Subscriptions),
    /// Our own sending of a kind is mute from here on, or not any more: the others are to know it. Told whenever it changes,
    /// and of what is mute once more when the publisher's connection is up.
    Mute(MediaKind, bool),
    /// Ask for this layer of every simulcast picture from here on.
    Layer(Layer),
    /// The deadline of [`RoomSignalling::next_timeout`].
    Timeout,
    /// Say goodbye; [`RoomOutput::Goodbye`] follows when it is said.
    Leave {
        /// Whether others are on their way to the room, so that it must not end.
        others_follow: bool,
    },
}

/// What an adapter wants.
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
    /// The room let us in.
    Joined,
    /// Make an offer of what is to be published; answered by [`RoomInput::Offer`].
    WantOffer(PeerId),
    /// The server's offer, first or later; answered by [`RoomInput::Answer`].
    RemoteOffer(PeerId, String),
    /// The server's answer to our offer.
    RemoteAnswer(PeerId, String),
    /// A candidate of the server.
    RemoteCandidate(PeerId, String),
    /// What the server sends on a peer connection from here on; before the offer that brings it.
    Streams(PeerId, Vec<RoomStream>),
    /// Of what the section `a=mid` of a peer connection brings, the server forwards this layer from here on.
    LayerSent(PeerId, String, Layer),
    /// The names of the other senders in the room, whenever they change.
    Publishers(BTreeSet<String>),
    /// The server wants nothing of a kind from us any more, or lets us send it again.
    Muted(MediaKind, bool),
    /// A peer connection is no longer needed.
    ClosePeer(PeerId),
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
