//! The page of a matrix: a map of its cells by what limits them, effects, confirmations, CPU over
//! time, hot functions.

use std::fmt::Write as _;

use throng_analysis::experiment::ConfirmationOutcome;
use throng_observation::units::count;

use super::markup::{Cell, Table, escape, known, method, notes, table, titled_table};
use super::page::document_with;
use crate::matrix::{MatrixCell, MatrixMeasure, MatrixReport, MatrixRun, RunStatus, text};
use crate::profile::percent;

mod curves;
mod effects;
mod map;
mod proofs;

/// The style of what only this page has.
pub(super) const STYLE: &str = include_str!("matrix.css");

/// The whole page. Links lead to the reports of the runs, relative to the matrix's folder.
#[must_use]
pub fn render(report: &MatrixReport) -> String {
    let body = sections(report).map(|(_, section)| section).concat();
    document_with(&format!("throng: {}", report.headline), STYLE, "", &body)
}

/// The sections of the page in their order, by the names of the parts that they are where it is
/// served.
pub(super) fn sections(report: &MatrixReport) -> [(&'static str, String); 10] {
    // The runs of a proof are compared in pairs, not by the means of its cells.
    let effects = if report.proofs.is_empty() { effects::render(report) } else { String::new() };
    [
        ("answer", head(report)),
        ("proofs", proofs::render(report)),
        ("map", map::render(report)),
        ("causes", causes(report)),
        ("confirmations", confirmations(report)),
        ("effects", effects),
        ("curves", curves::render(report)),
        ("functions", hot_functions(report)),
        ("runs", runs(report)),
        ("method", method(&report.method, &report.throng_version)),
    ]
}

fn head(report: &MatrixReport) -> String {
    let mut out = String::new();
    if let Some(name) = &report.name {
        let _ = write!(out, "<p class=\"over\">{}</p>", escape(name));
    }
    let _ = write!(out, "<h1>{}</h1>", escape(&report.headline));
    let measure = match report.measure {
        MatrixMeasure::Hold => "the crowd held",
        MatrixMeasure::Find => "a search",
    };
    if !report.proofs.is_empty() {
        let _ = write!(
            out,
            "<p class=\"over\">{measure} in each run, {} pairs of runs each, order A B B A (seed \
             {})</p>",
            report.repeats, report.seed
        );
    } else {
        let _ = write!(
            out,
            "<p class=\"over\">{}, {measure} in each, {} each, order {} (seed {})</p>",
            count(report.cells.len() as u64, "cells"),
            count(report.repeats.into(), "runs"),
            escape(&report.order),
            report.seed
        );
    }
    out + &notes(&report.notes)
}

/// The mean service of a cell.
fn served(report: &MatrixReport, cell: &MatrixCell) -> Option<f64> {
    let means = cell.means.as_ref()?;
    match report.measure {
        MatrixMeasure::Hold => means.served_ratio,
        MatrixMeasure::Find => means.capacity,
    }
}

/// The run of a cell whose curves and functions are shown: the first valid one.
fn shown(cell: &MatrixCell) -> Option<&MatrixRun> {
    cell.runs.iter().find(|run| run.status == RunStatus::Valid)
}

/// The link to a run's own report.
fn link(run: &MatrixRun) -> Option<String> {
    run.folder.as_ref().map(|folder| format!("{}/report.html", folder.trim_end_matches('/')))
}

/// The limit of each cell that has one, with its evidence.
fn causes(report: &MatrixReport) -> String {
    let row = |cell: &MatrixCell| {
        let figures = text::cause(cell)?;
        Some(vec![
            format!("{} {}", cell.number, cell.name),
            figures.title.clone(),
            known(figures.score, |score| format!("{score:.0}")),
            figures.evidence.join("; "),
        ])
    };
    let rows: Vec<Vec<String>> = report.cells.iter().filter_map(row).collect();
    titled_table("", &["cell", "limit", "score, of 100", "evidence"], &rows)
}

fn confirmations(report: &MatrixReport) -> String {
    if report.confirmations.is_empty() {
        return String::new();
    }
    let mut table = Table::new("", &["outcome", "verdict and change", "gain, 95 %"], &[]);
    for one in &report.confirmations {
        let class = match one.outcome {
            ConfirmationOutcome::Confirmed => "confirmed",
            ConfirmationOutcome::Refuted => "refuted",
            ConfirmationOutcome::NotDecided => "",
        };
        let sentence = text::confirmation(report, one);
        let sentence = sentence.split_once(": ").map_or(sentence.as_str(), |(_, rest)| rest);
        table.row(
            "",
            [
                Cell::text(one.outcome.words()).classed(class),
                Cell::text(sentence),
                Cell::text(&text::interval(report.service(), one.gain_interval)),
            ],
        );
    }
    format!(
        "<h2>Verdicts tested by changing one factor</h2>{}<p class=\"over\">Confirmed: a cell that \
         differs only in having more of the resource serves better, and the resource is no longer \
         named. Refuted: it serves the same.</p>",
        table.finish()
    )
}

fn hot_functions(report: &MatrixReport) -> String {
    let mut rows = Vec::new();
    for cell in &report.cells {
        let Some(figures) = shown(cell).and_then(|run| run.figures.as_ref()) else { continue };
        for function in &figures.hot_functions {
            rows.push(vec![
                cell.name.clone(),
                percent(function.share),
                function.function.clone(),
                function.module.clone(),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h2>Hot functions of the loaded server</h2>{}<p class=\"over\">Share of the samples of a \
         profile in the function itself.</p>",
        table(&["cell", "share", "function", "in"], &rows)
    )
}

fn runs(report: &MatrixReport) -> String {
    let header = ["cell", "run", "order", "result", "server", "environment"];
    let mut table = Table::new("", &header, &[1, 2]);
    for cell in &report.cells {
        for run in &cell.runs {
            let result = escape(&text::run_line(run));
            let result = match link(run) {
                Some(link) => format!("<a href=\"{}\">{result}</a>", escape(&link)),
                None => result,
            };
            let environment: Vec<String> =
                run.environment.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let place = known(run.place, |place| place.to_string());
            table.row(
                "",
                [
                    Cell::text(&format!("{} {}", cell.number, cell.name)),
                    Cell::text(&run.repeat.to_string()),
                    Cell::text(&place),
                    Cell::markup(result),
                    Cell::text(&run.notes.join(" ")),
                    Cell::text(&environment.join(", ")),
                ],
            );
        }
    }
    format!(
        "<h2>Runs</h2><details><summary>Every run, with what happened to its server</summary>{}\
         </details>",
        table.finish()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::tests::{campus, large};

    #[test]
    fn the_page_shows_every_cell_and_links_to_its_report() {
        let page = render(&campus());
        for text in [
            "disk_read",
            "href=\"cells/3_files=30_storage=disk/1/report.html\"",
            ">Effects</a></h2>",
            "confirmed",
            "parseSlice",
            "CPU idle and waiting for I/O",
            "m-disk",
            "m-served",
            // Wide maps are scrolled by keyboard, too.
            "tabindex=\"0\" aria-labelledby=\"what-limits-each-cell\"><table class=\"map\"",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf "));
        for load in ["http://", "https://", "src=", "@import", "url(", "<iframe", "<script"] {
            assert!(!page.contains(load), "{load}");
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let hostile = "\"><script>alert(1)</script>";
        let mut report = campus();
        report.name = Some(hostile.into());
        report.headline = hostile.into();
        report.notes = vec![hostile.into()];
        report.factors[0].levels[0] = hostile.into();
        report.cells[0].name = hostile.into();
        report.cells[0].runs[0].folder = Some(hostile.into());
        report.cells[0].runs[0].reason = Some(hostile.into());
        report.cells[0].finding = Some(hostile.into());
        let page = render(&report);
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn a_page_of_64_cells_stays_small() {
        let page = render(&large(64, 2));
        assert!(page.len() < 1_500_000, "{}", page.len());
        let mut missing = campus();
        missing.responses[0].effects[0].levels[0].mean = None;
        assert!(!render(&missing).contains("NaN"));
        assert!(render(&MatrixReport::default()).contains("<h1>"));
    }
}
