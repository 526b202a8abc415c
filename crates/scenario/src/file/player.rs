//! The schema of `player` of a cohort, and how it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Duration;
use super::http::{self, HttpFile};
use super::written::duration;
use crate::http::CredentialsPolicy;
use crate::keys::{NameOf, Table};
use crate::peers::PeerConfig;
use crate::playback::{AtEnd, PlaybackPosition};
use crate::player::{MediaFormat, NORMAL_SCALE_MILLI, PlayerConfig, RenditionPolicy};

/// How viewers of recordings play; on RTSP only `position`, `seek_every`, `pause_every`,
/// `pause_for`, `scale`, `repeat` and `seed`.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PlayerFile {
    /// What the URL names: `file`, `hls`, `dash`, or `auto` for the end of its path; default
    /// `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<NameOf<MediaFormat>>,
    /// The version of HTTP: `1.1`, `2`, `3`, `negotiated` as by a browser on its first visit, or
    /// `browser`: also HTTP/3 once a response offers it (`Alt-Svc`); or a table of weights of
    /// these; default `negotiated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<HttpFile>,
    /// Further headers of requests to the target's host; a value may be `env:NAME` or `file:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    /// The page that the player is embedded in: `https://www.example.com/watch`; requests to other
    /// origins are made as a browser does, with `Origin`, `Referer`, preflights and the check of
    /// responses (CORS); default: one of the media's origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[Hh][Tt][Tt][Pp][Ss]?:[^#]+$"))]
    page: Option<String>,
    /// The page around the player, which viewers load before they play: a HAR file, with its path
    /// from the folder of this file; default: no page.
    #[serde(skip_serializing_if = "Option::is_none")]
    har: Option<String>,
    /// The share of viewers whose cache is warm, from 0 to 1; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    warm: Option<f64>,
    /// How long before their visit warm caches were filled; default: at the time of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_age: Option<Duration>,
    /// Where requests of further recorded origins go: `{ "https://static.example" =
    /// "http://127.0.0.1:8080" }`; default: those of the page's origin go to the target's, all
    /// others nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    origins: Option<BTreeMap<String, String>>,
    /// With which requests cookies are sent, and of which responses they are kept: `same-origin`,
    /// `include` or `omit`; default `same-origin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<NameOf<CredentialsPolicy>>,
    /// Media time kept ahead of the playback position; default 30 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<Duration>,
    /// Media time buffered before playback begins, also after a stall or a seek; default 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Duration>,
    /// Where playback begins: `random`, or a time; default: the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    /// Mean time between seeks to random positions; default: no seeks.
    #[serde(skip_serializing_if = "Option::is_none")]
    seek_every: Option<Duration>,
    /// Mean time between pauses; default: no pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_every: Option<Duration>,
    /// Length of a pause; default 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_for: Option<Duration>,
    /// The speed that is asked of an RTSP server, such as 2, 0.5 or -1 (backwards); default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<f64>,
    /// How long a user waits for playback to begin or go on before giving up, a failure; default:
    /// for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    patience: Option<Duration>,
    /// Play again from the beginning at the end; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<bool>,
    /// The rendition of HLS and DASH: `adaptive`, `lowest` or `highest`; default `adaptive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rendition: Option<NameOf<RenditionPolicy>>,
    /// Live streams: distance from their end at which to play; default: what the server asks for,
    /// else three target durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<Duration>,
    /// Live streams: a player that is further behind jumps forward; default: only when what comes
    /// next has left the playlist.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_max: Option<Duration>,
    /// Live streams: segments in parts and blocking playlist requests, where the server offers them
    /// (LL-HLS); default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    low_latency: Option<bool>,
    /// Live streams: request the next part before it exists (`EXT-X-PRELOAD-HINT`); default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    preload_hints: Option<bool>,
    /// Low-latency streams: fastest playback while further behind than wanted, from 1 to 2;
    /// default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 2.0))]
    catch_up: Option<f64>,
    /// Peer-to-peer delivery between viewers of HLS (p2p-media-loader); default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    p2p: Option<Table<PeerConfig>>,
    /// Seed of random positions and times; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::keys::SEED_MAX))]
    seed: Option<u64>,
}

/// The player as in a file; `None` if all is default.
pub(super) fn player(config: &PlayerConfig) -> Option<PlayerFile> {
    let usual = PlayerConfig::default();
    let page = config.recorded_page.as_ref();
    if *config == usual {
        return None;
    }
    let differs = |is: bool, time| is.then(|| duration(time));
    Some(PlayerFile {
        format: (config.format != MediaFormat::Auto).then_some(NameOf(config.format)),
        http: http::versions(&config.http),
        headers: http::headers(&config.headers),
        page: config.page.as_ref().map(ToString::to_string),
        har: page.map(|page| page.har.clone()),
        warm: page
            .filter(|page| page.warm_milli > 0 || !page.warm_age.is_zero())
            .map(|page| f64::from(page.warm_milli) / 1e3),
        warm_age: page.filter(|page| !page.warm_age.is_zero()).map(|page| duration(page.warm_age)),
        origins: page.filter(|page| !page.origins.is_empty()).map(|page| {
            page.origins
                .iter()
                .map(|rule| (rule.recorded.clone(), rule.requested.clone()))
                .collect()
        }),
        credentials: (config.credentials != usual.credentials)
            .then_some(NameOf(config.credentials)),
        buffer: differs(config.buffer != usual.buffer, config.buffer),
        start: differs(config.start != usual.start, config.start),
        position: match config.position {
            PlaybackPosition::Random => Some("random".into()),
            PlaybackPosition::At(time) if time.is_zero() => None,
            PlaybackPosition::At(time) => Some(crate::units::write_duration(time)),
        },
        seek_every: config.habits.seek_every.map(duration),
        pause_every: config.habits.pause_every.map(duration),
        pause_for: config.habits.pause_every.map(|_| duration(config.habits.pause_for)),
        scale: (config.scale_milli != NORMAL_SCALE_MILLI)
            .then(|| f64::from(config.scale_milli) / 1e3),
        patience: config.patience.map(duration),
        repeat: (config.at_end == AtEnd::Leave).then_some(false),
        rendition: (config.rendition != RenditionPolicy::Adaptive)
            .then_some(NameOf(config.rendition)),
        latency: config.live.latency.map(duration),
        latency_max: config.live.latency_max.map(duration),
        low_latency: (!config.live.low_latency).then_some(false),
        preload_hints: config.live.preload_hints.then_some(true),
        catch_up: (config.live.catch_up_milli != usual.live.catch_up_milli)
            .then(|| f64::from(config.live.catch_up_milli) / 1e3),
        p2p: config.peers.as_ref().map(Table::of),
        seed: (config.seed != usual.seed).then_some(config.seed),
    })
}
