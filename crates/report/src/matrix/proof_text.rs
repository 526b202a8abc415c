//! Proofs in words: the sentence of each, and the section of the terminal.

use std::fmt::Write as _;

use throng_analysis::experiment::{CapacityPrediction, ProofOutcome, RatioEstimate};
use throng_observation::untrusted;

use super::proof::least_share;
use super::ratio_bound::RatioBound;
use super::{MatrixMeasure, MatrixReport, NOT_FINISHED, ProofPair, VariantProof};
use crate::Quantity;
use crate::cause;
use crate::columns::{columns, said};

/// `×2.10`.
pub(crate) fn factor(ratio: f64) -> String {
    if ratio >= 9.995 { format!("×{ratio:.1}") } else { format!("×{ratio:.2}") }
}

/// `×2.10 (1.80 to 2.45)`.
pub(crate) fn estimate(one: Option<&RatioEstimate>) -> String {
    match one {
        None => "–".to_owned(),
        Some(RatioEstimate { ratio, interval: None, .. }) => factor(*ratio),
        Some(RatioEstimate { ratio, interval: Some([low, high]), .. }) => {
            format!("{} ({low:.2} to {high:.2})", factor(*ratio))
        }
    }
}

/// The answer for one variant; `is_any_named`: some of its runs name a limit; `is_still_named`:
/// most of them name what it has more of.
pub(super) fn answer(
    proof: &VariantProof,
    measure: MatrixMeasure,
    [is_any_named, is_still_named]: [bool; 2],
) -> String {
    let VariantProof { variant, baseline, accused, .. } = proof;
    let what = match measure {
        MatrixMeasure::Find => "users",
        MatrixMeasure::Hold => "user-seconds served well",
    };
    let size = match (&proof.effect, proof.bound) {
        (None, _) => "nothing to compare".to_owned(),
        (Some(effect), RatioBound::Exact) => {
            format!("{} the {what}, 95 % {}", factor(effect.ratio), interval(effect.interval))
        }
        (Some(effect), bound @ RatioBound::AtLeast) => {
            format!("at least {} the {what}", factor(bound.end(effect)))
        }
        (Some(effect), bound @ RatioBound::AtMost) => {
            format!("at most {} the {what}", factor(bound.end(effect)))
        }
        (Some(_), RatioBound::Unknown) => {
            format!("less than {} of the {what}, as has {baseline}", least_share())
        }
    };
    let words = proof.outcome.words();
    let said = match proof.outcome {
        ProofOutcome::Confirmed => {
            format!("{words}: {accused} limits {baseline}; {variant} has {size}")
        }
        // It may well be the limit: this does not give more of it.
        ProofOutcome::Refuted if is_still_named => format!(
            "{words}: {variant} does not relieve {accused}, which its runs still name; it has \
             {size}"
        ),
        ProofOutcome::Refuted => {
            format!("{words}: {accused} does not limit {baseline}; {variant} has {size}")
        }
        _ => format!("{words}: {variant} has {size}, against {baseline}"),
    };
    let follows = match (&proof.outcome, &proof.limit) {
        (ProofOutcome::Confirmed, Some(next)) if proof.shrink.is_none() => {
            format!("; then {next} is the limit")
        }
        (ProofOutcome::Confirmed, None)
            if proof.shrink.is_none() && measure == MatrixMeasure::Hold =>
        {
            if is_any_named {
                "; then its runs name different limits"
            } else {
                "; then nothing is named"
            }
            .to_owned()
        }
        _ => String::new(),
    };
    format!("{said}{follows}")
}

/// That a search of the baseline found nothing that a variant could relieve.
pub(super) fn no_limit(proof: &VariantProof, users: u32) -> String {
    format!(
        "{} has no limit up to {users} users, the largest crowd that may be tried",
        proof.baseline
    )
}

fn interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(|| "not known".to_owned(), |[low, high]| format!("{low:.2} to {high:.2}"))
}

/// Whether the demand model was right.
pub(crate) fn prediction(one: &CapacityPrediction) -> String {
    let held = match one.held {
        Some(true) => "; held",
        Some(false) => "; did not hold",
        None => "",
    };
    let unknown = cause::unknown(&one.unknown);
    let end = match one.users_high {
        Some(high) => {
            format!(
                "predicted {:.0} to {high:.0} users, then full: {}",
                one.users_low, one.resource
            )
        }
        // Nothing is known of more: the resource ends the knowledge, and not the server.
        None => format!("is known up to {:.0} users, by {}", one.users_low, one.resource),
    };
    format!("the demand model {end}{held}{unknown}")
}

/// How far the capacity followed a shrunk resource.
pub(crate) fn elasticity(proof: &VariantProof) -> Option<String> {
    let of = proof.elasticity?;
    let range = proof.elasticity_interval.map(|[low, high]| format!(" ({low:.2} to {high:.2})"));
    Some(format!(
        "elasticity {of:.2}{}: 1 if the capacity follows the resource, 0 if it does not",
        range.unwrap_or_default()
    ))
}

/// The answers of all variants in one line.
pub(super) fn headline(report: &MatrixReport) -> String {
    let answers: Vec<&str> = report.proofs.iter().map(|proof| proof.answer.as_str()).collect();
    let more = if report.partial { NOT_FINISHED } else { "" };
    if answers.is_empty() {
        return format!("nothing was compared{more}");
    }
    format!("{}{more}", answers.join(". "))
}

/// The section of the terminal.
pub(super) fn section(report: &MatrixReport) -> String {
    let kind = report.service();
    let mut out = String::new();
    for proof in &report.proofs {
        let _ = writeln!(
            out,
            "\n{} against {}",
            untrusted::line(&proof.variant),
            untrusted::line(&proof.baseline)
        );
        said(&mut out, "  ", [&proof.answer]);
        said(&mut out, "  ", proof.prediction.iter().map(prediction).chain(elasticity(proof)));
        said(&mut out, "  ", &proof.reasons);
        let mut rows =
            vec![["  runs", "baseline", "variant", "ratio", ""].map(str::to_owned).to_vec()];
        rows.extend(proof.pairs.iter().map(|pair| pair_row(kind, pair)));
        rows.push(vec![
            "  A/A".to_owned(),
            String::new(),
            String::new(),
            estimate(proof.control.as_ref()),
            String::new(),
        ]);
        out += &columns(&rows);
    }
    out
}

/// A pair as cells of a table: its runs, both values, their ratio, why it does not count.
pub(crate) fn pair_row(kind: Quantity, pair: &ProofPair) -> Vec<String> {
    let dash = || "–".to_owned();
    let place = |place: Option<usize>| place.map_or_else(dash, |place| place.to_string());
    let value = |value: Option<f64>| value.map_or_else(dash, |value| kind.show(value));
    let ([a, b], [x, y]) = (pair.places, pair.values);
    vec![
        format!("  {} and {}", place(a), place(b)),
        value(x),
        value(y),
        pair.ratio.map_or_else(dash, |ratio| pair.bound.factor(ratio)),
        pair.discarded.as_ref().map(|why| format!("discarded: {why}")).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_known_up_to_somewhere_is_not_said_to_be_full_there() {
        let of = |users_high| {
            prediction(&CapacityPrediction {
                users: 121.0,
                users_low: 121.0,
                users_high,
                resource: "CPU of the host".into(),
                runs: 1,
                unknown: Vec::new(),
                held: None,
            })
        };
        assert_eq!(of(None), "the demand model is known up to 121 users, by CPU of the host");
        assert_eq!(
            of(Some(130.0)),
            "the demand model predicted 121 to 130 users, then full: CPU of the host"
        );
    }
}
