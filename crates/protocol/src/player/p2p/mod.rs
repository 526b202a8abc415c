//! Peer-to-peer delivery between the viewers of a run, as p2p-media-loader does it in browsers:
//! what viewers get from each other they do not request from the server.
//!
//! ```text
//! lane ── which segments come next ─▶ loader ─ decides ─▶ load from the server, or ask a neighbour
//!   │                                   │ policy: the tables of the engine's versions
//!   └─ tracker: who is there  ────────▶ swarm: who is connected, who has what,
//!                                              who sends what (uplink)
//! ```
//! No media are sent between viewers of the same process: see [`swarm`](Swarms). Viewers with data
//! channels (`channels`, in the words of `wire`) exchange them with each other, and with browsers;
//! `neighbours` has the peers of both kinds. `exchange` has two viewers that do nothing else, for
//! the benchmark.

use std::sync::Arc;
use std::time::Instant;

use throng_scenario::PeerConfig;

use crate::participant::Channel;
use crate::webrtc::MayReach;

mod channels;
mod exchange;
mod hashes;
mod lane;
mod loader;
mod neighbours;
mod number_set;
mod policy;
mod swarm;
mod tracker;
mod uplink;
mod wire;

pub use exchange::{ExchangeConfig, ExchangeRole, Meeting, SegmentExchange};
pub(super) use lane::{PeerLane, Shelf};
pub(super) use loader::Queued;
pub use swarm::Swarms;
#[doc(hidden)]
pub use tracker::read_any_tracker;
pub(super) use tracker::{Describe, Described, Found, Id, Tracker, TrackerOutput};
pub use wire::peer_message_survives;

/// The channel of the socket of data channels.
pub(super) const PEERS: Channel = Channel(2);

/// What the lanes of a viewer need to know of its peers.
#[derive(Clone)]
pub(super) struct PeerOptions {
    pub(super) config: Arc<PeerConfig>,
    pub(super) swarms: Swarms,
    /// The viewer's number in the run.
    pub(super) number: u32,
    pub(super) run_began_at: Instant,
    /// What names the swarms of the stream.
    pub(super) stream: String,
    /// Which addresses of peers may get anything.
    pub(super) may_reach: MayReach,
}
