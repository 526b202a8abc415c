//! The windows of a run that are compared: the baseline, the largest load that passed, and the
//! first that failed.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Sum;
use std::ops::{AddAssign, Range};

use throng_observation::host::measured::Window;
use throng_observation::run::{CohortId, ParticipantRow, RunData};
use throng_observation::{
    ChatRow, Clause, ExperienceRow, Goal, HoldOutcome, HoldRow, Outcome, Purpose, RunTime,
};

use crate::capacity::Capacity;

/// Shortest window that can be compared.
const SECONDS_MIN: i64 = 3;
/// A plain run: intervals of bad seconds with at most this gap are one.
const GAP_S_MAX: i64 = 5;
/// A plain run: the longest window before the failing one, and the longest baseline.
const BACK_S: i64 = 30;
/// A run that ends with its users: they are lost within this time.
const LOST_S: i64 = 3;
/// Share of the participants that have failed or left when a run ends because nobody is left.
const GONE_MIN: f64 = 0.9;
/// Errors and crossings count from this long before the failing load.
const BEFORE_S: i64 = 10;

/// A window of the run and the number of users in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadWindow {
    /// The window.
    pub window: Window,
    /// Users that should have been served, mean.
    pub users: f64,
}

/// The service quality of all users in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondQuality {
    /// Users that should be served.
    pub users: u64,
    /// Users with a bad second.
    pub bad: u64,
    /// The part of the bad users that does not count, thousandths of a user
    /// ([`throng_observation::ExperienceRow`]).
    pub uncounted_milli: u64,
    /// Users with a bad second by clause, in the order of [`Clause::ALL`].
    pub clauses: [u64; Clause::ALL.len()],
}

impl SecondQuality {
    /// Share of users with a bad second, each weighted by the share of the participants that it
    /// received badly; 0 without users.
    #[must_use]
    pub fn bad_ratio(&self) -> f64 {
        if self.users == 0 { 0.0 } else { self.bad_users() / self.users as f64 }
    }

    /// Share of users without a bad second, weighted in the same way; `None` without users.
    #[must_use]
    pub fn served_ratio(&self) -> Option<f64> {
        (self.users > 0).then(|| 1.0 - self.bad_ratio())
    }

    /// Users with a bad second, each weighted by the share of the participants that it received
    /// badly.
    #[must_use]
    pub fn bad_users(&self) -> f64 {
        self.bad as f64 - self.uncounted_milli as f64 / 1e3
    }

    /// Of [`Self::bad_users`], those that broke no clause but such that a path or a source may
    /// break without load: at least so many, as a participant may be in several of the other
    /// clauses.
    #[must_use]
    pub fn bad_by_patterns(&self) -> f64 {
        let by_clause = Clause::ALL.into_iter().zip(self.clauses);
        let others =
            by_clause.filter(|(clause, _)| !clause.may_be_a_pattern()).map(|(_, count)| count);
        (self.bad_users() - others.sum::<u64>() as f64).max(0.0)
    }

    /// Whether it is a bad second for `goal`.
    #[must_use]
    pub fn is_bad(&self, goal: Goal) -> bool {
        self.bad_ratio() > goal.bad_ratio_max()
    }
}

impl From<&ExperienceRow> for SecondQuality {
    fn from(row: &ExperienceRow) -> Self {
        Self {
            users: u64::from(row.users),
            bad: u64::from(row.bad),
            uncounted_milli: u64::from(row.uncounted_milli),
            clauses: row.clauses.map(u64::from),
        }
    }
}

impl AddAssign for SecondQuality {
    fn add_assign(&mut self, other: Self) {
        self.users += other.users;
        self.bad += other.bad;
        self.uncounted_milli += other.uncounted_milli;
        self.clauses.iter_mut().zip(other.clauses).for_each(|(sum, count)| *sum += count);
    }
}

/// That of a window, in user-seconds.
impl Sum for SecondQuality {
    fn sum<I: Iterator<Item = Self>>(seconds: I) -> Self {
        seconds.fold(Self::default(), |mut sum, second| {
            sum += second;
            sum
        })
    }
}

/// The service quality by second of the run.
pub type BySecond = BTreeMap<i64, SecondQuality>;

/// The service quality of each second, all cohorts together.
#[must_use]
pub fn quality_by_second(run: &RunData) -> BySecond {
    let mut seconds = BySecond::new();
    for row in &run.experience {
        *seconds.entry(row.second).or_default() += SecondQuality::from(row);
    }
    seconds
}

/// The windows that are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    /// The baseline: a small crowd, or the idle server before the first join.
    pub base: Option<LoadWindow>,
    /// The largest load that passed.
    pub pass: Option<LoadWindow>,
    /// The first load that failed, in its longest hold; without it there is nothing to explain.
    pub fail: Option<LoadWindow>,
    /// The first hold of the failing load with its joins and the seconds before: refusals and drops
    /// happen then.
    pub onset: Option<Window>,
    /// The first bad second of the failing load.
    pub first_bad_s: Option<i64>,
    /// Where no load failed: the last seconds of a run that ended because its users were lost. Too
    /// short to compare levels, but an event explains it.
    pub lost: Option<LoadWindow>,
    /// Loads that passed, from which the demand of a user is estimated.
    pub passed: Vec<LoadWindow>,
    /// Whether they are holds of a search; otherwise they were derived from the seconds of a plain
    /// run.
    pub is_search: bool,
}

impl Windows {
    /// The windows of `run` for `goal`: from the holds of its search, or from its seconds if it has
    /// none.
    #[must_use]
    pub fn of(run: &RunData, goal: Goal) -> Self {
        let quality_by_second = quality_by_second(run);
        let windows = match Capacity::of(&run.holds, goal) {
            Some(capacity) => of_holds(run, &capacity, &quality_by_second),
            None => of_seconds(run, goal, &quality_by_second),
        };
        let lost = if windows.fail.is_none() { lost_at_the_end(run) } else { None };
        Self { lost, ..windows }
    }

    /// The windows in which the loss at the end is the failing load; `None` if no users were lost
    /// at the end.
    pub(crate) fn of_loss(&self) -> Option<Self> {
        let lost = self.lost?;
        let from_us = lost.window.from_us.saturating_sub(BEFORE_S * 1_000_000);
        Some(Self {
            fail: Some(lost),
            onset: Some(Window { from_us, ..lost.window }),
            first_bad_s: Some(RunTime(lost.window.from_us).second()),
            ..self.clone()
        })
    }

    /// The holds of a search that passed.
    pub(crate) fn holds_that_passed(&self) -> impl Iterator<Item = &LoadWindow> {
        self.passed.iter().filter(|_| self.is_search)
    }

    /// The largest crowd with good service.
    #[must_use]
    pub fn users_at_limit(&self) -> Option<f64> {
        self.pass.or(self.fail).map(|load| load.users).filter(|users| *users > 0.0)
    }
}

/// The whole seconds that begin within a window.
pub(crate) fn second_range(window: Window) -> Range<i64> {
    let (from, until) = (RunTime(window.from_us).second(), RunTime(window.until_us).second());
    from..until.max(from)
}

/// The whole seconds of a window, at least one: rows of the crowd are of whole seconds.
pub(crate) fn whole_seconds(window: Window) -> Window {
    let Range { start, end } = second_range(window);
    window_of(start, end.max(start.saturating_add(1)))
}

fn window_of(from: i64, until: i64) -> Window {
    Window { from_us: from.saturating_mul(1_000_000), until_us: until.saturating_mul(1_000_000) }
}

/// The seconds at which the windows begin and end, for any goal. Sums across such a second cannot
/// be compared.
#[must_use]
pub fn edges(run: &RunData) -> BTreeSet<i64> {
    let mut edges = BTreeSet::new();
    for goal in Goal::ALL {
        let windows = Windows::of(run, goal);
        let compared = [windows.base, windows.pass, windows.fail].into_iter().flatten();
        for load in compared.chain(windows.holds_that_passed().copied()) {
            let whole = whole_seconds(load.window);
            edges.extend([whole.from_us, whole.until_us].map(|us| RunTime(us).second()));
        }
    }
    edges
}

/// The cohorts that send and receive nothing, beside others that are to receive: the source of what
/// users play, and no users themselves.
pub(crate) fn sources(run: &RunData) -> BTreeSet<CohortId> {
    let all = run.crowd.iter().filter(|row| row.started > 0).map(|row| row.cohort);
    let receive = run.series.iter().map(|row| row.cohort);
    let receive = receive.chain(run.playback.iter().map(|row| row.cohort));
    let receive: BTreeSet<CohortId> =
        receive.chain(run.chat.iter().map(|row| row.cohort)).collect();
    let send = run.sent.iter().filter(|row| row.tracks > 0).map(|row| row.cohort);
    let only_send: BTreeSet<CohortId> = send.filter(|cohort| !receive.contains(cohort)).collect();
    let are_all = all.collect::<BTreeSet<_>>().is_subset(&only_send);
    if are_all { BTreeSet::new() } else { only_send }
}

/// Whether users were started and at the end of no second of the run one was connected. Some may
/// have been for less.
pub(crate) fn was_none_served(run: &RunData) -> bool {
    let sources = sources(run);
    let users = || run.crowd.iter().filter(|row| !sources.contains(&row.cohort));
    users().any(|row| row.started > 0) && users().all(|row| row.connected == 0 && row.playing == 0)
}

/// The idle server before the first join, if it was watched for long enough.
fn idle(run: &RunData) -> Option<(i64, i64)> {
    let first_second = run.host.samples.iter().map(|sample| sample.at.second()).min()?;
    (first_second <= -SECONDS_MIN).then_some((first_second.max(-BACK_S), 0))
}

fn of_holds(run: &RunData, capacity: &Capacity, quality_by_second: &BySecond) -> Windows {
    let judged_alike: Vec<HoldRow> = HoldRow::judged_alike(&run.holds).cloned().collect();
    let (holds, goal) = (&judged_alike, capacity.goal);
    let longest = |wanted: &dyn Fn(&HoldRow) -> bool| {
        holds
            .iter()
            .filter(|hold| hold.until.is_some() && wanted(hold))
            .max_by_key(|hold| hold.seconds)
    };
    let at = |users: Option<u32>, passed: HoldOutcome| {
        longest(&|hold: &HoldRow| Some(hold.users) == users && hold.passed(goal) == passed)
    };
    let fail = at(capacity.first_failing, HoldOutcome::No);
    let first_fail = holds.iter().find(|hold| {
        hold.until.is_some()
            && Some(hold.users) == capacity.first_failing
            && hold.passed(goal) == HoldOutcome::No
    });
    // If seconds are bad at any load, a load passes that is not mostly bad, and none of its holds
    // need have met the goal.
    let pass = at(capacity.users, HoldOutcome::Yes)
        .or_else(|| longest(&|hold| Some(hold.users) == capacity.users));
    let base = holds.iter().find(|hold| hold.purpose == Purpose::Baseline && hold.until.is_some());
    let base = base.or_else(|| {
        let passed = holds
            .iter()
            .filter(|hold| hold.passed(goal) == HoldOutcome::Yes && hold.until.is_some());
        passed.min_by_key(|hold| hold.users)
    });
    let idle = || {
        let (from, until) = idle(run)?;
        Some(LoadWindow { window: window_of(from, until), users: 0.0 })
    };
    let first_bad = |hold: &HoldRow| {
        let seconds = second_range(Window { from_us: hold.from.0, until_us: hold.until?.0 });
        quality_by_second
            .range(seconds)
            .find(|(_, quality)| quality.is_bad(goal))
            .map(|(second, _)| *second)
    };
    Windows {
        // A baseline with bad service is no baseline: then it is the idle server.
        base: base
            .filter(|base| base.passed(goal) != HoldOutcome::No)
            .and_then(judged_window)
            .or_else(idle),
        pass: pass.and_then(judged_window),
        fail: fail.and_then(judged_window),
        onset: first_fail.and_then(|fail| onset(holds, fail)),
        first_bad_s: first_fail.and_then(first_bad),
        lost: None,
        passed: holds
            .iter()
            .filter(|hold| hold.passed(goal) == HoldOutcome::Yes && hold.limited_seconds == 0)
            // The number of a varied value is no number of users and gives no demand of one.
            .filter(|hold| hold.value.is_none())
            .filter_map(judged_window)
            .collect(),
        is_search: true,
    }
}

/// A failing load and some seconds before it, without the time of a larger crowd before and of the
/// recovery from it: queues that the larger crowd filled are not evidence about this one.
fn onset(holds: &[HoldRow], fail: &HoldRow) -> Option<Window> {
    let larger = holds.iter().filter(|hold| hold.users > fail.users).filter_map(|hold| {
        let recovery_us =
            i64::try_from(hold.recovery_ms.unwrap_or(0)).unwrap_or(i64::MAX).saturating_mul(1_000);
        hold.until
            .filter(|until| *until <= fail.from)
            .map(|until| until.0.saturating_add(recovery_us))
    });
    let over = larger.max().unwrap_or(i64::MIN).min(fail.from.0);
    let from_us = fail.from.0.saturating_sub(BEFORE_S * 1_000_000).max(over);
    Some(Window { from_us, until_us: fail.until?.0 })
}

/// The judged part of a hold, after it settled; the whole hold if that part is too short. Loads are
/// compared by it.
#[must_use]
pub fn judged_window(hold: &HoldRow) -> Option<LoadWindow> {
    let until_us = hold.until?.0;
    let settled_us = hold.judged_from.map_or(until_us, |at| at.0);
    let from_us = if until_us.saturating_sub(settled_us) >= SECONDS_MIN * 1_000_000 {
        settled_us
    } else {
        hold.from.0
    };
    let window = Window { from_us, until_us };
    (from_us < until_us).then_some(LoadWindow { window, users: f64::from(hold.users) })
}

fn of_seconds(run: &RunData, goal: Goal, quality_by_second: &BySecond) -> Windows {
    let is_bad = |quality: &SecondQuality| quality.is_bad(goal);
    let whole = || {
        Some((*quality_by_second.first_key_value()?.0, quality_by_second.last_key_value()?.0 + 1))
    };
    let fail = worst_interval(quality_by_second, is_bad)
        .or_else(|| was_none_served(run).then(whole).flatten());
    let ends = fail.map_or(i64::MAX, |(from, _)| from);
    let good: Vec<(i64, SecondQuality)> = quality_by_second
        .range(..ends)
        .filter(|(_, quality)| quality.users > 0 && !is_bad(quality))
        .map(|(second, quality)| (*second, *quality))
        .collect();
    let most = good.iter().map(|(_, quality)| quality.users).max().unwrap_or(0);
    let near: Vec<i64> = good
        .iter()
        .rev()
        .take_while(|(second, quality)| {
            quality.users * 5 >= most * 4
                && good.last().is_some_and(|last| second + BACK_S > last.0)
        })
        .map(|(second, _)| *second)
        .collect();
    let pass = near.last().zip(near.first()).map(|(first, last)| (*first, last + 1));
    // A tenth of the crowd uses hardly any of the resource that fails under the whole crowd.
    let few = || {
        good.iter().take_while(|(_, f)| f.users * 10 <= most).last().map(|(last, _)| (0, last + 1))
    };
    let base = idle(run).or_else(few);
    let of = |(from, until): (i64, i64)| {
        let users: Vec<u64> =
            quality_by_second.range(from..until).map(|(_, quality)| quality.users).collect();
        LoadWindow {
            window: window_of(from, until),
            users: users.iter().sum::<u64>() as f64 / users.len().max(1) as f64,
        }
    };
    let long = |interval: &(i64, i64)| interval.1 - interval.0 >= SECONDS_MIN;
    Windows {
        base: base.filter(long).map(of),
        pass: pass.filter(long).map(of),
        fail: fail.map(of),
        onset: fail.map(|(from, until)| of((from - BEFORE_S, until)).window),
        first_bad_s: fail.map(|(from, _)| from),
        lost: None,
        passed: levels(&settled(run, good), most),
        is_search: false,
    }
}

/// The interval with most bad seconds, small gaps included; `None` if fewer than [`SECONDS_MIN`]
/// were bad.
fn worst_interval(
    quality_by_second: &BySecond,
    is_bad: impl Fn(&SecondQuality) -> bool,
) -> Option<(i64, i64)> {
    let mut intervals: Vec<(i64, i64, i64)> = Vec::new();
    for (second, _) in quality_by_second.iter().filter(|(_, quality)| is_bad(quality)) {
        match intervals.last_mut() {
            Some((_, until, bad)) if second - *until <= GAP_S_MAX => {
                (*until, *bad) = (second + 1, *bad + 1);
            }
            _ => intervals.push((*second, second + 1, 1)),
        }
    }
    let worst =
        intervals.into_iter().filter(|(.., bad)| *bad >= SECONDS_MIN).max_by_key(|(.., bad)| *bad);
    worst.map(|(from, until, _)| (from, until))
}

/// The last seconds of a run in which at least half of those who were there failed, and after which
/// nearly all of its participants have failed or left: it ended because nobody was left.
fn lost_at_the_end(run: &RunData) -> Option<LoadWindow> {
    let end = run.ended_at?;
    let begins = RunTime(end.0.saturating_sub(LOST_S * 1_000_000));
    let was_there = |row: &&ParticipantRow| {
        row.intended_at <= end && row.ended_at.is_none_or(|ended| ended >= begins)
    };
    let there = run.participants.iter().filter(was_there);
    let (lost, left): (Vec<_>, Vec<_>) =
        there.partition(|row| row.failure().is_some_and(|why| !why.is_ours()));
    let is_gone =
        |row: &&ParticipantRow| row.failure().is_some() || row.outcome == Some(Outcome::Completed);
    let began = run.participants.iter().filter(|row| row.intended_at <= end);
    let gone = began.clone().filter(is_gone).count();
    if (gone as f64) < GONE_MIN * began.count() as f64 {
        return None;
    }
    let first = lost.iter().filter_map(|row| row.ended_at).min()?;
    let window = window_of(first.second(), end.second().saturating_add(1));
    (lost.len() >= left.len())
        .then(|| LoadWindow { window, users: (lost.len() + left.len()) as f64 })
}

/// The seconds without those in which participants of a chat came or went, or still fetched what
/// they fetch when they come: that is an impulse, which grows with who is there, and no demand of a
/// load. All of them where no others are.
fn settled(run: &RunData, good: Vec<(i64, SecondQuality)>) -> Vec<(i64, SecondQuality)> {
    let is_moving = |row: &&ChatRow| {
        let counters = &row.counters;
        counters.presences_received > 0 || counters.vcards_received > counters.messages_received
    };
    let moving: BTreeSet<i64> = run.chat.iter().filter(is_moving).map(|row| row.second).collect();
    let left: Vec<_> =
        good.iter().filter(|(second, _)| !moving.contains(second)).copied().collect();
    if left.is_empty() { good } else { left }
}

/// Number of loads into which a plain run is divided.
const LEVELS: u64 = 8;

/// The good seconds of a plain run as loads: consecutive seconds in which the crowd stayed within
/// an eighth of the largest.
fn levels(good: &[(i64, SecondQuality)], most: u64) -> Vec<LoadWindow> {
    let level = |quality: &SecondQuality| quality.users * LEVELS / (most + 1);
    let is_consecutive = |a: &(i64, SecondQuality), b: &(i64, SecondQuality)| {
        b.0 == a.0 + 1 && level(&a.1) == level(&b.1)
    };
    good.chunk_by(is_consecutive)
        .filter(|list| list.len() as i64 >= SECONDS_MIN)
        .filter_map(|list| {
            let (first, last) = (list.first()?.0, list.last()?.0);
            let users = list.iter().map(|(_, quality)| quality.users).sum::<u64>() as f64
                / list.len() as f64;
            Some(LoadWindow { window: window_of(first, last + 1), users })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(users: u32, from_s: i64, until_s: i64, recovery_ms: Option<u64>) -> HoldRow {
        let at = |s: i64| RunTime(s * 1_000_000);
        let passed = [if recovery_ms.is_some() { HoldOutcome::No } else { HoldOutcome::Yes }; 3];
        HoldRow {
            users,
            from: at(from_s),
            until: Some(at(until_s)),
            recovery_ms,
            passed,
            ..HoldRow::default()
        }
    }

    #[test]
    fn who_is_bad_by_patterns_alone_is_told_from_the_others() {
        let of = |clauses: &[(Clause, u64)]| {
            let mut second = SecondQuality { users: 20, bad: 10, ..SecondQuality::default() };
            clauses.iter().for_each(|(clause, count)| second.clauses[*clause as usize] = *count);
            second.bad_by_patterns()
        };
        assert_eq!(of(&[(Clause::Delay, 10), (Clause::Loss, 10)]), 10.0);
        assert_eq!(of(&[(Clause::Freeze, 10), (Clause::Loss, 8)]), 10.0);
        assert_eq!(of(&[(Clause::Delay, 10), (Clause::Stall, 4)]), 6.0);
        assert_eq!(of(&[(Clause::NoMedia, 10), (Clause::NotConnected, 10)]), 0.0);
    }

    #[test]
    fn a_window_serves_by_user_seconds_and_counts_badly_received_participants_by_their_share() {
        let second = |users, bad, uncounted_milli| SecondQuality {
            users,
            bad,
            uncounted_milli,
            ..SecondQuality::default()
        };
        let window = [second(10, 1, 500), second(30, 12, 2_500)];
        let sum: SecondQuality = window.into_iter().sum();
        assert_eq!((sum.served_ratio(), window[0].served_ratio()), (Some(0.75), Some(0.95)));
        assert_eq!(SecondQuality::default().served_ratio(), None);
    }

    #[test]
    fn what_a_larger_crowd_filled_before_is_not_looked_at() {
        let begins = |before: HoldRow| {
            let fail = hold(17, 62, 77, Some(2_000));
            onset(&[before, fail.clone()], &fail).map(|window| (window.from_us, window.until_us))
        };
        let ends = 77_000_000;
        assert_eq!(begins(hold(20, 47, 57, Some(3_000))), Some((60_000_000, ends)));
        assert_eq!(begins(hold(20, 20, 30, Some(3_000))), Some((52_000_000, ends)), "long over");
        assert_eq!(
            begins(hold(20, 47, 57, Some(60_000))),
            Some((62_000_000, ends)),
            "its own time at least"
        );
        assert_eq!(
            begins(hold(15, 47, 62, None)),
            Some((52_000_000, ends)),
            "the way there from a smaller one"
        );
    }
}
