//! The answer of a matrix: every run measured, one at a time, then put together.

use throng_report::matrix::{MatrixCell, MatrixInput, MatrixReport, MatrixRun, RunStatus, summarise, text};
use throng_scenario::matrix::PlannedRun;

use super::folder::MatrixFolder;
use super::plan::MatrixPlan;
use super::run::measure;
use crate::exit::Exit;
use crate::{CliError, print, print_json, say};

/// Measures, writes matrix.json and report.html, prints.
pub(super) fn make(
    plan: &MatrixPlan,
    folder: &MatrixFolder,
    as_json: bool,
) -> Result<MatrixReport, CliError> {
    let cells = plan.cells.iter().enumerate().map(|(index, cell)| MatrixCell {
        number: cell.number,
        levels: cell.levels.clone(),
        name: plan.matrix.describe(cell),
        runs: (1..=plan.matrix.repeats)
            .map(|repeat| measured(&PlannedRun { cell: index, repeat }, plan, folder))
            .collect(),
        ..MatrixCell::default()
    });
    let cells = cells.collect();
    let relieved = |factor: usize, from: usize, to: usize| plan.matrix.relieved(factor, from, to);
    let report = summarise(MatrixInput {
        name: plan.matrix.name.clone(),
        measure: plan.measure(),
        repeats: plan.matrix.repeats,
        seed: plan.matrix.seed,
        order: plan.order().to_owned(),
        factors: plan.factors(),
        cells,
        relieved: &relieved,
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let json = report.to_json();
    folder.put("matrix.json", &json)?;
    let page = folder.put("report.html", &throng_report::html::matrix::render(&report))?;
    if as_json {
        print_json(&json);
    } else {
        print(&text::summary(&report));
        print(&format!("\nreport  {}\n", page.display()));
    }
    Ok(report)
}

/// A run as it was recorded, with its figures.
fn measured(planned: &PlannedRun, plan: &MatrixPlan, folder: &MatrixFolder) -> MatrixRun {
    let nothing = MatrixRun { repeat: planned.repeat, ..MatrixRun::default() };
    let Some(run) = folder.record(planned, plan) else { return nothing };
    if !matches!(run.status, RunStatus::Valid | RunStatus::Invalid) {
        return run;
    }
    let hold = plan.cell(planned).and_then(|cell| {
        let config = plan.config(cell, folder.path());
        plan.overrides(&config).ok()?.1
    });
    match measure(&folder.run_folder(planned, plan), hold) {
        Ok((figures, _)) => MatrixRun { figures: Some(figures), ..run },
        Err(error) => {
            say(&format!("{} cannot be read again: {error}", plan.label(planned)));
            MatrixRun { status: RunStatus::Failed, reason: Some(error.to_string()), ..run }
        }
    }
}

/// 0 if every run that is possible here is valid.
pub(super) fn exit(report: &MatrixReport) -> Exit {
    let runs = || report.cells.iter().flat_map(|cell| &cell.runs);
    let has = |status: RunStatus| runs().any(|run| run.status == status);
    if report.partial {
        Exit::Interrupted
    } else if has(RunStatus::Failed) || has(RunStatus::Invalid) || !has(RunStatus::Valid) {
        Exit::Invalid
    } else {
        Exit::Met
    }
}
