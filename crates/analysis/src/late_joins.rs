//! Late joins under loads that pass: a load is judged after its joins, so that its result does not
//! include them.

use throng_observation::run::RunData;
use throng_observation::{Clause, HoldOutcome, HoldRow};

use crate::capacity::Capacity;
use crate::windows::{SecondQuality, quality_by_second};

/// Least late joins; a single one may be chance.
const LATE_MIN: u64 = 2;

/// The most participants of a load that were not connected in time, or (players) did not begin
/// playback in time, as a caveat; `None` if joins were in time.
#[must_use]
pub fn late_joins(run: &RunData, capacity: &Capacity) -> Option<String> {
    let passing = capacity.users?;
    let quality_by_second = quality_by_second(run);
    let held = HoldRow::judged_alike(&run.holds).filter(|hold| {
        hold.users <= passing
            && hold.passed(capacity.goal) == HoldOutcome::Yes
            && hold.limited_seconds == 0
    });
    let most = held.filter_map(|hold| {
        let seconds = quality_by_second.range(hold.from.second()..hold.until?.second());
        let of = |quality: &SecondQuality, clause: Clause| quality.clauses[clause as usize];
        let late = seconds.map(|(_, quality)| {
            let not_connected = of(quality, Clause::NotConnected);
            (not_connected + of(quality, Clause::Startup), not_connected, quality.users)
        });
        late.max()
    });
    let (late, not_connected, users) = most.max()?;
    let is_many = late >= LATE_MIN && late as f64 > capacity.goal.bad_ratio_max() * users as f64;
    let what = match (not_connected, late - not_connected) {
        (_, 0) => "were not connected",
        (0, _) => "did not begin playback",
        _ => "were not connected or did not begin playback",
    };
    is_many.then(|| format!("slow joins: {late} of {users} {what} in time during the ramp"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::{ExperienceRow, Goal, HoldRow, RunTime};

    fn run(clause: Clause, late: u32, passed: HoldOutcome) -> Option<String> {
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
        let clauses = |late: u32| {
            let mut clauses = [0; Clause::ALL.len()];
            clauses[clause as usize] = late;
            clauses
        };
        let row = |second: i64| ExperienceRow {
            second,
            users: 8,
            clauses: clauses(if second == 5 { late } else { 0 }),
            ..ExperienceRow::default()
        };
        let run = RunData {
            holds: vec![hold],
            experience: (0..20).map(row).collect(),
            ..RunData::default()
        };
        late_joins(&run, &Capacity::of(&run.holds, Goal::Acceptable)?)
    }

    #[test]
    fn joins_that_are_late_under_a_passing_load_are_reported() {
        let late = |late, passed| run(Clause::NotConnected, late, passed);
        let caveat = late(5, HoldOutcome::Yes).unwrap_or_default();
        assert!(caveat.contains("5 of 8 were not connected in time"), "{caveat}");
        assert_eq!(late(1, HoldOutcome::Yes), None);
        assert_eq!(late(5, HoldOutcome::No), None, "a refusal by a full server is no late join");
    }

    #[test]
    fn playback_that_begins_late_under_a_passing_load_is_reported() {
        let caveat = run(Clause::Startup, 5, HoldOutcome::Yes).unwrap_or_default();
        assert!(caveat.contains("5 of 8 did not begin playback in time"), "{caveat}");
        assert_eq!(run(Clause::Stall, 5, HoldOutcome::Yes), None, "they had begun");
    }
}
