//! A matrix in the terminal: the cells, the effects, what is confirmed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use throng_analysis::experiment::{Confirmation, ConfirmationOutcome, EffectVerdict, FactorEffect};
use throng_analysis::reasons;
use throng_observation::units::{bit_rate, count, percent};
use throng_observation::untrusted;

use super::{
    CellVerdict, MatrixCell, MatrixMeasure, MatrixReport, MatrixResponse, MatrixRun, NOT_FINISHED,
    RunFigures, RunStatus, valid,
};
use crate::Quantity;
use crate::columns::{columns, said};

/// The answer as text.
#[must_use]
pub fn summary(report: &MatrixReport) -> String {
    let mut out = format!("{}\n", untrusted::line(&report.headline));
    said(&mut out, "  note: ", &report.notes);
    let _ = write!(out, "\n{}", columns(&cell_rows(report)));
    said(&mut out, "  ", causes(report));
    said(&mut out, "  ", reasons(report));
    if report.proofs.is_empty() {
        report.responses.iter().for_each(|response| out += &format!("\n{}", effects(response)));
    } else {
        out += &super::proof_text::section(report);
    }
    if !report.confirmations.is_empty() {
        out.push_str("\nVerdicts tested by changing one factor\n");
        said(&mut out, "  ", report.confirmations.iter().map(|one| confirmation(report, one)));
    }
    out.push('\n');
    out.extend(report.method.iter().map(|sentence| format!("  {sentence}\n")));
    out
}

/// A finished run in one line, for the progress of a matrix.
#[must_use]
pub fn run_line(run: &MatrixRun) -> String {
    let Some(figures) = run.figures.as_ref().filter(|_| run.status == RunStatus::Valid) else {
        let status = match run.status {
            RunStatus::Skipped => "skipped",
            RunStatus::Invalid => "invalid",
            RunStatus::Pending => "not finished",
            _ => "failed",
        };
        let reason = run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        return format!("{status}{reason}");
    };
    let bad = |of: &str| {
        reasons::words(&figures.reasons)
            .map_or_else(String::new, |words| format!(" ({of}: {words})"))
    };
    let service = match (figures.capacity, figures.served_ratio) {
        (Some(capacity), _) => {
            format!("{}{}", count(capacity.into(), "users"), bad("beyond"))
        }
        (None, Some(served)) => format!("{} served well{}", percent(served), bad("bad")),
        _ => "nobody to serve".to_owned(),
    };
    let others = run.environment.get("others_ratio").and_then(|ratio| ratio.parse().ok());
    let shares =
        [("idle", figures.idle_ratio), ("iowait", figures.iowait_ratio), ("others", others)];
    let host: Vec<String> = shares
        .into_iter()
        .filter_map(|(name, share)| Some(format!("{name} {}", percent(share?))))
        .collect();
    let host = if host.is_empty() { String::new() } else { format!(", {}", host.join(", ")) };
    let cause = match (&figures.finding, figures.score) {
        (Some(finding), Some(score)) => format!(": {finding} ({score:.0}), {}", figures.title),
        _ if figures.verdict == CellVerdict::Served => String::new(),
        _ => format!(": {}", figures.verdict.words()),
    };
    format!("{service}, {}{host}{cause}", bit_rate(figures.received_bps))
}

/// The cells as a table.
pub(crate) fn cell_rows(report: &MatrixReport) -> Vec<Vec<String>> {
    let head = match report.measure {
        MatrixMeasure::Hold => "served",
        MatrixMeasure::Find => "capacity",
    };
    let mut rows = vec![vec!["cell".to_owned()]];
    if let Some(first) = rows.first_mut() {
        first.extend(report.factors.iter().map(|factor| factor.name.clone()));
        first.extend(
            [head, "received", "server CPU", "idle", "iowait", "runs", "limit"].map(str::to_owned),
        );
    }
    for cell in &report.cells {
        let mut row = vec![cell.number.to_string()];
        row.extend(level_names(report, cell));
        let means = cell.means.clone().unwrap_or_default();
        let dash = || "–".to_owned();
        let share = |value: Option<f64>| value.map_or_else(dash, percent);
        row.push(match report.measure {
            MatrixMeasure::Hold => share(means.served_ratio),
            MatrixMeasure::Find => means.capacity.map_or_else(dash, |users| format!("{users:.0}")),
        });
        row.push(means.received_bps.map_or_else(dash, bit_rate));
        row.push(means.server_cpu_cores.map_or_else(dash, |cores| format!("{cores:.2}")));
        row.extend([share(means.idle_ratio), share(means.iowait_ratio)]);
        row.push(format!("{}/{}", cell.valid_runs, cell.runs.len()));
        row.push(limit(cell));
        rows.push(row);
    }
    rows
}

/// The names of the levels of a cell, by factor.
pub(crate) fn level_names(report: &MatrixReport, cell: &MatrixCell) -> Vec<String> {
    let chosen = report.factors.iter().zip(&cell.levels);
    chosen.map(|(factor, level)| factor.levels.get(*level).cloned().unwrap_or_default()).collect()
}

/// What limits a cell, and how many of its runs say so where they differ.
pub(crate) fn limit(cell: &MatrixCell) -> String {
    let words = match &cell.finding {
        Some(finding) if cell.verdict == CellVerdict::Suspect => format!("{finding}?"),
        Some(finding) => finding.clone(),
        None => cell.verdict.words().to_owned(),
    };
    if cell.agreeing_runs < cell.valid_runs {
        format!("{words} ({} of {})", cell.agreeing_runs, cell.valid_runs)
    } else {
        words
    }
}

/// The limit of each cell that has one, as the first run that names it says: with its score and
/// evidence.
pub(crate) fn causes(report: &MatrixReport) -> Vec<String> {
    let said = |cell: &MatrixCell| {
        let figures = cause(cell)?;
        let score = figures.score.map(|score| format!(" ({score:.0} of 100)")).unwrap_or_default();
        let evidence = figures.evidence.first().map(|line| format!("; {line}")).unwrap_or_default();
        Some(format!("cell {}: {}{score}{evidence}", cell.number, figures.title))
    };
    report.cells.iter().filter_map(said).collect()
}

/// The figures of the first valid run that names the finding of its cell.
pub(crate) fn cause(cell: &MatrixCell) -> Option<&RunFigures> {
    let finding = cell.finding.as_ref()?;
    valid(cell).find(|figures| figures.finding.as_ref() == Some(finding))
}

/// Why runs are not valid, each reason once.
pub(crate) fn reasons(report: &MatrixReport) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in &report.cells {
        for run in &cell.runs {
            for said in run.reason.iter().chain(&run.notes) {
                by_reason.entry(said).or_default().push(format!("{}-{}", cell.number, run.repeat));
            }
        }
    }
    by_reason
        .into_iter()
        .map(|(reason, cells)| format!("cell {}: {reason}", cells.join(", ")))
        .collect()
}

fn effects(response: &MatrixResponse) -> String {
    let Some(kind) = Quantity::of_key(&response.key) else { return String::new() };
    let mut rows = Vec::new();
    for effect in &response.effects {
        rows.extend(effect_rows(kind, effect));
    }
    let mut out = format!("Effects on {}\n{}", response.name, columns(&rows));
    let depend =
        response.interactions.iter().filter_map(|both| Some((both, both.largest.as_ref()?)));
    for (both, contrast) in
        depend.filter(|(_, contrast)| contrast.verdict == EffectVerdict::Differs)
    {
        let [a, b] = &both.factors;
        let [i, j] = &contrast.levels;
        let by = kind.show_difference(contrast.difference);
        let _ = writeln!(
            out,
            "  {a} and {b} depend on each other: with {b}={j}, {a}={i} does {by} more than without"
        );
    }
    out
}

/// The rows of a factor: each level against the first.
fn effect_rows(kind: Quantity, effect: &FactorEffect) -> Vec<Vec<String>> {
    let row = |difference: &throng_analysis::experiment::Difference| {
        let by =
            difference.difference.map_or_else(|| "–".to_owned(), |by| kind.show_difference(by));
        vec![
            format!("  {}", effect.factor),
            format!("{} → {}", difference.against, difference.level),
            by,
            interval(kind, difference.interval),
            difference.verdict.words().to_owned(),
        ]
    };
    effect.differences.iter().map(row).collect()
}

/// An interval of a difference.
pub(crate) fn interval(kind: Quantity, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) => {
            format!("[{}, {}]", kind.show_difference(low), kind.show_difference(high))
        }
        None => "–".to_owned(),
    }
}

/// A confirmation as a sentence.
#[must_use]
pub fn confirmation(report: &MatrixReport, one: &Confirmation) -> String {
    let kind = report.service();
    let name = report
        .cells
        .iter()
        .find(|cell| cell.number == one.cell)
        .map_or("", |cell| cell.name.as_str());
    let [from, to] = &one.levels;
    let [before, after] = one.service.map(|service| kind.show(service));
    let what = match (one.outcome, &one.other_finding) {
        (ConfirmationOutcome::Confirmed, None) => {
            format!("{before} → {after}, and nothing is named")
        }
        (ConfirmationOutcome::Confirmed, Some(next)) => format!("{before} → {after}, then {next}"),
        (_, Some(next)) => format!("{before} → {after}, {next} is named"),
        (_, None) => format!("{before} → {after}"),
    };
    format!(
        "{}: {} in cell {} ({name}); {}={to} in place of {from} (cell {}): {what}",
        one.outcome.words(),
        one.finding,
        one.cell,
        one.factor,
        one.other_cell
    )
}

/// The answer in one sentence.
pub(super) fn headline(report: &MatrixReport) -> String {
    let mut limits: BTreeMap<String, usize> = BTreeMap::new();
    for cell in &report.cells {
        let what = match (&cell.resource, &cell.finding) {
            (Some(resource), _) => format!("limited by {resource}"),
            (None, Some(finding)) => format!("limited by {finding}"),
            _ => cell.verdict.words().to_owned(),
        };
        *limits.entry(what).or_default() += 1;
    }
    let mut limits: Vec<(String, usize)> = limits.into_iter().collect();
    limits.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> = limits.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let cells = count(report.cells.len() as u64, "cells");
    let mut headline = format!("{cells}: {}", words.join(", "));
    let mut confirmed: BTreeMap<(&str, &str), [usize; 2]> = BTreeMap::new();
    for one in &report.confirmations {
        let counts = confirmed.entry((&one.resource, &one.factor)).or_default();
        counts[0] += usize::from(one.outcome == ConfirmationOutcome::Confirmed);
        counts[1] += 1;
    }
    for ((resource, factor), [yes, all]) in confirmed {
        let _ = write!(headline, "; {resource} confirmed by {factor} in {yes} of {all}");
    }
    if report.partial {
        headline.push_str(NOT_FINISHED);
    }
    headline
}
