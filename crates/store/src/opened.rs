//! How SQLite opens a database: never through a link that lies in the folder, to no file of which
//! the folder's owner knows nothing, and no pipe, which it would wait for.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// The database, and the files that SQLite has beside it (<https://sqlite.org/tempfiles.html>).
const FILES: [&str; 4] = ["", "-wal", "-shm", JOURNAL];
const JOURNAL: &str = "-journal";

/// What a journal ends with that names a file: that of a transaction over several databases
/// (<https://sqlite.org/atomiccommit.html>, 5).
const NAMES_A_FILE: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Opens the database at `path`, which is there, to read and write it.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    refuse_links_and_pipes(path)?;
    if names_a_file(&beside(path, JOURNAL)) {
        let detail = "its journal names a file, which may be anywhere".to_owned();
        return Err(StoreError::NotARun { path: path.to_owned(), detail });
    }
    let real = real(path).map_err(|error| StoreError::Io { path: path.to_owned(), error })?;
    // With NOFOLLOW no part of the path may be a link; the files beside it SQLite never opens
    // through one.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let named = |error| StoreError::from_sql(path, error);
    let database = Connection::open_with_flags(real, flags).map_err(named)?;
    // A run has only tables. A view in the place of one may be a query without an end, a trigger
    // writes what nobody asked for; what the file says of its own kinds need not be true.
    for kind in [
        DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
        DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
        DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    ] {
        database.set_db_config(kind, false).map_err(named)?;
    }
    Ok(database)
}

/// What SQLite would say of a link is `unable to open database file`; at a pipe, such as one in the
/// place of a journal, it waits for whoever writes to it. A folder it refuses itself.
pub(crate) fn refuse_links_and_pipes(database: &Path) -> Result<(), StoreError> {
    for ending in FILES {
        let path = beside(database, ending);
        let found = path.symlink_metadata();
        if found.is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Err(StoreError::LinkOrPipe(path));
        }
    }
    Ok(())
}

/// Whether a journal names a file: SQLite opens that, wherever it is, and waits where it is a pipe.
/// throng writes into no two databases at once.
fn names_a_file(journal: &Path) -> bool {
    let ending = || {
        let mut file = throng_folder::read(journal)?;
        let mut ending = [0; NAMES_A_FILE.len()];
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut ending)?;
        Ok::<_, io::Error>(ending)
    };
    ending().is_ok_and(|ending| ending == NAMES_A_FILE)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_or_a_pipe_at_any_of_its_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.db");
        assert!(refuse_links_and_pipes(&path).is_ok());
        for ending in FILES {
            let planted = beside(&path, ending);
            let is_refused = || {
                let error = refuse_links_and_pipes(&path).unwrap_err();
                let is_it = matches!(&error, StoreError::LinkOrPipe(named) if *named == planted);
                assert!(is_it, "{error}");
                std::fs::remove_file(&planted).unwrap();
            };
            std::os::unix::fs::symlink(folder.path().join("absent"), &planted).unwrap();
            is_refused();
            let made = std::process::Command::new("mkfifo").arg(&planted).status();
            assert!(made.unwrap().success());
            is_refused();
        }
    }

    #[test]
    fn a_journal_that_names_a_file_is_not_played_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
        for (ending, is_refused) in [(NAMES_A_FILE, true), ([0; 8], false)] {
            let name = b"/tmp/pipe-mj0000009AB".as_slice();
            std::fs::write(beside(&path, JOURNAL), [name, &ending].concat()).unwrap();
            let said = open(&path).err().map(|error| error.to_string());
            assert_eq!(said.is_some_and(|said| said.contains("names a file")), is_refused);
        }
    }

    #[test]
    fn views_and_triggers_of_a_file_are_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.db");
        let planted = "CREATE TABLE a (b); CREATE VIEW v AS SELECT 1 AS b;
             CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END;";
        Connection::open(&path).unwrap().execute_batch(planted).unwrap();
        let database = open(&path).unwrap();
        database.execute_batch("INSERT INTO a VALUES (1)").unwrap();
        let number = |query: &str| database.query_row(query, [], |row| row.get::<_, i64>(0));
        assert_eq!(number("SELECT count(*) FROM a").unwrap(), 1);
        let error = number("SELECT b FROM v").unwrap_err().to_string();
        assert!(error.contains("prohibited"), "{error}");
    }
}
