//! Follows a growing file that may appear late, be rotated, be truncated, or vanish.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Maximum number of bytes read in one go; the rest is read the next time.
const READ_BYTES_MAX: usize = 4 << 20;
/// When the reader falls this far behind, it skips to near the end of the file: memory stays
/// bounded, and current lines matter more than old ones.
const BEHIND_BYTES_MAX: u64 = 64 << 20;

/// A part of a file's content, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// Its next bytes.
    Bytes(&'a [u8]),
    /// The file was replaced or truncated, or part of it was skipped: what follows does not
    /// complete an unfinished line.
    Gap,
}

/// The result of one read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The file was replaced or truncated.
    pub ended: bool,
    /// Bytes skipped because the file grew faster than it could be read.
    pub skipped_bytes: u64,
    /// Why the file cannot be read; set once for each new reason.
    pub trouble: Option<String>,
    /// The file can be read again after an error.
    pub recovered: bool,
}

/// Follows one file by name.
#[derive(Debug)]
pub struct FileTail {
    path: PathBuf,
    file: Option<Open>,
    /// Whether an existing file is read from its end: its old content does not belong to the run.
    skip_past: bool,
    trouble: Option<String>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    file: File,
    identity: (u64, u64),
    offset: u64,
}

impl FileTail {
    /// Follows the file from its end, or from its beginning if it does not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            file: None,
            skip_past: true,
            trouble: None,
            buffer: vec![0; 64 * 1024],
        }
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what has been written since the last call.
    pub fn read(&mut self, mut each: impl FnMut(Chunk<'_>)) -> Progress {
        let mut progress = Progress::default();
        let mut budget = READ_BYTES_MAX;
        let result = self.follow(&mut budget, &mut progress, &mut each);
        match result {
            Ok(()) => progress.recovered = self.trouble.take().is_some(),
            Err(reason) => {
                if self.trouble.as_ref() != Some(&reason) {
                    progress.trouble = Some(reason.clone());
                }
                self.trouble = Some(reason);
            }
        }
        // Files created from here on were written during the run.
        self.skip_past = false;
        progress
    }

    fn follow(
        &mut self,
        budget: &mut usize,
        progress: &mut Progress,
        each: &mut impl FnMut(Chunk<'_>),
    ) -> Result<(), String> {
        // Read the old file to its end before the new one: the server writes to a rotated log until
        // it is asked to reopen it.
        self.read_open(budget, progress, each)?;
        let there = std::fs::metadata(&self.path);
        let replaced = match (&there, &self.file) {
            (Ok(there), Some(open)) => open.identity != (there.dev(), there.ino()),
            (Ok(_), None) => true,
            (Err(error), _) if error.kind() == ErrorKind::NotFound => {
                return Err(format!("{}: does not exist yet; waiting for it", self.path.display()));
            }
            (Err(error), _) => return Err(self.in_the_way(error)),
        };
        if replaced && *budget > 0 {
            progress.ended = self.file.take().is_some();
            if progress.ended {
                each(Chunk::Gap);
            }
            self.file = Some(self.open()?);
            self.read_open(budget, progress, each)?;
        }
        Ok(())
    }

    fn open(&self) -> Result<Open, String> {
        // Non-blocking, because opening a named pipe blocks until another process writes.
        let not_blocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(not_blocking)
            .open(&self.path)
            .map_err(|error| self.in_the_way(&error))?;
        let about = file.metadata().map_err(|error| self.in_the_way(&error))?;
        if !about.is_file() {
            return Err(format!(
                "{}: not a regular file; name the log file itself",
                self.path.display()
            ));
        }
        let offset = if self.skip_past { about.len() } else { 0 };
        Ok(Open { file, identity: (about.dev(), about.ino()), offset })
    }

    fn in_the_way(&self, error: &std::io::Error) -> String {
        let help = match error.kind() {
            ErrorKind::PermissionDenied => {
                "; give the watcher's user read access (often by the group `adm`)"
            }
            _ => "",
        };
        format!("{}: {error}{help}", self.path.display())
    }

    fn read_open(
        &mut self,
        budget: &mut usize,
        progress: &mut Progress,
        each: &mut impl FnMut(Chunk<'_>),
    ) -> Result<(), String> {
        let Some(open) = &mut self.file else { return Ok(()) };
        let size = open.file.metadata().map_or(open.offset, |about| about.len());
        if size < open.offset {
            // Truncated in place (logrotate's copytruncate): everything is new.
            open.offset = 0;
            progress.ended = true;
            each(Chunk::Gap);
        }
        if size - open.offset > BEHIND_BYTES_MAX {
            let near_end = size - READ_BYTES_MAX as u64;
            progress.skipped_bytes += near_end - open.offset;
            open.offset = near_end;
            each(Chunk::Gap);
        }
        while *budget > 0 {
            let room = self.buffer.len().min(*budget);
            let Some(buffer) = self.buffer.get_mut(..room) else { break };
            match open.file.read_at(buffer, open.offset) {
                Ok(0) => break,
                Ok(count) => {
                    each(Chunk::Bytes(buffer.get(..count).unwrap_or_default()));
                    open.offset += count as u64;
                    *budget -= count;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let reason = format!("{}: {error}", self.path.display());
                    self.file = None;
                    each(Chunk::Gap);
                    return Err(reason);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
