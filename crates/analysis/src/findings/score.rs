//! The score of a finding, 0 to 100, from the same four questions for every resource.
//!
//! 1. Utilisation: is it used up, or does it refuse work?
//! 2. Queue: does work wait for it?
//! 3. Prediction: did the demand model, fitted to the loads that passed, predict saturation at the
//!    capacity that was found?
//! 4. Time: did it saturate when service went bad?
//!
//! A question without an answer is left out of the weighted mean, so that a run without a demand
//! model can still be explained. Correlation with the load is no question: every counter grows with
//! the load.

use crate::context::Context;

use super::Candidate;

/// Utilisation at which a resource begins to count as used up. Queues grow without bound near 1
/// (M/G/1: at 0.7 the wait exceeds twice the service time, at 0.95 it is ten times longer).
pub(crate) const USED_FROM: f64 = 0.70;
/// From [`USED_FROM`] to fully used up.
const USED_OVER: f64 = 0.25;

const WEIGHT_USED: f64 = 0.35;
const WEIGHT_QUEUE: f64 = 0.25;
const WEIGHT_PREDICTED: f64 = 0.25;
const WEIGHT_TIME: f64 = 0.15;

/// A prediction that is off by this (natural logarithm) still counts for a third: about the 95 %
/// interval of a model of eight loads that ends at 70 % of the limit.
const PREDICTION_WIDTH: f64 = 0.15;

/// Highest score of a candidate that is neither used up nor refusing work: it may only accompany
/// the cause.
pub(crate) const CAP_COMPANY: f64 = 55.0;
/// Highest score from a single answer: one answer names no bottleneck.
const CAP_ONE_CLUE: f64 = 69.0;
const KNOWN_MIN: f64 = 0.55;

/// Lowest score of a bottleneck…
pub const BOTTLENECK_MIN: f64 = 70.0;
/// …which must be this far ahead of the next finding.
pub const AHEAD_MIN: f64 = 15.0;
/// Lowest score of a suspect.
pub const SUSPECT_MIN: f64 = 50.0;

/// Maps utilisation (share of the limit) to 0 … 1.
pub(crate) fn used_up(share: f64) -> f64 {
    ((share - USED_FROM) / USED_OVER).clamp(0.0, 1.0)
}

/// The score of a candidate, 0 to 100.
pub(crate) fn score(candidate: &Candidate, context: &Context<'_>) -> f64 {
    let refuses = if candidate.refuses { 1.0 } else { 0.0 };
    let used = candidate.used.max(refuses);
    let queue =
        candidate.queue.or(candidate.refuses.then_some(1.0)).map(|queue| queue.max(refuses));
    let answers = [
        (WEIGHT_USED, Some(used)),
        (WEIGHT_QUEUE, queue),
        (WEIGHT_PREDICTED, predicted(candidate, context)),
        (WEIGHT_TIME, in_time(candidate.crossed_at_s, context)),
    ];
    let known: f64 =
        answers.iter().filter(|(_, answer)| answer.is_some()).map(|(weight, _)| weight).sum();
    let sum: f64 = answers.iter().filter_map(|(weight, answer)| Some(weight * (*answer)?)).sum();
    let mut score = 100.0 * sum / known;
    if known < KNOWN_MIN {
        score = score.min(CAP_ONE_CLUE);
    }
    if used < 0.5 {
        score = score.min(CAP_COMPANY);
    }
    score.min(candidate.at_most).clamp(0.0, 100.0)
}

/// How well the model predicts that the resource saturates at the capacity that was found, 0 to 1.
fn predicted(candidate: &Candidate, context: &Context<'_>) -> Option<f64> {
    let limit = context.windows.users_at_limit()?;
    let demand = candidate.demand.as_ref()?;
    let users = demand.users.filter(|users| *users > 0.0)?;
    // A wide interval tolerates a larger error, up to a factor of √e.
    let own = demand.users_high.map_or(0.0, |high| (high / users).ln());
    let width = PREDICTION_WIDTH.max(own.min(0.5));
    Some((-((users / limit).ln() / width).powi(2)).exp())
}

/// Whether it saturated when service went bad, 0 to 1. Shortly before: a cause. Long before: a
/// resource that was near its limit anyway. Afterwards: a consequence. Both clocks count whole
/// seconds.
fn in_time(crossed_at_s: Option<f64>, context: &Context<'_>) -> Option<f64> {
    let bad = context.windows.first_bad_s? as f64;
    Some(match crossed_at_s {
        None => 0.0,
        Some(at) if at > bad + 5.0 => 0.0,
        Some(at) if at > bad + 2.0 => 0.5,
        Some(at) if at >= bad - 10.0 => 1.0,
        Some(_) => 0.5,
    })
}
