//! Writing a run while it is in progress.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, Transaction};
use throng_folder::AtWork;
use throng_observation::RunTime;
use throng_observation::fleet::EndClock;
use throng_observation::run::{Ending, Row, RunInfo};

use crate::waiting::Waiting;
use crate::{FORMAT, StoreError, info, opened, schema};

/// SQLite's page cache. The default is two megabytes, as much memory as thirty viewers.
const CACHE_KIB: i32 = 512;

/// How long a reader of another process is waited for at the end, and how often it is looked for.
const READERS_GONE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The one writer of a run's `run.db`.
///
/// Rows wait in memory until [`Self::commit`], which writes them in one transaction. When that
/// fails (disk full) they wait for the next commit, up to a limit; rows above it are dropped and
/// counted in [`Self::rows_lost`]. Dropping the writer without [`Self::finish`] leaves a folder
/// with the ending `unfinished`.
pub struct RunWriter {
    connection: Connection,
    path: PathBuf,
    waiting: Waiting,
    rows_lost: u64,
    rows_lost_stored: u64,
    /// By which who reads the folder tells a run in progress from one whose process was killed.
    /// Dropped after the connection.
    _at_work: Option<AtWork>,
}

impl RunWriter {
    pub(crate) fn open(
        path: PathBuf,
        info: &RunInfo,
        at_work: Option<AtWork>,
    ) -> Result<Self, StoreError> {
        let mut writer = Self::on(path, at_work)?;
        writer.prepare(info).map_err(|error| StoreError::from_sql(&writer.path, error))?;
        Ok(writer)
    }

    /// Goes on writing a file that has its tables.
    pub(crate) fn reopen(path: PathBuf, at_work: Option<AtWork>) -> Result<Self, StoreError> {
        let writer = Self::on(path, at_work)?;
        Self::tune(&writer.connection)
            .map_err(|error| StoreError::from_sql(&writer.path, error))?;
        Ok(writer)
    }

    fn on(path: PathBuf, at_work: Option<AtWork>) -> Result<Self, StoreError> {
        Ok(Self {
            connection: opened::open(&path)?,
            path,
            waiting: Waiting::default(),
            rows_lost: 0,
            rows_lost_stored: 0,
            _at_work: at_work,
        })
    }

    /// Writes when the run starts, microseconds since the Unix epoch, known only once the engine
    /// has its threads.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] and others.
    pub fn starts_at(&mut self, unix_us: i64) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE info SET value = ?1 WHERE key = 'started_at_unix_us'",
                [unix_us.to_string()],
            )
            .map(drop)
            .map_err(|error| StoreError::from_sql(&self.path, error))
    }

    /// Writes what was known of the workers' clocks at the end, by their numbers.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] and others.
    pub fn end_clocks(&mut self, clocks: &[Option<EndClock>]) -> Result<(), StoreError> {
        info::put_end_clocks(&self.connection, clocks)
            .map_err(|error| StoreError::from_sql(&self.path, error))
    }

    /// Keeps a row for the next commit. Never blocks and never fails: rows above the limit are
    /// counted.
    pub fn write(&mut self, row: Row) {
        if !self.waiting.keep(row) {
            self.rows_lost += 1;
        }
    }

    /// Writes all pending rows in one transaction: all of them or none.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] and others; the rows wait for the next attempt.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.waiting.is_empty() && self.rows_lost == self.rows_lost_stored {
            return Ok(());
        }
        self.transact(|_| Ok(()))
    }

    /// Writes the remaining rows and how the run ended, and closes `run.db` as one plain file; for
    /// that it waits up to a second for readers to go.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] and others; the folder then reads as `unfinished`.
    pub fn finish(mut self, ending: Ending, ended_at: RunTime) -> Result<(), StoreError> {
        self.transact(|transaction| info::put_ending(transaction, ending, ended_at))?;
        self.close_log();
        Ok(())
    }

    /// Goes back from the write-ahead log to one file that can be copied and read from a read-only
    /// disk. If the disk has no room for that, or somebody goes on reading, the log stays next to
    /// the file, and both read as well.
    fn close_log(&self) {
        let until = Instant::now() + READERS_GONE;
        loop {
            let mode =
                self.connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| {
                    row.get::<_, String>(0)
                });
            let is_read = match mode {
                Ok(mode) => mode != "delete",
                Err(error) => matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                ),
            };
            if !is_read || Instant::now() >= until {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Rows dropped so far because they could not be stored.
    #[must_use]
    pub fn rows_lost(&self) -> u64 {
        self.rows_lost
    }

    /// Limits the database to so many pages (at least its present size), as a full disk would;
    /// `None` lifts the limit.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn limit_pages(&self, pages: Option<u32>) -> Result<(), StoreError> {
        // SQLite replaces a limit below the present size by that size, and takes 0 as no change.
        let pages = pages.map_or(u32::MAX - 1, |pages| pages.max(1));
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(|error| StoreError::from_sql(&self.path, error))
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn tune(db: &Connection) -> rusqlite::Result<()> {
        // A reader (`throng report` of a run in progress) never blocks the writer.
        db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        // NORMAL survives the end of the process at any moment; only a power failure may lose the
        // last seconds.
        db.pragma_update(None, "synchronous", "NORMAL")?;
        // Rows are appended, and those of current participants rewritten at times: the kernel
        // caches all other pages.
        db.pragma_update(None, "cache_size", -CACHE_KIB)?;
        db.set_prepared_statement_cache_capacity(32);
        Ok(())
    }

    fn prepare(&mut self, info: &RunInfo) -> rusqlite::Result<()> {
        Self::tune(&self.connection)?;
        let transaction = self.connection.transaction()?;
        transaction.pragma_update(None, "application_id", schema::APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.execute_batch(&schema::create_all())?;
        info::put(&transaction, info)?;
        transaction.commit()
    }

    fn transact(
        &mut self,
        also: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let lost = self.rows_lost;
        let result = (|| {
            let transaction = self.connection.transaction()?;
            self.waiting.put(&transaction)?;
            info::set(&transaction, "rows_lost", Some(&lost.to_string()))?;
            also(&transaction)?;
            transaction.commit()
        })();
        result.map_err(|error| StoreError::from_sql(&self.path, error))?;
        self.waiting = Waiting::default();
        self.rows_lost_stored = lost;
        Ok(())
    }
}
