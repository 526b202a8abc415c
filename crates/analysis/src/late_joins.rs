//! Late joins under loads that pass: a load is judged after its joins, so that its result does not include them.

use throng_observation::run::RunData;
use throng_observation::{Clause, HoldOutcome};

use crate::capacity::Capacity;
use crate::windows::quality_by_second;

/// Least late joins; a single one may be chance.
const LATE_MIN: u64 = 2;

/// The most participants of a load that were not connected in time, as a caveat; `None` if joins were in time.
#[must_use]
pub fn late_joins(run: &RunData, capacity: &Capacity) -> Option<String> {
    let passing = capacity.users?;
    let quality_by_second = quality_by_second(run);
    let held = run.holds.iter().filter(|hold| {
        hold.users <= passing && hold.passed(capacity.goal) == HoldOutcome::Yes && hold.limited_seconds == 0
    });
    let most = held.filter_map(|hold| {
        let seconds = quality_by_second.range(hold.from.second()..hold.until?.second());
        seconds.map(|(_, quality)| (quality.clauses[Clause::NotConnected as usize], quality.users)).max()
    });
    let (late, users) = most.max()?;
    let is_many = late >= LATE_MIN && late as f64 > capacity.goal.bad_ratio_max() * users as f64;
    is_many.then(|| format!("slow joins: {late} of {users} were not connected in time during the ramp"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::{ExperienceRow, Goal, HoldRow, RunTime};

    fn run(late: u32, passed: HoldOutcome) -> Option<String> {
        let at = |s: i64| RunTime(s * 1_000_000);
        let hold = HoldRow {
            users: 8,
            from: at(0),
            judged_from: Some(at(10)),
            until: Some(at(20)),
            seconds: 10,
            passed: [passed; 3],
            ..HoldRow::default()
        };
        let row = |second: i64| ExperienceRow {
            second,
            users: 8,
            clauses: [if second == 5 { late } else { 0 }, 0, 0, 0, 0, 0, 0],
            ..ExperienceRow::default()
        };
        let run = RunData { holds: vec![hold], experience: (0..20).map(row).collect(), ..RunData::default() };
        late_joins(&run, &Capacity::of(&run.holds, Goal::Acceptable)?)
    }

    #[test]
    fn joins_that_are_late_under_a_passing_load_are_reported() {
        let caveat = run(5, HoldOutcome::Yes).unwrap_or_default();
        assert!(caveat.contains("5 of 8"), "{caveat}");
        assert_eq!(run(1, HoldOutcome::Yes), None);
        assert_eq!(run(5, HoldOutcome::No), None, "a refusal by a full server is no late join");
    }
}
