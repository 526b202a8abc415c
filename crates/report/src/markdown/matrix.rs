//! A matrix or a proof: what is missing first, then the answer, the variants, the cells.

use super::document::Document;
use crate::matrix::{MatrixReport, VariantProof, proof_text, text};

/// The answer of a matrix or a proof.
#[must_use]
pub fn of_matrix(report: &MatrixReport) -> String {
    let what = if report.proofs.is_empty() { "throng matrix" } else { "throng prove" };
    let mut document =
        Document::new(what, if report.partial { "not finished" } else { "finished" });
    if report.partial {
        document.item("Partial", "runs are missing that can still be made, by the flag --resume");
    }
    document.item("Answer", &report.headline);
    document.items("Note", &report.notes);
    document.table(&variants(report));
    document.table(&text::cell_rows(report));
    document.items("Limit", &text::causes(report));
    document.items("Run", &text::reasons(report));
    let tested = report.confirmations.iter().map(|one| text::confirmation(report, one));
    document.items("Tested", &tested.collect::<Vec<_>>());
    document.finish()
}

/// The variants of a proof as rows of a table.
fn variants(report: &MatrixReport) -> Vec<Vec<String>> {
    let head = ["variant", "outcome", "ratio, 95 %", "A/A", "limit of the baseline", "then"];
    let limit = |limit: &Option<String>| limit.clone().unwrap_or_else(|| "–".to_owned());
    let row = |proof: &VariantProof| {
        vec![
            proof.variant.clone(),
            proof.outcome.words().to_owned(),
            proof.bound.estimate(proof.effect.as_ref()),
            proof_text::estimate(proof.control.as_ref()),
            limit(&proof.baseline_limit),
            limit(&proof.limit),
        ]
    };
    let head = head.map(str::to_owned).to_vec();
    std::iter::once(head).chain(report.proofs.iter().map(row)).collect()
}
