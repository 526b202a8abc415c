//! The answer of a search, in the summary's shape.

use throng_analysis::capacity::{Bracket, Capacity, Conclusion};
use throng_observation::Goal;
use throng_observation::run::RunData;

use crate::summary::{CapacitySummary, GoalBracket, RunOutcome};

/// What the holds of a run came to; `None` for a plain run.
pub(crate) fn summarise(run: &RunData, noun: &str) -> Option<CapacitySummary> {
    let capacity = Capacity::of(&run.holds, Goal::Acceptable)?;
    let bracket = |(goal, bracket): (Goal, &Bracket)| GoalBracket {
        goal: goal.key().to_owned(),
        bad_users_ratio_max: goal.bad_ratio_max(),
        passing: bracket.passing,
        failing: bracket.failing,
    };
    Some(CapacitySummary {
        users: capacity.users,
        first_failing: capacity.first_failing,
        runs: capacity.runs.iter().filter_map(|run| run.passing).collect(),
        goal: capacity.goal.key().to_owned(),
        verdict: capacity.conclusion.key().to_owned(),
        statement: capacity.statement(noun),
        goals: Goal::ALL.into_iter().zip(&capacity.goals).map(bracket).collect(),
        recovery_ms: capacity.recovery_ms,
        judged_s: capacity.judged_s,
        notes: capacity.notes,
    })
}

/// The verdict on a run that searched.
pub(crate) fn outcome(capacity: &CapacitySummary) -> RunOutcome {
    let is = |conclusion: Conclusion| capacity.verdict == conclusion.key();
    if is(Conclusion::Found) || is(Conclusion::AtLeast) {
        RunOutcome::Met
    } else if is(Conclusion::NeverPasses) {
        RunOutcome::Missed
    } else {
        RunOutcome::Invalid
    }
}
