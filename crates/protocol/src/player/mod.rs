//! Video over HTTP (RFC 9110): a viewer that downloads a media file as a browser's media element
//! does, and plays it from a buffer on a real clock.
//!
//! ```text
//! player                                   server
//!   GET, Range: bytes=0-            ─────▶  206, the index (moov), media …
//!     reads until its buffer is full, then lets the connection's flow control hold the server back
//!   GET, Range: bytes=N-            ─────▶  206: the index at the end of a file, a seek,
//!                                                a broken connection
//! ```
//! To be read in this order: `download/` requests over HTTP, follows redirects and keeps the rules
//! for other origins than the page's. `manifest/` makes a presentation of what HLS and DASH say.
//! A `lane/` decides what is requested next (`file`: a file; `segments`: HLS and DASH), and adds
//! the frames that its reader finds in the bytes to the timeline of `playback/`, which moves the
//! position over it: startup, playback, stalls. `viewer/` connects all of them to the driver.
//! `page/` repeats what a browser requested around the player before it; `p2p/` gets segments from
//! other viewers.

use std::sync::Arc;
use std::time::Duration;

use throng_media::manifest::PlaylistCache;
use throng_media::quality::WallClock;
use throng_media::timing::IndexCache;
use throng_observation::Url;
use throng_scenario::har::PagePlan;
use throng_scenario::{HttpVersionPolicy, PeerConfig, PlayerConfig, Secret};

use crate::webrtc::MayReach;

mod download;
mod lane;
mod manifest;
mod p2p;
mod page;
mod playback;
mod viewer;

#[doc(hidden)]
pub use self::download::{cookies_after, decode_any_body, permission_by};
#[doc(hidden)]
pub use self::p2p::read_any_tracker;
pub use self::p2p::{
    ExchangeConfig, ExchangeRole, Meeting, SegmentExchange, Swarms, peer_message_survives,
};
pub use self::viewer::Viewer;

/// The page that a viewer loads before it plays.
#[derive(Clone)]
pub struct PageVisit {
    /// What it requests, shared by all viewers of the page.
    pub plan: Arc<PagePlan>,
    /// Whether its cache is warm.
    pub is_warm: bool,
}

/// What a viewer plays, and how.
#[derive(Clone)]
pub struct Config {
    /// `http:` or `https:`.
    pub url: Url,
    /// This viewer's version of HTTP.
    pub http: HttpVersionPolicy,
    /// The player and its user.
    pub player: PlayerConfig,
    /// The page around the player.
    pub page: Option<PageVisit>,
    /// Bearer token, sent to the host of [`Self::url`] only, and after a redirect to the same
    /// origin only.
    pub token: Option<Secret>,
    /// The consent guard's check of addresses in redirects.
    pub may_reach: MayReach,
    /// One reading of both clocks, shared by the whole run; intervals end on whole seconds after
    /// it.
    pub clock: WallClock,
    /// The viewer's number, which makes its user's random choices its own.
    pub number: u32,
    /// Seed of what tells this viewer from those of other runs: its name among peers.
    pub identity_seed: u64,
    /// How long the head of a response may take.
    pub head_timeout: Duration,
    /// The indexes of files that several viewers play.
    pub indexes: IndexCache,
    /// The playlists that several viewers receive.
    pub playlists: PlaylistCache,
    /// The peers of the run, for viewers that get segments from each other.
    pub swarms: Swarms,
}

impl Config {
    /// The seed of its name among peers. Its number is in [`Self::identity_seed`].
    pub(crate) fn name_seed(&self, peers: &PeerConfig) -> u64 {
        // Both are often small numbers, which would cancel each other.
        peers.seed.rotate_left(32) ^ self.identity_seed
    }
}

#[cfg(test)]
mod tests;
