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

    /// The basis.
    pub(crate) fn basis(&self) -> LatencyBasis {
        if self.is_dated() { LatencyBasis::ProgramDateTime } else { LatencyBasis::PlaylistEdge }
    }

    /// What it is measured by, and why not by dates where there are some.
    pub(super) fn by(&self) -> String {
        let by = basis_words(self.basis());
        match (self.is_dated(), self.dates_ahead_ratio, self.undated_ratio) {
            (true, _, _) => by.to_owned(),
            (false, ahead, undated) if undated < 1.0 && undated > ahead => {
                format!("{by}, as {} of the player-seconds have no dates", percent(undated))
            }
            (false, ahead, _) if ahead > 0.0 => format!(
                "{by}, as its dates are ahead of this host's clock in {} of the player-seconds",
                percent(ahead)
            ),
            (false, _, _) => by.to_owned(),
        }
    }
}

/// How latency by `basis` is measured, in words.
pub(crate) fn basis_words(basis: LatencyBasis) -> &'static str {
    match basis {
        LatencyBasis::ProgramDateTime => "by the playlist's dates and this host's clock",
        LatencyBasis::PlaylistEdge => "to the end of the playlist",
    }
}

/// The latency of all players, added up by second.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    /// That of the whole run, warm-up included.
    vote: LatencyVote,
    by_second: BTreeMap<i64, Distribution>,
}

impl Latencies {
    /// Those of a run with this basis.
    pub(super) fn by(vote: LatencyVote) -> Self {
        Self { vote, by_second: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, row: &PlaybackRow) {
        let samples = self.of(row);
        if !samples.is_empty() {
            self.by_second.entry(row.second).or_default().merge(samples);
        }
    }

    /// Those of `row` by the basis of the run, microseconds.
    pub(super) fn of<'a>(&self, row: &'a PlaybackRow) -> &'a Distribution {
        row.latency_us_by(self.vote.basis())
    }

    /// The summary of their window; `None` where nothing was live.
    pub(super) fn summary(&self, window: &PlaybackRow) -> Option<LiveLatency> {
        let ms = |samples: &Distribution, quantile| samples.quantile_in(quantile, 1e3);
        let quarter = self.by_second.len() / 4;
        let first = merged(self.by_second.values().take(quarter));
        let last = merged(self.by_second.values().rev().take(quarter));
        let all = self.of(window);
        Some(LiveLatency {
            basis: self.vote.basis().key().to_owned(),
            dates_ahead_ratio: self.vote.dates_ahead_ratio(),
            undated_ratio: self.vote.undated_ratio(),
            ms_p50: ms(all, 0.50)?,
            ms_p95: ms(all, 0.95)?,
            ms_max: ms(all, 1.0)?,
            drift_ms: ms(&last, 0.50).zip(ms(&first, 0.50)).map(|(last, first)| last - first),
            capture_ms_p50: ms(&window.capture_latency_us, 0.50),
            capture_ms_p95: ms(&window.capture_latency_us, 0.95),
        })
    }
}

fn merged<'a>(seconds: impl Iterator<Item = &'a Distribution>) -> Distribution {
    seconds.fold(Distribution::new(), |mut sum, second| {
        sum.merge(second);
        sum
    })
}
