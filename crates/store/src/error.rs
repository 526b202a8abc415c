//! Errors of a run folder, with what to do about them.

use std::path::PathBuf;

/// Why a run folder could not be made, written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such folder.
    #[error("{}: no such run folder", .0.display())]
    NoFolder(PathBuf),
    /// The folder is there, `run.db` is not.
    #[error("{}: no run.db in this folder, so it is not a run", .0.display())]
    NoRun(PathBuf),
    /// The folder holds a run already; a run is never overwritten.
    #[error("{}: holds a run already; choose another folder", .0.display())]
    Exists(PathBuf),
    /// There is no such file.
    #[error("{}: no such file", .0.display())]
    NoFile(PathBuf),
    /// The file is there already; nothing is overwritten.
    #[error("{}: is there already; choose another name", .0.display())]
    FileExists(PathBuf),
    /// A link, a pipe or a device lies where a file of the run is, or would be: what it leads to is
    /// not throng's.
    #[error("{}: is a link or a pipe, which is not opened: it may lead anywhere", .0.display())]
    LinkOrPipe(PathBuf),
    /// `run.db` is a file, but not a database, or one that throng did not write.
    #[error("{}: not a run.db ({detail})", .path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// It was not written to its end, or is the beginning of a file: nothing of it can be trusted
    /// to be all.
    #[error("{}: incomplete: {detail}", .path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        detail: String,
    },
    /// A newer throng wrote it.
    #[error(
        "{}: format {found}, this throng reads up to {known}; read it with a newer throng",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this version knows.
        known: u32,
    },
    /// The database is damaged: what it holds cannot be trusted.
    #[error("{}: damaged ({detail})", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where and how.
        detail: String,
    },
    /// The disk has no room; what was committed stays readable, and the writer may try again.
    #[error("{}: the disk is full; what was written until now stays readable", .path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder operation failed.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// Any other answer of SQLite.
    #[error("{}: {error}", .path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        error: rusqlite::Error,
    },
}

impl StoreError {
    /// The error for an answer of SQLite about the database at `path`.
    pub(crate) fn from_sql(path: &std::path::Path, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::DiskFull { path },
            Some(Code::NotADatabase) => Self::NotARun { path, detail: error.to_string() },
            Some(Code::DatabaseCorrupt) => match cut(&path) {
                Some(detail) => Self::Incomplete { path, detail },
                None => Self::Corrupt { path, detail: error.to_string() },
            },
            // A file size limit and some full file systems answer with EFBIG or EIO at the write
            // itself.
            Some(Code::SystemIoFailure) if is_failed_write(&error) => Self::DiskFull { path },
            _ => Self::Sql { path, error },
        }
    }
}

fn is_failed_write(error: &rusqlite::Error) -> bool {
    match error {
        // The second is that of the index of the write-ahead log.
        rusqlite::Error::SqliteFailure(cause, _) => matches!(
            cause.extended_code,
            rusqlite::ffi::SQLITE_IOERR_WRITE | rusqlite::ffi::SQLITE_IOERR_SHMSIZE
        ),
        _ => false,
    }
}

/// What a database lacks that is shorter than its own header says; `None` if it is not
/// (<https://sqlite.org/fileformat.html>, 1.3).
fn cut(path: &std::path::Path) -> Option<String> {
    use std::io::Read as _;
    let mut file = throng_folder::read(path).ok()?;
    let has_bytes = file.metadata().ok()?.len();
    let mut head = [0; 32];
    file.read_exact(&mut head).ok()?;
    let page_bytes = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let pages = u32::from_be_bytes([head[28], head[29], head[30], head[31]]);
    let whole_bytes = page_bytes * u64::from(pages);
    (has_bytes < whole_bytes).then(|| {
        format!("the file is cut, as by a full disk: {has_bytes} of its {whole_bytes} bytes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_shorter_than_it_says_is_cut() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Pages of 512 bytes, two of them.
        let mut bytes = vec![0; 1_024];
        bytes[16..18].copy_from_slice(&512_u16.to_be_bytes());
        bytes[28..32].copy_from_slice(&2_u32.to_be_bytes());
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(cut(file.path()), None);
        std::fs::write(file.path(), &bytes[..1_000]).unwrap();
        let said = cut(file.path()).unwrap();
        assert!(said.ends_with("1000 of its 1024 bytes"), "{said}");
    }
}
