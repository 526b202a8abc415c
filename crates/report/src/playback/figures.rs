//! The players of a run added up.

use std::collections::BTreeMap;
use std::ops::Range;

use throng_observation::run::{ParticipantRow, RunData};
use throng_observation::{HttpRequestTotals, PlaybackRow, Players, SecondRow as _};

use super::latency::Latencies;
use super::{LoadedPage, Peers, Playback, PlaybackSums, ResponsesByVersion};
use crate::figures::ranked;
use crate::requests;
use crate::survival::TimeTo;

/// The players of a run added up, warm-up left out.
#[derive(Debug, Default)]
pub(crate) struct PlaybackFigures<'a> {
    pub(crate) window: PlaybackRow,
    latency: Latencies,
    stalled_ratio_max: Option<f64>,
    players: Option<&'a Players>,
    requests: Option<&'a HttpRequestTotals>,
}

impl<'a> PlaybackFigures<'a> {
    pub(crate) fn of(run: &'a RunData, seconds: &Range<i64>) -> Self {
        let mut figures = Self {
            players: Some(&run.players),
            requests: Some(&run.http_requests),
            latency: Latencies::by(run.latency_vote()),
            ..Self::default()
        };
        let mut by_second: BTreeMap<i64, PlaybackRow> = BTreeMap::new();
        for row in run.playback.iter().filter(|row| seconds.contains(&row.second)) {
            figures.window.add(row);
            figures.latency.add(row);
            let second = by_second.entry(row.second).or_default();
            second.stalled = second.stalled.saturating_add(row.stalled);
            second.players = second.players.saturating_add(row.players);
        }
        let shares = by_second.values().filter_map(PlaybackRow::stalled_ratio);
        figures.stalled_ratio_max = shares.reduce(f64::max);
        figures
    }

    /// The stall ratio of a share of players; one that failed before playback counts as stalled
    /// throughout.
    pub(crate) fn stall_ratio_quantile(
        &self,
        meant_to_play: &[&ParticipantRow],
        quantile: f64,
    ) -> Option<f64> {
        let stalls = self.players?.stalls();
        let ratio = |row: &ParticipantRow| match stalls
            .get(&row.participant)
            .and_then(|player| player.ratio)
        {
            None if row.failure().is_some() => Some(1.0),
            ratio => ratio,
        };
        ranked(meant_to_play.iter().filter_map(|row| ratio(row)), quantile)
    }

    /// The stalls of a share of players; one that failed before playback counts as worse than any.
    pub(crate) fn stalls_quantile(
        &self,
        meant_to_play: &[&ParticipantRow],
        quantile: f64,
    ) -> Option<f64> {
        let stalls = self.players?.stalls();
        let count = |row: &ParticipantRow| match stalls.get(&row.participant) {
            Some(player) if player.ratio.is_some() => Some(player.count as f64),
            _ => row.failure().map(|_| f64::INFINITY),
        };
        ranked(meant_to_play.iter().filter_map(|row| count(row)), quantile)
    }

    /// The summary; `None` where nobody plays from a buffer.
    pub(crate) fn summary(
        &self,
        meant_to_play: &[&ParticipantRow],
        startup: TimeTo,
        page_loaded: TimeTo,
    ) -> Option<Playback> {
        let players = self.players.filter(|players| !players.is_empty())?;
        let c = &self.window.counters;
        let seconds = |us: u64| us as f64 / 1e6;
        Some(Playback {
            players: players.stalls().len() as u64,
            startup,
            stalls: c.stall_count,
            stall_ratio: c.stall_ratio(),
            stall_ratio_p95: self.stall_ratio_quantile(meant_to_play, 0.95),
            viewers_stalled: players.stalls().values().filter(|player| player.count > 0).count()
                as u64,
            stalled_ratio_max: self.stalled_ratio_max,
            stall_s: seconds(c.stall_us),
            startup_s: seconds(c.startup_us),
            played_s: seconds(c.played_us),
            paused_s: seconds(c.paused_us),
            delivery_ratio: c.delivery_ratio(),
            delivery_ratio_p5: self.window.delivery_ratio(0.05),
            buffer_ms_p50: self.window.buffer_us.quantile_in(0.50, 1e3),
            buffer_ms_p5: self.window.buffer_us.quantile_in(0.05, 1e3),
            sums: PlaybackSums::of(c),
            responses: ResponsesByVersion::of(c),
            page: (c.page_requests > 0 || page_loaded.reached > 0).then_some(LoadedPage {
                loaded: page_loaded,
                requests: c.page_requests,
                requests_failed: c.page_requests_failed,
                bytes: c.page_bytes,
            }),
            requests_by_status: self.requests.map(requests::by_status).unwrap_or_default(),
            latency: self.latency.summary(&self.window),
            peers: Peers::of_viewers(c),
        })
    }

    /// The latency that a share of the samples did not exceed, milliseconds.
    pub(crate) fn latency_ms(&self, quantile: f64) -> Option<f64> {
        self.latency.of(&self.window).quantile_in(quantile, 1e3)
    }
}
