//! The capacity found by a search, in the summary's shape.

use throng_analysis::capacity::{Capacity, CapacityVerdict, GoalLoads, Soak};
use throng_analysis::disturbance::Disturbances;
use throng_analysis::reasons::{self, Reason};
use throng_analysis::windows::{BySecond, quality_by_second};
use throng_observation::run::RunData;
use throng_observation::units::count;
use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose};

use crate::health;
use crate::summary::{CapacitySummary, GoalBracket, RunOutcome, SoakSummary};

/// The capacity by the holds of a run; `None` for a plain run. `was_generator`: the failing load
/// failed because of the generator, so it does not count. `limits`: those of its limits that
/// invalidate the whole run.
pub(crate) fn summarise(
    run: &RunData,
    was_generator: bool,
    limits: &[String],
) -> Option<CapacitySummary> {
    // Those before the search began anew were judged by other bounds.
    let holds: Vec<HoldRow> = HoldRow::judged_alike(&run.holds).cloned().collect();
    let mut capacity = Capacity::of(&holds, Goal::Acceptable)?;
    if was_generator {
        capacity = capacity.invalidated();
    }
    capacity.caveats.extend(throng_analysis::late_joins(run, &capacity));
    let (noun, seconds) = (noun(run), quality_by_second(run));
    let bracket = |(goal, loads): (Goal, &GoalLoads)| GoalBracket {
        goal: goal.key().to_owned(),
        bad_users_ratio_max: goal.bad_ratio_max(),
        passing: loads.passing,
        failing: loads.failing,
        statement: loads.statement(|load| capacity.load(load)),
        reasons: why_failed(&holds, &seconds, loads.failing, goal),
    };
    let of_soak = soaked(&holds, &seconds, capacity.goal);
    let why = why((run, &holds), &seconds, &capacity, limits);
    let disturbances = Disturbances::of(run, &capacity).map(|times| times.sentence());
    Some(CapacitySummary {
        users: capacity.users,
        first_failing: capacity.first_failing,
        repeats: capacity.runs.iter().filter_map(|run| run.passing).collect(),
        goal: capacity.goal.key().to_owned(),
        verdict: capacity.verdict.key().to_owned(),
        statement: format!("{}{why}", capacity.statement(&noun)),
        noun,
        values: values(&holds),
        goals: Goal::ALL.into_iter().zip(&capacity.goals).map(bracket).collect(),
        recovery_ms: capacity.recovery_ms,
        judged_s: capacity.judged_s,
        soak: capacity.soak.map(|held| soak(held, of_soak)),
        caveats: capacity.caveats,
        notes: capacity.notes.into_iter().chain(disturbances).collect(),
    })
}

/// Which clauses made a load fail; empty where none did.
fn why_failed(
    holds: &[HoldRow],
    seconds: &BySecond,
    failing: Option<u32>,
    goal: Goal,
) -> Vec<Reason> {
    failing.map_or_else(Vec::new, |load| reasons::of_load(seconds, holds, load, goal))
}

/// Which clauses made the seconds of the last soak bad.
fn soaked(holds: &[HoldRow], seconds: &BySecond, goal: Goal) -> Vec<Reason> {
    let is_soak = |hold: &&HoldRow| hold.purpose == Purpose::Soak && hold.until.is_some();
    holds.iter().rfind(is_soak).map_or_else(Vec::new, |hold| reasons::of_hold(seconds, hold, goal))
}

/// The end of a statement that is no capacity: the clauses that made service bad, or the limits of
/// the generator. A load that failed above a capacity has its reasons in the line of its goal.
fn why(
    (run, holds): (&RunData, &[HoldRow]),
    seconds: &BySecond,
    capacity: &Capacity,
    limits: &[String],
) -> String {
    let goal = capacity.goal;
    let suffered = match capacity.verdict {
        CapacityVerdict::Found | CapacityVerdict::AtLeast => return String::new(),
        CapacityVerdict::Invalid => return generator((run, holds), capacity.users, limits),
        CapacityVerdict::NotSustained => soaked(holds, seconds, goal),
        CapacityVerdict::NeverPasses => why_failed(holds, seconds, capacity.first_failing, goal),
        CapacityVerdict::Undecidable => reasons::of_holds(seconds, holds, goal),
    };
    reasons::words(&suffered).map_or_else(String::new, |words| format!(", {words}"))
}

/// The limits that the generator passed under the loads that it kept from being judged; those of
/// the whole run where no second has one, as for participants that failed for lack of ports.
fn generator(
    (run, holds): (&RunData, &[HoldRow]),
    passing: Option<u32>,
    of_run: &[String],
) -> String {
    let is_unjudged = |hold: &&HoldRow| {
        hold.limited_seconds > 0 || passing.is_none_or(|passing| hold.users > passing)
    };
    let unjudged: Vec<_> = holds
        .iter()
        .filter(is_unjudged)
        .filter_map(|hold| Some(hold.from.second()..hold.until?.second()))
        .collect();
    let limits =
        health::limits_in(run, |second| unjudged.iter().any(|hold| hold.contains(&second)));
    let limits = if limits.is_empty() { of_run.join("; ") } else { limits.join("; ") };
    if limits.is_empty() { limits } else { format!(": {limits}") }
}

fn soak(soak: Soak, reasons: Vec<Reason>) -> SoakSummary {
    SoakSummary {
        users: soak.users,
        sustained: (soak.passed != HoldOutcome::Undecided)
            .then_some(soak.passed == HoldOutcome::Yes),
        seconds: soak.seconds,
        bad_seconds: soak.bad_seconds,
        broke_after_s: soak.broke_after_s,
        reasons,
    }
}

/// The noun for users: viewers, chatters, participants, or participants of rooms that are started
/// as a whole.
fn noun(run: &RunData) -> String {
    let has_media = !run.series.is_empty() || !run.playback.is_empty();
    if run.sent.is_empty() {
        return if run.chat.is_empty() || has_media { "viewers" } else { "chatters" }.to_owned();
    }
    run.info.plan.as_ref().filter(|plan| plan.rooms() > 1).map_or_else(
        || "participants".to_owned(),
        |plan| {
            let each = plan.users() / u64::from(plan.rooms());
            format!("participants in rooms of {each}")
        },
    )
}

impl CapacitySummary {
    /// A load as text: a number of users, or the value that it stands for.
    pub(crate) fn load(&self, load: u32) -> String {
        let place = load.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        let value = place.and_then(|place| self.values.get(place));
        value.cloned().unwrap_or_else(|| load.to_string())
    }
}

impl SoakSummary {
    /// In a sentence: "18 users for 600 s, 580 s bad, the first after 14 s: not sustained, mostly
    /// loss (92 %), fps 11 %".
    pub(crate) fn sentence(&self) -> String {
        let seconds = self.seconds;
        let held = match (seconds, self.bad_seconds, self.broke_after_s) {
            (0, ..) => ", ended while the crowd settled".to_owned(),
            (_, 0, _) | (.., None) => format!(" for {seconds} s, no second bad"),
            (_, bad, Some(after)) => {
                format!(" for {seconds} s, {bad} s bad, the first after {after:.0} s")
            }
        };
        let sustained = match self.sustained {
            Some(true) => "sustained",
            Some(false) => "not sustained",
            None => "not decided",
        };
        let why =
            reasons::words(&self.reasons).map_or_else(String::new, |words| format!(", {words}"));
        let users = count(self.users.into(), "users");
        format!("{users}{held}: {sustained}{why}")
    }
}

/// The values up to the largest that was tried; a value below it that was not tried is named by its
/// index.
fn values(holds: &[HoldRow]) -> Vec<String> {
    let name = |place: u32| {
        let of_it = |hold: &HoldRow| hold.value.clone().filter(|_| hold.users == place);
        holds.iter().find_map(of_it).unwrap_or_else(|| format!("value {place}, not tried"))
    };
    let tried = holds.iter().filter(|hold| hold.value.is_some()).map(|hold| hold.users);
    // An untrusted file must not fill the memory.
    (1..=tried.max().unwrap_or(0).min(VALUES_MAX)).map(name).collect()
}

/// Most values: more than a scenario lists.
const VALUES_MAX: u32 = 1_000;

/// The verdict on a run that searched.
pub(crate) fn outcome(capacity: &CapacitySummary) -> RunOutcome {
    let is = |verdict: CapacityVerdict| capacity.verdict == verdict.key();
    if is(CapacityVerdict::Found) || is(CapacityVerdict::AtLeast) {
        RunOutcome::Met
    } else if is(CapacityVerdict::NeverPasses) || is(CapacityVerdict::NotSustained) {
        RunOutcome::Missed
    } else {
        RunOutcome::Invalid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_says_for_how_long_it_was_judged_or_that_it_was_not() {
        let soak = SoakSummary {
            users: 18,
            sustained: Some(false),
            seconds: 600,
            bad_seconds: 580,
            broke_after_s: Some(14.0),
            reasons: Vec::new(),
        };
        assert_eq!(
            soak.sentence(),
            "18 users for 600 s, 580 s bad, the first after 14 s: not sustained"
        );
        let good = SoakSummary { sustained: Some(true), bad_seconds: 0, ..soak.clone() };
        assert_eq!(good.sentence(), "18 users for 600 s, no second bad: sustained");
        let unjudged = SoakSummary { seconds: 0, bad_seconds: 0, broke_after_s: Some(0.0), ..soak };
        assert_eq!(unjudged.sentence(), "18 users, ended while the crowd settled: not sustained");
    }
}
