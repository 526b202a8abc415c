//! Players.

use std::collections::HashMap;

use throng_observation::run::CohortId;
use throng_observation::{
    DATES_AHEAD_US_MAX, Distribution, LiveInterval, PlaybackCounters, PlaybackInterval, PlaybackRow,
};

use super::{Family, Interval, OpenSecond};
use crate::collector::player_record::delivery_ppm;

/// All intervals of one player in the second.
#[derive(Default)]
pub(in crate::collector) struct PlayerSecond {
    counters: PlaybackCounters,
    buffer_us: u64,
    delivery_ppm: Option<u32>,
    live: Option<LiveInterval>,
}

impl Interval for PlaybackInterval {
    type Open = HashMap<u32, PlayerSecond>;
    type Row = PlaybackRow;

    fn family(second: &mut OpenSecond) -> &mut Family<Self> {
        &mut second.playback
    }

    fn add_to(&self, open: &mut Self::Open, id: u32) {
        let player = open.entry(id).or_default();
        player.counters += self.counters;
        player.buffer_us = self.buffer_us;
        player.delivery_ppm = delivery_ppm(self).or(player.delivery_ppm);
        player.live = self.live.or(player.live);
    }

    fn rows(open: Self::Open, second: i64, cohort: CohortId) -> Vec<PlaybackRow> {
        let players = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let mut row = PlaybackRow { second, cohort, players, ..PlaybackRow::default() };
        open.values().for_each(|player| player.add_to(&mut row));
        vec![row]
    }
}

impl PlayerSecond {
    fn add_to(&self, row: &mut PlaybackRow) {
        row.stalled += u32::from(self.counters.stall_us > 0);
        row.starting += u32::from(self.counters.startup_us > 0);
        row.counters += self.counters;
        row.buffer_us.record(self.buffer_us);
        self.delivery_ppm.iter().for_each(|ppm| {
            row.shortfall_ppm.record(u64::from(1_000_000_u32.saturating_sub(*ppm)));
        });
        if let Some(live) = &self.live {
            // Clocks may disagree so much that a latency is negative.
            let record = |samples: &mut Distribution, us: i64| {
                samples.record(u64::try_from(us).unwrap_or(0));
            };
            record(&mut row.edge_latency_us, live.to_edge_us);
            live.since_date_us.iter().for_each(|us| record(&mut row.latency_us, *us));
            live.capture_latency_us.iter().for_each(|us| record(&mut row.capture_latency_us, *us));
            let is_ahead = live.dates_ahead_us.is_some_and(|us| us > DATES_AHEAD_US_MAX);
            *row.dates_ahead.get_or_insert(0) += u32::from(is_ahead);
        }
    }
}
