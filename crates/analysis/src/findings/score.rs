//! How sure a finding is, 0 to 100, from four questions that are asked of every resource alike.
//!
//! Is it *used up* (or does it refuse)? Does something *queue* behind it? Did the demand model, from loads that
//! passed, *predict* its end where the crowd's limit was found? Did it cross into saturation *when* users began to
//! suffer? A question that cannot be answered takes its weight out, so that a run without a model can still be
//! explained; but nothing is named because it merely rose together with the crowd: everything does.

use crate::context::Context;

use super::Candidate;

/// From here on a resource begins to count as used up, and here it is: queues grow without bound near 1 (M/G/1: at 0.7
/// waiting passes twice the service time, at 0.95 it is ten times longer).
pub(crate) const USED_FROM: f64 = 0.70;
/// How much further it is used up entirely.
const USED_OVER: f64 = 0.25;

const WEIGHT_USED: f64 = 0.35;
const WEIGHT_QUEUE: f64 = 0.25;
const WEIGHT_PREDICTED: f64 = 0.25;
const WEIGHT_TIME: f64 = 0.15;

/// The prediction may be off by this (natural logarithm) and still stand for a third: about the 95 % interval of a
/// model from eight loads that ends at 70 %.
const PREDICTION_WIDTH: f64 = 0.15;

/// What is not used up and refuses nothing is only in company with the trouble.
pub(crate) const CAP_COMPANY: f64 = 55.0;
/// One answer alone names nobody.
const CAP_ONE_CLUE: f64 = 69.0;
const KNOWN_MIN: f64 = 0.55;

/// A finding with this many points is the bottleneck…
pub const BOTTLENECK_MIN: f64 = 70.0;
/// …when it is so far ahead of the next.
pub const AHEAD_MIN: f64 = 15.0;
/// Below [`BOTTLENECK_MIN`], and down to here, it is a suspect.
pub const SUSPECT_MIN: f64 = 50.0;

/// How used up a share of a limit is, 0 to 1.
pub(crate) fn used_up(share: f64) -> f64 {
    ((share - USED_FROM) / USED_OVER).clamp(0.0, 1.0)
}

/// The score of a candidate.
pub(crate) fn score(candidate: &Candidate, context: &Context<'_>) -> f64 {
    let refuses = if candidate.refuses { 1.0 } else { 0.0 };
    let used = candidate.used.max(refuses);
    let queue = candidate.queue.or(candidate.refuses.then_some(1.0)).map(|queue| queue.max(refuses));
    let answers = [
        (WEIGHT_USED, Some(used)),
        (WEIGHT_QUEUE, queue),
        (WEIGHT_PREDICTED, predicted(candidate, context)),
        (WEIGHT_TIME, in_time(candidate.crossed_at_s, context)),
    ];
    let known: f64 = answers.iter().filter(|(_, answer)| answer.is_some()).map(|(weight, _)| weight).sum();
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

/// Whether the model met the resource's end where the crowd's limit is.
fn predicted(candidate: &Candidate, context: &Context<'_>) -> Option<f64> {
    let limit = context.windows.users_at_limit()?;
    let demand = candidate.demand.as_ref()?;
    let users = demand.users.filter(|users| *users > 0.0)?;
    // A wide interval forgives more, but no more than a factor of e to the half.
    let own = demand.users_high.map_or(0.0, |high| (high / users).ln());
    let width = PREDICTION_WIDTH.max(own.min(0.5));
    Some((-((users / limit).ln() / width).powi(2)).exp())
}

/// Whether it crossed when users began to suffer: shortly before is cause, well before is a resource that had been near
/// its limit, afterwards is a consequence. Both clocks count whole seconds.
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
