//! `throng compare` and `throng trend`: runs measured one at a time from their folders, then put
//! together.

mod runs;

use std::fs;
use std::path::PathBuf;

use throng_report::compare::{
    CompareOptions, CompareOutcome, CompareReport, MeasuredRun, suite, summarise, text,
};
use throng_report::markdown::of_comparison;
use throng_report::{html, trend};

use crate::args::{self, Compare};
use crate::console::{CliError, Exit, print, print_json, say};
use crate::named_file::{append, check_each, put};

/// `throng compare BASE NEW`.
pub(crate) fn compare(command: &Compare) -> Result<Exit, CliError> {
    let (base, new) = match command.sides.as_slice() {
        [base, new] => (std::slice::from_ref(base), std::slice::from_ref(new)),
        _ => (command.base.as_slice(), command.new.as_slice()),
    };
    let (junit, markdown) = (command.junit.as_deref(), command.markdown.as_deref());
    let page = command.page.as_deref();
    check_each(&[("--junit", junit), ("--markdown", markdown), ("--page", page)])?;
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
    let put_junit = put(junit, |file| fs::write(file, suite(&report).to_xml()));
    let put_markdown = put(markdown, |file| append(file, &of_comparison(&report)));
    let put_page = put(page, |file| fs::write(file, html::compare::render(&report)));
    // One that cannot be written keeps no other from it.
    put_junit.and(put_markdown).and(put_page).map_err(CliError::unread)?;
    if let Some(file) = page {
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
    let page = command.page.as_deref();
    check_each(&[("--page", page)])?;
    let runs: Vec<MeasuredRun> = runs::measure(&command.runs)?;
    let report = trend::summarise(runs, command.margin, env!("CARGO_PKG_VERSION"));
    if command.json {
        print_json(&report.to_json());
    } else {
        print(&trend::text::summary(&report));
    }
    put(page, |file| fs::write(file, html::trend::render(&report))).map_err(CliError::unread)?;
    if let Some(file) = page {
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
