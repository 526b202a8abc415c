//! `throng compare` and `throng trend`: runs measured one at a time from their folders, then put
//! together.

mod runs;

use std::path::{Path, PathBuf};

use throng_report::compare::{
    CompareOptions, CompareOutcome, CompareReport, MeasuredRun, suite, summarise, text,
};
use throng_report::{html, markdown, trend};

use crate::args::{self, Compare};
use crate::console::{CliError, Exit, print, print_json, say};
use crate::report;

/// `throng compare BASE NEW`.
pub(crate) fn compare(command: &Compare) -> Result<Exit, CliError> {
    let (base, new) = match command.sides.as_slice() {
        [base, new] => (std::slice::from_ref(base), std::slice::from_ref(new)),
        _ => (command.base.as_slice(), command.new.as_slice()),
    };
    if let Some(file) = &command.markdown {
        report::check("--markdown", file)?;
    }
    let (base, new) = (runs::measure(base)?, runs::measure(new)?);
    let options = CompareOptions {
        margin_ratio: command.margin,
        allow_different_machines: command.allow_different_machines,
    };
    let report = summarise(&base, &new, options, env!("CARGO_PKG_VERSION"));
    if command.json {
        print_json(&report.to_json());
    } else {
        print(&text::summary(&report));
    }
    if let Some(file) = &command.junit {
        write(file, &suite(&report).to_xml())?;
    }
    if let Some(file) = &command.markdown {
        report::append(file, &markdown::of_comparison(&report))
            .map_err(|error| CliError::usage(format!("{}: {error}", file.display())))?;
    }
    if let Some(file) = &command.page {
        write(file, &html::compare::render(&report))?;
        say(&format!("page  {}", file.display()));
    }
    if is_refused_for_its_machines(&report) {
        say("to compare them all the same: --allow-different-machines");
    }
    Ok(exit(report.outcome))
}

fn is_refused_for_its_machines(report: &CompareReport) -> bool {
    report.outcome == CompareOutcome::NotComparable
        && report.refusals.iter().any(|refusal| refusal.contains("different machines"))
}

/// 0 if nothing is worse and what was asked is decided.
fn exit(outcome: CompareOutcome) -> Exit {
    match outcome {
        CompareOutcome::Better | CompareOutcome::Same => Exit::Met,
        CompareOutcome::Worse => Exit::Missed,
        CompareOutcome::NotDecided | CompareOutcome::NotComparable => Exit::Invalid,
    }
}

/// `throng trend RUN…`.
pub(crate) fn trend(command: &args::Trend) -> Result<Exit, CliError> {
    let runs: Vec<MeasuredRun> = runs::measure(&command.runs)?;
    let report = trend::summarise(runs, command.margin, env!("CARGO_PKG_VERSION"));
    if command.json {
        print_json(&report.to_json());
    } else {
        print(&trend::text::summary(&report));
    }
    if let Some(file) = &command.page {
        write(file, &html::trend::render(&report))?;
        say(&format!("page  {}", file.display()));
    }
    let counts = report.runs.iter().any(|run| run.excluded.is_none());
    Ok(match (counts, report.newest_is_worse) {
        (false, _) => Exit::Invalid,
        (true, true) => Exit::Missed,
        (true, false) => Exit::Met,
    })
}

/// The page of a comparison, as `throng compare BASE NEW --page` writes it.
pub(super) fn comparison_page(base: &[PathBuf], new: &[PathBuf]) -> Result<String, CliError> {
    let (base, new) = (runs::measure(base)?, runs::measure(new)?);
    let report = summarise(&base, &new, CompareOptions::default(), env!("CARGO_PKG_VERSION"));
    Ok(html::compare::render(&report))
}

/// The page of a trend, as `throng trend RUN… --page` writes it.
pub(super) fn trend_page(paths: &[PathBuf]) -> Result<String, CliError> {
    let margin_ratio = CompareOptions::default().margin_ratio;
    let report = trend::summarise(runs::measure(paths)?, margin_ratio, env!("CARGO_PKG_VERSION"));
    Ok(html::trend::render(&report))
}

/// Writes a file whose name the user gave.
fn write(file: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(file, text)
        .map_err(|error| CliError::usage(format!("{}: {error}", file.display())))
}
