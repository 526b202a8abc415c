//! What a participant tells of itself.

use crate::{Codec, IceState, MediaKind, Phase, SentInterval, TrackId, TrackInterval};
use std::net::SocketAddr;
use std::time::Instant;

/// Something a participant saw or did. It carries no participant id: the driver that drains it knows whose it is.
#[derive(Clone, Debug)]
pub enum Observation {
    /// A phase of its life was reached.
    Reached(Phase, Instant),
    /// The state of its ICE transport changed.
    Ice(IceState),
    /// A track was announced; its id is used from here on.
    TrackOpened {
        /// Id within the participant.
        track: TrackId,
        /// Audio or video.
        kind: MediaKind,
        /// What it is coded with.
        codec: Codec,
    },
    /// Who sends what a track receives, from here on: the name by which a conference knows them; `None` while nobody
    /// does.
    TrackFrom {
        /// Id within the participant.
        track: TrackId,
        /// The sender's name.
        from: Option<String>,
    },
    /// The first complete and decodable frame of a track (packet of audio) arrived.
    TrackFirstFrame {
        /// Id within the participant.
        track: TrackId,
        /// When it was complete.
        at: Instant,
    },
    /// What a sent track did in the interval that just ended.
    Sent(Box<SentInterval>),
    /// What a track did in the interval that just ended.
    Interval(Box<TrackInterval>),
    /// It was told to leave, said goodbye, and the server did not answer in time.
    GoodbyeUnanswered,
    /// A place that the server named was outside what is allowed; nothing was sent there.
    Refused(Refused, SocketAddr),
    /// The server said something that was not understood and could be ignored: where, and what.
    Odd {
        /// The message or packet kind, a stable key such as `rtcp`, `sdp`, `janus`.
        place: &'static str,
        /// What was wrong with it.
        detail: String,
    },
}

/// What was refused by the consent guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// An ICE candidate.
    IceCandidate,
    /// An HTTP redirect or Location.
    Redirect,
    /// A TURN or STUN server.
    IceServer,
}
