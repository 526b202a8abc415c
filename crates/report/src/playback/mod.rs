//! Players: participants that fetch media and play it from a buffer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::PlaybackCounters;

use crate::sums::summed;
use crate::survival::TimeTo;

mod figures;
mod latency;
mod lines;
mod peers;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use figures::PlaybackFigures;
use latency::LiveLatency;
pub(crate) use latency::basis_words;
pub(crate) use peers::Peers;

/// The players of a run. Startup and stalls of viewers cover the whole run, the other figures leave
/// the warm-up out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Playback {
    /// Players: participants that reported as one at any time.
    pub players: u64,
    /// Intended join to the begin of playback.
    pub startup: TimeTo,
    /// Stalls begun.
    pub stalls: u64,
    /// Time stalled ÷ time since playback began, without startup and pauses (CTA-2066 rebuffering
    /// ratio); `null` when nothing played.
    pub stall_ratio: Option<f64>,
    /// 95th percentile of the same over players, each over its life.
    pub stall_ratio_p95: Option<f64>,
    /// Players that stalled at any time.
    pub viewers_stalled: u64,
    /// The largest share of players that stalled in the same second.
    pub stalled_ratio_max: Option<f64>,
    /// Time stalled, seconds, all players together.
    pub stall_s: f64,
    /// Time waiting for playback to begin, or to begin again after a seek.
    pub startup_s: f64,
    /// Media time played.
    pub played_s: f64,
    /// Pauses that users made.
    pub paused_s: f64,
    /// Media time received ÷ time in which players wanted media; below 1 the server delivered less
    /// than the media's bit rate. `null` when nothing was wanted.
    pub delivery_ratio: Option<f64>,
    /// 5th percentile of the delivery ratio over seconds in which a player wanted data throughout,
    /// at most 1.
    pub delivery_ratio_p5: Option<f64>,
    /// Media time in a player's buffer at the end of a second: median, milliseconds.
    pub buffer_ms_p50: Option<f64>,
    /// 5th percentile of the same.
    pub buffer_ms_p5: Option<f64>,
    /// What was counted.
    #[serde(flatten)]
    pub sums: PlaybackSums,
    /// Responses by version of HTTP.
    #[serde(default)]
    pub responses: ResponsesByVersion,
    /// The page around the player; `null` where none was loaded.
    #[serde(default)]
    pub page: Option<LoadedPage>,
    /// Requests by status, or by why there was no response (`timeout`, `cancelled`, …), of the
    /// whole run, warm-up included.
    #[serde(default)]
    pub requests_by_status: BTreeMap<String, u64>,
    /// How far behind live streams players were; `null` where none was live.
    #[serde(default)]
    pub latency: Option<LiveLatency>,
    /// What viewers got from each other; `null` where they had no peers.
    #[serde(default)]
    pub peers: Option<Peers>,
}

summed! {
    /// Sums over the players, warm-up left out.
    PlaybackSums of PlaybackCounters {
        /// Bits per second of the media as received: bytes of bodies that hold media ÷ media time
        /// in them.
        media_bps: Option<f64> = PlaybackCounters::media_bps;
        media_bytes;
        other_bytes;
        requests;
        requests_failed;
        connections;
        retransmitted;
        received_out_of_order;
        seeks = seek_count;
        switches;
        /// Media time that playback jumped over because it never came, seconds.
        #[serde(default)]
        skipped_s: f64 = |sums| sums.skipped_us as f64 / 1e6;
        #[serde(default)] missed;
        #[serde(default)] segments;
        /// Time that segments took ÷ media time in them; `null` without segments.
        #[serde(default)]
        segment_ratio: Option<f64> = PlaybackCounters::segment_ratio;
    }
}

/// The page around the player, which its viewers loaded from a recording. Requests and bytes leave
/// the warm-up out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedPage {
    /// Intended join to the begin of the player.
    pub loaded: TimeTo,
    /// Requests; part of those of all players.
    pub requests: u64,
    /// Those that failed.
    pub requests_failed: u64,
    /// Bytes of response bodies; part of `other_bytes`.
    pub bytes: u64,
}

summed! {
    /// Responses by version of HTTP.
    ResponsesByVersion of PlaybackCounters {
        http1 = responses_http1;
        http2 = responses_http2;
        http3 = responses_http3;
    }
}
