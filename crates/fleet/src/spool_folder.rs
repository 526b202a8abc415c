//! The folder in which a worker keeps rows that the bus has not stored, so that they survive its
//! process: a [`spool file`](crate::spool_file) for each part of a run, named after run and worker.
//!
//! Whoever uses a file has it locked. A file that nobody has locked was left by a process that
//! ended: a worker with the same folder hands its rows in, each with the number that it had, so
//! that what was stored before is dropped as stored twice.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bus::is_run_name;
use crate::spool::Batch;
use crate::spool_file::{self, Found, SpoolError, SpoolFile};

/// The ending of the files' names.
const ENDING: &str = "spool";

/// Older files are removed: no bus has their runs any more.
const KEPT_FOR: Duration = Duration::from_hours(24);

/// Confirmed bytes that are worth beginning the file again.
const SHRUNK_FROM: u64 = 256 << 10;

/// Longest torn frame that a killed process leaves: one batch. More than that is damage, whatever
/// it looks like.
const TORN_MAX: u64 = 1 << 20;

/// The folder.
#[derive(Clone, Debug)]
pub struct SpoolFolder {
    path: PathBuf,
    bytes_max: u64,
}

/// A file that an earlier process left.
#[derive(Debug)]
pub struct LeftSpool {
    /// Where it is.
    pub path: PathBuf,
    /// The run's name on the bus.
    pub run: String,
    /// The worker's number in it.
    pub worker: u16,
    /// What it holds.
    pub found: Found,
    /// Keeps others away.
    _locked: File,
}

impl LeftSpool {
    /// What is wrong with it, if it is more than a frame that a killed process left torn.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        let (bytes, batches) = (self.found.torn_bytes, self.found.batches.len());
        (self.found.is_damaged || bytes > TORN_MAX).then(|| {
            format!(
                "{} is damaged: {bytes} bytes after {batches} batches cannot be read",
                self.path.display()
            )
        })
    }

    /// Removes it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

impl SpoolFolder {
    /// The folder, which is made if it is not there; files of it grow to `bytes_max`, together to
    /// four times that.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(path: &Path, bytes_max: usize) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self { path: path.to_owned(), bytes_max: bytes_max as u64 })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins the file of a part.
    ///
    /// # Errors
    /// [`SpoolError`]; those of a full disk are among them, and [`SpoolError::FolderFull`].
    pub fn begin(&self, run: &str, worker: u16) -> Result<KeptSpool, SpoolError> {
        let files = self.files();
        let used: u64 =
            files.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum();
        if used.saturating_add(self.bytes_max) > self.bytes_max.saturating_mul(4) {
            return Err(SpoolError::FolderFull { bytes: used });
        }
        let path = self.path.join(format!("{run}-{worker}.{ENDING}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        let locked =
            file.try_lock().map_err(|error| SpoolError::Io(io::Error::other(error.to_string())));
        match locked.and_then(|()| SpoolFile::open(file)) {
            Ok((file, _)) => Ok(KeptSpool {
                path,
                file,
                bytes_max: self.bytes_max,
                next: 0,
                confirmed: 0,
                lacked: 0,
            }),
            Err(error) => {
                // A file without its first frame is of no use.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Removes the files that no bus wants any more.
    pub fn remove_old(&self) {
        for path in self.files().into_iter().filter(|path| is_old(path)) {
            if let Ok(Some(spool)) = Self::read(&path) {
                let _ = spool.remove();
            }
        }
    }

    /// What an earlier process left in one of [`Self::files`]; `None` if somebody uses it.
    ///
    /// # Errors
    /// What is wrong with a file that is only named like a spool, as a sentence.
    pub fn left_in(path: &Path) -> Result<Option<LeftSpool>, String> {
        Self::read(path).map_err(|error| format!("{} is left alone: {error}", path.display()))
    }

    /// The files whose names are those of spools, in order.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| named(path).is_some()).collect();
        files.sort();
        files
    }

    /// A file that nobody uses; `None` if somebody does.
    fn read(path: &Path) -> Result<Option<LeftSpool>, SpoolError> {
        let Some((run, worker)) = named(path) else { return Ok(None) };
        let mut file = throng_folder::read(path)?;
        if file.try_lock().is_err() {
            return Ok(None);
        }
        // Between the opening and the lock it may have been removed.
        let is_there = fs::metadata(path).is_ok_and(|found| {
            file.metadata()
                .is_ok_and(|opened| (opened.dev(), opened.ino()) == (found.dev(), found.ino()))
        });
        if !is_there {
            return Ok(None);
        }
        let found = spool_file::read(&mut file)?;
        Ok(Some(LeftSpool { path: path.to_owned(), run, worker, found, _locked: file }))
    }
}

/// The run and the worker of a file.
fn named(path: &Path) -> Option<(String, u16)> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?;
    let (run, worker) = name.rsplit_once('-')?;
    Some((run.to_owned(), worker.parse().ok()?)).filter(|(run, _)| is_run_name(run))
}

fn is_old(path: &Path) -> bool {
    let changed = path.metadata().and_then(|found| found.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT_FOR))
}

/// The file of a part that is played.
#[derive(Debug)]
pub struct KeptSpool {
    path: PathBuf,
    file: SpoolFile<File>,
    bytes_max: u64,
    /// The next batch to write.
    next: u64,
    /// Batches below are confirmed in the file.
    confirmed: u64,
    /// Bytes of the batch for which the disk had no room; 0 while it has.
    lacked: usize,
}

impl KeptSpool {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the first batch that the file does not have.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Batches that it holds, and the bus had not stored when that was last looked at.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.next.saturating_sub(self.confirmed)
    }

    /// Writes what has come since the last time: `first` is the first batch that the bus has not
    /// stored, `batches` those from [`Self::next`] on that it has not.
    ///
    /// # Errors
    /// [`SpoolError::Io`] when the disk is full; it may be tried again, and fails until there is
    /// room for the batch that found none. [`SpoolError::FileFull`].
    pub fn take(&mut self, first: u64, batches: &[Batch]) -> Result<(), SpoolError> {
        if first >= self.next {
            // Most batches are stored by the bus before they are looked at here: then nothing is
            // written at all.
            let has_unconfirmed = self.confirmed < self.next;
            match has_unconfirmed {
                // Without a byte it was to begin again before, and the disk was full.
                true if self.file.length() > SHRUNK_FROM || self.file.length() == 0 => {
                    self.file.begin_again(first)?;
                }
                // That the bus has stored everything meanwhile does not say that the disk has room
                // again.
                _ if self.lacked > 0 => self.file.confirm_with_room(first, self.room_to_try())?,
                true => self.file.confirm(first)?,
                false => {}
            }
            (self.next, self.confirmed, self.lacked) = (first, first, 0);
        } else if first > self.confirmed {
            self.file.confirm(first)?;
            self.confirmed = first;
        }
        for batch in batches.iter().filter(|batch| batch.number >= first) {
            if self.file.length().saturating_add(batch.bytes.len() as u64) > self.bytes_max {
                return Err(SpoolError::FileFull { bytes: self.file.length() });
            }
            self.file.push(batch).inspect_err(|_| self.lacked = batch.bytes.len())?;
            self.lacked = 0;
            self.next = batch.number.saturating_add(1);
        }
        Ok(())
    }

    /// What the disk lacked, as far as the file may still grow.
    fn room_to_try(&self) -> usize {
        let left = self.bytes_max.saturating_sub(self.file.length());
        self.lacked.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Writes how the part ended.
    ///
    /// # Errors
    /// [`SpoolError::Io`].
    pub fn end(&mut self, message: &[u8]) -> Result<(), SpoolError> {
        self.file.end(message)
    }

    /// Removes it: the bus has everything, or nobody wants it.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
#[path = "spool_folder_tests.rs"]
mod tests;
