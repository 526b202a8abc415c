//! The tables of a run, whose rows are read one after the other, and the files that they are
//! written as: those of `--csv` in the run folder, and those of `throng export`.

mod format;
mod json_lines;
#[cfg(feature = "parquet")]
mod parquet;
mod row_writer;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use throng_observation::run::{Row, RunData};
use throng_observation::{LatencyBasis, LatencyVote, TableCell, TableColumn};
use throng_report::csv;
use throng_store::{RunFolder, StoreError, StoredTable, Table as Stored};

pub(crate) use format::Format;
use row_writer::RowWriter;

/// Takes a row, and says whether it wants another one.
type Take<'a> = dyn FnMut(Vec<TableCell>) -> bool + 'a;

/// Reads the rows.
type Rows<'a> = Box<dyn Fn(&mut Take<'_>) -> Result<(), StoreError> + 'a>;

/// A table.
pub(crate) struct Table<'a> {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<TableColumn>,
    rows: Rows<'a>,
}

/// Writes the table into a file of the folder, row by row, as those of a day would take hundreds of
/// megabytes of memory; the number of its rows.
pub(crate) fn put(
    folder: &RunFolder,
    table: &Table<'_>,
    format: Format,
) -> Result<u64, StoreError> {
    let name = format!("{}.{}", table.name, format.extension());
    let failed = |error| StoreError::Io { path: folder.path().join(&name), error };
    let mut rows = 0;
    folder.put_with(&name, |file| {
        let out = format.begin(&table.columns, file).map_err(failed)?;
        rows = write(table, out, failed)?;
        Ok(())
    })?;
    Ok(rows)
}

/// Writes all rows, unless the writer fails at one; their number.
fn write(
    table: &Table<'_>,
    mut out: Box<dyn RowWriter + '_>,
    failed: impl FnOnce(io::Error) -> StoreError,
) -> Result<u64, StoreError> {
    let (mut rows, mut written) = (0, Ok(()));
    (table.rows)(&mut |cells| {
        written = out.row(cells);
        rows += 1;
        written.is_ok()
    })?;
    written.and_then(|()| out.finish()).map_err(failed)?;
    Ok(rows)
}

/// All tables of the run at `path` that have rows. `run` is what [`RunFolder::context`] read;
/// `whole` reads the run for its report, which the table of a conference needs.
pub(crate) fn of_run<'a>(
    path: &'a Path,
    run: &'a RunData,
    whole: impl FnOnce() -> Result<RunData, StoreError>,
) -> Result<Vec<Table<'a>>, StoreError> {
    let stored = RunFolder::stored_tables(path)?;
    let has = |table| RunFolder::has_rows(path, table);
    let mut tables = vec![the_run(run)];
    if has(Stored::Series)? {
        tables.push(series(path, run));
    }
    if has(Stored::Participants)? {
        tables.push(participants(path, run));
    }
    if has(Stored::Playback)? {
        tables.push(playback(path, run, latency_basis(path)?));
    }
    if has(Stored::Players)? {
        tables.push(players(path));
    }
    if stored.contains(&StoredTable::Sent)
        && let Some(rows) = csv::pair_rows(&whole()?).filter(|rows| !rows.is_empty())
    {
        tables.push(of_rows("conference", csv::pair_columns(), rows));
    }
    if has(Stored::HostSamples)? {
        tables.push(hosts(path));
    }
    tables.extend(stored.into_iter().map(|table| as_stored(path, table)));
    Ok(tables)
}

/// The run itself, in one row.
fn the_run(run: &RunData) -> Table<'static> {
    of_rows("run", csv::run_columns(), vec![csv::run_row(run)])
}

/// `series.csv`.
pub(crate) fn series<'a>(path: &'a Path, run: &'a RunData) -> Table<'a> {
    of_store(path, "series", csv::series_columns(), Stored::Series, move |row| match row {
        Row::Series(row) => Some(csv::series_row(run, &row)),
        _ => None,
    })
}

/// `participants.csv`.
pub(crate) fn participants<'a>(path: &'a Path, run: &'a RunData) -> Table<'a> {
    let columns = csv::participant_columns();
    of_store(path, "participants", columns, Stored::Participants, move |row| match row {
        Row::Participant(row) => Some(csv::participant_row(run, &row)),
        _ => None,
    })
}

/// `playback.csv`.
pub(crate) fn playback<'a>(path: &'a Path, run: &'a RunData, basis: LatencyBasis) -> Table<'a> {
    of_store(path, "playback", csv::playback_columns(), Stored::Playback, move |row| match row {
        Row::Playback(row) => Some(csv::playback_row(run, basis, &row)),
        _ => None,
    })
}

/// `players.csv`.
pub(crate) fn players(path: &Path) -> Table<'_> {
    of_store(path, "players", csv::player_columns(), Stored::Players, |row| match row {
        Row::Player(row) => Some(csv::player_row(&row)),
        _ => None,
    })
}

/// `hosts.csv`, in order of time: as it is stored.
fn hosts(path: &Path) -> Table<'_> {
    Table {
        name: "hosts",
        columns: csv::host_columns(),
        rows: Box::new(move |take| {
            let mut rows = csv::HostRows::default();
            RunFolder::each(path, Stored::HostSamples, |row| {
                let Row::Host(row) = row else { return true };
                rows.row(&row).is_none_or(&mut *take)
            })
        }),
    }
}

/// A table as `run.db` has it.
fn as_stored(path: &Path, table: StoredTable) -> Table<'_> {
    Table {
        name: table.name(),
        columns: table.columns(),
        rows: Box::new(move |take| RunFolder::export(path, table, take)),
    }
}

/// A table whose rows are those of one that is stored.
fn of_store<'a>(
    path: &'a Path,
    name: &'static str,
    columns: Vec<TableColumn>,
    stored: Stored,
    cells: impl Fn(Row) -> Option<Vec<TableCell>> + 'a,
) -> Table<'a> {
    Table {
        name,
        columns,
        rows: Box::new(move |take| {
            RunFolder::each(path, stored, |row| cells(row).is_none_or(&mut *take))
        }),
    }
}

/// A table of few rows.
fn of_rows(
    name: &'static str,
    columns: Vec<TableColumn>,
    kept: Vec<Vec<TableCell>>,
) -> Table<'static> {
    Table {
        name,
        columns,
        rows: Box::new(move |take| {
            for row in &kept {
                if !take(row.clone()) {
                    break;
                }
            }
            Ok(())
        }),
    }
}

/// By what the latency of players is measured, as all seconds decide.
fn latency_basis(path: &Path) -> Result<LatencyBasis, StoreError> {
    let mut vote = LatencyVote::default();
    RunFolder::each(path, Stored::Playback, |row| {
        if let Row::Playback(row) = row {
            vote.add(&row);
        }
        true
    })?;
    Ok(vote.basis())
}
