//! A comparison in the terminal: the answer, the quantities, what limited each side.

use std::fmt::Write as _;

use throng_analysis::comparison::ComparisonVerdict;
use throng_observation::untrusted;

use super::summarise::is_open;
use super::{
    CompareOutcome, CompareReport, CompareSide, ComparedObjective, ComparedQuantity, ComparedRun,
};
use crate::Quantity;
use crate::columns::{columns, said};
use crate::headline::capitalised;

/// The answer as text.
#[must_use]
pub fn summary(report: &CompareReport) -> String {
    let mut out = format!("{}\n\n", untrusted::line(&report.headline));
    side(&mut out, "base", &report.base);
    side(&mut out, "new", &report.new);
    said(&mut out, "  note  ", &report.notes);
    said(&mut out, "  not comparable  ", &report.refusals);
    if !report.quantities.is_empty() {
        let _ = write!(out, "\n{}", columns(&rows(report)));
    }
    for row in report.quantities.iter().filter(|row| row.verdict == ComparisonVerdict::NotDecided) {
        if let Some(note) = &row.note {
            let _ = writeln!(out, "  {}: {}", untrusted::line(&row.key), untrusted::line(note));
        }
    }
    if !report.objectives.is_empty() {
        let _ = write!(out, "\n{}", columns(&objective_rows(report)));
    }
    if let Some(limits) = &report.limits.statement {
        let _ = writeln!(out, "\n{}", untrusted::line(&capitalised(limits)));
    }
    said(&mut out, "not compared: ", &report.not_compared);
    said(&mut out, "differs: ", differences(report));
    if !report.method.is_empty() {
        out.push('\n');
    }
    out.extend(report.method.iter().map(|sentence| format!("  {sentence}\n")));
    out
}

fn side(out: &mut String, name: &str, side: &CompareSide) {
    for (index, run) in side.runs.iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        let _ = writeln!(out, "  {name:<4}  {}", untrusted::line(&run_line(run)));
    }
}

/// A run of a side: its answer, or why it does not count.
pub(crate) fn run_line(run: &ComparedRun) -> String {
    match &run.excluded {
        Some(why) => format!("{}: does not count: {why}", run.folder),
        None => format!("{}: {}", run.folder, run.headline),
    }
}

/// The quantities as a table.
pub(crate) fn rows(report: &CompareReport) -> Vec<Vec<String>> {
    let mut rows = vec![
        ["", "base", "new", "difference", "95 % interval", "margin", "verdict"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(report.quantities.iter().map(|row| {
        vec![
            row.name.clone(),
            shown(row, row.base),
            shown(row, row.new),
            difference(row),
            interval(row),
            format!("±{}", margin(row)),
            verdict(row).to_owned(),
        ]
    }));
    rows
}

/// The objectives as a table.
pub(crate) fn objective_rows(report: &CompareReport) -> Vec<Vec<String>> {
    let mut rows =
        vec![["objective", "base met", "new met", "verdict"].map(str::to_owned).to_vec()];
    rows.extend(report.objectives.iter().map(|objective: &ComparedObjective| {
        let of = |[met, all]: [usize; 2]| format!("{met} of {all}");
        vec![
            objective.text.clone(),
            of(objective.base_met),
            of(objective.new_met),
            objective.verdict.words().to_owned(),
        ]
    }));
    rows
}

/// Facts of machines and keys of scenarios that differ.
pub(crate) fn differences(report: &CompareReport) -> Vec<String> {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".into());
    let of_machines = report
        .machine_differences
        .iter()
        .map(|one| format!("{} of {}: {} and {}", one.fact, one.machine, one.base, one.new));
    let of_scenarios = report
        .scenario_differences
        .iter()
        .map(|one| format!("{}: {} and {}", one.key, value(&one.base), value(&one.new)));
    of_machines.chain(of_scenarios).collect()
}

/// The quantity of a row; `None` for a report of another version.
fn quantity(row: &ComparedQuantity) -> Option<Quantity> {
    Quantity::of_key(&row.key)
}

/// A value of a row.
pub(crate) fn shown(row: &ComparedQuantity, value: Option<f64>) -> String {
    Quantity::shown(&row.key, value)
}

/// The difference, and its share of the base.
pub(crate) fn difference(row: &ComparedQuantity) -> String {
    let Some(by) = row.difference else { return "–".into() };
    let by = show_difference(row, by);
    match row.difference_ratio.filter(|_| !by.ends_with("points") && by != "0") {
        Some(ratio) => {
            format!("{by} ({}{:.1} %)", if ratio < 0.0 { "−" } else { "+" }, ratio.abs() * 100.0)
        }
        None => by,
    }
}

/// The 95 % interval.
pub(crate) fn interval(row: &ComparedQuantity) -> String {
    row.interval.map_or_else(
        || "–".to_owned(),
        |[low, high]| format!("[{}, {}]", show_difference(row, low), show_difference(row, high)),
    )
}

/// The margin, without a sign.
pub(crate) fn margin(row: &ComparedQuantity) -> String {
    show_difference(row, row.margin).replacen('+', "", 1)
}

fn show_difference(row: &ComparedQuantity, by: f64) -> String {
    quantity(row).map_or_else(|| format!("{by:+}"), |quantity| quantity.show_difference(by))
}

/// The verdict, in capitals where it is bad.
fn verdict(row: &ComparedQuantity) -> &'static str {
    match row.verdict {
        ComparisonVerdict::Worse => "WORSE",
        other => other.words(),
    }
}

/// The answer in one sentence.
pub(super) fn headline(report: &CompareReport) -> String {
    let of = |verdict: ComparisonVerdict| -> Vec<&ComparedQuantity> {
        report.quantities.iter().filter(|row| row.verdict == verdict).collect()
    };
    let (better, worse) = (of(ComparisonVerdict::Better), of(ComparisonVerdict::Worse));
    let named = |rows: &[&ComparedQuantity]| -> String {
        let first = rows.iter().take(NAMED).map(|row| format!("{} {}", row.name, difference(row)));
        let first = first.collect::<Vec<_>>().join("; ");
        match rows.len().saturating_sub(NAMED) {
            0 => first,
            more => format!("{first}; and {more} more"),
        }
    };
    let sentence = match report.outcome {
        CompareOutcome::NotComparable => {
            format!("Not comparable: {}", report.refusals.first().cloned().unwrap_or_default())
        }
        CompareOutcome::Worse if better.is_empty() => format!("Worse: {}", named(&worse)),
        CompareOutcome::Worse => format!("Worse: {}. Better: {}", named(&worse), named(&better)),
        CompareOutcome::Better => format!("Better: {}", named(&better)),
        CompareOutcome::Same if better.is_empty() => "Same: no difference that matters".to_owned(),
        CompareOutcome::Same => format!("Same in what was asked. Better: {}", named(&better)),
        CompareOutcome::NotDecided => not_decided(report, &better, &named),
    };
    match &report.limits.statement {
        Some(limits) if report.outcome != CompareOutcome::NotComparable => {
            format!("{sentence}; {limits}")
        }
        _ => sentence,
    }
}

fn not_decided(
    report: &CompareReport,
    better: &[&ComparedQuantity],
    named: &dyn Fn(&[&ComparedQuantity]) -> String,
) -> String {
    let open = report.quantities.iter().filter(|row| is_open(report, row));
    let open: Vec<String> = open.map(|row| row.name.clone()).collect();
    if open.is_empty() {
        return "Not decided: neither side has a capacity or a service to compare".to_owned();
    }
    let sentence = format!("Not decided: {}", open.join(", "));
    if better.is_empty() { sentence } else { format!("{sentence}. Better: {}", named(better)) }
}

/// Quantities that the headline names.
const NAMED: usize = 3;
