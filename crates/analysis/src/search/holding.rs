//! One load while it is held: first it settles, then its seconds are judged.

use std::collections::VecDeque;

use throng_observation::{Goal, HoldRow, Passed, Purpose};

use super::trial::Trials;
use super::{Second, Settings};

/// More than this share of users badly served …
const HARD_RATIO: f64 = 0.20;
/// … for so many seconds in a row is a failure that needs no more seconds, and so is a load that failed and went on being bad
/// for as long. What is over sooner may be a moment, and the load is looked at to its end.
const LASTING_S: u32 = 10;
/// Bad seconds with fewer good ones between them are one stretch.
const STRETCHES_APART_S: u32 = 3;
/// Queues have settled when the median delay moved less than this over [`SETTLED_OVER`] seconds: 5 ms a second.
const SETTLED_WITHIN_MS: f64 = 25.0;
const SETTLED_OVER: usize = 5;
/// The generator may be past its limits in this share of the judged seconds, as the server may …
const LIMITED_RATIO_MAX: f64 = 0.05;
/// … but a hiccup shorter than this is none.
const LIMITED_MIN: u32 = 3;
/// A crowd that never gets complete is judged as it is after so many seconds beyond [`super::Pace::settle_max_s`].
const INCOMPLETE_MAX_S: u32 = 120;

/// A failing load that is held again is looked at for at least so long, however clearly it fails: why it fails is read
/// off these seconds, and profiled in them.
const CONFIRM_MIN_S: u32 = 10;

/// What a second did to a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoesOn,
    Ended,
    /// The generator was the limit.
    Limited,
}

#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) row: HoldRow,
    settings: Settings,
    trials: [Trials; 3],
    /// Seconds since the crowd was complete; and since the hold began.
    complete_s: u32,
    waited_s: u32,
    delays_ms: VecDeque<f64>,
    /// Seconds in a row in which many were badly served, and in how many of them the generator was past its limits.
    hard_s: u32,
    hard_limited_s: u32,
    /// Judged seconds in a row that were bad, and that were good since the last bad one.
    bad_s: u32,
    good_s: u32,
    bad_user_seconds: f64,
    /// It failed so clearly that no more seconds are needed.
    is_lost: bool,
}

impl Holding {
    pub(crate) fn new(row: HoldRow, settings: Settings, whole_s: u32) -> Self {
        let trials = Goal::ALL.map(|goal| Trials::new(goal, whole_s));
        Self {
            row,
            settings,
            trials,
            complete_s: 0,
            waited_s: 0,
            delays_ms: VecDeque::with_capacity(SETTLED_OVER),
            hard_s: 0,
            hard_limited_s: 0,
            bad_s: 0,
            good_s: 0,
            bad_user_seconds: 0.0,
            is_lost: false,
        }
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.row.judged_from.is_none()
    }

    pub(crate) fn whole_s(&self) -> u32 {
        self.trials[0].whole_s
    }

    /// How long a load is bad on end that is not just disturbed: in a short search no longer than it looks at a load.
    fn lasting_s(&self) -> u32 {
        LASTING_S.min(self.settings.pace.hold_s)
    }

    pub(crate) fn second(&mut self, second: &Second) -> Verdict {
        let is_hard = second.bad > HARD_RATIO * f64::from(second.users.max(1));
        if is_hard {
            self.hard_s += 1;
            self.hard_limited_s += u32::from(second.is_limited);
        } else {
            (self.hard_s, self.hard_limited_s) = (0, 0);
        }
        if self.is_settling() {
            self.settle(second);
        } else {
            self.judge(second);
        }
        // While the crowd grows to its size, joins may hurt; once it is complete, they are no excuse.
        let is_hard = self.hard_s >= self.lasting_s() && (second.is_complete || !self.is_settling());
        if self.is_generator_limited() || (is_hard && self.hard_limited_s >= LIMITED_MIN) {
            self.row.limited_seconds = self.row.limited_seconds.max(self.hard_limited_s);
            self.end(second, Some("the generator was the limit"));
            return Verdict::Limited;
        }
        if is_hard && self.is_settling() && self.row.purpose == Purpose::Confirm {
            self.row.judged_from = Some(second.at); // It will not settle.
        }
        self.is_lost |= is_hard;
        let is_seen =
            self.row.purpose != Purpose::Confirm || self.row.seconds >= CONFIRM_MIN_S.min(self.whole_s());
        self.row.passed = self.trials.map(|trials| trials.passed());
        if self.is_lost && is_seen {
            for goal in [Goal::Clean, Goal::Acceptable, self.settings.goal] {
                self.row.passed[goal as usize] = Passed::No;
            }
            let why = format!(
                "more than {:.0} % of the users were badly served for {} s",
                HARD_RATIO * 100.0,
                self.lasting_s()
            );
            self.end(second, Some(&why));
            return Verdict::Ended;
        }
        if !self.is_decided() {
            return Verdict::GoesOn;
        }
        self.end(second, None);
        Verdict::Ended
    }

    /// Whether more seconds would tell nothing new.
    fn is_decided(&self) -> bool {
        let is_whole = self.row.seconds >= self.whole_s();
        if self.row.purpose == Purpose::Contrast {
            return is_whole;
        }
        match self.row.passed(self.settings.goal) {
            Passed::Undecided => false,
            Passed::Yes => true,
            // A moment, or as long as the load lasts?
            Passed::No => {
                self.bad_s >= self.lasting_s() || (is_whole && self.row.seconds >= self.lasting_s())
            }
        }
    }

    /// Whether users were served well again while the load lasted.
    pub(crate) fn has_calmed_down(&self) -> bool {
        !self.is_lost && self.good_s >= STRETCHES_APART_S
    }

    fn settle(&mut self, second: &Second) {
        let pace = &self.settings.pace;
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
        let has_settled = self.complete_s >= pace.settle_min_s && moved < SETTLED_WITHIN_MS;
        let is_long_enough =
            self.complete_s >= pace.settle_max_s || self.waited_s >= pace.settle_max_s + INCOMPLETE_MAX_S;
        if has_settled || is_long_enough {
            self.row.judged_from = Some(second.at);
            (self.hard_s, self.hard_limited_s) = (0, 0);
        }
    }

    fn judge(&mut self, second: &Second) {
        self.row.seconds += 1;
        self.row.user_seconds += u64::from(second.users);
        self.bad_user_seconds += second.bad;
        self.row.bad_user_seconds = self.bad_user_seconds.round() as u64;
        if second.is_limited {
            // Whatever it was like, it says nothing of the server.
            self.row.limited_seconds += 1;
            return;
        }
        let are_bad = Goal::ALL.map(|goal| self.trials[goal as usize].add(second.users, second.bad));
        self.row.bad_seconds = self.trials.map(|trials| trials.bad);
        if !are_bad[Goal::Acceptable as usize] {
            (self.bad_s, self.good_s) = (0, self.good_s + 1);
            return;
        }
        if self.row.bad_stretches == 0 || self.good_s >= STRETCHES_APART_S {
            self.row.bad_stretches += 1;
        }
        self.row.broke_at.get_or_insert(second.at);
        (self.bad_s, self.good_s) = (self.bad_s + 1, 0);
    }

    fn is_generator_limited(&self) -> bool {
        let limited = self.row.limited_seconds;
        limited >= LIMITED_MIN
            && f64::from(limited) > LIMITED_RATIO_MAX * f64::from(self.whole_s().max(self.row.seconds))
    }

    fn end(&mut self, second: &Second, why: Option<&str>) {
        self.row.until = Some(second.at);
        self.row.bad_to_the_end = self.is_lost || self.bad_s > 0;
        if self.is_lost {
            // It may have been lost before it settled, and no second of it was judged.
            self.row.bad_stretches = self.row.bad_stretches.max(1);
            self.row.broke_at.get_or_insert(second.at);
        }
        self.row.why = why.map(str::to_owned);
        if self.row.judged_from.is_none() {
            self.row.judged_from = Some(second.at);
        }
    }
}
