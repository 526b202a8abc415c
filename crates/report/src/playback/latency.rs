//! How far behind live streams players are.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::units::percent;
use throng_observation::{Distribution, LatencyBasis, LatencyVote, PlaybackRow};

/// The latency of players of live streams at the end of each second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveLatency {
    /// `program_date_time`: this host's clock minus the date of what is played, in error by the
    /// difference of the clocks; `playlist_edge`: to the end of the playlist, without what encoder,
    /// packager and caches took. It is one for all players of the run: dates where all have them
    /// and nearly none finds them ahead of this host's clock.
    pub basis: String,
    /// Share of the player-seconds with dates that were more than 0.5 s ahead of this host's clock.
    #[serde(default)]
    pub dates_ahead_ratio: f64,
    /// Share of the player-seconds without dates.
    #[serde(default)]
    pub undated_ratio: f64,
    /// Median, milliseconds.
    pub ms_p50: f64,
    /// 95th percentile.
    pub ms_p95: f64,
    /// The highest.
    pub ms_max: f64,
    /// Median of the last quarter of the seconds minus that of the first: what players lost or
    /// regained, milliseconds.
    pub drift_ms: Option<f64>,
    /// From the capture at the publisher to the viewer, by the marks in the media: the median,
    /// milliseconds. In error by the difference of the two clocks. Absent where throng did not
    /// publish, or a transcoder removed its marks.
    #[serde(default)]
    pub capture_ms_p50: Option<f64>,
    /// 95th percentile of the same.
    #[serde(default)]
    pub capture_ms_p95: Option<f64>,
}

impl LiveLatency {
    /// Whether it is measured by dates.
    pub(crate) fn is_dated(&self) -> bool {
        self.basis == LatencyBasis::ProgramDateTime.key()
    }

    /// What it is measured by, and why not by dates where there are some.
    pub(super) fn by(&self) -> String {
        match (self.is_dated(), self.dates_ahead_ratio, self.undated_ratio) {
            (true, _, _) => "by the playlist's dates and this host's clock".to_owned(),
            (false, ahead, undated) if undated < 1.0 && undated > ahead => {
                format!(
                    "to the end of the playlist, as {} of the player-seconds have no dates",
                    percent(undated)
                )
            }
            (false, ahead, _) if ahead > 0.0 => format!(
                "to the end of the playlist, as its dates are ahead of this host's clock in {} of the player-seconds",
                percent(ahead)
            ),
            (false, _, _) => "to the end of the playlist".to_owned(),
        }
    }
}

/// The latency of all players, added up by second.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    /// That of the whole run, warm-up included.
    vote: LatencyVote,
    dated_us: BTreeMap<i64, Distribution>,
    to_edge_us: BTreeMap<i64, Distribution>,
    since_capture_us: Distribution,
}

impl Latencies {
    /// Those of a run with this basis.
    pub(super) fn by(vote: LatencyVote) -> Self {
        Self { vote, ..Self::default() }
    }

    pub(super) fn add(&mut self, row: &PlaybackRow) {
        self.since_capture_us.merge(&row.capture_latency_us);
        for (seconds, samples) in
            [(&mut self.dated_us, &row.latency_us), (&mut self.to_edge_us, &row.edge_latency_us)]
        {
            if samples.count() > 0 {
                seconds.entry(row.second).or_default().merge(samples);
            }
        }
    }

    /// By dates or to the end of playlists.
    fn by_second(&self) -> &BTreeMap<i64, Distribution> {
        match self.vote.basis() {
            LatencyBasis::ProgramDateTime => &self.dated_us,
            LatencyBasis::PlaylistEdge => &self.to_edge_us,
        }
    }

    /// The summary; `None` where nothing was live.
    pub(super) fn summary(&self) -> Option<LiveLatency> {
        let by_second = self.by_second();
        let quarter = by_second.len() / 4;
        let all = merged(by_second.values());
        let first = merged(by_second.values().take(quarter));
        let last = merged(by_second.values().rev().take(quarter));
        Some(LiveLatency {
            basis: self.vote.basis().key().to_owned(),
            dates_ahead_ratio: self.vote.dates_ahead_ratio(),
            undated_ratio: self.vote.undated_ratio(),
            ms_p50: ms(&all, 0.50)?,
            ms_p95: ms(&all, 0.95)?,
            ms_max: ms(&all, 1.0)?,
            drift_ms: ms(&last, 0.50).zip(ms(&first, 0.50)).map(|(last, first)| last - first),
            capture_ms_p50: ms(&self.since_capture_us, 0.50),
            capture_ms_p95: ms(&self.since_capture_us, 0.95),
        })
    }

    /// What a share of the samples did not exceed, milliseconds.
    pub(super) fn quantile(&self, quantile: f64) -> Option<f64> {
        ms(&merged(self.by_second().values()), quantile)
    }
}

fn merged<'a>(seconds: impl Iterator<Item = &'a Distribution>) -> Distribution {
    seconds.fold(Distribution::new(), |mut sum, second| {
        sum.merge(second);
        sum
    })
}

fn ms(samples: &Distribution, quantile: f64) -> Option<f64> {
    samples.quantile(quantile).map(|us| us as f64 / 1e3)
}
