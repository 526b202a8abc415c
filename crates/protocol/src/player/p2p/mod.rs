//! Peer-to-peer delivery between the viewers of a run, as p2p-media-loader does it in browsers: what viewers get from each
//! other they do not request from the server.
//!
//! ```text
//! lane ── which segments come next ─▶ loader ─ decides ─▶ load from the server, or ask a neighbour
//!   │                                   │ policy: the tables of the engine's versions
//!   └─ tracker: who is there  ────────▶ swarm: who is connected, who has what, who sends what (uplink)
//! ```
//! No media are sent between viewers of the same process: see [`swarm`](Swarms).

use std::sync::Arc;
use std::time::Instant;

use throng_scenario::PeerConfig;

mod hashes;
mod lane;
mod loader;
mod policy;
mod swarm;
mod tracker;
mod uplink;

pub(super) use lane::{PeerCounters, PeerLane, Shelf};
pub(super) use loader::Queued;
pub use swarm::Swarms;
pub(super) use tracker::{Found, Tracker, TrackerCounters, TrackerOutput};

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
}
