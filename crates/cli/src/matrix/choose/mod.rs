//! What the pairs of a proof measure, where the file leaves it open: a search of the baseline, made
//! before them and kept as a run of its own, tells which crowd is held, or that each pair searches.
//! One that was cut off with its ends far apart is continued by another one between them.

mod choice;
#[cfg(test)]
mod tests;

use throng_analysis::demand::Demand;
use throng_analysis::experiment::FoundLimit;
use throng_report::html::live::RunInProgress;
use throng_report::matrix::{MatrixRun, RunStatus, text};
use throng_scenario::matrix::{Measure, PlannedRun};

use self::choice::{choice, found_by, of_both};
use super::chosen::TRIES;
use super::folder::relative;
use super::plan::MatrixPlan;
use super::run::CellRunner;
use super::{Stopped, answer, stopped};
use crate::console::{CliError, say};

/// The plan with what its pairs measure, after the search that chooses it if one is needed; why it
/// was cut off.
pub(super) fn measured(
    runner: &mut CellRunner<'_>,
    is_quiet: bool,
) -> Result<Result<MatrixPlan, Stopped>, CliError> {
    let (plan, folder) = (runner.plan, runner.folder);
    let (Measure::Auto { hold, search }, Some(first)) =
        (&plan.matrix.measure, plan.matrix.first_search())
    else {
        return Ok(Ok(plan.clone()));
    };
    // One that failed or was not possible may be so now; one that chose is not looked at again.
    if folder.record(&first, plan).is_none_or(|run| run.status != RunStatus::Valid) {
        made(|| search_once(runner, &first, is_quiet))?;
    }
    let (run, demands) = answer::measured(&first, plan, folder);
    match run.status {
        RunStatus::Valid | RunStatus::Invalid => {}
        RunStatus::Pending => return Ok(Err(stopped(runner, run.reason))),
        RunStatus::Failed | RunStatus::Skipped => {
            return Ok(Err(Stopped::NoSearch(not_made(plan.baseline(), &run))));
        }
    }
    let wide = found_by(plan, &run, search);
    let chosen = match wide.and_then(FoundLimit::to_narrow) {
        None => choice(plan, &run, &demands, *hold, search),
        Some(ends) => {
            let first = (&run, demands.as_slice());
            match narrowed(runner, ends, is_quiet)? {
                Err(stopped) => return Ok(Err(stopped)),
                Ok((run, demands)) => of_both(plan, first, (&run, &demands), *hold, search),
            }
        }
    };
    folder.choose(&chosen)?;
    let plan = plan.clone().measuring(chosen);
    if !is_quiet {
        plan.chosen.iter().for_each(|chosen| say(&chosen.why));
        if !plan.runs().is_empty() {
            say(&plan.needs());
        }
    }
    Ok(Ok(plan))
}

/// The search that continues the first one between its `ends`, beside it: until something is chosen
/// the next start makes it if this one did not; why it was cut off.
fn narrowed(
    runner: &mut CellRunner<'_>,
    ends: [u32; 2],
    is_quiet: bool,
) -> Result<Result<(MatrixRun, Vec<Demand>), Stopped>, CliError> {
    let (plan, folder) = (runner.plan, runner.folder);
    let second = PlannedRun { cell: 0, repeat: PlannedRun::NARROWED };
    if folder.record(&second, plan).is_none_or(|run| run.status != RunStatus::Valid) {
        if !is_quiet {
            say(&format!("searched once more, between {} and {} users", ends[0], ends[1]));
        }
        runner.between = Some(ends);
        let made = search_once(runner, &second, is_quiet);
        runner.between = None;
        made?;
    }
    let (run, demands) = answer::measured(&second, plan, folder);
    if run.status == RunStatus::Pending {
        return Ok(Err(stopped(runner, run.reason)));
    }
    Ok(Ok((run, demands)))
}

/// Makes the search and keeps it.
fn search_once(
    runner: &mut CellRunner<'_>,
    first: &PlannedRun,
    is_quiet: bool,
) -> Result<RunStatus, CliError> {
    let (plan, folder) = (runner.plan, runner.folder);
    let label = format!("search of {}, which chooses what the pairs measure", plan.baseline());
    let in_progress = RunInProgress { place: None, label, folder: relative(first, plan) };
    runner.progress.begins(in_progress, Vec::new());
    let run = runner.run(first);
    let run = MatrixRun { repeat: first.repeat, ..run };
    folder.keep(first, plan, &run)?;
    if !is_quiet {
        say(&format!("[search of {}] {}", plan.baseline(), text::run_line(&run)));
        run.notes.iter().for_each(|note| say(&format!("  {note}")));
    }
    Ok(run.status)
}

/// Makes the search, and again if it is invalid.
fn made(mut search: impl FnMut() -> Result<RunStatus, CliError>) -> Result<(), CliError> {
    for _ in 0..TRIES {
        if search()? != RunStatus::Invalid {
            break;
        }
    }
    Ok(())
}

/// Why nothing is chosen: without a search it is not known what pairs are to measure.
fn not_made(baseline: &str, run: &MatrixRun) -> String {
    let what = if run.status == RunStatus::Skipped { "is not possible here" } else { "failed" };
    let reason = run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the search of {baseline}, which chooses what the pairs measure, {what}{reason}")
}
