//! `throng export`: the rows of a run as tables for other programs.

use std::path::Path;

use throng_observation::units;
use throng_report::columns::{Align, aligned};
use throng_report::{ReportRows, partial_reasons};
use throng_store::{RunFolder, StoreError, create_new_private};

use crate::args::Export;
use crate::console::{CliError, Exit, print, say};
use crate::tables::{self, Format};
use crate::{kept, report};

pub(crate) fn export(command: &Export) -> Result<Exit, CliError> {
    let format = format_of(command)?;
    let path = kept::run_folder(&command.run);
    let run = RunFolder::context(&path).map_err(CliError::unread)?;
    let whole = || report::read(&path, &mut ReportRows::default());
    let tables = tables::of_run(&path, &run, whole).map_err(CliError::unread)?;
    let folder = made(&command.output)?;
    let mut written = Vec::new();
    for table in &tables {
        let rows = tables::put(&folder, table, format)
            .map_err(|error| unfinished(&error, folder.path()))?;
        written.push(vec![table.name.to_owned(), units::grouped(rows as f64, 0)]);
    }
    print(&aligned(&written, &[Align::Left, Align::Right]));
    print(&format!("\ntables  {}\n", folder.path().display()));
    let title = if run.in_progress { "so far" } else { "partial" };
    for reason in partial_reasons(&run) {
        say(&format!("{title}: {reason}"));
    }
    Ok(Exit::Met)
}

fn format_of(command: &Export) -> Result<Format, CliError> {
    // Exactly one of them is given.
    match (command.csv, command.jsonl, command.parquet) {
        (true, ..) => Ok(Format::Csv),
        (false, true, _) => Ok(Format::JsonLines),
        (false, false, _) => parquet(),
    }
}

#[cfg(feature = "parquet")]
fn parquet() -> Result<Format, CliError> {
    Ok(Format::Parquet)
}

#[cfg(not(feature = "parquet"))]
fn parquet() -> Result<Format, CliError> {
    Err(CliError::usage(
        "this throng was built without Parquet: build it by `cargo build --release -p throng-cli \
         --features parquet`, or use --csv or --jsonl, which DuckDB and pandas read as well",
    ))
}

/// The new folder, so that no table of another run is left among those of this one.
fn made(path: &Path) -> Result<RunFolder, CliError> {
    create_new_private(path).map_err(|error| {
        let name = path.display();
        CliError::usage(match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                format!("{name}: is there already; tables go into a new folder")
            }
            _ => format!("{name}: cannot be made: {error}"),
        })
    })?;
    RunFolder::open(path).map_err(CliError::invalid)
}

/// What was written until then is whole, but not all.
fn unfinished(error: &StoreError, folder: &Path) -> CliError {
    let folder = folder.display();
    CliError::invalid(anyhow::anyhow!("{error}; {folder} has only some of the tables: remove it"))
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
