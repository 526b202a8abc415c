//! The page of a comparison: the answer, each quantity with its interval against its margin, the
//! objectives, what differs otherwise.

use std::fmt::Write as _;

use throng_analysis::comparison::ComparisonVerdict;
use throng_observation::calendar;

use super::markup::{Cell, Table, escape, items, method, notes, table, titled_table};
use super::over_time::{Drawn, section};
use super::page::document_with;
use crate::compare::{CompareOutcome, CompareReport, CompareSide, ComparedQuantity, text};

mod forest;

/// The whole page.
#[must_use]
pub fn render(report: &CompareReport) -> String {
    let over_time = over_time(report);
    // What charts do by pointer and keyboard.
    let script = if over_time.is_empty() { "" } else { super::SCRIPT };
    let body = [
        head(report),
        quantities(report),
        over_time,
        objectives(report),
        not_compared(report),
        sides(report),
        differences(report),
        method(&report.method, &report.throng_version),
    ]
    .concat();
    let title = format!("throng: {}", report.headline);
    document_with(&title, include_str!("compare.css"), script, &body)
}

fn head(report: &CompareReport) -> String {
    let class = match report.outcome {
        CompareOutcome::Better | CompareOutcome::Same => "met",
        CompareOutcome::Worse => "missed",
        CompareOutcome::NotDecided | CompareOutcome::NotComparable => "invalid",
    };
    let runs = |side: &CompareSide| format!("{} of {}", side.usable_runs, side.runs.len());
    format!(
        "<header><p class=\"over\"><span class=\"badge {class}\">{}</span>runs that count: {} in \
         the base, {} in the new</p><h1>{}</h1>{}</header>",
        report.outcome.words(),
        runs(&report.base),
        runs(&report.new),
        escape(&report.headline),
        notes(report.refusals.iter().chain(&report.notes))
    )
}

fn quantities(report: &CompareReport) -> String {
    if report.quantities.is_empty() {
        return String::new();
    }
    let header =
        ["quantity", "base", "new", "difference and 95 % interval", "", "margin", "verdict"];
    let mut table = Table::new("", &header, &[1, 2]);
    for row in &report.quantities {
        quantity(&mut table, row);
    }
    format!(
        "<h2>What changed</h2>{}<p class=\"over\">The grey zone is the margin around no \
         difference. An interval within it: the same. A point beyond it whose interval does not \
         reach the middle is a difference, if it is significant for the number of quantities.</p>",
        table.finish()
    )
}

fn quantity(table: &mut Table, row: &ComparedQuantity) {
    let class = match row.verdict {
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Same | ComparisonVerdict::NotDecided => "",
    };
    let note = row.note.as_ref().filter(|_| row.verdict == ComparisonVerdict::NotDecided);
    let note = note.map(|note| format!("<br><small>{}</small>", escape(note))).unwrap_or_default();
    let difference = format!(
        "{}<br><small>{}</small>",
        escape(&text::difference(row)),
        escape(&text::interval(row))
    );
    table.row(
        if row.is_asked { "" } else { "besides" },
        [
            Cell::text(&row.name),
            Cell::text(&text::shown(row, row.base)),
            Cell::text(&text::shown(row, row.new)),
            Cell::markup(difference),
            Cell::markup(forest::one(row, class)),
            Cell::text(&format!("±{}", text::margin(row))),
            Cell::markup(format!("{}{note}", row.verdict.words())).classed(class),
        ],
    );
}

/// The runs on one axis: lines of the base are dashed.
fn over_time(report: &CompareReport) -> String {
    let mut runs = Vec::new();
    let [base, new] = &report.over_time;
    for (name, side, drawn, dashed, colours) in [
        ("base", &report.base, base, true, [6, 4, 5, 3]),
        ("new", &report.new, new, false, [1, 2, 3, 4]),
    ] {
        for ((described, run), colour) in side.runs.iter().zip(drawn).zip(colours) {
            let folder = described.folder.trim_end_matches('/');
            let folder = folder.rsplit('/').next().unwrap_or_default();
            runs.push(Drawn { name: format!("{name}: {folder}"), colour, dashed, run });
        }
    }
    section(&runs, "Of several runs a side, the first four are drawn.")
}

fn objectives(report: &CompareReport) -> String {
    if report.objectives.is_empty() {
        return String::new();
    }
    let of = |[met, all]: [usize; 2]| format!("{met} of {all} runs");
    let rows: Vec<Vec<String>> = report
        .objectives
        .iter()
        .map(|one| {
            vec![
                one.text.clone(),
                of(one.base_met),
                of(one.new_met),
                one.verdict.words().to_owned(),
            ]
        })
        .collect();
    format!(
        "<h2>Objectives</h2>{}",
        table(&["objective", "met in the base", "met in the new", "verdict"], &rows)
    )
}

fn not_compared(report: &CompareReport) -> String {
    let mut out = String::new();
    if let Some(limits) = &report.limits.statement {
        let _ = write!(out, "<h2>Limits</h2><p>{}</p>", escape(limits));
    }
    if !report.not_compared.is_empty() {
        let items = items(&report.not_compared);
        let _ = write!(out, "<h2>Not compared</h2><ul>{items}</ul>");
    }
    out
}

fn sides(report: &CompareReport) -> String {
    let mut rows = Vec::new();
    for (name, side) in [("base", &report.base), ("new", &report.new)] {
        rows.extend(side.runs.iter().map(|run| {
            let said = match &run.excluded {
                Some(why) => format!("does not count: {why}"),
                None => run.headline.clone(),
            };
            vec![
                name.to_owned(),
                run.folder.clone(),
                calendar::shown(run.started_at_unix_us),
                run.throng_version.clone(),
                run.target.clone(),
                said,
            ]
        }));
    }
    format!(
        "<h2>Runs</h2>{}",
        table(&["side", "run", "started", "throng", "target", "answer"], &rows)
    )
}

fn differences(report: &CompareReport) -> String {
    let absent = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".into());
    let machines = report.machine_differences.iter().map(|one| {
        vec![format!("{} of {}", one.fact, one.machine), one.base.clone(), one.new.clone()]
    });
    let scenarios = report
        .scenario_differences
        .iter()
        .map(|one| vec![one.key.clone(), absent(&one.base), absent(&one.new)]);
    let rows: Vec<Vec<String>> = machines.chain(scenarios).collect();
    let header = ["fact", "first run of the base", "another run"];
    titled_table("<h2>What else differs</h2>", &header, &rows)
}
