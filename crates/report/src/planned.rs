//! What the plan of a run says of it, where it is known, and which seconds of its media count.

use std::ops::Range;

use throng_observation::run::RunData;
use throng_observation::{PlannedCohort, RunTime};
use throng_scenario::Objective;

/// The cohorts of a run in the order of their ids; none where its plan is not known.
pub(crate) fn cohorts(run: &RunData) -> &[PlannedCohort] {
    run.info.plan.as_ref().map_or(&[][..], |plan| plan.cohorts.as_slice())
}

/// Time at the start whose media does not count, seconds.
pub(crate) fn warm_up_s(run: &RunData) -> f64 {
    run.info.plan.as_ref().map_or(0.0, |plan| plan.warm_up().as_secs_f64())
}

/// The first second whose media counts: the one in which the warm-up ends does not, as its sums are
/// of the whole second.
pub(crate) fn counted_from(warm_up_s: f64) -> i64 {
    warm_up_s.ceil() as i64
}

/// The whole seconds of a run whose media counts: to its end or to its last row of media. Rates
/// have that end, as the rows of a crowd that failed end before it. What a run lasts beyond its
/// plan it waits for answers to leave requests.
pub(crate) fn counted_seconds(run: &RunData, warm_up_s: f64) -> Range<i64> {
    let planned_s = run.info.planned_duration_us as f64 / 1e6;
    let planned_s = if planned_s > 0.0 { planned_s } else { f64::INFINITY };
    let ended = duration_s(run).min(planned_s).floor() as i64;
    let playback = run.playback.iter().map(|row| row.second);
    let chat = run.chat.iter().map(|row| row.second);
    let last = run.series.iter().map(|row| row.second).chain(playback).chain(chat).max();
    let until = last.map_or(ended, |last| ended.max(last.saturating_add(1)));
    counted_from(warm_up_s)..until
}

/// Those that a comparison divides into parts: to the last whole second, as a part that is half of
/// one would differ from the others; empty, not reversed, where the run ended in its warm-up.
pub(crate) fn compared_seconds(run: &RunData) -> Range<i64> {
    let from = counted_from(warm_up_s(run));
    from..(duration_s(run).floor() as i64).max(from)
}

/// How long the run lasted: as its ending says, or else to the last second that was written.
pub(crate) fn duration_s(run: &RunData) -> f64 {
    let written = || {
        let seconds =
            run.crowd.iter().map(|row| row.second).chain(run.series.iter().map(|row| row.second));
        seconds.max().map_or(0.0, |second| (second + 1) as f64)
    };
    run.ended_at.map_or_else(written, RunTime::as_secs_f64).max(0.0)
}

/// The objectives of a run; none where its plan is not known.
#[must_use]
pub fn planned_objectives(run: &RunData) -> Vec<Objective> {
    let texts = run.info.plan.iter().flat_map(|plan| &plan.objectives);
    // With one of a later version, which this one does not know, it can judge none: a table without
    // that one would look complete.
    texts.map(|text| text.parse().ok()).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use throng_observation::RowSelector as _;

    use super::*;
    use crate::compare::CompareRows;
    use crate::figures::Figures;
    use crate::{ReportRows, example};

    /// A run of half a minute with this warm-up, which lasts a little longer than planned.
    fn run(warm_up: &str) -> RunData {
        let mut run = example::healthy(4, 30);
        let scenario = format!(
            "[target]\nurl = \"whep+http://127.0.0.1/whep\"\n[crowd]\nsize = 4\n\
             [run]\nduration = \"30s\"\nwarm_up = \"{warm_up}\"\n"
        );
        example::plan(&mut run, &scenario);
        run.info.planned_duration_us = 30_000_000;
        run.ended_at = Some(RunTime(31_700_000));
        run
    }

    #[test]
    fn all_who_leave_the_warm_up_out_begin_at_the_same_second() {
        for (warm_up, first) in [("0s", 0), ("7s", 7), ("7.2s", 8)] {
            let run = run(warm_up);
            let s = warm_up_s(&run);
            assert_eq!(counted_from(s), first, "{warm_up}");
            assert_eq!(Figures::of(&run, s).seconds, first..30, "not the wait for answers");
            assert_eq!(compared_seconds(&run), first..31);
            let of_report: BTreeSet<i64> =
                ReportRows::default().stretches(&run).into_iter().collect();
            let of_compare = CompareRows::default().stretches(&run);
            assert!(of_report.contains(&first) && of_compare.contains(&first), "{warm_up}");
            assert!(of_compare.contains(&31), "{of_compare:?}");
        }
    }

    #[test]
    fn of_a_run_that_ended_in_its_warm_up_nothing_is_compared() {
        let mut run = run("20s");
        run.ended_at = Some(RunTime(12_500_000));
        let compared = compared_seconds(&run);
        assert!(compared.is_empty() && compared.end == 20, "{compared:?}");
    }
}
