//! The folder itself: making one, reading one, and putting the report's files into it.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use throng_observation::RowSelector;
use throng_observation::run::{DecodedRow, Row, RunData, RunInfo};

use crate::table::list;
use crate::{RunWriter, StoreError, Table, decoded, reader, selected};

/// The format of `run.db` that this throng writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The database's name inside a run folder.
pub(crate) const DATABASE: &str = "run.db";

/// The database of the run at `path`.
fn database(path: &Path) -> Result<PathBuf, StoreError> {
    if !path.is_dir() {
        return Err(StoreError::NoFolder(path.to_owned()));
    }
    let database = path.join(DATABASE);
    if database.is_file() { Ok(database) } else { Err(StoreError::NoRun(path.to_owned())) }
}

/// Makes the empty file, so that two writers told to use one name do not share it.
fn claim(database: &Path, taken: impl FnOnce() -> StoreError) -> Result<(), StoreError> {
    match fs::File::options().write(true).create_new(true).open(database) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(taken()),
        Err(error) => Err(StoreError::Io { path: database.to_owned(), error }),
    }
}

/// A lone file such as `host.db`: what a watcher saw without a crowd, in the tables of a `run.db`.
#[derive(Clone, Copy, Debug)]
pub struct HostFile;

impl HostFile {
    /// Makes the file. `started_at_unix_us` is the wall clock of [`throng_observation::RunTime`] 0, microseconds since
    /// the Unix epoch. Rows go in as [`throng_observation::run::Row::Host`].
    ///
    /// # Errors
    /// [`StoreError::FileExists`] when there is such a file; [`StoreError::Io`], [`StoreError::DiskFull`] or
    /// [`StoreError::Sql`] when it could not be written.
    pub fn create(
        path: impl AsRef<Path>,
        throng_version: &str,
        started_at_unix_us: i64,
    ) -> Result<RunWriter, StoreError> {
        let path = path.as_ref();
        claim(path, || StoreError::FileExists(path.to_owned()))?;
        let info =
            RunInfo { throng_version: throng_version.to_owned(), started_at_unix_us, ..RunInfo::default() };
        RunWriter::open(path.to_owned(), &info)
    }

    /// Reads what was watched: finished, cut off, or still going on.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn read(path: impl AsRef<Path>) -> Result<RunData, StoreError> {
        let path = path.as_ref();
        if !path.is_file() {
            return Err(StoreError::NoFile(path.to_owned()));
        }
        reader::read(path)
    }
}

/// A run folder: `run.db`, and beside it the files that a report is made of.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder (and those above it) with an empty `run.db`, and opens it for writing.
    ///
    /// `info.format` is stored as [`FORMAT`] whatever it says.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when it holds a run already; [`StoreError::Io`], [`StoreError::DiskFull`] or
    /// [`StoreError::Sql`] when it could not be written.
    pub fn create(path: impl AsRef<Path>, info: &RunInfo) -> Result<RunWriter, StoreError> {
        let path = path.as_ref();
        fs::create_dir_all(path).map_err(|error| StoreError::Io { path: path.to_owned(), error })?;
        let database = path.join(DATABASE);
        claim(&database, || StoreError::Exists(path.to_owned()))?;
        RunWriter::open(database, info)
    }

    /// Reads a whole run: finished, cut off, or still going on.
    ///
    /// # Errors
    /// See the variants of [`StoreError`]: no such folder, no run in it, not a run, a newer format, damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<RunData, StoreError> {
        reader::read(&database(path.as_ref())?)
    }

    /// Reads a run for a report, in the memory of what that shows: what `selector` does not want one by one is added up as it is
    /// read. The addresses of participants are left out.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn read_selected(
        path: impl AsRef<Path>,
        selector: &mut dyn RowSelector,
    ) -> Result<RunData, StoreError> {
        selected::read(&database(path.as_ref())?, selector)
    }

    /// Reads what is known of a run as a whole, and the steps of its search, and none of its other rows.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn outline(path: impl AsRef<Path>) -> Result<RunData, StoreError> {
        reader::outline(&database(path.as_ref())?)
    }

    /// What decoders made of the tapped tracks of a run.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn decoded(path: impl AsRef<Path>) -> Result<Vec<DecodedRow>, StoreError> {
        reader::at_one_moment(&database(path.as_ref())?, list)
    }

    /// Shows `each` the rows of a table, one after the other, until it answers that it has enough.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn each(
        path: impl AsRef<Path>,
        table: Table,
        mut each: impl FnMut(Row) -> bool,
    ) -> Result<(), StoreError> {
        selected::each(&database(path.as_ref())?, table, &mut each)
    }

    /// Adds what decoders made of tapped tracks to the run at `path`, while it goes on or after it; rows of the same
    /// second and track are replaced.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn add_decoded(path: impl AsRef<Path>, rows: &[DecodedRow]) -> Result<(), StoreError> {
        let database = path.as_ref().join(DATABASE);
        if !database.is_file() {
            return Err(StoreError::NoRun(path.as_ref().to_owned()));
        }
        decoded::add(&database, rows)
    }

    /// An existing folder, to put files into.
    ///
    /// # Errors
    /// [`StoreError::NoFolder`] when there is none.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        if path.is_dir() { Ok(Self { path }) } else { Err(StoreError::NoFolder(path)) }
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file such as `summary.json` or `report.html` whole or not at all: under another name first, then
    /// renamed, so that a reader never meets half a report and a full disk leaves the earlier one.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it could not be written.
    pub fn put(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf, StoreError> {
        self.put_with(name, |file| {
            file.write_all(contents.as_ref())
                .map_err(|error| StoreError::Io { path: self.path.join(name), error })
        })
    }

    /// The same of a file that `write` writes piece by piece.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it could not be written, and what `write` fails with.
    pub fn put_with(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<(), StoreError>,
    ) -> Result<PathBuf, StoreError> {
        let target = self.path.join(name);
        let unfinished = self.path.join(format!(".{name}.unfinished"));
        let named = |error| StoreError::Io { path: target.clone(), error };
        let written = (|| {
            let mut file = BufWriter::new(fs::File::create(&unfinished).map_err(named)?);
            write(&mut file)?;
            file.flush().map_err(named)?;
            fs::rename(&unfinished, &target).map_err(named)
        })();
        if written.is_err() {
            // What could be written is of no use, and would hold the room that the next try needs.
            let _ = fs::remove_file(&unfinished);
        }
        written.map(|()| target)
    }
}
