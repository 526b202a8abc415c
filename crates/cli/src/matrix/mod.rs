//! `throng matrix`: a scenario in the cells of a grid of factors, each with a server started for it. Every run is an
//! ordinary `throng run` or `throng find` in a process of its own, so that a cell can be repeated by hand.
//! `throng prove`: the same with variants in pairs.

mod answer;
mod child;
mod folder;
mod plan;
mod run;
#[cfg(test)]
mod scale_tests;
mod shrink;

use std::path::Path;

use throng_report::matrix::{MatrixRun, RunStatus, text};
use throng_rig::Journal;

use crate::args::{self, Matrix, Prove};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::{CliError, print, run_id, say};
use folder::MatrixFolder;
use plan::{Kind, MatrixPlan, Options};
use run::CellRunner;

pub(crate) fn matrix(command: &Matrix) -> Result<Exit, CliError> {
    experiment(command, Options::of(command, Kind::Matrix, None))
}

pub(crate) fn prove(command: &Prove) -> Result<Exit, CliError> {
    experiment(&command.experiment, Options::of(&command.experiment, Kind::Proof, command.shrink.clone()))
}

fn experiment(command: &Matrix, options: Options) -> Result<Exit, CliError> {
    let kind = options.kind;
    let (plan, folder) = match (&command.resume, &command.file) {
        (Some(folder), _) => {
            let folder = MatrixFolder::open(folder)?;
            let plan = folder.plan()?;
            if plan.options.kind != kind {
                let (holds, other) = (plan.options.kind.noun(), plan.options.kind.command());
                let path = folder.path().display();
                return Err(CliError::usage(format!(
                    "{path} holds a {holds}: throng {other} --resume {path}"
                )));
            }
            folder.check_unchanged(&plan)?;
            (plan, Some(folder))
        }
        (None, Some(file)) => (MatrixPlan::read(file, options)?, None),
        (None, None) => return Err(CliError::usage("write the file, or --resume FOLDER")),
    };
    plan.check()?;
    if command.plan {
        print(&plan.describe());
        return Ok(Exit::Met);
    }
    // Before anything is made: a second signal ends the process.
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let folder = match folder {
        Some(folder) => folder,
        None => {
            let path = command.output.clone().unwrap_or_else(run_id::default_folder);
            MatrixFolder::create(&path, &plan)?
        }
    };
    let mut journal = Journal::open(&folder.journal()).map_err(CliError::usage)?;
    undo_what_is_left(&mut journal);
    if !command.quiet {
        say(&plan.introduction(&folder));
    }
    let mut runner = CellRunner {
        plan: &plan,
        folder: &folder,
        journal,
        interrupt: &interrupt,
        consent_secret: command.consent_secret.as_deref(),
    };
    let is_over = all_runs(&plan, &folder, &mut runner, command.quiet)?;
    let report = answer::make(&plan, &folder, command.json)?;
    if is_over {
        let path = folder.path().display();
        say(&format!("to continue this {}: throng {} --resume {path}", kind.noun(), kind.command()));
        return Ok(Exit::Interrupted);
    }
    Ok(answer::exit(&report))
}

/// `throng report FOLDER` of a matrix or a proof: measures every run again. `None` if the folder is none of a matrix.
pub(crate) fn remake(command: &args::Report) -> Option<Result<Exit, CliError>> {
    if !MatrixFolder::is_one(&command.run) {
        return None;
    }
    let remade = MatrixFolder::open(&command.run).and_then(|folder| {
        let plan = folder.plan()?;
        let report = answer::make(&plan, &folder, command.json)?;
        Ok(answer::exit(&report))
    });
    Some(remade)
}

/// Makes the runs that are not done. Whether a signal ended it early.
fn all_runs(
    plan: &MatrixPlan,
    folder: &MatrixFolder,
    runner: &mut CellRunner<'_>,
    is_quiet: bool,
) -> Result<bool, CliError> {
    let runs = plan.runs();
    for (index, planned) in runs.iter().enumerate() {
        if folder.record(planned, plan).is_some_and(|run| run.status != RunStatus::Pending) {
            continue;
        }
        if runner.interrupt.is_set() {
            return Ok(true);
        }
        let place = index + 1;
        let label = format!("[{place}/{}] {}", runs.len(), plan.label(planned));
        // What was not possible in one run of a cell is not possible in the next.
        let skipped = folder.skipped(planned, plan);
        let run = match skipped {
            Some(reason) => {
                MatrixRun { status: RunStatus::Skipped, reason: Some(reason), ..MatrixRun::default() }
            }
            None => runner.run(planned),
        };
        let run = MatrixRun { repeat: planned.repeat, place: Some(place), ..run };
        folder.keep(planned, plan, &run)?;
        if !is_quiet {
            say(&format!("{label}: {}", text::run_line(&run)));
            run.notes.iter().for_each(|note| say(&format!("  {note}")));
        }
    }
    Ok(runner.interrupt.is_set()
        && runs
            .iter()
            .any(|planned| folder.record(planned, plan).is_none_or(|run| run.status == RunStatus::Pending)))
}

/// Undoes what a throng that was killed left changed.
fn undo_what_is_left(journal: &mut Journal) {
    let left = journal.left();
    if left == 0 {
        return;
    }
    say(&format!("an earlier throng with this folder was killed: undoing what it left changed ({left})"));
    journal.undo_all().iter().for_each(|problem| say(&format!("  could not be undone: {problem}")));
}

/// A path as part of a message.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
