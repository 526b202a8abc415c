//! Reading a run back, also one that was interrupted at any point.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};
use throng_observation::run::RunData;

use crate::schema::check_identity;
use crate::table::list;
use crate::{StoreError, canary, host, http_requests, info, opened, playback};

/// Reads the run at `path`.
pub(crate) fn read(path: &Path) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| {
        let mut run = RunData {
            participants: list(db)?,
            series: list(db)?,
            tracks: list(db)?,
            decoded: list(db)?,
            playback: list(db)?,
            ..read_most(db)?
        };
        run.withdraw_sender_clocks();
        Ok(run)
    })
}

/// Reads the run's information and the steps of its search, and no other rows.
pub(crate) fn outline(path: &Path) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| Ok(RunData { holds: list(db)?, ..info::outline(db)? }))
}

/// Reads the run's information, its crowd, events and holds: what the rows of its other tables are
/// shown with.
pub(crate) fn context(path: &Path) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| {
        Ok(RunData { crowd: list(db)?, events: list(db)?, holds: list(db)?, ..info::outline(db)? })
    })
}

/// All but the tables that are very large in a long run: participants, series, playback,
/// tracks and decoding results.
pub(crate) fn read_most(db: &Connection) -> rusqlite::Result<RunData> {
    Ok(RunData {
        crowd: list(db)?,
        sent: list(db)?,
        layer_switches: list(db)?,
        generator: list(db)?,
        events: list(db)?,
        experience: list(db)?,
        holds: list(db)?,
        players: playback::players(db)?,
        chat: list(db)?,
        http_requests: http_requests::totals(db)?,
        canary: canary::read_all(db)?,
        host: host::read_all(db)?,
        ..info::read(db)?
    })
}

/// Reads with `act` in one transaction, also a run that was interrupted at any point.
pub(crate) fn at_one_moment<T>(
    path: &Path,
    act: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    let named = |error| match StoreError::from_sql(path, error) {
        // A missing table or column, or a cell of another type: the file was edited, or the disk is
        // bad.
        StoreError::Sql { path, error } if !is_access(&error) => {
            StoreError::Corrupt { path, detail: error.to_string() }
        }
        other => other,
    };
    // Opened for writing because SQLite repairs an interrupted run when it opens it (folds its
    // write-ahead log in); where the file is read-only SQLite falls back to reading.
    let mut db = opened::open(path)?;
    check_identity(&db, path)?;
    // One transaction, so that a run in progress is read at one moment.
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
