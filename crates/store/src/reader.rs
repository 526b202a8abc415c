//! Reading a run back, whoever closed it and however it was cut off.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use throng_observation::RunTime;
use throng_observation::run::{ClockError, Ending, LayerSwitchRow, RunData, RunInfo};

use crate::{FORMAT, StoreError, canary, decoded, host, rows, schema, search};

/// Reads the run at `path`.
pub(crate) fn read(path: &Path) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| {
        let mut run = read_most(db)?;
        let (participants, series, tracks) = (Participants::All.columns(), series(db)?, tracks(db)?);
        run.participants = list(db, "participant", &participants, "participant", rows::read_participant)?;
        run.series = list(db, "series", &series, "second, cohort, kind DESC", rows::read_series)?;
        run.tracks = list(db, "track", &tracks, "participant, track", rows::read_track)?;
        run.decoded = decoded::read_all(db)?;
        Ok(run)
    })
}

/// Reads what is known of a run as a whole, and the steps of its search; its rows stay where they are.
pub(crate) fn outline(path: &Path) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| Ok(RunData { holds: search::read_all(db)?.1, ..whole(&facts(db)?)? }))
}

/// Reads with `act`, whoever closed the run and however it was cut off.
pub(crate) fn at_one_moment<T>(
    path: &Path,
    act: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    let named = |error| match StoreError::from_sql(path, error) {
        // A table or column that is not there, a cell of another type: someone's hands or a bad disk.
        StoreError::Sql { path, error } if !is_access(&error) => {
            StoreError::Corrupt { path, detail: error.to_string() }
        }
        other => other,
    };
    // Writing is asked for because a run that was cut off is put right on opening (its write-ahead log is folded
    // in); SQLite falls back to reading by itself where the file may not be written.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags).map_err(named)?;
    check_identity(&db, path)?;
    // One transaction, so that a run which is still going on is read at one moment.
    let moment = db.transaction().map_err(named)?;
    let read = act(&moment).map_err(named)?;
    moment.finish().map_err(named)?;
    Ok(read)
}

fn is_access(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
        )
    )
}

pub(crate) fn check_identity(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let pragma = |name| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(|e| StoreError::from_sql(path, e))
    };
    if pragma("application_id")? != i64::from(schema::APPLICATION_ID) {
        return Err(StoreError::NotARun { path: path.to_owned(), detail: "not written by throng".into() });
    }
    match pragma("user_version")? {
        found if found > i64::from(FORMAT) => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT })
        }
        _ => Ok(()),
    }
}

/// What is known of the run as a whole.
fn whole(facts: &Facts) -> rusqlite::Result<RunData> {
    Ok(RunData {
        info: info(facts)?,
        ending: match facts.text("ending").as_str() {
            "complete" => Ending::Complete,
            "interrupted" => Ending::Interrupted,
            "aborted" => Ending::Aborted,
            _ => Ending::Unfinished,
        },
        ended_at: facts.number("ended_at_us").map(RunTime),
        rows_lost: facts.number("rows_lost").and_then(|lost| u64::try_from(lost).ok()).unwrap_or(0),
        ..RunData::default()
    })
}

/// All but participants, series, tracks and what decoders made of them, of which a long run has very many.
pub(crate) fn read_most(db: &Connection) -> rusqlite::Result<RunData> {
    let (experience, holds) = search::read_all(db)?;
    Ok(RunData {
        crowd: list(db, "crowd", &schema::CROWD, "second, cohort", rows::read_crowd)?,
        sent: list(db, "sent", &schema::SENT, "second, cohort, kind DESC", rows::read_sent)?,
        layer_switches: layer_switches(db)?,
        generator: list(db, "generator", &schema::GENERATOR, "second, thread", rows::read_generator)?,
        events: list(db, "event", &schema::EVENT, "at_us, rowid", rows::read_event)?,
        experience,
        holds,
        canary: canary::read_all(db)?,
        host: host::read_all(db)?,
        ..whole(&facts(db)?)?
    })
}

/// The columns of `series` that this run has.
pub(crate) fn series(db: &Connection) -> rusqlite::Result<Vec<&'static str>> {
    with_known_counters(db, "series", &schema::SERIES)
}

/// The columns of `track` that this run has.
pub(crate) fn tracks(db: &Connection) -> rusqlite::Result<Vec<&'static str>> {
    with_known_counters(db, "track", &schema::TRACK)
}

/// What is wanted of participants.
pub(crate) enum Participants {
    All,
    /// Not their addresses, which only a table of them has.
    WithoutAddresses,
}

impl Participants {
    pub(crate) fn columns(&self) -> [&'static str; schema::PARTICIPANT.len()] {
        match self {
            Self::All => schema::PARTICIPANT,
            Self::WithoutAddresses => {
                schema::PARTICIPANT.map(|column| if column == "local_address" { "NULL" } else { column })
            }
        }
    }
}

/// `columns` and then those of the counters; of those that came later, 0 where the folder is older than they.
fn with_known_counters(
    db: &Connection,
    table: &str,
    columns: &[&'static str],
) -> rusqlite::Result<Vec<&'static str>> {
    let newer = [("missing_us", "0"), ("rtx_packets_received", "0")];
    known(db, table, &rows::with_counters(columns), &newer)
}

/// `columns`, with the stand-in for each of the `newer` ones that the folder is too old to have.
pub(crate) fn known(
    db: &Connection,
    table: &str,
    columns: &[&'static str],
    newer: &[(&'static str, &'static str)],
) -> rusqlite::Result<Vec<&'static str>> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let found: HashSet<String> = statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let stand_in =
        |column: &&'static str| newer.iter().find(|(name, _)| name == column).map(|(_, with)| *with);
    let of = |column: &&'static str| match stand_in(column).filter(|_| !found.contains(*column)) {
        Some(with) => with,
        None => *column,
    };
    Ok(columns.iter().map(of).collect())
}

/// Changes of layers; none where the folder is older than their table.
fn layer_switches(db: &Connection) -> rusqlite::Result<Vec<LayerSwitchRow>> {
    let has_table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'layer_switch'";
    if db.query_row(has_table, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Vec::new());
    }
    let order = "requested_us, participant, track";
    list(db, "layer_switch", &schema::LAYER_SWITCH, order, rows::read_layer_switch)
}

pub(crate) fn list<T>(
    db: &Connection,
    table: &str,
    columns: &[&str],
    order: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(&schema::select(table, columns, order))?.query_map([], read)?.collect()
}

/// The keys and values of `info`.
struct Facts(HashMap<String, Option<String>>);

impl Facts {
    fn text(&self, key: &str) -> String {
        self.0.get(key).cloned().flatten().unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.text(key).parse().ok()
    }

    fn json<T: serde::de::DeserializeOwned + Default>(&self, key: &str) -> rusqlite::Result<T> {
        match self.text(key).as_str() {
            "" => Ok(T::default()),
            text => serde_json::from_str(text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(error))
            }),
        }
    }
}

fn facts(db: &Connection) -> rusqlite::Result<Facts> {
    let mut statement = db.prepare("SELECT key, value FROM info")?;
    let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    pairs.collect::<Result<_, _>>().map(Facts)
}

fn info(facts: &Facts) -> rusqlite::Result<RunInfo> {
    Ok(RunInfo {
        format: facts.number("format").and_then(|format| u32::try_from(format).ok()).unwrap_or(0),
        throng_version: facts.text("throng_version"),
        scenario: facts.text("scenario"),
        target: facts.text("target"),
        cohorts: facts.json("cohorts")?,
        started_at_unix_us: facts.number("started_at_unix_us").unwrap_or(0),
        planned_duration_us: facts.number("planned_duration_us").unwrap_or(0),
        generator_host: facts.json("generator_host")?,
        clock: ClockError {
            bound_us: facts.number("clock_bound_us").and_then(|bound| u64::try_from(bound).ok()),
            basis: facts.text("clock_basis"),
        },
        warnings: facts.json("warnings")?,
    })
}
