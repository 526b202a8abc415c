//! What the plan of a run says of it, where it is known.

use throng_observation::PlannedCohort;
use throng_observation::run::RunData;
use throng_scenario::Objective;

/// The cohorts of a run in the order of their ids; none where its plan is not known.
pub(crate) fn cohorts(run: &RunData) -> &[PlannedCohort] {
    run.info.plan.as_ref().map_or(&[][..], |plan| plan.cohorts.as_slice())
}

/// Time at the start whose media does not count, seconds.
pub(crate) fn warm_up_s(run: &RunData) -> f64 {
    run.info.plan.as_ref().map_or(0.0, |plan| plan.warm_up().as_secs_f64())
}

/// The objectives of a run; none where its plan is not known.
#[must_use]
pub fn planned_objectives(run: &RunData) -> Vec<Objective> {
    let texts = run.info.plan.iter().flat_map(|plan| &plan.objectives);
    // With one of a later version, which this one does not know, it can judge none: a table without
    // that one would look complete.
    texts.map(|text| text.parse().ok()).collect::<Option<_>>().unwrap_or_default()
}
