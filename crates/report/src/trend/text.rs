//! A trend in the terminal: a line for each run, then what changed.

use std::fmt::Write as _;

use throng_analysis::comparison::ComparisonVerdict;
use throng_analysis::comparison::trend::TrendMark;
use throng_observation::{calendar, units, untrusted};

use super::{TrendChange, TrendQuantity, TrendReport};
use crate::Quantity;
use crate::columns::{columns, said};

/// Most quantities in the table of the terminal; the page and the JSON have all.
const COLUMNS_MAX: usize = 5;

/// The answer as text.
#[must_use]
pub fn summary(report: &TrendReport) -> String {
    let mut out = format!("{}\n\n{}", untrusted::line(&report.headline), columns(&rows(report)));
    let mut remarks = String::new();
    for (index, run) in report.runs.iter().enumerate() {
        for remark in run
            .excluded
            .iter()
            .map(|why| format!("does not count: {why}"))
            .chain(run.remarks.iter().cloned())
        {
            let _ = writeln!(remarks, "  {}  {}", index + 1, untrusted::line(&remark));
        }
    }
    if !remarks.is_empty() {
        let _ = write!(out, "\n{remarks}");
    }
    let changes: Vec<String> = sentences(report);
    if !changes.is_empty() {
        out.push('\n');
    }
    said(&mut out, "  ", changes);
    out.push('\n');
    out.extend(report.method.iter().map(|sentence| format!("  {sentence}\n")));
    out
}

fn rows(report: &TrendReport) -> Vec<Vec<String>> {
    // Those that changed first, then in the order of the question.
    let mut shown: Vec<&TrendQuantity> = report.quantities.iter().collect();
    shown.sort_by_key(|quantity| quantity.changes.is_empty());
    shown.truncate(COLUMNS_MAX);
    shown.sort_by_key(|quantity| {
        report.quantities.iter().position(|other| other.key == quantity.key)
    });
    let mut head: Vec<String> = ["", "run", "started"].map(str::to_owned).to_vec();
    head.extend(shown.iter().map(|quantity| quantity.name.clone()));
    let mut rows = vec![head];
    for (index, run) in report.runs.iter().enumerate() {
        let counts = if run.excluded.is_some() {
            format!("({})", index + 1)
        } else {
            (index + 1).to_string()
        };
        let mut row = vec![counts, run.folder.clone(), calendar::shown(run.started_at_unix_us)];
        row.extend(shown.iter().map(|quantity| cell(quantity, index)));
        rows.push(row);
    }
    rows
}

/// A figure with its mark: `!` a change, `?` an outlier.
fn cell(quantity: &TrendQuantity, index: usize) -> String {
    let value = quantity.values.get(index).copied().flatten();
    let mark = match quantity.marks.get(index) {
        Some(TrendMark::Change) => " !",
        Some(TrendMark::Outlier) => " ?",
        _ => "",
    };
    format!("{}{mark}", shown(quantity, value))
}

/// A value of a quantity.
pub(crate) fn shown(quantity: &TrendQuantity, value: Option<f64>) -> String {
    Quantity::shown(&quantity.key, value)
}

/// What changed, in sentences.
pub(crate) fn sentences(report: &TrendReport) -> Vec<String> {
    let each = |quantity: &TrendQuantity| -> Vec<String> {
        quantity.changes.iter().map(|change| sentence(report, quantity, change)).collect()
    };
    report.quantities.iter().flat_map(each).collect()
}

fn sentence(report: &TrendReport, quantity: &TrendQuantity, change: &TrendChange) -> String {
    let folder = report.runs.get(change.run).map_or("", |run| run.folder.as_str());
    let (from, to) = (shown(quantity, Some(change.from)), shown(quantity, Some(change.to)));
    let what = match change.mark {
        TrendMark::Change => "changed for the",
        _ => "was once",
    };
    format!(
        "{} {what} {}: run {} ({folder}), {from} → {to}",
        quantity.name,
        change.verdict.words(),
        change.run + 1
    )
}

/// The answer in one sentence.
pub(super) fn headline(report: &TrendReport) -> String {
    let counted = report.runs.iter().filter(|run| run.excluded.is_none()).count();
    let runs = units::count(report.runs.len() as u64, "runs");
    let runs = format!("{runs}, {counted} of them count");
    let count = |mark: TrendMark, verdict: ComparisonVerdict| {
        let changes = report.quantities.iter().flat_map(|quantity| &quantity.changes);
        changes.filter(|change| change.mark == mark && change.verdict == verdict).count()
    };
    let mut parts = Vec::new();
    for (verdict, word) in
        [(ComparisonVerdict::Worse, "worse"), (ComparisonVerdict::Better, "better")]
    {
        match count(TrendMark::Change, verdict) {
            0 => {}
            many => parts.push(units::count(many as u64, &format!("changes for the {word}"))),
        }
    }
    let outliers = count(TrendMark::Outlier, ComparisonVerdict::Worse)
        + count(TrendMark::Outlier, ComparisonVerdict::Better);
    if outliers > 0 {
        parts.push(units::count(outliers as u64, "outliers"));
    }
    if parts.is_empty() {
        let enough =
            report.quantities.iter().any(|quantity| quantity.marks.contains(&TrendMark::Usual));
        parts.push(if enough { "no change" } else { "too few to say what is usual" }.to_owned());
    }
    let newest =
        if report.newest_is_worse { "; the newest is worse than those before it" } else { "" };
    format!("{runs}: {}{newest}", parts.join(", "))
}
