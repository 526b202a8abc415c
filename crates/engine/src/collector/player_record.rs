//! The collector's record of a player: a participant that plays from a buffer.

use throng_observation::run::{ParticipantId, Row};
use throng_observation::{BadIf, Clause, PlaybackCounters, PlaybackInterval, PlayerRow, RunTime};

use super::last_seconds::{LastSeconds, SecondNote};
use crate::live::PlayerFigures;

/// The record of a player.
#[derive(Default)]
pub(super) struct PlayerRecord {
    counters: PlaybackCounters,
    buffer_us: u64,
    delivery_ppm_min: Option<u32>,
    last: PlaybackCounters,
    last_delivery_ratio: Option<f32>,
    /// Since when it waited for playback to begin when its last interval ended.
    awaited_since: Option<RunTime>,
    /// Violations in its last seconds.
    quality: LastSeconds,
}

/// The times of an interval that the judgement needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalTimes {
    /// When the interval began.
    pub(super) began: RunTime,
    /// The second to which it counts.
    pub(super) second: i64,
    /// [`PlaybackInterval::start_awaited_since`].
    pub(super) awaited_since: Option<RunTime>,
}

impl PlayerRecord {
    /// Adds an interval. `first_start_since`: the intended join, while playback had never begun
    /// when the interval began.
    pub(super) fn add(
        &mut self,
        interval: &PlaybackInterval,
        times: IntervalTimes,
        first_start_since: Option<RunTime>,
        bad_if: &BadIf,
    ) {
        // A wait that ended within the interval began in an earlier one.
        let since = first_start_since.or(self.awaited_since).or(times.awaited_since);
        let waited_us = since.map(|since| times.began.0.saturating_sub(since.0));
        self.quality
            .add(times.second, SecondNote::new(broken_clauses(interval, waited_us, bad_if), 0));
        self.awaited_since = times.awaited_since;
        self.counters += interval.counters;
        self.buffer_us = interval.buffer_us;
        (self.last, self.last_delivery_ratio) = (interval.counters, interval.delivery_ratio);
        let lowest = [delivery_ppm(interval), self.delivery_ppm_min].into_iter().flatten().min();
        self.delivery_ppm_min = lowest;
    }

    /// The clauses that it violated in `second`, as bits of [`Clause::bit`].
    pub(super) fn broken_clauses(&self, second: i64) -> u16 {
        self.quality.of(second).map_or(0, |noted| noted.bits)
    }

    pub(super) fn row(&self, participant: ParticipantId, startup_us: Option<u64>) -> Row {
        Row::Player(Box::new(PlayerRow {
            participant,
            startup_us,
            buffer_us: self.buffer_us,
            delivery_ppm_min: self.delivery_ppm_min,
            counters: self.counters,
        }))
    }

    /// Rank of its latest interval, next to that of tracks: a stalled second is as bad as a lost
    /// half of the packets.
    pub(super) fn badness(&self) -> f64 {
        let waiting_us = self.last.stall_us + self.last.startup_us;
        let lacks = self.last_delivery_ratio.map_or(0.0, |ratio| (1.0 - f64::from(ratio)).max(0.0));
        waiting_us as f64 / 20_000.0 + lacks
    }

    pub(super) fn figures(&self) -> PlayerFigures {
        PlayerFigures {
            buffer_ms: self.buffer_us as f64 / 1e3,
            stall_ms: self.last.stall_us as f64 / 1e3,
            is_starting: self.awaited_since.is_some(),
            delivery_ratio: self.last_delivery_ratio.map(f64::from),
            stalls: self.counters.stall_count,
        }
    }
}

/// The delivery ratio of an interval, parts per million.
pub(super) fn delivery_ppm(interval: &PlaybackInterval) -> Option<u32> {
    let ratio = interval.delivery_ratio.filter(|ratio| ratio.is_finite() && *ratio >= 0.0)?;
    Some((f64::from(ratio) * 1e6) as u32)
}

/// The clauses that an interval violated, as bits of [`Clause::bit`]. `waited_us`: how long
/// playback had been awaited when the interval began.
fn broken_clauses(interval: &PlaybackInterval, waited_us: Option<i64>, bad_if: &BadIf) -> u16 {
    let counters = &interval.counters;
    if counters.active_us == 0 {
        return 0; // its user paused
    }
    let mut bits = 0;
    let mut hold =
        |clause: Clause, is_broken: bool| bits |= if is_broken { clause.bit() } else { 0 };
    hold(Clause::Stall, counters.stall_us > 0);
    let patience_us = (bad_if.join_ms_max * 1e3) as i64;
    hold(Clause::Startup, counters.startup_us > 0 && waited_us.is_some_and(|us| us > patience_us));
    let is_short = |ratio: f32| f64::from(ratio) < bad_if.delivery_ratio_min;
    hold(Clause::Delivery, interval.delivery_ratio.is_some_and(is_short));
    hold(Clause::Skip, counters.skipped_us > 0);
    if let Some(live) = &interval.live {
        let bound_us = bad_if.latency_over_target_ms_max.map(|ms| (ms * 1e3) as i64);
        let usual_us = i64::try_from(live.target_duration_us).unwrap_or(i64::MAX);
        hold(Clause::Latency, live.over_target_us > bound_us.unwrap_or(usual_us));
    }
    hold(Clause::Request, counters.missed > 0);
    bits
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use throng_observation::LiveInterval;

    use super::*;

    const S: i64 = 1_000_000;

    /// A second of playback with a full buffer.
    fn plays(change: impl FnOnce(&mut PlaybackInterval)) -> PlaybackInterval {
        let counters = PlaybackCounters {
            active_us: 1_000_000,
            played_us: 1_000_000,
            ..PlaybackCounters::default()
        };
        let mut interval = PlaybackInterval {
            ended_at: Instant::now(),
            separate_sound_bytes: 0,
            counters,
            buffer_us: 10_000_000,
            delivery_ratio: None,
            start_awaited_since: None,
            live: None,
        };
        change(&mut interval);
        interval
    }

    /// A player of a live stream, so much further behind than it wants to be.
    fn behind(over_target_us: i64) -> LiveInterval {
        LiveInterval {
            to_edge_us: 16_000_000,
            since_date_us: Some(20_000_000),
            dates_ahead_us: Some(0),
            capture_latency_us: None,
            over_target_us,
            target_duration_us: 4_000_000,
        }
    }

    #[test]
    fn each_clause_is_broken_by_its_own_figure_alone() {
        type Change = fn(&mut PlaybackInterval);
        let startup: Change = |i| i.counters.startup_us = 1_000_000;
        let cases: [(&str, Change, Option<i64>, Option<Clause>); 17] = [
            ("its buffer is full", |_| {}, None, None),
            ("its buffer is empty, and it plays", |i| i.buffer_us = 0, None, None),
            (
                "a stall of a millisecond",
                |i| i.counters.stall_us = 1_000,
                None,
                Some(Clause::Stall),
            ),
            ("it waits for playback", startup, Some(3 * S), None),
            ("it has waited for too long", startup, Some(3 * S + 1), Some(Clause::Startup)),
            ("it waited for long, and plays", |_| {}, Some(9 * S), None),
            ("the media's bit rate arrives", |i| i.delivery_ratio = Some(1.0), None, None),
            ("nearly", |i| i.delivery_ratio = Some(0.985), None, None),
            ("less", |i| i.delivery_ratio = Some(0.97), None, Some(Clause::Delivery)),
            ("nothing", |i| i.delivery_ratio = Some(0.0), None, Some(Clause::Delivery)),
            ("it jumped", |i| i.counters.skipped_us = 1, None, Some(Clause::Skip)),
            ("live, a target duration behind", |i| i.live = Some(behind(4_000_000)), None, None),
            ("live, more", |i| i.live = Some(behind(4_000_001)), None, Some(Clause::Latency)),
            ("live, ahead", |i| i.live = Some(behind(-9_000_000)), None, None),
            ("a request failed and was repeated", |i| i.counters.requests_failed = 1, None, None),
            ("a segment never came", |i| i.counters.missed = 1, None, Some(Clause::Request)),
            (
                "its user paused while little arrived",
                |i| {
                    i.counters =
                        PlaybackCounters { paused_us: 1_000_000, ..PlaybackCounters::default() };
                    i.delivery_ratio = Some(0.5);
                },
                Some(9 * S),
                None,
            ),
        ];
        for (name, change, waited_us, clause) in cases {
            let expected = clause.map_or(0, Clause::bit);
            assert_eq!(
                broken_clauses(&plays(change), waited_us, &BadIf::default()),
                expected,
                "{name}"
            );
        }
    }

    /// The broken clauses of seconds; of each, its time in startup and since when playback was
    /// awaited at its end.
    fn startups(first_start_since: Option<RunTime>, seconds: &[(u64, Option<i64>)]) -> Vec<bool> {
        let mut player = PlayerRecord::default();
        let of = |(second, (startup_us, awaited_since)): (usize, &(u64, Option<i64>))| {
            let second = second as i64;
            let times = IntervalTimes {
                began: RunTime(second * S),
                second,
                awaited_since: awaited_since.map(RunTime),
            };
            player.add(
                &plays(|i| i.counters.startup_us = *startup_us),
                times,
                first_start_since,
                &BadIf::default(),
            );
            player.broken_clauses(second) == Clause::Startup.bit()
        };
        seconds.iter().enumerate().map(of).collect()
    }

    #[test]
    fn the_wait_after_a_seek_counts_from_the_seek_and_the_second_in_which_it_ends_is_part_of_it() {
        let sought = Some(S / 2);
        let seconds = [
            (500_000, sought),
            (1_000_000, sought),
            (1_000_000, sought),
            (1_000_000, sought),
            (900_000, None), // playback began again in it
            (0, None),
        ];
        assert_eq!(startups(None, &seconds), [false, false, false, false, true, false]);
        let again = [
            (1_000_000, sought),
            (900_000, Some(S + S * 9 / 10)),
            (1_000_000, Some(S + S * 9 / 10)),
        ];
        assert_eq!(startups(None, &again), [false; 3], "a second seek is a new wait");
    }

    #[test]
    fn the_first_wait_counts_from_the_intended_join() {
        // The participant itself began four seconds late.
        let late = [(1_000_000, Some(0)), (1_000_000, Some(0))];
        assert_eq!(startups(Some(RunTime(-4 * S)), &late), [true, true]);
        assert_eq!(startups(Some(RunTime(0)), &late), [false, false]);
    }

    #[test]
    fn its_row_sums_its_life_and_keeps_the_lowest_delivery() {
        let mut player = PlayerRecord::default();
        let at =
            |second: i64| IntervalTimes { began: RunTime(second * S), second, awaited_since: None };
        for (second, ratio) in [(0, Some(1.5)), (1, Some(0.25)), (2, None), (3, Some(f32::NAN))] {
            let interval = plays(|i| {
                (i.delivery_ratio, i.counters.stall_us, i.counters.stall_count) =
                    (ratio, 250_000, 1);
                i.buffer_us = second as u64;
            });
            player.add(&interval, at(second), None, &BadIf::default());
        }
        let Row::Player(row) = player.row(ParticipantId(3), Some(7)) else {
            panic!("a player's row")
        };
        assert_eq!(
            (row.startup_us, row.buffer_us, row.delivery_ppm_min),
            (Some(7), 3, Some(250_000))
        );
        assert_eq!((row.counters.stall_count, row.counters.stall_ratio()), (4, Some(0.25)));
    }
}
