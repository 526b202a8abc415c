//! A comparison: why it may be none, the answer, each quantity, the objectives, both sides.

use throng_analysis::comparison::ComparisonVerdict;

use super::document::Document;
use crate::compare::{CompareReport, CompareSide, text};

/// The answer of a comparison.
#[must_use]
pub fn of_comparison(report: &CompareReport) -> String {
    let mut document = Document::new("throng compare", report.outcome.words());
    document.items("Not comparable", &report.refusals);
    document.item("Answer", &report.headline);
    document.items("Note", &report.notes);
    document.table(&text::rows(report));
    document.items("Not decided", &not_decided(report));
    document.table(&text::objective_rows(report));
    document.items("Base", &runs(&report.base));
    document.items("New", &runs(&report.new));
    document.items("Not compared", &report.not_compared);
    document.items("Differs", &text::differences(report));
    document.finish()
}

fn runs(side: &CompareSide) -> Vec<String> {
    side.runs.iter().map(text::run_line).collect()
}

/// Why quantities are not decided.
fn not_decided(report: &CompareReport) -> Vec<String> {
    let open = report.quantities.iter().filter(|row| row.verdict == ComparisonVerdict::NotDecided);
    open.filter_map(|row| Some(format!("{}: {}", row.key, row.note.as_ref()?))).collect()
}
