//! A comparison as JUnit cases: one for whether it was possible, one for each quantity, those of
//! objectives by their text.

use throng_analysis::comparison::ComparisonVerdict;

use super::{CompareReport, ComparedQuantity, text};
use crate::junit::{TestCase, TestOutcome, TestSuite};

/// The suite of a comparison.
#[must_use]
pub fn suite(report: &CompareReport) -> TestSuite {
    let possible = TestCase {
        name: "comparable".into(),
        outcome: match report.refusals.first() {
            Some(_) => TestOutcome::Error(report.refusals.join("; ")),
            None => TestOutcome::Passed,
        },
        detail: report.notes.join("\n"),
    };
    let cases = report.quantities.iter().flat_map(|row| cases(report, row));
    TestSuite {
        name: "throng compare".into(),
        cases: std::iter::once(possible).chain(cases).collect(),
    }
}

/// A case for each objective on a quantity; without one, a case of the quantity.
fn cases(report: &CompareReport, row: &ComparedQuantity) -> Vec<TestCase> {
    let of_it = report.objectives.iter().filter(|objective| objective.quantity == row.key);
    let mut names: Vec<String> = of_it.map(|objective| objective.text.clone()).collect();
    if names.is_empty() {
        names.push(row.key.clone());
    }
    names
        .into_iter()
        .map(|name| TestCase { name, outcome: outcome(row), detail: detail(row) })
        .collect()
}

fn outcome(row: &ComparedQuantity) -> TestOutcome {
    match row.verdict {
        ComparisonVerdict::Better | ComparisonVerdict::Same => TestOutcome::Passed,
        ComparisonVerdict::Worse => {
            TestOutcome::Failed(format!("worse: {}", text::difference(row)))
        }
        ComparisonVerdict::NotDecided => TestOutcome::Skipped(match &row.note {
            Some(note) => format!("not decided: {note}"),
            None => "not decided: longer runs, or several a side, would decide".into(),
        }),
    }
}

fn detail(row: &ComparedQuantity) -> String {
    format!(
        "{}: {} in the base, {} in the new; difference {}, 95 % interval {}, margin ±{}: {}",
        row.name,
        text::shown(row, row.base),
        text::shown(row, row.new),
        text::difference(row),
        text::interval(row),
        text::margin(row),
        row.verdict.words()
    )
}
