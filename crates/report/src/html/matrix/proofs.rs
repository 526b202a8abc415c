//! Proofs: for each variant the ratio to the baseline with its interval, next to A/A, and the pairs
//! that it is from.

use std::fmt::Write as _;

use throng_analysis::experiment::{ProofOutcome, RATIO_MARGIN, RatioEstimate};

use super::super::markup::{Cell, Table, escape, table};
use crate::matrix::{MatrixMeasure, MatrixReport, VariantProof, proof_text};

/// Size of a ratio's drawing.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 26.0;
/// The widest axis: factors beyond are at its ends.
const RATIO_MAX: f64 = 100.0;

pub(super) fn render(report: &MatrixReport) -> String {
    if report.proofs.is_empty() {
        return String::new();
    }
    let axis = Axis::of(&report.proofs);
    let header = ["variant", "outcome", "ratio, 95 %", "", "limit of the baseline", "then"];
    let mut table = Table::new("proof", &header, &[2]);
    for proof in &report.proofs {
        rows(&mut table, &axis, proof);
    }
    let what = match report.measure {
        MatrixMeasure::Find => "Capacity",
        MatrixMeasure::Hold => "Share of user-seconds served well",
    };
    let mut out = format!(
        "<h2>Proof</h2>{}<p class=\"over\">{what} of the variant ÷ that of the baseline, geometric \
         mean of pairs of neighbouring runs, on a logarithmic axis. The band is ±{:.0} %: a change \
         within it does not matter. A/A: the same ratio for runs of equal configuration.</p>",
        table.finish(),
        RATIO_MARGIN * 1e2
    );
    for proof in &report.proofs {
        out += &details(report, proof);
    }
    out
}

/// The row of a variant, and below it that of the runs of equal configuration.
fn rows(table: &mut Table, axis: &Axis, proof: &VariantProof) {
    let class = match proof.outcome {
        ProofOutcome::Confirmed | ProofOutcome::Better => "confirmed",
        ProofOutcome::Refuted | ProofOutcome::Worse => "refuted",
        _ => "",
    };
    let limit = |limit: &Option<String>| Cell::text(limit.as_deref().unwrap_or("–"));
    table.row(
        "",
        [
            Cell::text(&proof.variant),
            Cell::text(proof.outcome.words()).classed(class),
            Cell::text(&proof.bound.estimate(proof.effect.as_ref())),
            Cell::markup(axis.draw(proof.effect.as_ref(), "effect")),
            limit(&proof.baseline_limit),
            limit(&proof.limit),
        ],
    );
    table.row(
        "aa",
        [
            Cell::text("A/A"),
            Cell::text(""),
            Cell::text(&proof_text::estimate(proof.control.as_ref())),
            Cell::markup(axis.draw(proof.control.as_ref(), "aa")),
            Cell::text(""),
            Cell::text(""),
        ],
    );
}

fn details(report: &MatrixReport, proof: &VariantProof) -> String {
    let said: Vec<String> = std::iter::once(proof.answer.clone())
        .chain(proof.prediction.iter().map(proof_text::prediction))
        .chain(proof_text::elasticity(proof))
        .chain(proof.reasons.iter().cloned())
        .collect();
    let said: String = said.iter().map(|line| format!("<p>{}</p>", escape(line))).collect();
    let kind = report.service();
    let rows: Vec<Vec<String>> = proof
        .pairs
        .iter()
        .map(|pair| {
            proof_text::pair_row(kind, pair)
                .into_iter()
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect();
    format!(
        "<h3>{}</h3>{said}<details><summary>{} pairs of runs</summary>{}</details>",
        escape(&format!("{} against {}", proof.variant, proof.baseline)),
        rows.len(),
        table(&["runs", "baseline", "variant", "ratio", "discarded"], &rows)
    )
}

/// A logarithmic axis around 1, the same for all variants.
struct Axis {
    /// The logarithm at its right end; the left end is as far from 1.
    reach: f64,
}

impl Axis {
    fn of(proofs: &[VariantProof]) -> Self {
        let estimates = proofs.iter().flat_map(|proof| [proof.effect, proof.control]).flatten();
        let ends = estimates
            .flat_map(|one| one.interval.unwrap_or([one.ratio; 2]).into_iter().chain([one.ratio]));
        let logs = ends.map(|ratio| ratio.ln().abs()).filter(|log| log.is_finite());
        let reach = logs.fold(1.25f64.ln(), f64::max).min(RATIO_MAX.ln()) * 1.08;
        Self { reach }
    }

    fn at(&self, ratio: f64) -> f64 {
        let log = ratio.max(1.0 / RATIO_MAX).ln().clamp(-self.reach, self.reach);
        let at = WIDTH / 2.0 * (1.0 + log / self.reach);
        if at.is_finite() { at } else { WIDTH / 2.0 }
    }

    fn draw(&self, one: Option<&RatioEstimate>, class: &str) -> String {
        let (low, high) = (self.at(1.0 / (1.0 + RATIO_MARGIN)), self.at(1.0 + RATIO_MARGIN));
        let (middle, y) = (self.at(1.0), HEIGHT / 2.0);
        let mut out = format!(
            "<svg class=\"ratio {class}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\"><rect class=\"margin\" x=\"{low:.1}\" y=\"0\" width=\"{:.1}\" \
             height=\"{HEIGHT}\"/><line class=\"one\" x1=\"{middle:.1}\" y1=\"0\" \
             x2=\"{middle:.1}\" y2=\"{HEIGHT}\"/>",
            escape(&proof_text::estimate(one)),
            high - low
        );
        if let Some(one) = one {
            if let Some([low, high]) = one.interval {
                let (low, high) = (self.at(low), self.at(high));
                let _ = write!(
                    out,
                    "<line class=\"span\" x1=\"{low:.1}\" y1=\"{y}\" x2=\"{high:.1}\" y2=\"{y}\"/>"
                );
            }
            let _ = write!(out, "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"4.5\"/>", self.at(one.ratio));
        }
        out.push_str("</svg>");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::render;
    use crate::matrix::proof_tests::{confirmed, placebo};

    #[test]
    fn the_page_shows_each_variant_with_its_interval_and_its_control() {
        let page = render(&confirmed());
        for text in [
            ">Proof</a></h2>",
            "class=\"confirmed\">confirmed",
            "A/A",
            "class=\"ratio effect\"",
            "4 pairs of runs",
            "line_rate",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
        assert!(!page.contains(">Effects</a></h2>") && !page.contains("NaN"));
        assert!(render(&placebo()).contains(">same<"));
    }

    #[test]
    fn hostile_names_stay_text() {
        let hostile = "\"><script>alert(1)</script>";
        let mut report = confirmed();
        let proof = &mut report.proofs[0];
        (proof.variant, proof.answer, proof.baseline) =
            (hostile.into(), hostile.into(), hostile.into());
        proof.finding = Some(hostile.into());
        proof.reasons = vec![hostile.into()];
        proof.pairs[0].discarded = Some(hostile.into());
        proof.effect.as_mut().unwrap().ratio = f64::INFINITY;
        let page = render(&report);
        assert!(!page.contains("<script") && !page.contains("NaN"), "{page}");
    }
}
