//! Measurements of a player: a participant that downloads recorded or live video over HTTP and
//! plays it from a buffer. Terms are those of HTML media elements (WHATWG HTML section 4.8.11) and
//! CTA-2066 (streaming quality of experience): startup time, stall, rebuffering.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::measure::ratio;
use crate::run::{CohortId, ParticipantId};
use crate::{Distribution, PlaybackCounters};

/// A player over one interval (a second, or the rest of one).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaybackInterval {
    /// When the interval ended.
    pub ended_at: Instant,
    /// Sums over the interval.
    pub counters: PlaybackCounters,
    /// Of `counters.media_bytes`, those of sound that comes by itself, and not with the pictures.
    pub separate_sound_bytes: u64,
    /// Media time buffered ahead of the playback position at the end of the interval, microseconds.
    pub buffer_us: u64,
    /// Media time received ÷ time, over the last seconds if the player wanted data throughout them;
    /// `None` while its buffer is full or has not been below the target for that long. A buffer
    /// hides a server that delivers too slowly for as long as it lasts; this does not.
    pub delivery_ratio: Option<f32>,
    /// Since when playback has not begun, or not begun again after a seek; `None` once it has. The
    /// reader decides how long that may take.
    pub start_awaited_since: Option<Instant>,
    /// How far behind a live stream it plays; `None` for recordings, and before playback has begun.
    pub live: Option<LiveInterval>,
}

/// A player of a live stream at the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveInterval {
    /// The end of the playlist, which moves on from when it was received, minus the position,
    /// microseconds.
    pub to_edge_us: i64,
    /// This host's wall clock minus the date that the playlist gives to what is played,
    /// microseconds; `None` without dates.
    pub since_date_us: Option<i64>,
    /// How far the date of the playlist's end was ahead of this host's clock when it was received,
    /// microseconds: what it ends with had not happened. Negative where it was in the past; `None`
    /// without dates.
    pub dates_ahead_us: Option<i64>,
    /// This host's wall clock minus the capture time of what is played, by the marks of the
    /// publisher ([`CaptureBasis`](crate::CaptureBasis) of WebRTC has the same), microseconds: from
    /// the publisher to the viewer, with encoder, packager and caches. Its error is that of the two
    /// clocks against each other. `None` without marks.
    pub capture_latency_us: Option<i64>,
    /// By how much the player is further behind the end of its playlist than it wants to be,
    /// microseconds. The end is the one that it began by: how soon after a segment its first
    /// playlist came is no latency.
    pub over_target_us: i64,
    /// Longest duration of a segment, as the playlist says.
    pub target_duration_us: u64,
}

/// All players of a cohort in one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlaybackRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which cohort.
    pub cohort: CohortId,
    /// Players that reported in this second.
    pub players: u32,
    /// Of them, those that stalled in it, for however short a time.
    pub stalled: u32,
    /// Of them, those that waited for playback to begin, or to begin again after a seek.
    pub starting: u32,
    /// Sums over those players.
    pub counters: PlaybackCounters,
    /// Media time buffered by each player at the end of the second, microseconds.
    pub buffer_us: Distribution,
    /// What [`PlaybackInterval::delivery_ratio`] lacks to 1, of each player that has one, parts per
    /// million; 0 where it is 1 or more. A distribution is exact to 1 % of its values, which of the
    /// ratio itself would be as much as the tolerance of its bound.
    pub shortfall_ppm: Distribution,
    /// Players whose playlist's dates are ahead of this host's clock
    /// ([`DATES_AHEAD_US_MAX`](crate::DATES_AHEAD_US_MAX)); `None` of versions that measured each
    /// player by one basis.
    pub dates_ahead: Option<u32>,
    /// [`LiveInterval::since_date_us`] of each player that has it; 0 where the clocks disagree so
    /// much that it is negative.
    pub latency_us: Distribution,
    /// [`LiveInterval::to_edge_us`] of each player of a live stream. Versions that measured each
    /// player by one basis have here only players without dates.
    pub edge_latency_us: Distribution,
    /// [`LiveInterval::capture_latency_us`] of each player that has it.
    pub capture_latency_us: Distribution,
}

impl PlaybackRow {
    /// The delivery ratio, up to 1, that a share `quantile` of the players' seconds did not exceed.
    /// `None` where no player wanted data throughout. That of all together is
    /// [`PlaybackCounters::delivery_ratio`].
    #[must_use]
    pub fn delivery_ratio(&self, quantile: f64) -> Option<f64> {
        // A distribution gives the upper end of what it cannot tell apart: above all, if all lacks.
        let shortfall = self.shortfall_ppm.quantile_in(1.0 - quantile, 1e6);
        shortfall.map(|shortfall| (1.0 - shortfall).clamp(0.0, 1.0))
    }

    /// Share of the players that stalled; `None` without players.
    #[must_use]
    pub fn stalled_ratio(&self) -> Option<f64> {
        self.of_players(self.stalled)
    }

    /// Share of the players that waited for playback to begin; `None` without players.
    #[must_use]
    pub fn starting_ratio(&self) -> Option<f64> {
        self.of_players(self.starting)
    }

    fn of_players(&self, part: u32) -> Option<f64> {
        ratio(part.into(), self.players.into())
    }
}

/// A player over the life of its participant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerRow {
    /// The participant.
    pub participant: ParticipantId,
    /// From the intended join to the first time that playback began, microseconds; `None` before it
    /// did.
    pub startup_us: Option<u64>,
    /// Media time buffered when it last reported, microseconds.
    pub buffer_us: u64,
    /// The lowest delivery ratio, parts per million; `None` where it never wanted data for long
    /// enough.
    pub delivery_ppm_min: Option<u32>,
    /// Sums over its life.
    pub counters: PlaybackCounters,
}

/// The players of a run over their lives: a report shows sums and quantiles of them, so that is
/// what its reader keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Players {
    stalls: BTreeMap<ParticipantId, PlayerStalls>,
    counters: PlaybackCounters,
}

/// The stalls of a player over its life.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlayerStalls {
    /// Stalled ÷ (stalled + playing) time; `None` before playback began.
    pub ratio: Option<f64>,
    /// Stalls begun.
    pub count: u64,
}

impl Players {
    /// Adds a player.
    pub fn add(&mut self, player: &PlayerRow) {
        self.counters += player.counters;
        let (ratio, count) = (player.counters.stall_ratio(), player.counters.stall_count);
        self.stalls.insert(player.participant, PlayerStalls { ratio, count });
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stalls.is_empty()
    }

    /// The stalls of each player.
    #[must_use]
    pub fn stalls(&self) -> &BTreeMap<ParticipantId, PlayerStalls> {
        &self.stalls
    }

    /// Sums over all of them.
    #[must_use]
    pub fn counters(&self) -> &PlaybackCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_delivery_is_what_lacks_most() {
        let mut row = PlaybackRow { players: 4, stalled: 1, starting: 2, ..PlaybackRow::default() };
        assert_eq!((row.delivery_ratio(0.0), row.stalled_ratio()), (None, Some(0.25)));
        (0..9).for_each(|_| row.shortfall_ppm.record(0));
        row.shortfall_ppm.record(500_000);
        let lowest = row.delivery_ratio(0.0);
        assert!(lowest.is_some_and(|ratio| (0.49..0.51).contains(&ratio)), "{lowest:?}");
        assert_eq!((row.delivery_ratio(0.5), row.starting_ratio()), (Some(1.0), Some(0.5)));
        assert_eq!(PlaybackRow::default().stalled_ratio(), None);
        row.shortfall_ppm.record(1_000_000);
        assert_eq!(row.delivery_ratio(0.0), Some(0.0), "no less than nothing");
    }

    #[test]
    fn players_keep_the_stalls_of_each_and_the_sums_of_all() {
        let player = |participant, active_us, stall_us| PlayerRow {
            participant: ParticipantId(participant),
            startup_us: None,
            buffer_us: 0,
            delivery_ppm_min: None,
            counters: PlaybackCounters {
                active_us,
                stall_us,
                stall_count: 2,
                ..Default::default()
            },
        };
        let mut players = Players::default();
        assert!(players.is_empty());
        [player(4, 10, 1), player(7, 0, 0)].iter().for_each(|player| players.add(player));
        assert_eq!(players.counters().stall_count, 4);
        assert_eq!(
            players.stalls()[&ParticipantId(4)],
            PlayerStalls { ratio: Some(0.1), count: 2 }
        );
        assert_eq!(players.stalls()[&ParticipantId(7)].ratio, None);
    }
}
