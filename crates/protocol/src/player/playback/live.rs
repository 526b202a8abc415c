//! How a player follows a live stream: how far behind its end it plays, and how it returns there.
//! The rules are those of hls.js (`latency-controller.ts`, `synchronizeToLiveEdge` of
//! `stream-controller.ts`).
//!
//! ```text
//! edge:     end of the playlist, and the time since it was received
//! phase:    how soon after its segment a playlist is loaded; differs from request to request
//! target:   behind the edge: what the scenario says, else the server (HOLD-BACK,
//!           PART-HOLD-BACK), else 3 target durations; each stall adds 1 s, up to a target duration
//! jump:     to the target, when playback has fallen out of the playlist, or further behind than
//!           `latency_max`
//! catch-up: up to `catch_up` times the normal speed, where parts are played
//! ```

use std::time::{Duration, Instant};

use throng_observation::LiveInterval;
use throng_scenario::LivePolicy;

use super::playout::NORMAL_RATE_MILLI;
use super::timeline::as_us;
use crate::player::lane::segments::LOOK_UP_TOLERANCE_US;
use crate::player::manifest::presentation::LiveEdge;

/// Target durations behind the edge at which a player begins (hls.js `liveSyncDurationCount`).
const SYNC_DURATIONS: u64 = 3;
/// What a stall adds to the target (hls.js `liveSyncOnStallIncrease`).
const STALL_INCREASE_US: u64 = 1_000_000;
/// Media that must be ahead for a faster playback, and distance from the target from which on it is
/// needed.
const CATCH_UP_BUFFER_US: u64 = 1_000_000;
const CATCH_UP_FROM_US: i64 = 50_000;
/// A longer time since capture is no latency: what is played is a recording that throng once made.
const CAPTURE_LATENCY_MAX_US: i64 = 3_600_000_000;

/// How a player follows the edge.
#[derive(Debug)]
pub(in crate::player) struct LiveFollower {
    policy: LivePolicy,
    stalls: u64,
    /// When the position was chosen, and where the edge was then.
    synchronised: Option<(Instant, i64)>,
}

impl LiveFollower {
    pub(in crate::player) fn new(policy: LivePolicy) -> Self {
        Self { policy, stalls: 0, synchronised: None }
    }

    /// Playback stalled so often since the last call.
    pub(in crate::player) fn stalled(&mut self, count: u64) {
        self.stalls = self.stalls.saturating_add(count);
    }

    /// The position was chosen by this edge.
    pub(in crate::player) fn synchronised(&mut self, edge: &LiveEdge, now: Instant) {
        self.synchronised = Some((now, Self::edge_us(edge, now)));
    }

    /// By how much the edge has moved more than time has passed since the position was chosen by
    /// it, as far as that may be the phase of playlists: the first may be as old as a segment, and
    /// a later one new, or the other way round. The player plays where it did. Playlists with parts
    /// are requested before they exist: they have no phase.
    fn moved_us(&self, edge: &LiveEdge, now: Instant) -> i64 {
        let synchronised = self.synchronised.filter(|_| edge.part_target_us.is_none());
        let Some((at, edge_us)) = synchronised else { return 0 };
        let unit_us = i64::try_from(edge.target_duration_us).unwrap_or(i64::MAX);
        let due_us = edge_us.saturating_add(as_us(now.saturating_duration_since(at)));
        Self::edge_us(edge, now).saturating_sub(due_us).clamp(-unit_us, unit_us)
    }

    /// The distance from the edge at which to play.
    fn target_us(&self, edge: &LiveEdge) -> u64 {
        let counted = |segments: u32| edge.target_duration_us.saturating_mul(u64::from(segments));
        let chosen = self.policy.latency.map(|latency| as_us(latency).unsigned_abs());
        let chosen = chosen.or_else(|| self.policy.segments_behind.map(counted));
        let usual = edge.target_duration_us.saturating_mul(SYNC_DURATIONS);
        let target_us = chosen.or(edge.hold_back_us.filter(|us| *us > 0)).unwrap_or(usual);
        let increase_us =
            self.stalls.saturating_mul(STALL_INCREASE_US).min(edge.target_duration_us);
        target_us.saturating_add(increase_us)
    }

    /// Where the stream is: the end of the playlist moves on although nothing was received.
    fn edge_us(edge: &LiveEdge, now: Instant) -> i64 {
        edge.ends_us.saturating_add(as_us(now.saturating_duration_since(edge.advanced_at)))
    }

    fn unit_us(edge: &LiveEdge) -> u64 {
        edge.part_target_us.unwrap_or(edge.target_duration_us)
    }

    /// Where to begin, and where to return to: `target_us` behind the edge, within the playlist.
    pub(in crate::player) fn sync_position_us(&self, edge: &LiveEdge, now: Instant) -> i64 {
        let age_us = as_us(now.saturating_duration_since(edge.advanced_at)).unsigned_abs();
        // While the server adds nothing, the position to return to does not move on for ever.
        let stalled_us = age_us.saturating_sub(Self::unit_us(edge).saturating_mul(3));
        let position_us = Self::edge_us(edge, now)
            .saturating_sub_unsigned(self.target_us(edge))
            .saturating_sub_unsigned(stalled_us);
        let last_us = edge.ends_us.saturating_sub_unsigned(Self::unit_us(edge)).max(edge.starts_us);
        position_us.clamp(edge.starts_us, last_us)
    }

    /// Whether playback must return to the edge: it `starves`, waits with nothing buffered, and
    /// what comes next is not in the playlist any more; or it is further behind than the scenario
    /// allows.
    pub(in crate::player) fn must_jump(
        &self,
        edge: &LiveEdge,
        now: Instant,
        position_us: i64,
        starves: bool,
    ) -> bool {
        let sync_us = self.sync_position_us(edge, now);
        let from_us = edge.starts_us.saturating_sub(LOOK_UP_TOLERANCE_US);
        let is_outside = starves && position_us < from_us;
        let is_too_late = self.policy.latency_max.is_some_and(|latency_max| {
            position_us < edge.ends_us.saturating_sub(as_us(latency_max))
        });
        sync_us > position_us && (is_outside || is_too_late)
    }

    /// The speed of playback, thousandths of the normal one.
    pub(in crate::player) fn rate_milli(
        &self,
        edge: &LiveEdge,
        now: Instant,
        position_us: i64,
        buffer_us: u64,
    ) -> u32 {
        let rate_max = self.policy.catch_up_milli.clamp(NORMAL_RATE_MILLI, 2 * NORMAL_RATE_MILLI);
        if edge.part_target_us.is_none() || rate_max == NORMAL_RATE_MILLI {
            return NORMAL_RATE_MILLI;
        }
        let target_us = self.target_us(edge);
        let distance_us =
            Self::edge_us(edge, now).saturating_sub(position_us).saturating_sub_unsigned(target_us);
        let range_us =
            i64::try_from(target_us.saturating_add(edge.target_duration_us)).unwrap_or(i64::MAX);
        let is_in_range = distance_us > CATCH_UP_FROM_US && distance_us < range_us;
        if !is_in_range || buffer_us <= CATCH_UP_BUFFER_US {
            return NORMAL_RATE_MILLI;
        }
        let rate = 2.0 / (1.0 + (-0.75 * distance_us as f64 / 1e6).exp());
        // In steps of a twentieth, as hls.js.
        let rate_milli = (rate * 20.0).round() as u32 * 50;
        rate_milli.clamp(NORMAL_RATE_MILLI, rate_max)
    }

    /// The latency at `position_us`, which has the date `date_us`. `unix_us`: the wall clock at
    /// `now`.
    pub(in crate::player) fn interval(
        &self,
        edge: &LiveEdge,
        (now, unix_us): (Instant, i64),
        (position_us, date_us): (i64, Option<i64>),
        captured_unix_us: Option<i64>,
    ) -> LiveInterval {
        let to_edge_us = Self::edge_us(edge, now).saturating_sub(position_us);
        let target_us = i64::try_from(self.target_us(edge)).unwrap_or(i64::MAX);
        LiveInterval {
            to_edge_us,
            since_date_us: date_us.map(|date_us| unix_us.saturating_sub(date_us)),
            dates_ahead_us: dates_ahead_us(edge, (now, unix_us)),
            // A mark of another time is that of a recording.
            capture_latency_us: captured_unix_us
                .map(|captured_us| unix_us.saturating_sub(captured_us))
                .filter(|since_us| since_us.abs() < CAPTURE_LATENCY_MAX_US),
            over_target_us: to_edge_us
                .saturating_sub(target_us)
                .saturating_sub(self.moved_us(edge, now)),
            target_duration_us: edge.target_duration_us,
        }
    }

    /// How long from `now` on until the speed is to be looked at again.
    pub(in crate::player) fn next_look(&self, edge: &LiveEdge) -> Option<Duration> {
        // A media element tells its position four times a second.
        let is_adjusted =
            edge.part_target_us.is_some() && self.policy.catch_up_milli > NORMAL_RATE_MILLI;
        is_adjusted.then_some(Duration::from_millis(250))
    }
}

/// [`LiveInterval::dates_ahead_us`] of this edge.
fn dates_ahead_us(edge: &LiveEdge, (now, unix_us): (Instant, i64)) -> Option<i64> {
    let received_us =
        unix_us.saturating_sub(as_us(now.saturating_duration_since(edge.advanced_at)));
    Some(edge.ends_us.saturating_add(edge.date_offset_us?).saturating_sub(received_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    fn edge(at: Instant) -> LiveEdge {
        LiveEdge {
            starts_us: 100 * S,
            ends_us: 160 * S,
            advanced_at: at,
            target_duration_us: 4_000_000,
            part_target_us: None,
            hold_back_us: None,
            date_offset_us: None,
            has_ended: false,
        }
    }

    fn follower(
        latency: Option<u64>,
        latency_max: Option<u64>,
        catch_up_milli: u32,
    ) -> LiveFollower {
        LiveFollower::new(LivePolicy {
            latency: latency.map(Duration::from_secs),
            latency_max: latency_max.map(Duration::from_secs),
            catch_up_milli,
            ..LivePolicy::default()
        })
    }

    #[test]
    fn playback_begins_where_scenario_server_or_custom_say_and_within_the_playlist() {
        let now = Instant::now();
        let later = now + Duration::from_secs(2);
        let usual = follower(None, None, 1_000);
        assert_eq!(usual.sync_position_us(&edge(now), now), 148 * S);
        assert_eq!(usual.sync_position_us(&edge(now), later), 150 * S, "the stream has moved on");
        assert_eq!(
            usual.sync_position_us(&edge(now), now + Duration::from_secs(99)),
            156 * S,
            "not over its end"
        );
        let held = LiveEdge { hold_back_us: Some(9_000_000), ..edge(now) };
        assert_eq!(usual.sync_position_us(&held, now), 151 * S);
        assert_eq!(follower(Some(20), None, 1_000).sync_position_us(&held, now), 140 * S);
        assert_eq!(follower(Some(200), None, 1_000).sync_position_us(&held, now), 100 * S);
        let parts =
            LiveEdge { part_target_us: Some(500_000), hold_back_us: Some(100_000), ..edge(now) };
        assert_eq!(usual.sync_position_us(&parts, now), 160 * S - 500_000);
    }

    #[test]
    fn each_stall_moves_the_target_by_a_second_up_to_a_target_duration() {
        let now = Instant::now();
        let mut follower = follower(None, None, 1_000);
        follower.stalled(2);
        assert_eq!(follower.sync_position_us(&edge(now), now), 146 * S);
        follower.stalled(9);
        assert_eq!(follower.sync_position_us(&edge(now), now), 144 * S);
    }

    #[test]
    fn playback_returns_when_it_fell_out_of_the_playlist_or_behind_its_bound() {
        let now = Instant::now();
        let usual = follower(None, None, 1_000);
        assert!(usual.must_jump(&edge(now), now, 99 * S, true));
        assert!(!usual.must_jump(&edge(now), now, 99 * S, false), "its buffer lasts");
        assert!(!usual.must_jump(&edge(now), now, 100 * S - 200_000, true), "it comes next");
        assert!(!usual.must_jump(&edge(now), now, 101 * S, true));
        let bounded = follower(None, Some(30), 1_000);
        assert!(bounded.must_jump(&edge(now), now, 129 * S, false));
        assert!(!bounded.must_jump(&edge(now), now, 131 * S, false));
    }

    #[test]
    fn it_plays_faster_only_with_parts_a_buffer_and_a_distance() {
        let now = Instant::now();
        let parts =
            LiveEdge { part_target_us: Some(500_000), hold_back_us: Some(2_000_000), ..edge(now) };
        let fast = follower(None, None, 1_500);
        let rate = |position_us, buffer_us| fast.rate_milli(&parts, now, position_us, buffer_us);
        assert_eq!(rate(157 * S, 2_000_000), 1_350, "2 ÷ (1 + e^-0.75), in twentieths");
        assert_eq!(rate(155 * S, 2_000_000), 1_500);
        assert_eq!((rate(157 * S, 900_000), rate(158 * S, 2_000_000)), (1_000, 1_000));
        assert_eq!(fast.rate_milli(&edge(now), now, 100 * S, 2_000_000), 1_000);
        assert_eq!(follower(None, None, 1_000).rate_milli(&parts, now, 157 * S, 2_000_000), 1_000);
    }

    #[test]
    fn latency_is_that_to_the_playlist_and_that_of_the_program_where_there_are_dates() {
        let now = Instant::now();
        let usual = follower(None, None, 1_000);
        let without = usual.interval(&edge(now), (now, 0), (146 * S, None), None);
        assert_eq!(
            (without.to_edge_us, without.since_date_us, without.dates_ahead_us),
            (14 * S, None, None)
        );
        assert_eq!(without.over_target_us, 2 * S);
        let dated = LiveEdge { date_offset_us: Some(0), ..edge(now) };
        let at = (146 * S, Some(146 * S));
        let with = usual.interval(&dated, (now, 163 * S), at, None);
        assert_eq!(
            (with.to_edge_us, with.since_date_us, with.dates_ahead_us),
            (14 * S, Some(17 * S), Some(-3 * S))
        );
        assert_eq!(with.over_target_us, 2 * S);
        let marked = |captured_us| usual.interval(&dated, (now, 163 * S), at, Some(captured_us));
        assert_eq!(marked(140 * S).capture_latency_us, Some(23 * S));
        assert_eq!(
            marked(163 * S - CAPTURE_LATENCY_MAX_US).capture_latency_us,
            None,
            "a recording"
        );
        // The clock was set back by 60 s while what is played was on its way.
        let set_back = LiveEdge { date_offset_us: Some(-60 * S), ..edge(now) };
        let set_back = usual.interval(&set_back, (now, 103 * S), (146 * S, Some(86 * S)), None);
        assert_eq!((set_back.since_date_us, set_back.dates_ahead_us), (Some(17 * S), Some(-3 * S)));
        let ahead = usual.interval(&dated, (now, 157 * S), at, None);
        assert_eq!((ahead.to_edge_us, ahead.dates_ahead_us), (14 * S, Some(3 * S)));
    }

    #[test]
    fn the_phase_of_playlists_is_no_latency_and_what_playback_lost_is() {
        let now = Instant::now();
        let mut follower = follower(None, None, 1_000);
        follower.synchronised(&edge(now), now);
        let later = now + Duration::from_secs(40);
        // Where it would play without a stall, and where playlists end 40 s later.
        let plays_us = 148 * S + 40 * S;
        for (what, ends_us, position_us, over_us) in [
            ("the same phase", 200 * S, plays_us, 0),
            ("the first was as old as a segment, and this one is new", 204 * S, plays_us, 0),
            ("the first was new", 196 * S, plays_us, 0),
            ("two segments more than time are no phase", 208 * S, plays_us, 4 * S),
            ("it stalled for five seconds", 200 * S, plays_us - 5 * S, 5 * S),
            ("it stalled for five seconds, in another phase", 204 * S, plays_us - 5 * S, 5 * S),
            ("it stalled, and playlists come late", 196 * S, plays_us - 5 * S, 5 * S),
        ] {
            let end = LiveEdge { ends_us, ..edge(later) };
            let live = follower.interval(&end, (later, 0), (position_us, None), None);
            assert_eq!(live.over_target_us, over_us, "{what}");
        }
    }
}
