//! How the versions of p2p-media-loader decide: the settings that PeerTube gives them, for live
//! streams and for recordings.

use std::time::Duration;

use throng_scenario::{PeerConfig, PeerEngine};

/// The decision table of an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Policy {
    /// Which segments are loaded from the server unless a peer has them already on the way.
    pub(super) urgent: Urgent,
    /// Downloads from the server at a time.
    pub(super) http_max: usize,
    /// Downloads from peers at a time.
    pub(super) peers_max: usize,
    /// What is loaded from the server though it is not urgent, so that peers can have it.
    pub(super) random: Random,
    /// How long a download from the server may bring nothing.
    pub(super) http_silence: Option<Duration>,
    /// How long a download from a peer may bring nothing.
    pub(super) peer_silence: Duration,
    /// After how many failures the server is not asked again for the same segment, and for how
    /// long.
    pub(super) http_failures_max: u32,
    pub(super) http_failed_for: Duration,
    /// What is looked at, from the requested segment on.
    pub(super) ahead: Ahead,
    /// Most segments, and most bytes, that are kept: of more, those that were played first go.
    pub(super) kept_max: usize,
    pub(super) kept_bytes_max: u64,
    /// Of what is played next, so many segments may be loaded at random
    /// (`httpDownloadMaxPriority` + 1); `None`: all that are looked at.
    pub(super) draws_within: Option<u64>,
    /// Who has no peers loads at random too: nobody would get it from there.
    pub(super) draws_alone: bool,
    /// Who uploads nothing loads nothing from the server at random either.
    pub(super) only_sharers_draw: bool,
    /// What is announced is what was there before the segment that has come.
    pub(super) announces_late: bool,
}

/// What is urgent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Urgent {
    /// What is played within this time (`highDemandTimeWindow`).
    Within(Duration),
    /// So many segments after the one that is played (`requiredSegmentsPriority` + 1).
    Next(u64),
}

/// How far ahead segments are loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ahead {
    /// So many segments (`p2pDownloadMaxPriority`, `forwardSegmentCount`).
    Segments(usize),
    /// What is played within these times: from the server (`httpDownloadTimeWindow`), and from
    /// peers (`p2pDownloadTimeWindow`). Less while there is no room for it.
    Within { server: Duration, peers: Duration },
}

/// When segments are loaded at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Random {
    /// Each time after 1 s to 1 s + 1 s for each peer; so that of all peers about one loads each
    /// segment.
    ByPeers,
    /// Each `every`, with this probability for each segment that could be loaded.
    Each { every: Duration, probability: f64 },
}

/// The time windows of core.ts 2.2.2, which PeerTube leaves as they are.
const FROM_SERVER: Duration = Duration::from_secs(3_000);
const FROM_PEERS: Duration = Duration::from_secs(6_000);

/// `segmentMemoryStorageLimit`, bytes: of recordings PeerTube's, of live streams that of browsers
/// of desktops.
const STORAGE_RECORDED: u64 = 1 << 30;
const STORAGE_LIVE: u64 = 4 << 30;

/// PeerTube's `cachedSegmentsCount` of recordings. Of live streams what was played goes by time.
const STORED_MAX_RECORDED: usize = 100;

/// PeerTube's `highDemandTimeWindow` of live streams, and of recordings.
const URGENT_LIVE: Duration = Duration::from_secs(4);
const URGENT_RECORDED: Duration = Duration::from_secs(15);

impl Policy {
    pub(super) fn new(config: &PeerConfig, is_live: bool) -> Self {
        let seconds = Duration::from_secs;
        let urgent = if is_live { URGENT_LIVE } else { URGENT_RECORDED };
        match config.engine {
            // hybrid-loader.ts, core.ts, segment-memory-storage.ts 2.2.2; PeerTube
            // hls-options-builder.ts.
            PeerEngine::V22 | PeerEngine::V23 | PeerEngine::V4 => Self {
                urgent: Urgent::Within(config.urgent.unwrap_or(urgent)),
                http_max: 2,
                peers_max: 3,
                random: Random::ByPeers,
                http_silence: Some(seconds(3)),
                peer_silence: seconds(2),
                http_failures_max: 3,
                http_failed_for: seconds(60),
                ahead: Ahead::Within { server: FROM_SERVER, peers: FROM_PEERS },
                kept_max: usize::MAX,
                kept_bytes_max: if is_live { STORAGE_LIVE } else { STORAGE_RECORDED },
                draws_within: None,
                draws_alone: false,
                only_sharers_draw: false,
                announces_late: config.engine == PeerEngine::V22,
            },
            // hybrid-loader.js, segments-memory-storage.js 0.6.2; PeerTube 5.0
            // p2p-media-loader-options-builder.ts.
            PeerEngine::V06 => Self {
                urgent: Urgent::Next(if is_live { 2 } else { 4 }),
                http_max: 1,
                peers_max: 3,
                random: Random::Each {
                    every: seconds(1),
                    probability: if is_live { 0.1 } else { 0.06 },
                },
                http_silence: None,
                peer_silence: seconds(60),
                http_failures_max: 1,
                http_failed_for: seconds(1),
                ahead: Ahead::Segments(if is_live { 20 } else { 50 }),
                kept_max: if is_live { usize::MAX } else { STORED_MAX_RECORDED },
                kept_bytes_max: u64::MAX,
                draws_within: (!is_live).then_some(10),
                draws_alone: is_live,
                only_sharers_draw: true,
                announces_late: false,
            },
        }
    }
}
