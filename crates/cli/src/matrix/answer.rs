//! The answer of a matrix: every run measured, one at a time, then put together.

use std::path::Path;

use throng_analysis::demand::Demand;
use throng_analysis::experiment::ProofOutcome;
use throng_report::matrix::{
    MatrixCell, MatrixInput, MatrixReport, MatrixRun, RunStatus, summarise, text, with_proofs,
};
use throng_scenario::matrix::PlannedRun;

use super::folder::MatrixFolder;
use super::plan::MatrixPlan;
use super::repeats::repeated;
use super::run::measure;
use crate::console::{CliError, Exit, print, print_json, say};
use crate::named_file::append;

/// The file of the answer.
pub(super) const MATRIX_JSON: &str = "matrix.json";

/// Measures, writes matrix.json and report.html, prints, and adds Markdown to a file.
pub(super) fn make(
    plan: &MatrixPlan,
    folder: &MatrixFolder,
    as_json: bool,
    markdown: Option<&Path>,
) -> Result<MatrixReport, CliError> {
    let report = report(plan, folder, &mut |planned| measured(planned, plan, folder));
    let json = report.to_json();
    folder.put(MATRIX_JSON, &json)?;
    let page = folder.put("report.html", &throng_report::html::matrix::render(&report))?;
    if as_json {
        print_json(&json);
    } else {
        print(&text::summary(&report));
        print(&format!("\nreport  {}\n", page.display()));
    }
    if let Some(file) = markdown {
        append(file, &throng_report::markdown::of_matrix(&report)).map_err(|error| {
            CliError::invalid(anyhow::anyhow!("--markdown {}: {error}", file.display()))
        })?;
    }
    Ok(report)
}

/// Every run as `measured` has it, one at a time, put together.
pub(super) fn report(
    plan: &MatrixPlan,
    folder: &MatrixFolder,
    measured: &mut dyn FnMut(&PlannedRun) -> (MatrixRun, Vec<Demand>),
) -> MatrixReport {
    let mut repeated = repeated(plan, folder);
    // Those that were never made are of a run that goes on, or of a version that made none.
    repeated.retain(|pair| pair.runs.iter().any(|run| folder.record(run, plan).is_some()));
    let mut proof = plan.proof(&repeated);
    let mut cells = Vec::new();
    for (index, cell) in plan.cells.iter().enumerate() {
        let mut runs = Vec::new();
        let again =
            repeated.iter().flat_map(|pair| &pair.runs).filter(|run| run.cell == index).count();
        let repeats = plan.matrix.repeats_of(index) + u32::try_from(again).unwrap_or(u32::MAX);
        for repeat in 1..=repeats {
            let (run, demand) = measured(&PlannedRun { cell: index, repeat });
            // A prediction comes from the baseline.
            if let Some(proof) =
                proof.as_mut().filter(|_| index == 0 && run.status == RunStatus::Valid)
            {
                proof.demands.push(demand);
            }
            runs.push(run);
        }
        let (levels, name) = (cell.levels.clone(), plan.matrix.describe(cell));
        cells.push(MatrixCell { number: cell.number, levels, name, runs, ..MatrixCell::default() });
    }
    let relieved = |factor: usize, from: usize, to: usize| plan.matrix.relieved(factor, from, to);
    let report = summarise(MatrixInput {
        name: plan.matrix.name.clone(),
        measure: plan.measure(),
        repeats: plan.matrix.pairs.unwrap_or(plan.matrix.repeats),
        seed: plan.matrix.seed,
        order: plan.order().to_owned(),
        factors: plan.factors(),
        cells,
        relieved: &relieved,
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    match &proof {
        Some(proof) => with_proofs(report, proof),
        None => report,
    }
}

/// A run as it was recorded, with its figures, and the demand of a user in it.
pub(super) fn measured(
    planned: &PlannedRun,
    plan: &MatrixPlan,
    folder: &MatrixFolder,
) -> (MatrixRun, Vec<Demand>) {
    let nothing = MatrixRun { repeat: planned.repeat, ..MatrixRun::default() };
    let Some(run) = folder.record(planned, plan) else { return (nothing, Vec::new()) };
    if !matches!(run.status, RunStatus::Valid | RunStatus::Invalid) {
        return (run, Vec::new());
    }
    let hold = plan.cell(planned).and_then(|cell| {
        let config = plan.config(cell, folder.path());
        plan.overrides(&config).ok()?.1
    });
    match measure(&folder.run_folder(planned, plan), hold) {
        Ok((figures, summary)) => (MatrixRun { figures: Some(figures), ..run }, summary.demand),
        Err(error) => {
            say(&format!("{} cannot be read again: {error}", plan.label(planned)));
            (
                MatrixRun { status: RunStatus::Failed, reason: Some(error.to_string()), ..run },
                Vec::new(),
            )
        }
    }
}

/// 0 if every run that is possible here is valid; of a proof, if every variant is decided.
pub(super) fn exit(report: &MatrixReport) -> Exit {
    let runs = || report.cells.iter().flat_map(|cell| &cell.runs);
    let has = |status: RunStatus| runs().any(|run| run.status == status);
    if report.partial {
        Exit::Interrupted
    } else if !report.proofs.is_empty() {
        let is_open = report.proofs.iter().any(|proof| proof.outcome == ProofOutcome::NotDecided);
        if is_open { Exit::Invalid } else { Exit::Met }
    } else if has(RunStatus::Failed) || has(RunStatus::Invalid) || !has(RunStatus::Valid) {
        Exit::Invalid
    } else {
        Exit::Met
    }
}
