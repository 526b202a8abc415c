//! How SQLite opens a database: never through a link that lies in the folder, to no file of which
//! the folder's owner knows nothing.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_at_any_of_its_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.db");
        assert!(refuse_links(&path).is_ok());
        for ending in FILES {
            let link = beside(&path, ending);
            std::os::unix::fs::symlink(folder.path().join("absent"), &link).unwrap();
            let error = refuse_links(&path).unwrap_err();
            assert!(matches!(&error, StoreError::Link(named) if *named == link), "{error}");
            std::fs::remove_file(link).unwrap();
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
