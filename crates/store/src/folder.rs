//! The folder: creating, reading, and writing the report's files into it.

use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use throng_folder::{AtWork, Folder, is_at_work, unfinished};
use throng_observation::run::{DecodedRow, Ending, EventRow, Row, RunData, RunInfo};
use throng_observation::{HttpRequestRow, RowSelector, RunPlan, TableCell};

use crate::table::list;
use crate::{
    RebuiltRun, RunWriter, StoreError, StoredTable, Table, decoded, exported, opened, reader,
    selected,
};

/// The format of `run.db` that this version writes, and the newest that it reads; it reads all
/// earlier ones. It rises when a column gets another name, which an earlier version takes for
/// damage otherwise; a column that is added is none of its business.
pub const FORMAT: u32 = 2;

/// The database's name inside a run folder.
pub(crate) const DATABASE: &str = "run.db";

/// Makes a folder, and those above it that are missing, which only its owner may enter: what a run
/// sees of a server may be nobody else's business. One that is there stays as it is.
///
/// # Errors
/// When it could not be made.
pub fn create_private(path: impl AsRef<Path>) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a folder that is not there yet, as [`create_private`] does.
///
/// # Errors
/// When it could not be made; of kind `AlreadyExists` where something has its name.
pub fn create_new_private(path: impl AsRef<Path>) -> std::io::Result<()> {
    let path = path.as_ref();
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        create_private(above)?;
    }
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// The database of the run at `path`.
fn database(path: &Path) -> Result<PathBuf, StoreError> {
    if !path.is_dir() {
        return Err(StoreError::NoFolder(path.to_owned()));
    }
    let database = path.join(DATABASE);
    opened::refuse_links_and_pipes(&database)?;
    if database.is_file() { Ok(database) } else { Err(StoreError::NoRun(path.to_owned())) }
}

/// Reads the run at `path`, and whether it is in progress.
fn in_progress(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<RunData, StoreError>,
) -> Result<RunData, StoreError> {
    let database = database(path)?;
    // Before it is read: one that ends meanwhile has its ending.
    let is_written = is_at_work(path);
    let run = read(&database)?;
    let in_progress = is_written && run.ending == Ending::Unfinished;
    Ok(RunData { in_progress, ..run })
}

/// Creates the empty file atomically, so that of two writers with the same name only one succeeds.
fn claim(database: &Path, taken: impl FnOnce() -> StoreError) -> Result<(), StoreError> {
    opened::refuse_links_and_pipes(database)?;
    match fs::File::options().write(true).create_new(true).open(database) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(taken()),
        Err(error) => Err(StoreError::Io { path: database.to_owned(), error }),
    }
}

/// A single file such as `host.db`: what a watcher measured without a crowd, in the tables of a
/// `run.db`.
#[derive(Clone, Copy, Debug)]
pub struct HostFile;

impl HostFile {
    /// Makes the file. `started_at_unix_us` is the wall clock of [`throng_observation::RunTime`] 0,
    /// microseconds since the Unix epoch. Rows go in as [`throng_observation::run::Row::Host`].
    ///
    /// # Errors
    /// [`StoreError::FileExists`] when there is such a file; [`StoreError::Io`],
    /// [`StoreError::DiskFull`] or [`StoreError::Sql`] when it could not be written.
    pub fn create(
        path: impl AsRef<Path>,
        throng_version: &str,
        started_at_unix_us: i64,
    ) -> Result<RunWriter, StoreError> {
        let path = path.as_ref();
        claim(path, || StoreError::FileExists(path.to_owned()))?;
        let info = RunInfo {
            throng_version: throng_version.to_owned(),
            started_at_unix_us,
            ..RunInfo::default()
        };
        // The folder around it is not its own.
        RunWriter::open(path.to_owned(), &info, None)
    }

    /// Reads what was watched: of a finished, an interrupted or a current run.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn read(path: impl AsRef<Path>) -> Result<RunData, StoreError> {
        let path = path.as_ref();
        opened::refuse_links_and_pipes(path)?;
        if !path.is_file() {
            return Err(StoreError::NoFile(path.to_owned()));
        }
        reader::read(path)
    }
}

/// A run folder: `run.db` and the files of the report.
#[derive(Debug)]
pub struct RunFolder {
    folder: Folder,
}

impl RunFolder {
    /// Makes the folder (and those above it, all for their owner alone) with an empty `run.db`, and
    /// opens it for writing.
    ///
    /// `info.format` is ignored; the stored value is always [`FORMAT`].
    ///
    /// # Errors
    /// [`StoreError::Exists`] when it holds a run already; [`StoreError::Io`],
    /// [`StoreError::DiskFull`] or [`StoreError::Sql`] when it could not be written.
    pub fn create(path: impl AsRef<Path>, info: &RunInfo) -> Result<RunWriter, StoreError> {
        let path = path.as_ref();
        create_private(path).map_err(|error| StoreError::Io { path: path.to_owned(), error })?;
        // Before there is a run that one could take for a killed one. Where the file system has no
        // locks, the run is made without.
        let at_work = AtWork::begin(path).ok();
        let database = path.join(DATABASE);
        claim(&database, || StoreError::Exists(path.to_owned()))?;
        RunWriter::open(database, info, at_work)
    }

    /// Begins the `run.db` of an unfinished run again, for the rows of its crowd; what else it has
    /// stays, and of its events those that `keeps` says.
    ///
    /// # Errors
    /// As [`Self::read`]; also where another process uses it.
    pub fn again(
        path: impl AsRef<Path>,
        keeps: impl Fn(&EventRow) -> bool,
    ) -> Result<RebuiltRun, StoreError> {
        RebuiltRun::begin(database(path.as_ref())?, keeps)
    }

    /// Reads a whole run: finished, interrupted or current.
    ///
    /// # Errors
    /// See the variants of [`StoreError`]: no such folder, no run in it, not a run, a newer format,
    /// damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<RunData, StoreError> {
        in_progress(path.as_ref(), reader::read)
    }

    /// Reads a run for a report in the memory that the report needs: rows that `selector` does not
    /// keep one by one are added up as they are read. The addresses of participants are left out.
    /// Folders of earlier versions have no plan: `older_plan` makes it of the scenario.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn read_selected(
        path: impl AsRef<Path>,
        selector: &mut dyn RowSelector,
        older_plan: impl FnOnce(&str) -> Option<RunPlan>,
    ) -> Result<RunData, StoreError> {
        let path = path.as_ref();
        in_progress(path, |database| selected::read(database, selector, older_plan))
    }

    /// Reads the run's information and the steps of its search, and no other rows.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn outline(path: impl AsRef<Path>) -> Result<RunData, StoreError> {
        in_progress(path.as_ref(), reader::outline)
    }

    /// Reads the run's information, its crowd, events and holds: what the rows of its other tables
    /// are shown with, in memory that depends little on the length of the run.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn context(path: impl AsRef<Path>) -> Result<RunData, StoreError> {
        in_progress(path.as_ref(), reader::context)
    }

    /// The tables that are exported as they are stored and have rows.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn stored_tables(path: impl AsRef<Path>) -> Result<Vec<StoredTable>, StoreError> {
        exported::with_rows(&database(path.as_ref())?)
    }

    /// Calls `each` with the rows of a table that is exported as it is stored, one after the other,
    /// until it returns that it has enough; see [`StoredTable::columns`].
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn export(
        path: impl AsRef<Path>,
        table: StoredTable,
        mut each: impl FnMut(Vec<TableCell>) -> bool,
    ) -> Result<(), StoreError> {
        exported::each(&database(path.as_ref())?, table, &mut each)
    }

    /// Whether a table has rows; [`Table::HostSamples`], whether there are samples.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn has_rows(path: impl AsRef<Path>, table: Table) -> Result<bool, StoreError> {
        selected::has_rows(&database(path.as_ref())?, table)
    }

    /// The results of decoding the run's tapped tracks.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn decoded(path: impl AsRef<Path>) -> Result<Vec<DecodedRow>, StoreError> {
        reader::at_one_moment(&database(path.as_ref())?, list)
    }

    /// The requests of the run's players by URI and status, those with the most requests first.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn http_requests(path: impl AsRef<Path>) -> Result<Vec<HttpRequestRow>, StoreError> {
        reader::at_one_moment(&database(path.as_ref())?, list)
    }

    /// Calls `each` with the rows of a table, one after the other, until it returns that it has
    /// enough.
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

    /// Adds the results of decoding tapped tracks to the run at `path`, during or after it; rows of
    /// the same second and track are replaced.
    ///
    /// # Errors
    /// As [`RunFolder::read`].
    pub fn add_decoded(path: impl AsRef<Path>, rows: &[DecodedRow]) -> Result<(), StoreError> {
        let path = path.as_ref();
        let database = path.join(DATABASE);
        opened::refuse_links_and_pipes(&database)?;
        if !database.is_file() {
            return Err(StoreError::NoRun(path.to_owned()));
        }
        decoded::add(&database, rows)
    }

    /// An existing folder, to put files into.
    ///
    /// # Errors
    /// [`StoreError::NoFolder`] when there is none.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        if !path.is_dir() {
            return Err(StoreError::NoFolder(path));
        }
        let folder = Folder::open(&path).map_err(|error| StoreError::Io { path, error })?;
        Ok(Self { folder })
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file such as `summary.json` or `report.html` completely or not at all: under
    /// another name first, then renamed, so that a reader never gets half a report and a full disk
    /// leaves the earlier one. What a link of either name leads to stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it could not be written.
    pub fn put(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf, StoreError> {
        self.put_with(name, |file| {
            file.write_all(contents.as_ref())
                .map_err(|error| StoreError::Io { path: self.path().join(name), error })
        })
    }

    /// The same for a file that `write` writes piece by piece.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it could not be written, and what `write` fails with.
    pub fn put_with(
        &self,
        name: &str,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), StoreError>,
    ) -> Result<PathBuf, StoreError> {
        let target = self.path().join(name);
        let unfinished = unfinished(name);
        let named = |error| StoreError::Io { path: target.clone(), error };
        let written = (|| {
            let mut file = BufWriter::new(self.folder.create(&unfinished).map_err(named)?);
            write(&mut file)?;
            file.flush().map_err(named)?;
            self.folder.rename(&unfinished, name).map_err(named)
        })();
        if written.is_err() {
            // A partial file is of no use and takes the disk space that the next attempt needs.
            let _ = self.folder.remove(&unfinished);
        }
        written.map(|()| target)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_run_folder_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("runs/today");
        drop(RunFolder::create(&folder, &RunInfo::default()).unwrap());
        for made in [folder.as_path(), &place.path().join("runs")] {
            let mode = fs::metadata(made).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", made.display());
        }
    }
}
