//! How a run of a cell ended, what was measured in it, and where.

use std::collections::BTreeMap;
use std::path::Path;

use throng_observation::run::Ending;
use throng_report::matrix::{MatrixRun, RunFigures, RunStatus, figures};
use throng_report::{ReportRows, RunOutcome, Summary};
use throng_rig::{CpuTimes, governor};
use throng_store::StoreError;

use super::super::child::CrowdEnd;
use super::super::plan::HoldTimes;
use super::CellRunner;
use crate::console::Exit;
use crate::report;

impl CellRunner<'_> {
    /// The status of a run by its exit code, and its figures.
    pub(super) fn judged(
        &self,
        crowd: &CrowdEnd,
        folder: &Path,
        hold: Option<HoldTimes>,
    ) -> MatrixRun {
        let said = throng_rig::last_lines(&folder.join("run.log"), 4).join("; ");
        if crowd.was_interrupted {
            let reason = Some("interrupted".to_owned());
            return MatrixRun { status: RunStatus::Pending, reason, ..MatrixRun::default() };
        }
        let (figures, summary) = match measure(folder, hold) {
            Ok(measured) => measured,
            Err(error) => {
                let reason = Some(format!("the run left no results ({error}): {said}"));
                // Workers that do not come or do not play are no result of the cell: `--resume`
                // makes this run.
                let is_without_fleet =
                    self.crew.is_some() && crowd.code == Some(Exit::Invalid as i32);
                let status = if is_without_fleet { RunStatus::Pending } else { RunStatus::Failed };
                return MatrixRun { status, reason, ..MatrixRun::default() };
            }
        };
        let is = |exit: Exit| crowd.code == Some(exit as i32);
        let (status, reason) =
            if let Some(ended) = crowd.server_ended.as_ref().filter(|_| hold.is_none()) {
                (RunStatus::Failed, Some(ended.clone()))
            } else if is(Exit::Target) && hold.is_none() {
                // A search that reached nobody found no limit, not one of 0.
                (RunStatus::Invalid, Some(summary.headline.clone()))
            } else if is(Exit::Met) || is(Exit::Missed) || is(Exit::Target) {
                (RunStatus::Valid, None)
            } else if let Some(reason) =
                invalid(&summary).filter(|_| is(Exit::Invalid) || is(Exit::Disputed))
            {
                (RunStatus::Invalid, Some(reason))
            } else {
                (RunStatus::Failed, Some(format!("throng failed: {said}")))
            };
        let environment = played_by(&summary).into_iter().chain(left(&figures)).collect();
        MatrixRun { status, reason, environment, figures: Some(figures), ..MatrixRun::default() }
    }
}

/// The figures of a run folder, and its summary.
pub(crate) fn measure(
    folder: &Path,
    hold: Option<HoldTimes>,
) -> Result<(RunFigures, Summary), StoreError> {
    let run = report::read(folder, &mut ReportRows::default())?;
    let summary = report::summary(&run);
    let seconds = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    let hold = hold.map(|times| (seconds(times.from_s), seconds(times.until_s)));
    // A guard of the engine, or a crash of throng, may have ended it before the hold: then all that
    // there is counts.
    let hold = hold.map(|(from, until)| match run.ended_at {
        Some(at) if run.ending != Ending::Complete && at.second() <= from => {
            (0, at.second().max(1))
        }
        _ => (from, until),
    });
    Ok((figures(&run, &summary, hold), summary))
}

/// Why a run that ended as planned decides nothing; `None` where throng itself failed.
fn invalid(summary: &Summary) -> Option<String> {
    let reasons = &summary.generator.reasons;
    if summary.generator.limited {
        return Some(format!("the generator was the limit: {}", reasons.join(" ")));
    }
    if summary.partial {
        return Some(format!("partial: {}", summary.partial_reasons.join("; ")));
    }
    if let Some(capacity) = &summary.capacity {
        return Some(capacity.statement.clone());
    }
    (summary.outcome == RunOutcome::Disputed).then(|| summary.headline.clone())
}

/// The workers of a run that a fleet played: those of two runs that are compared must be the same.
fn played_by(summary: &Summary) -> Option<(String, String)> {
    let mut names: Vec<&str> =
        summary.generator.workers.iter().map(|worker| worker.name.as_str()).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| ("played_by".to_owned(), names.join(" + ")))
}

/// The share of CPU time that nobody used while the crowd was judged; waiting for disks is part of
/// it.
fn left(figures: &RunFigures) -> Option<(String, String)> {
    let idle = figures.idle_ratio? + figures.iowait_ratio.unwrap_or(0.0);
    Some(("idle_ratio".to_owned(), format!("{idle:.4}")))
}

/// What may differ between runs on one machine, and what tells machines apart.
pub(super) fn environment(
    load: Option<f64>,
    now: CpuTimes,
    started: CpuTimes,
) -> BTreeMap<String, String> {
    let mut facts = throng_engine::host::fingerprint();
    facts.retain(|name, _| ["cpu_model", "cores", "kernel"].contains(&name.as_str()));
    facts.extend(governor().map(|governor| ("governor".to_owned(), governor)));
    facts.extend(load.map(|load| ("load_average_before".to_owned(), format!("{load:.2}"))));
    facts.insert("steal_ratio".to_owned(), format!("{:.4}", now.steal_ratio_since(started)));
    facts
}
