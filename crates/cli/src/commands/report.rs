//! `throng report`: makes a report again, from what a folder keeps.

use std::path::Path;

use throng_report::Summary;
use throng_store::StoreError;

use super::ipc;
use crate::args::Report;
use crate::console::{CliError, Exit, print, say};
use crate::report::{self, ReportOptions};
use crate::{kept, matrix};

/// `throng report RUN`: makes the report again from run.db, from the ipc.json of `throng ipc`, or
/// from the runs of a matrix.
pub(crate) fn remake(command: &Report) -> Result<Exit, CliError> {
    let command = &Report { run: kept::run_folder(&command.run), ..command.clone() };
    let wanted = ReportOptions {
        json: command.json,
        csv: command.csv,
        details: command.details,
        junit: command.junit.clone(),
        markdown: command.markdown.clone(),
    };
    wanted.check()?;
    if let Some(made) = ipc::remake(command) {
        return made;
    }
    if let Some(made) = matrix::remake(command) {
        return made;
    }
    report::make(&command.run, &wanted).map_err(|error| {
        if matches!(error, StoreError::Incomplete { .. } | StoreError::Corrupt { .. }) {
            show_kept(&command.run, command.json);
        }
        CliError::unread(error)
    })
}

/// Prints the summary that was made while the rows could still be read, if there is one; nothing is
/// written.
fn show_kept(folder: &Path, json: bool) {
    match kept::read_json::<Summary>(folder, "summary.json") {
        Ok(Some(summary)) => {
            say("its rows cannot be read; this is the summary that was made before:");
            print(&if json { summary.to_json() } else { throng_report::text::summary(&summary) });
        }
        Ok(None) => {}
        Err(problem) => say(&problem),
    }
}
