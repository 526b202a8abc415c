//! A hold: a load first settles, then its seconds are judged.

use std::collections::VecDeque;

use throng_observation::limits::{LIMITED_SECONDS_MIN, is_sustained};
use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose, RunTime, Unloaded};

use super::trial::Trials;
use super::{Second, Settings};
use crate::pattern::BadSeconds;

/// More than this share of users badly served …
const HARD_RATIO: f64 = 0.20;
/// … for this many consecutive seconds is a failure that needs no more seconds, and so is a load
/// that failed and stays bad for as long. A shorter failure may be a disturbance: the hold
/// continues to its end.
const LASTING_S: u32 = 10;
/// Bad seconds with fewer good seconds between them are one bad stretch.
const STRETCHES_APART_S: u32 = 3;
/// Queues have settled if the median delay changed less than this over [`SETTLED_OVER`] seconds: 5
/// ms a second.
const SETTLED_WITHIN_MS: f64 = 25.0;
const SETTLED_OVER: usize = 5;
/// Seconds after one in which the generator was past its limits that show its effect: bad seconds
/// among them do not count.
pub(crate) const LIMITED_FELT_S: u32 = 2;
/// A crowd that never becomes complete is judged as it is after this many seconds beyond
/// [`super::Schedule::settle_max_s`].
const INCOMPLETE_MAX_S: u32 = 120;

/// A failing load is confirmed for at least this many seconds, however clearly it fails: the cause
/// is determined, and profiled, in these seconds.
const CONFIRM_MIN_S: u32 = 10;

/// The state of a hold after a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldProgress {
    Continues,
    Ended,
    /// The generator was the limit.
    GeneratorLimited,
}

#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) row: HoldRow,
    settings: Settings,
    /// Seconds in which the crowd was complete; seconds since the hold began.
    complete_s: u32,
    waited_s: u32,
    delays_ms: VecDeque<f64>,
    /// Consecutive seconds in which many users had bad service; those of them in which the
    /// generator was past its limits; those since its effect ended.
    hard_s: u32,
    hard_limited_s: u32,
    hard_sure_s: u32,
    /// Seconds since the generator was past its limits.
    since_limited_s: u32,
    counted: JudgedCounts,
    /// The counts before the last judged second, if that was a bad one.
    before_bad: Option<JudgedCounts>,
    bad_user_seconds: f64,
    /// The bad seconds in which the crowd was complete, settled or not.
    bad_when_complete: BadSeconds,
    /// The load failed so clearly that no more seconds are needed.
    is_lost: bool,
}

/// The counts of the judged seconds.
#[derive(Clone, Copy, Debug)]
struct JudgedCounts {
    trials: [Trials; 3],
    /// Consecutive bad seconds, and consecutive good seconds since the last bad one.
    bad_s: u32,
    good_s: u32,
    stretches: u32,
    broke_at: Option<RunTime>,
}

impl Holding {
    pub(crate) fn new(row: HoldRow, settings: Settings, whole_s: u32) -> Self {
        let trials = Goal::ALL.map(|goal| Trials::new(goal, whole_s));
        Self {
            row,
            settings,
            counted: JudgedCounts { trials, bad_s: 0, good_s: 0, stretches: 0, broke_at: None },
            before_bad: None,
            complete_s: 0,
            waited_s: 0,
            delays_ms: VecDeque::with_capacity(SETTLED_OVER),
            hard_s: 0,
            hard_limited_s: 0,
            hard_sure_s: 0,
            since_limited_s: u32::MAX,
            bad_user_seconds: 0.0,
            bad_when_complete: BadSeconds::default(),
            is_lost: false,
        }
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.row.judged_from.is_none()
    }

    pub(crate) fn whole_s(&self) -> u32 {
        self.counted.trials[0].whole_s
    }

    /// Consecutive bad seconds that are no disturbance: in a short search no more than the length
    /// of a hold.
    fn lasting_s(&self) -> u32 {
        LASTING_S.min(self.settings.schedule.hold_s)
    }

    pub(crate) fn second(&mut self, second: &Second) -> HoldProgress {
        self.since_limited_s =
            if second.is_limited { 0 } else { self.since_limited_s.saturating_add(1) };
        self.hard(second);
        if second.is_complete {
            let Second { bad, bad_by_patterns, clauses, media, .. } = *second;
            self.bad_when_complete.add(bad, bad_by_patterns, clauses, media);
        }
        if self.is_settling() {
            self.settle(second);
        } else {
            self.judge(second);
        }
        // Joins may degrade service until the crowd is complete.
        let is_due = second.is_complete || !self.is_settling();
        let is_hard = is_due && self.hard_sure_s >= self.lasting_s();
        let is_ours = is_due
            && self.hard_s >= self.lasting_s()
            && self.hard_limited_s as usize >= LIMITED_SECONDS_MIN
            && !is_hard;
        if self.is_generator_limited() || is_ours {
            self.row.limited_seconds = self.row.limited_seconds.max(self.hard_limited_s);
            self.end(second, Some("the generator was the limit"));
            return HoldProgress::GeneratorLimited;
        }
        if is_hard && self.is_settling() && self.row.purpose == Purpose::Confirm {
            self.row.judged_from = Some(second.at); // It will not settle.
        }
        self.is_lost |= is_hard;
        let is_seen = self.row.purpose != Purpose::Confirm
            || self.row.seconds >= CONFIRM_MIN_S.min(self.whole_s());
        self.row.passed = self.counted.trials.map(|trials| trials.passed());
        if self.is_lost && is_seen {
            let is_broken = self.row.is_mostly_bad(Goal::Broken);
            for goal in Goal::ALL {
                if goal != Goal::Broken || goal == self.settings.goal || is_broken {
                    self.row.passed[goal as usize] = HoldOutcome::No;
                }
            }
            let why = format!(
                "more than {:.0} % of the users were badly served for {} s",
                HARD_RATIO * 100.0,
                self.lasting_s()
            );
            self.end(second, Some(&why));
            return HoldProgress::Ended;
        }
        if !self.is_decided() {
            return HoldProgress::Continues;
        }
        self.end(second, None);
        HoldProgress::Ended
    }

    /// Whether more seconds would not change the result.
    fn is_decided(&self) -> bool {
        let is_whole = self.row.seconds >= self.whole_s();
        if self.row.purpose == Purpose::DependenceTest {
            return is_whole;
        }
        match self.row.passed(self.settings.goal) {
            HoldOutcome::Undecided => false,
            HoldOutcome::Yes => true,
            // A disturbance, or as long as the load lasts?
            HoldOutcome::No => {
                self.counted.bad_s >= self.lasting_s()
                    || (is_whole && self.row.seconds >= self.lasting_s())
            }
        }
    }

    /// Whether service was good again while the load lasted.
    pub(crate) fn has_calmed_down(&self) -> bool {
        !self.is_lost && self.counted.good_s >= STRETCHES_APART_S
    }

    /// The media of its bad seconds, if these are bad by a pattern: one that stays the same
    /// throughout, and beyond which worse can be seen.
    pub(crate) fn pattern(&self) -> Option<Unloaded> {
        self.bad_when_complete.pattern()
    }

    /// Counts consecutive seconds in which many users had bad service.
    fn hard(&mut self, second: &Second) {
        if second.bad <= HARD_RATIO * f64::from(second.users.max(1)) {
            (self.hard_s, self.hard_limited_s, self.hard_sure_s) = (0, 0, 0);
            return;
        }
        self.hard_s += 1;
        self.hard_limited_s += u32::from(second.is_limited);
        self.hard_sure_s =
            if self.since_limited_s <= LIMITED_FELT_S { 0 } else { self.hard_sure_s + 1 };
    }

    fn settle(&mut self, second: &Second) {
        let schedule = &self.settings.schedule;
        self.waited_s += 1;
        self.complete_s += u32::from(second.is_complete);
        if self.delays_ms.len() >= SETTLED_OVER {
            self.delays_ms.pop_front();
        }
        self.delays_ms.extend(second.delay_ms);
        let moved = match (self.delays_ms.front(), self.delays_ms.back()) {
            (Some(first), Some(last)) => (last - first).abs(),
            _ => 0.0,
        };
        let has_settled = self.complete_s >= schedule.settle_min_s && moved < SETTLED_WITHIN_MS;
        let is_long_enough = self.complete_s >= schedule.settle_max_s
            || self.waited_s >= schedule.settle_max_s + INCOMPLETE_MAX_S;
        if has_settled || is_long_enough {
            self.row.judged_from = Some(second.at);
            (self.hard_s, self.hard_limited_s, self.hard_sure_s) = (0, 0, 0);
        }
    }

    fn judge(&mut self, second: &Second) {
        self.row.seconds += 1;
        self.row.user_seconds += u64::from(second.users);
        self.bad_user_seconds += second.bad;
        self.row.bad_user_seconds = self.bad_user_seconds.round() as u64;
        let before = self.counted;
        if second.is_limited {
            // The second says nothing about the server, and a bad second just before it is taken
            // for the same event.
            self.row.limited_seconds += 1;
            self.before_bad.take().into_iter().for_each(|before| self.leave_out(before));
            return;
        }
        let is_bad = self.counted.add(second);
        self.before_bad = is_bad.then_some(before);
        if is_bad && self.since_limited_s <= LIMITED_FELT_S {
            self.before_bad = None;
            self.leave_out(before);
        }
        self.update_row();
    }

    /// A bad second next to one in which the generator was past its limits counts as one of those.
    fn leave_out(&mut self, before: JudgedCounts) {
        self.counted = before;
        self.row.limited_seconds += 1;
        self.update_row();
    }

    fn update_row(&mut self) {
        self.row.bad_seconds = self.counted.trials.map(|trials| trials.bad);
        (self.row.bad_stretches, self.row.broke_at) =
            (self.counted.stretches, self.counted.broke_at);
    }

    fn is_generator_limited(&self) -> bool {
        is_sustained(
            self.row.limited_seconds as usize,
            f64::from(self.whole_s().max(self.row.seconds)),
        )
    }

    fn end(&mut self, second: &Second, why: Option<&str>) {
        self.row.until = Some(second.at);
        self.row.bad_to_the_end = self.is_lost || self.counted.bad_s > 0;
        if self.is_lost {
            // It may have failed before it settled, without a judged second.
            self.row.bad_stretches = self.row.bad_stretches.max(1);
            self.row.broke_at.get_or_insert(second.at);
        }
        self.row.why = why.map(str::to_owned);
        if self.row.judged_from.is_none() {
            self.row.judged_from = Some(second.at);
        }
    }
}

impl JudgedCounts {
    /// Counts a second; true if it was bad for any goal.
    fn add(&mut self, second: &Second) -> bool {
        let are_bad =
            Goal::ALL.map(|goal| self.trials[goal as usize].add(second.users, second.bad));
        if are_bad[Goal::Acceptable as usize] {
            if self.stretches == 0 || self.good_s >= STRETCHES_APART_S {
                self.stretches += 1;
            }
            self.broke_at.get_or_insert(second.at);
            (self.bad_s, self.good_s) = (self.bad_s + 1, 0);
        } else {
            (self.bad_s, self.good_s) = (0, self.good_s + 1);
        }
        are_bad.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::Clause;

    use super::super::Schedule;
    use super::*;

    /// A hold of a demand step of 8 s whose seconds are `.` good, `b`ad for all, `L`imited and bad,
    /// or `l`imited and good; the first `settle_s` settle it.
    fn held(seconds: &str, settle_s: u32) -> (Option<HoldProgress>, HoldRow) {
        let schedule = Schedule { hold_s: 8, settle_min_s: settle_s, ..Schedule::default() };
        let settings = Settings {
            goal: Goal::Acceptable,
            start: 5,
            floor: 1,
            step: 1,
            ceiling: 100,
            schedule,
        };
        let row = HoldRow { users: 50, purpose: Purpose::Demand, ..HoldRow::default() };
        let mut holding = Holding::new(row, settings, 8);
        for (at, kind) in (1..).zip(seconds.chars()) {
            let verdict = holding.second(&Second {
                at: RunTime(at * 1_000_000),
                users: 50,
                bad: if matches!(kind, 'b' | 'L') { 50.0 } else { 0.0 },
                delay_ms: Some(5.0),
                is_limited: matches!(kind, 'L' | 'l'),
                is_complete: true,
                ..Second::default()
            });
            if verdict != HoldProgress::Continues {
                return (Some(verdict), holding.row);
            }
        }
        (None, holding.row)
    }

    #[test]
    fn no_load_fails_next_to_seconds_in_which_the_generator_was_the_limit() {
        for (seconds, expect) in [
            ("...........", Some((HoldProgress::Ended, HoldOutcome::Yes))),
            ("...bbbbbbbb", Some((HoldProgress::Ended, HoldOutcome::No))),
            // Two bad seconds, one of them past the generator's limits, or just after it, or just
            // before.
            ("....LL......", None),
            ("....Lb......", None),
            ("....bl.........", Some((HoldProgress::Ended, HoldOutcome::Yes))),
            ("....lbb.....", Some((HoldProgress::GeneratorLimited, HoldOutcome::Undecided))),
            // It was overloaded while it settled, in seconds half of which were the generator's.
            ("bLbLbLbLbLbL", Some((HoldProgress::GeneratorLimited, HoldOutcome::Undecided))),
            // What it held up once, long before, is over.
            ("l..bbbbbbbbb", Some((HoldProgress::Ended, HoldOutcome::No))),
        ] {
            let (verdict, row) = held(seconds, 3);
            let came_to = verdict.map(|verdict| (verdict, row.passed(Goal::Acceptable)));
            match expect {
                Some(expect) => assert_eq!(came_to, Some(expect), "{seconds}: {row:?}"),
                None => {
                    assert_ne!(row.passed(Goal::Acceptable), HoldOutcome::No, "{seconds}: {row:?}");
                }
            }
            assert!(
                row.bad_seconds[Goal::Acceptable as usize] + row.limited_seconds <= row.seconds,
                "{row:?}"
            );
        }
    }

    /// What a hold takes for a pattern whose seconds are bad by `clause`, with these figures.
    fn pattern_of(clause: Clause, seconds: &[Unloaded]) -> Option<Unloaded> {
        let schedule =
            Schedule { hold_s: 60, settle_min_s: 60, settle_max_s: 60, ..Schedule::default() };
        let settings = Settings {
            goal: Goal::Acceptable,
            start: 5,
            floor: 1,
            step: 1,
            ceiling: 100,
            schedule,
        };
        let mut holding = Holding::new(HoldRow { users: 1, ..HoldRow::default() }, settings, 60);
        let mut clauses = [0; Clause::ALL.len()];
        clauses[clause as usize] = 1;
        for (at, media) in (1..).zip(seconds) {
            holding.second(&Second {
                at: RunTime(at * 1_000_000),
                users: 1,
                bad: 1.0,
                bad_by_patterns: 1.0,
                media: *media,
                clauses,
                is_complete: true,
                ..Second::default()
            });
        }
        holding.pattern()
    }

    #[test]
    fn a_pattern_is_constant_and_leaves_room_and_has_only_what_made_seconds_bad() {
        let lossy = |loss_ppm| Unloaded { delay_us: 9_000, loss_ppm, ..Unloaded::default() };
        let constant = [lossy(100_000), lossy(110_000), lossy(90_000), lossy(100_000)];
        let only_loss = Unloaded { delay_us: 0, ..lossy(100_000) };
        assert_eq!(pattern_of(Clause::Loss, &constant), Some(only_loss));
        assert_eq!(
            pattern_of(Clause::Loss, &[lossy(260_000); 4]),
            None,
            "twice that is no service"
        );
        let delayed = |delay_us| Unloaded { delay_us, ..Unloaded::default() };
        let grows: Vec<Unloaded> = (2..8).map(|tenths| delayed(tenths * 100_000)).collect();
        assert_eq!(pattern_of(Clause::Delay, &grows), None, "a queue that fills");
        let falls: Vec<Unloaded> = grows.iter().rev().copied().collect();
        assert_eq!(pattern_of(Clause::Delay, &falls), None, "a backlog that is served");
        let no_frames = Unloaded { frames_missing_ppm: 1_000_000, ..Unloaded::default() };
        assert_eq!(pattern_of(Clause::Fps, &[no_frames; 4]), None);
        let frozen = |frozen_ppm| Unloaded { frozen_ppm, ..Unloaded::default() };
        let now_and_then = [frozen(300_000), frozen(0), frozen(0), frozen(300_000)];
        assert_eq!(pattern_of(Clause::Freeze, &now_and_then), Some(frozen(150_000)));
        let more_and_more = [frozen(0), frozen(0), frozen(500_000), frozen(500_000)];
        assert_eq!(pattern_of(Clause::Freeze, &more_and_more), None);
        assert_eq!(
            pattern_of(Clause::Jitter, &[delayed(290_000); 4]),
            None,
            "it was not the delay"
        );
    }

    #[test]
    fn a_load_that_is_lost_while_most_are_badly_served_is_lost_for_every_goal() {
        for settle_s in [3, 30] {
            let (verdict, row) = held("bbbbbbbbbbb", settle_s);
            assert_eq!(
                (verdict, row.passed),
                (Some(HoldProgress::Ended), [HoldOutcome::No; 3]),
                "{row:?}"
            );
        }
    }
}
