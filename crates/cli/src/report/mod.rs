//! The report of a run: summary.json, report.html, tables, terminal text, exit code.

use std::path::{Path, PathBuf};

use throng_observation::run::{Ending, Row, RunData};
use throng_observation::{RowSelector, RunPlan, untrusted};
use throng_report::{ReportRows, RunOutcome, Summary, csv, junit, markdown, oven_rtc_tester};
use throng_scenario::Scenario;
use throng_store::{RunFolder, StoreError, Table};

use crate::args::{Common, Outputs};
use crate::console::{CliError, Exit, print};
use crate::named_file::{append, check_each, put};
use crate::tables::{self, Format};

#[derive(Default)]
pub(crate) struct ReportOptions {
    pub(crate) json: bool,
    pub(crate) csv: bool,
    pub(crate) details: bool,
    /// Where JUnit XML goes, if anywhere.
    pub(crate) junit: Option<PathBuf>,
    /// To which file Markdown is added, if to any.
    pub(crate) markdown: Option<PathBuf>,
}

impl ReportOptions {
    pub(crate) fn of(common: &Common) -> Self {
        let Outputs { json, csv, details, junit, markdown, .. } = common.outputs.clone();
        Self { json, csv, details, junit, markdown }
    }

    /// Refuses files that cannot be written.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        check_each(&[("--junit", self.junit.as_deref()), ("--markdown", self.markdown.as_deref())])
    }

    /// Writes the files that the flags name; one that cannot be written keeps no other from it.
    fn put_named(&self, run: &RunData, summary: &Summary) -> Result<(), StoreError> {
        let put_junit = |file: &Path| std::fs::write(file, junit::of_run(summary).to_xml());
        let put_markdown = |file: &Path| append(file, &markdown::of_run(run, summary));
        let junit = put(self.junit.as_deref(), put_junit);
        let markdown = put(self.markdown.as_deref(), put_markdown);
        junit.and(markdown)
    }
}

/// Reads the rows of a run folder that `rows` keeps.
pub(crate) fn read(path: &Path, rows: &mut dyn RowSelector) -> Result<RunData, StoreError> {
    RunFolder::read_selected(path, rows, Scenario::run_plan_of_stored)
}

/// Reads the run folder, writes the report's files into it, prints, and returns the exit code of
/// the run.
pub(crate) fn make(path: &Path, wanted: &ReportOptions) -> Result<Exit, StoreError> {
    let run = read(path, &mut ReportRows::default())?;
    let summary = summary(&run);
    let folder = RunFolder::open(path)?;
    let json = summary.to_json();
    let written = put_all(&folder, &run, &summary, wanted.csv);
    let named = wanted.put_named(&run, &summary);
    if wanted.json {
        print(&json);
    } else {
        print(&throng_report::text::summary(&summary));
        if wanted.details {
            print(&oven_rtc_tester::summary(&run));
            details(path, &run)?;
        }
        if let Ok(page) = &written {
            print(&format!("\nreport  {}\n", page.display()));
        }
        if let Some(answer) = &summary.answer {
            print(&format!("\n{}\n", untrusted::line(answer)));
        }
    }
    // A full disk must not keep the result from the terminal.
    written.and(named).map(|()| exit(&run, &summary))
}

/// Writes the report's files; the path of the page.
fn put_all(
    folder: &RunFolder,
    run: &RunData,
    summary: &Summary,
    with_csv: bool,
) -> Result<PathBuf, StoreError> {
    folder.put("summary.json", summary.to_json())?;
    let page = folder.put("report.html", throng_report::html::render(run, summary))?;
    if with_csv {
        put_tables(folder, run)?;
    }
    Ok(page)
}

/// Writes the tables of the report as CSV.
fn put_tables(folder: &RunFolder, run: &RunData) -> Result<(), StoreError> {
    let path = folder.path();
    let mut tables = vec![tables::series(path, run), tables::participants(path, run)];
    if !run.players.is_empty() {
        let basis = run.latency_vote().basis();
        tables.extend([tables::playback(path, run, basis), tables::players(path)]);
    }
    for table in &tables {
        tables::put(folder, table, Format::Csv)?;
    }
    if let Some(conference) = csv::conference(run) {
        folder.put("conference.csv", conference)?;
    }
    if !run.host.samples.is_empty() {
        folder.put("hosts.csv", csv::hosts(run))?;
    }
    Ok(())
}

/// Prints the figures of each participant as its tracks are read.
fn details(path: &Path, run: &RunData) -> Result<(), StoreError> {
    let (mut details, begin) = oven_rtc_tester::Details::of(run);
    print(begin);
    RunFolder::each(path, Table::Tracks, |row| {
        if let Row::Track(track) = row {
            print(&details.up_to(&track));
        }
        true
    })?;
    print(&details.rest());
    Ok(())
}

/// The summary of a run, judged by the objectives that were planned.
pub(crate) fn summary(run: &RunData) -> Summary {
    // Without a plan, as of a scenario that this version cannot read, there are none.
    let warm_up = run.info.plan.as_ref().map(RunPlan::warm_up).unwrap_or_default();
    throng_report::summarise(run, &throng_report::planned_objectives(run), warm_up)
}

fn exit(run: &RunData, summary: &Summary) -> Exit {
    match (run.ending, summary.outcome) {
        (Ending::Interrupted, _) => Exit::Interrupted,
        (_, RunOutcome::Met) => Exit::Met,
        (_, RunOutcome::Missed) => Exit::Missed,
        (_, RunOutcome::Disputed) => Exit::Disputed,
        (_, RunOutcome::Invalid) => Exit::Invalid,
        (_, RunOutcome::Error) => Exit::Target,
    }
}

#[cfg(test)]
mod golden_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_keeps_no_other_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let (no_file, file) = (folder.path().to_owned(), folder.path().join("answer"));
        let run = RunData::default();
        for (junit, markdown, begin) in
            [(&no_file, &file, "### throng"), (&file, &no_file, "<?xml")]
        {
            let (junit, markdown) = (Some(junit.clone()), Some(markdown.clone()));
            let wanted = ReportOptions { junit, markdown, ..ReportOptions::default() };
            assert!(wanted.put_named(&run, &summary(&run)).is_err());
            let written = std::fs::read_to_string(&file).unwrap();
            assert!(written.starts_with(begin), "{written}");
        }
    }
}
