//! How SQLite opens a database: never through a link that lies in the folder, to no file of which
//! the folder's owner knows nothing.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// The database, and the files that SQLite has beside it (<https://sqlite.org/tempfiles.html>).
const FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Opens the database at `path`, which is there, to read and write it.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    refuse_links(path)?;
    let real = real(path).map_err(|error| StoreError::Io { path: path.to_owned(), error })?;
    // With NOFOLLOW no part of the path may be a link; the files beside it SQLite never opens
    // through one.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(real, flags).map_err(|error| StoreError::from_sql(path, error))
}

/// What SQLite would say of a link is `unable to open database file`.
pub(crate) fn refuse_links(database: &Path) -> Result<(), StoreError> {
    for ending in FILES {
        let path = beside(database, ending);
        if path.is_symlink() {
            return Err(StoreError::Link(path));
        }
    }
    Ok(())
}

/// Removes a database with the files beside it; of links the links.
pub(crate) fn remove(database: &Path) -> Result<(), StoreError> {
    for ending in FILES {
        let path = beside(database, ending);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::Io { path, error });
            }
            _ => {}
        }
    }
    Ok(())
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The path without the links on the way to its folder, which whoever named it chose.
fn real(path: &Path) -> io::Result<PathBuf> {
    let named = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = named.unwrap_or(Path::new(".")).canonicalize()?;
    Ok(path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name)))
}
