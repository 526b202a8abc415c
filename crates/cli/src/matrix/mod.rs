//! `throng matrix`: a scenario in the cells of a grid of factors, each with a server started for
//! it. Every run is an ordinary `throng run` or `throng find` in a process of its own, so that a
//! cell can be repeated by hand. `throng prove`: the same with variants in pairs.

mod answer;
mod child;
mod choose;
mod chosen;
mod ending;
mod folder;
mod leftovers;
mod machine;
mod needs;
mod options;
mod plan;
mod progress;
mod repeats;
mod run;
#[cfg(test)]
mod scale_tests;
mod server_place;
mod shrink;
mod so_far;

use std::io;
use std::path::Path;

use throng_folder::{AtWork, is_at_work};
use throng_observation::shell;
use throng_report::html::live::RunInProgress;
use throng_report::matrix::{MatrixRun, RunStatus, text};
use throng_rig::Journal;

use crate::args::{self, Matrix, Prove};
use crate::console::{CliError, Exit, Interrupt, print, say};
use crate::fleet::{self, FleetWorkers};
use crate::http_server::Listener;
use crate::kept::FolderKind;
use crate::page::Source;
use crate::{named_file, run_id};
use ending::{Stopped, ended};
use folder::MatrixFolder;
use machine::Machine;
use options::{Kind, Options};
use plan::MatrixPlan;
use progress::Progress;
use run::CellRunner;
use so_far::SoFar;

pub(crate) fn matrix(command: &Matrix) -> Result<Exit, CliError> {
    experiment(command, Options::of(command, Kind::Matrix, None))
}

pub(crate) fn prove(command: &Prove) -> Result<Exit, CliError> {
    experiment(
        &command.experiment,
        Options::of(&command.experiment, Kind::Proof, command.shrink.clone()),
    )
}

fn experiment(command: &Matrix, options: Options) -> Result<Exit, CliError> {
    let kind = options.kind;
    if let Some(folder) = &command.undo {
        return leftovers::undo(folder);
    }
    if let Some(file) = &command.markdown {
        named_file::check("--markdown", file)?;
    }
    let workers = fleet::workers_asked(&command.fleet)?;
    if workers.is_some() && command.threads.is_some() {
        return Err(CliError::usage(
            "--threads is for this machine; of a fleet give it to each `throng worker`",
        ));
    }
    let (plan, folder) = opened(command, Options { workers, ..options })?;
    plan.check()?;
    plan.check_servers()?;
    if command.plan {
        print(&plan.describe());
        return Ok(Exit::Met);
    }
    plan.check_workers(workers)?;
    let port = command.serve.as_ref().map(|asked| Listener::bind("--serve", asked)).transpose()?;
    // Before anything is made: a second signal ends the process.
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let mut machine = Machine::taken_for(&plan)?;
    let own = folder.as_ref().map(MatrixFolder::journal).unwrap_or_default();
    leftovers::check_others(&own, &machine, kind)?;
    let folder = match folder {
        Some(folder) => folder,
        None => {
            let path = command.output.clone().unwrap_or_else(run_id::default_folder);
            MatrixFolder::create(&path, &plan)?
        }
    };
    let _at_work = at_work(folder.path());
    let mut journal = Journal::open(&folder.journal()).map_err(CliError::usage)?;
    let listed = leftovers::Listed::enter(&folder.journal());
    let before = journal.undos();
    leftovers::undo_all(&mut journal);
    leftovers::check_own(before, &machine, &folder)?;
    let progress = Progress::default();
    let page = port.map(|port| progress.serve(port, &interrupt)).transpose()?;
    page.iter().for_each(|page| page.shows(Source::Matrix(folder.path().to_owned())));
    machine.look();
    if !command.quiet {
        introduce(&plan, &folder, &interrupt);
    }
    let crew = workers
        .map(|workers| FleetWorkers::start(&command.fleet, workers, &plan.options.allow_target));
    let crew = crew.transpose()?;
    let resume = how_to_continue(kind, &folder, crew.as_ref());
    let mut runner = CellRunner {
        plan: &plan,
        folder: &folder,
        journal,
        machine,
        interrupt: &interrupt,
        consent_secret: command.consent_secret.as_deref(),
        crew,
        between: None,
        progress: progress.clone(),
    };
    let (plan, stopped) = match choose::measured(&mut runner, command.quiet)? {
        Ok(plan) => {
            let mut runner = CellRunner { plan: &plan, ..runner };
            let stopped = all_runs(&plan, &folder, &mut runner, command.quiet)?;
            listed.leave(&runner.journal);
            // Workers of `--on` end here.
            drop(runner);
            (plan, stopped)
        }
        Err(stopped) => {
            listed.leave(&runner.journal);
            drop(runner);
            (plan, Some(stopped))
        }
    };
    progress.ends();
    let plan = folder.as_decided(plan);
    let report = answer::make(&plan, &folder, command.json, command.markdown.as_deref());
    // Who looks gets the answer.
    drop(page);
    ended(report, stopped, &resume)
}

/// Says to who looks that the experiment is in progress. Where its file system has no locks, nobody
/// knows it.
fn at_work(folder: &Path) -> Option<AtWork> {
    let at_work = AtWork::begin(folder);
    if at_work.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
        let folder = folder.display();
        say(&format!("{folder}: another process is at work in it, so it may be read as finished"));
    }
    at_work.ok()
}

/// The line by which an experiment whose runs are not all made is continued.
fn how_to_continue(kind: Kind, folder: &MatrixFolder, crew: Option<&FleetWorkers>) -> String {
    let resume = shell::flag("--resume", folder.path());
    let mut line = format!("to continue this {}: throng {} {resume}", kind.noun(), kind.command());
    for word in crew.map(FleetWorkers::by_hand).unwrap_or_default() {
        line += &format!(" {}", shell::word(word));
    }
    line
}

/// The plan of a file, or that of the folder to resume, with the folder.
fn opened(
    command: &Matrix,
    options: Options,
) -> Result<(MatrixPlan, Option<MatrixFolder>), CliError> {
    let kind = options.kind;
    match (&command.resume, &command.file) {
        (Some(folder), _) => {
            let folder = MatrixFolder::open(folder)?;
            folder.check_is_own()?;
            let plan = folder.plan(&command.set)?;
            if plan.options.kind != kind {
                let (holds, other) = (plan.options.kind.noun(), plan.options.kind.command());
                let resume = shell::flag("--resume", folder.path());
                return Err(CliError::usage(format!(
                    "{} holds a {holds}: throng {other} {resume}",
                    folder.path().display()
                )));
            }
            folder.check_unchanged(&plan)?;
            Ok((plan, Some(folder)))
        }
        (None, Some(file)) => Ok((MatrixPlan::read(file, options)?, None)),
        (None, None) => Err(CliError::usage("write the file, or --resume FOLDER")),
    }
}

/// Says what will be done, and what a proof needs.
fn introduce(plan: &MatrixPlan, folder: &MatrixFolder, interrupt: &Interrupt) {
    plan.introduction(folder.path()).for_each(|line| say(&line));
    if plan.matrix.is_proof() {
        let machine = needs::Machine::now(interrupt);
        let said = machine.said(plan.takes(), plan.matrix.busy_difference);
        said.iter().for_each(|line| say(line));
    }
}

/// `throng report FOLDER` of a matrix or a proof: measures every run again, unless it is in
/// progress. `None` if the folder is none of a matrix.
pub(crate) fn remake(command: &args::Report) -> Option<Result<Exit, CliError>> {
    if FolderKind::of(&command.run) != Some(FolderKind::Matrix) {
        return None;
    }
    let remade = MatrixFolder::open(&command.run).and_then(|folder| {
        check_nobody_is_at(folder.path())?;
        let plan = folder.stored_plan()?;
        let markdown = command.markdown.as_deref();
        let report = answer::make(&plan, &folder, command.json, markdown)?;
        Ok(answer::exit(&report))
    });
    Some(remade)
}

/// An experiment in progress writes the same files, under the same names until they are complete.
fn check_nobody_is_at(folder: &Path) -> Result<(), CliError> {
    if !is_at_work(folder) {
        return Ok(());
    }
    let help = "it writes its answer before each run and at its end; ask again after it";
    Err(CliError::usage(format!("{} is in progress: {help}", folder.display())))
}

/// Makes the runs that are not done; why some are missing.
fn all_runs(
    plan: &MatrixPlan,
    folder: &MatrixFolder,
    runner: &mut CellRunner<'_>,
    is_quiet: bool,
) -> Result<Option<Stopped>, CliError> {
    let mut so_far = SoFar::of(plan, folder);
    let mut runs = repeats::runs(plan, folder);
    let mut made = 0;
    loop {
        if made == runs.len() {
            // Only then it is known which pairs are lost.
            runs = repeats::runs(plan, folder);
        }
        let Some(planned) = runs.get(made) else { return Ok(None) };
        made += 1;
        if folder.record(planned, plan).is_some_and(|run| run.status != RunStatus::Pending) {
            continue;
        }
        if runner.interrupt.is_set() {
            return Ok(Some(Stopped::Interrupted));
        }
        if let Some(pairs) = plan.look_before(made - 1)
            && so_far.is_decided(pairs)
        {
            folder.decide(pairs)?;
            if !is_quiet {
                say(&format!(
                    "decided after {pairs} pairs of {}",
                    plan.matrix.pairs.unwrap_or(pairs)
                ));
            }
            return Ok(None);
        }
        let place = made;
        let label = format!("[{place}/{}] {}", runs.len(), plan.label(planned));
        let in_progress = RunInProgress {
            place: Some((place, runs.len())),
            label: plan.label_with_pair(planned),
            folder: folder::relative(planned, plan),
        };
        runner.progress.begins(in_progress, so_far.put(place - 1));
        // What was not possible in one run of a cell is not possible in the next.
        let skipped = folder.skipped(planned, plan);
        let run = match skipped {
            Some(reason) => MatrixRun {
                status: RunStatus::Skipped,
                reason: Some(reason),
                ..MatrixRun::default()
            },
            None => runner.run(planned),
        };
        let run = MatrixRun { repeat: planned.repeat, place: Some(place), ..run };
        folder.keep(planned, plan, &run)?;
        if !is_quiet {
            say(&format!("{label}: {}", text::run_line(&run)));
            run.notes.iter().for_each(|note| say(&format!("  {note}")));
        }
        if run.status == RunStatus::Pending {
            return Ok(Some(stopped(runner, run.reason)));
        }
    }
}

/// Why a run is not finished: what no signal cut off had nobody to play it, and neither has the
/// next one.
fn stopped(runner: &CellRunner<'_>, reason: Option<String>) -> Stopped {
    if runner.interrupt.is_set() {
        Stopped::Interrupted
    } else {
        Stopped::NoFleet(reason.unwrap_or_default())
    }
}

/// A path as part of a message.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_in_progress_is_not_reported_by_another_process() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_nobody_is_at(folder.path()).is_ok());
        let at_work = at_work(folder.path());
        let error = check_nobody_is_at(folder.path()).unwrap_err();
        assert_eq!(error.exit, Exit::Usage);
        assert!(error.error.to_string().contains("in progress"), "{}", error.error);
        drop(at_work);
        assert!(check_nobody_is_at(folder.path()).is_ok());
    }
}
