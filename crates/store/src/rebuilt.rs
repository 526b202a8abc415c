//! Begins `run.db` again with what the coordinator of a fleet wrote itself, without the rows of the
//! crowd: those are read from the bus once more, from the first one on. It is made beside the file,
//! which it replaces once it is complete.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use throng_folder::AtWork;
use throng_observation::RunTime;
use throng_observation::run::{Ending, EventRow};

use crate::table::{list, put};
use crate::waiting::Waiting;
use crate::{FORMAT, RunWriter, StoreError, info, opened, schema};

/// What the name of the new file ends in.
const UNFINISHED: &str = "collected";

/// A `run.db` that is made again.
pub struct RebuiltRun {
    /// For the rows of the crowd.
    pub writer: RunWriter,
    /// The last second that the old file has.
    pub last_second: Option<i64>,
    old: PathBuf,
    new: PathBuf,
}

impl RebuiltRun {
    /// Begins beside the `run.db` at `old`; of its events those stay that `keeps` says.
    pub(crate) fn begin(
        old: PathBuf,
        keeps: impl Fn(&EventRow) -> bool,
    ) -> Result<Self, StoreError> {
        let new = old.with_extension(UNFINISHED);
        opened::remove(&new)?;
        fold(&old)?;
        copy(&old, &new).map_err(|error| StoreError::Io { path: new.clone(), error })?;
        let last_second = empty(&mut opened::open(&new)?, keeps)
            .map_err(|error| StoreError::from_sql(&new, error))?;
        let at_work = old.parent().and_then(|folder| AtWork::begin(folder).ok());
        let writer = RunWriter::reopen(new.clone(), at_work)?;
        Ok(Self { writer, last_second, old, new })
    }

    /// Writes how the run ended, and puts the file in the place of the old one.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] and others; the old file is as it was then.
    pub fn finish(self, ending: Ending, ended_at: RunTime) -> Result<(), StoreError> {
        self.writer.finish(ending, ended_at)?;
        check_is_one_file(&self.new)?;
        fs::rename(&self.new, &self.old).map_err(|error| StoreError::Io { path: self.old, error })
    }

    /// Leaves the old file as it is.
    pub fn discard(self) {
        let Self { writer, new, .. } = self;
        drop(writer);
        let _ = opened::remove(&new);
    }
}

/// Copies a file to where there is none.
fn copy(old: &Path, new: &Path) -> std::io::Result<()> {
    let mut from = throng_folder::read(old)?;
    let mut to = fs::File::options().write(true).create_new(true).open(new)?;
    to.set_permissions(from.metadata()?.permissions())?;
    std::io::copy(&mut from, &mut to).map(drop)
}

/// Folds what a killed process left in the write-ahead log into the database, so that one file has
/// everything, and none is left that would be taken for the log of the new one.
fn fold(path: &Path) -> Result<(), StoreError> {
    let named = |error| StoreError::from_sql(path, error);
    let db = opened::open(path)?;
    schema::check_identity(&db, path)?;
    db.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).map_err(named)?;
    drop(db);
    check_is_one_file(path)
}

/// Whether a database has no write-ahead log beside it, which a rename would leave behind.
fn check_is_one_file(path: &Path) -> Result<(), StoreError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match fs::metadata(&log) {
        Ok(found) if found.len() > 0 => {
            let error = std::io::Error::other("another process uses it, or the disk is full");
            Err(StoreError::Io { path: path.to_owned(), error })
        }
        _ => Ok(()),
    }
}

/// Removes the rows of the crowd; the last second that there was. The file is then of the present
/// format, whatever version began it.
fn empty(db: &mut Connection, keeps: impl Fn(&EventRow) -> bool) -> rusqlite::Result<Option<i64>> {
    let transaction = db.transaction()?;
    let last_second =
        transaction.query_row("SELECT MAX(second) FROM crowd", [], |row| row.get(0))?;
    let events: Vec<EventRow> = list(&transaction)?;
    Waiting::renew_crowd(&transaction)?;
    put(&transaction, events.iter().filter(|event| keeps(event)))?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    info::set(&transaction, "format", Some(&FORMAT.to_string()))?;
    info::set(&transaction, "ending", Some(Ending::Unfinished.key()))?;
    transaction.commit()?;
    Ok(last_second)
}
