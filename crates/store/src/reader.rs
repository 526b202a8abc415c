//! Reading a run back, whoever closed it and however it was cut off.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use throng_observation::run::RunData;

use crate::schema::check_identity;
use crate::table::list;
use crate::{StoreError, canary, host, info};

/// Reads the run at `path`.
pub(crate) fn read(path: &Path) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| {
        Ok(RunData {
            participants: list(db)?,
            series: list(db)?,
            tracks: list(db)?,
            decoded: list(db)?,
            ..read_most(db)?
        })
    })
}

/// Reads what is known of a run as a whole, and the steps of its search; its rows stay where they are.
pub(crate) fn outline(path: &Path) -> Result<RunData, StoreError> {
    at_one_moment(path, |db| Ok(RunData { holds: list(db)?, ..info::read(db)? }))
}

/// All but participants, series, tracks and what decoders made of them, of which a long run has very many.
pub(crate) fn read_most(db: &Connection) -> rusqlite::Result<RunData> {
    Ok(RunData {
        crowd: list(db)?,
        sent: list(db)?,
        layer_switches: list(db)?,
        generator: list(db)?,
        events: list(db)?,
        experience: list(db)?,
        holds: list(db)?,
        canary: canary::read_all(db)?,
        host: host::read_all(db)?,
        ..info::read(db)?
    })
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
