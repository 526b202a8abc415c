//! The schema of `p2p` of a player, and how it is written.

use schemars::JsonSchema;
use serde::Serialize;

use super::Duration;
use super::written::duration;
use crate::peers::{PeerConfig, PeerEngine, PeerPreset};

/// Peer-to-peer delivery between viewers.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PeersFile {
    /// Uplinks and reach of the viewers: `lan`, `hosted` or `home`; default `lan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(lan|hosted|home)$"))]
    preset: Option<String>,
    /// The version of p2p-media-loader whose decisions are made: `2.2`, `2.3`, `4.0` or `0.6`;
    /// default `2.2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(2\.[23]|4\.0|0\.6)$"))]
    engine: Option<String>,
    /// The tracker: `wss://HOST/tracker/socket`; default: viewers find each other without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^wss?://"))]
    tracker: Option<String>,
    /// What names the swarms; default: the URL of the playlist.
    #[serde(skip_serializing_if = "Option::is_none")]
    swarm: Option<String>,
    /// The list of hashes of the segments, as PeerTube writes it (`segments-sha256.json`); default:
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^https?://"))]
    hashes: Option<String>,
    /// What each viewer uploads at most, bits per second; default: that of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_bps: Option<u64>,
    /// The share of viewers that upload, from 0 to 1; default: that of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    sharers: Option<f64>,
    /// The share of pairs that cannot reach each other, from 0 to 1; default: that of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    unreachable: Option<f64>,
    /// The share of viewers that exchange segments over WebRTC data channels, with each other and
    /// with browsers, from 0 to 1; default 0. The others are peers within this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    data_channels: Option<f64>,
    /// Most peers of one viewer; default: 50 with engine 4.0, no bound with the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    degree: Option<u32>,
    /// What is played within this time comes from the server (all engines but 0.6); default 4 s,
    /// of recordings 15 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    urgent: Option<Duration>,
    /// Peers are used from then on, since the start of the run; default: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Duration>,
    /// And until then; default: to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Duration>,
    /// Seed of choices; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 0x7fff_ffff_ffff_ffff_u64))]
    seed: Option<u64>,
}

/// The peers as in a file; what the preset stands for is written out.
pub(super) fn peers(config: &PeerConfig) -> PeersFile {
    let usual = PeerConfig::preset(PeerPreset::Lan);
    let share = |milli: u32, usual: u32| (milli != usual).then(|| f64::from(milli) / 1e3);
    PeersFile {
        preset: None,
        engine: (config.engine != PeerEngine::default()).then(|| config.engine.name().into()),
        tracker: config.tracker.as_ref().map(ToString::to_string),
        swarm: config.swarm.clone(),
        hashes: config.hashes.as_ref().map(ToString::to_string),
        upload_bps: config.upload_bps,
        sharers: share(config.sharers_milli, usual.sharers_milli),
        unreachable: share(config.unreachable_milli, usual.unreachable_milli),
        data_channels: share(config.channels_milli, usual.channels_milli),
        degree: config.degree_max,
        urgent: config.urgent.map(duration),
        from: (!config.from.is_zero()).then(|| duration(config.from)),
        until: config.until.map(duration),
        seed: (config.seed != usual.seed).then_some(config.seed),
    }
}
