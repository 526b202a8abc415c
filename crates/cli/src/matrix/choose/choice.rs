//! The choice by the search of the baseline, or by two of them, and why.

use std::time::Duration;

use throng_analysis::demand::Demand;
use throng_analysis::experiment::{
    CapacityPrediction, Choice, FoundLimit, NextLimit, SearchReason, predict_known,
};
use throng_report::matrix::{MatrixRun, RunFigures, RunStatus};
use throng_scenario::matrix::SearchKeys;
use throng_scenario::units::write_duration;

use super::super::chosen::Chosen;
use super::super::plan::MatrixPlan;
use crate::find;

/// The verdict of a search in which no load failed for certain.
const NO_LIMIT: &str = "at_least";

/// The limit that the search of the baseline found; `None` if it is not valid.
pub(super) fn found_by(
    plan: &MatrixPlan,
    run: &MatrixRun,
    search: &SearchKeys,
) -> Option<FoundLimit> {
    let figures = run.figures.as_ref().filter(|_| run.status == RunStatus::Valid)?;
    found(figures, plan.ceiling(search))
}

/// The choice by the first search and the one between its ends, each with the demand of a user: by
/// the narrower one, unless it says nothing. Where it served a crowd well that the first did not,
/// the limit is not known.
pub(super) fn of_both(
    plan: &MatrixPlan,
    (first, first_demands): (&MatrixRun, &[Demand]),
    (second, second_demands): (&MatrixRun, &[Demand]),
    hold: Duration,
    search: &SearchKeys,
) -> Chosen {
    let found = |run| found_by(plan, run, search);
    match (found(first), found(second)) {
        (Some(wide), Some(found)) if found.contradicts(wide) => Chosen {
            choice: Choice::Search(SearchReason::NotFound),
            why: format!(
                "searched: two searches of {} contradict each other: {} users were not served \
                 well in the first, and {} were in the second",
                plan.baseline(),
                wide.failing.unwrap_or(0),
                found.passing
            ),
        },
        (Some(wide), Some(found)) if found.narrows(wide) => {
            choice(plan, second, second_demands, hold, search)
        }
        (Some(_) | None, Some(_) | None) => choice(plan, first, first_demands, hold, search),
    }
}

/// The choice by the search of the baseline, of which the demand of a user is known, and why.
pub(super) fn choice(
    plan: &MatrixPlan,
    run: &MatrixRun,
    demands: &[Demand],
    hold: Duration,
    search: &SearchKeys,
) -> Chosen {
    let figures = run.figures.as_ref().filter(|_| run.status == RunStatus::Valid);
    let takes = |users: u32| {
        let baseline = plan.cells.first();
        baseline.map_or(Duration::ZERO, |cell| plan.hold_takes(cell, hold, Some(users)))
    };
    let most = plan.cells.first().map_or(u32::MAX, |cell| plan.users_max(cell, search));
    let next = figures.and_then(|figures| next_limit(plan, figures, demands));
    let choice = Choice::of(
        found_by(plan, run, search),
        plan.matrix.least_more(),
        next.as_ref().map(|next| NextLimit { users: next.users, users_low: next.users_low }),
        most,
        takes,
        search.budget.max(find::BUDGET_MIN),
    );
    let baseline = plan.baseline();
    let fails = |figures: &RunFigures| {
        let failing = figures.first_failing.unwrap_or(0);
        format!("{failing} users, which {baseline} does not serve well{}", cause(figures))
    };
    let why = match (choice, figures) {
        (Choice::Hold { users, passing }, Some(figures)) => format!(
            "held: {users} users; {baseline} serves {passing} well and {} not{}; a pair takes {}{}",
            figures.first_failing.unwrap_or(users),
            cause(figures),
            write_duration(takes(users) * 2),
            next.as_ref().map_or_else(String::new, |next| format!("; {}", expected(next)))
        ),
        (Choice::Search(SearchReason::Slow), Some(figures)) => {
            format!("searched: a run that holds {}, takes longer than a search", fails(figures))
        }
        (Choice::Search(SearchReason::TooLittle), Some(figures)) => format!(
            "searched: a variant has too little more of the limiting resource to serve {}",
            fails(figures)
        ),
        (Choice::Search(SearchReason::NextLimit), Some(figures)) => format!(
            "searched: {}, below {}",
            next.as_ref().map_or_else(String::new, expected),
            fails(figures)
        ),
        (Choice::NoLimit { users }, _) => format!(
            "{baseline} serves {users} users well, the largest crowd that may be tried: nothing \
             is compared; raise the `ceiling` of [find]"
        ),
        (Choice::Search(_) | Choice::Hold { .. }, _) => {
            let reason = run.reason.clone().or_else(|| figures.map(no_limit));
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("searched: the search of {baseline} found no crowd to hold{reason}")
        }
    };
    Chosen { choice, why }
}

/// The first limit that any variant surely meets after that of the baseline, where the demand of a
/// user tells it. A resource that is known to be enough for some users, and no more is known of it,
/// is no limit.
fn next_limit(
    plan: &MatrixPlan,
    figures: &RunFigures,
    demands: &[Demand],
) -> Option<CapacityPrediction> {
    let (passing, failing) = (f64::from(figures.capacity?), f64::from(figures.first_failing?));
    let named = figures.finding.as_deref().filter(|_| figures.verdict.names_a_cause());
    let runs = [demands.to_vec()];
    let levels = plan.matrix.factors.iter().flat_map(|factor| &factor.levels);
    let of_variants = levels.filter_map(|level| {
        let relief = level.relieves.as_ref()?;
        predict_known(&runs, named, relief, level.more, [passing, failing])
    });
    of_variants.min_by(|a, b| a.users.total_cmp(&b.users))
}

/// `a variant is expected to have its next limit at about 140 users (CPU of the host)`.
fn expected(next: &CapacityPrediction) -> String {
    let CapacityPrediction { users, resource, .. } = next;
    format!("a variant is expected to have its next limit at about {users:.0} users ({resource})")
}

/// The limit that a search found whose largest crowd is `ceiling`. That no load failed is also said
/// of a search that ran out of time.
fn found(figures: &RunFigures, ceiling: Option<u32>) -> Option<FoundLimit> {
    let passing = figures.capacity?;
    let has_no_limit = figures.capacity_verdict.as_deref() == Some(NO_LIMIT);
    let is_at_ceiling = has_no_limit && ceiling.is_some_and(|ceiling| passing >= ceiling);
    Some(FoundLimit { passing, failing: figures.first_failing, is_at_ceiling })
}

/// Why a valid search found no limit.
fn no_limit(figures: &RunFigures) -> String {
    match (figures.capacity, figures.capacity_verdict.as_deref()) {
        (Some(users), Some(NO_LIMIT)) => format!(
            "the search ran out of time: {users} users were served well; give it more `budget` in \
             [find], or a larger `start`"
        ),
        _ => "nobody was served well, or no load failed".to_owned(),
    }
}

/// What the search named as the limit: `: Thread SW-WebRTC is full (one_thread_full, 97)`.
fn cause(figures: &RunFigures) -> String {
    match (&figures.finding, figures.score) {
        (Some(finding), Some(score)) if figures.verdict.names_a_cause() => {
            format!(": {} ({finding}, {score:.0})", figures.title)
        }
        _ => String::new(),
    }
}
