//! `run.db`: the tables of an empty run, and the mark by which a run is recognised.
//! `docs/run-folder.md` describes the columns.

use std::path::Path;

use rusqlite::Connection;
use throng_observation::run::{
    CrowdRow, EventRow, GeneratorRow, LayerSwitchRow, ParticipantRow, SentRow, SeriesRow, TrackRow,
};
use throng_observation::{ExperienceRow, HoldRow};

use crate::table::create;
use crate::{FORMAT, StoreError, host, info};

/// `PRAGMA application_id`: "thrn"; `file` and the reader recognise a run by it.
pub(crate) const APPLICATION_ID: i32 = 0x7468_726e;

/// The statements that create an empty run.
pub(crate) fn create_all() -> String {
    [
        info::CREATE.to_owned(),
        create::<CrowdRow>(),
        create::<SeriesRow>(),
        create::<SentRow>(),
        create::<ParticipantRow>(),
        create::<TrackRow>(),
        create::<LayerSwitchRow>(),
        create::<GeneratorRow>(),
        create::<EventRow>(),
        host::create_all(),
        create::<ExperienceRow>(),
        create::<HoldRow>(),
    ]
    .concat()
}

/// Rejects a database that throng did not write, and one of a newer format.
pub(crate) fn check_identity(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let pragma = |name| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(|e| StoreError::from_sql(path, e))
    };
    if pragma("application_id")? != i64::from(APPLICATION_ID) {
        let path = path.to_owned();
        let is_empty: bool = db
            .query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))
            .map_err(|error| StoreError::from_sql(&path, error))?;
        return Err(if is_empty {
            // The tables and the mark are one transaction.
            let detail = "it has no tables: the disk was full, or throng was killed, before the \
                          first second was written";
            StoreError::Incomplete { path, detail: detail.into() }
        } else {
            StoreError::NotARun { path, detail: "not written by throng".into() }
        });
    }
    match pragma("user_version")? {
        found if found > i64::from(FORMAT) => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::canary::{CanaryBrowserRow, CanarySecondRow};
    use throng_observation::run::DecodedRow;
    use throng_observation::{
        ChatRow, HttpRequestRow, PlannedCohort, PlannedJoin, PlaybackRow, PlayerRow,
    };

    use super::create_all;
    use crate::table::{columns_of, create};

    /// The tables that not every run has.
    fn create_others() -> String {
        [
            create::<DecodedRow>(),
            create::<CanaryBrowserRow>(),
            create::<CanarySecondRow>(),
            create::<PlaybackRow>(),
            create::<PlayerRow>(),
            create::<HttpRequestRow>(),
            create::<ChatRow>(),
            create::<PlannedCohort>(),
            create::<PlannedJoin>(),
        ]
        .concat()
    }

    /// Folders of all versions are read, so that a column that is renamed, or gone, is a decision.
    #[test]
    fn golden_tables_have_the_columns_that_they_had() {
        let made = (create_all() + &create_others()).replace(';', ";\n").replace(", ", ",\n    ");
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/run.db.sql");
        if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
            std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).unwrap();
            std::fs::write(file, &made).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(file).unwrap_or_default(),
            made,
            "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-store golden"
        );
    }

    #[test]
    fn the_pages_name_the_columns_of_tables_that_not_every_run_has() {
        let pages = [
            include_str!("../../../docs/run-folder.md"),
            include_str!("../../../docs/counters.md"),
        ];
        let columns = [
            columns_of::<DecodedRow>(),
            columns_of::<CanaryBrowserRow>(),
            columns_of::<CanarySecondRow>(),
            columns_of::<PlaybackRow>(),
            columns_of::<PlayerRow>(),
            columns_of::<HttpRequestRow>(),
            columns_of::<ChatRow>(),
            columns_of::<PlannedCohort>(),
            columns_of::<PlannedJoin>(),
        ];
        for column in columns.iter().flatten() {
            let name = format!("`{}`", column.name);
            assert!(pages.iter().any(|page| page.contains(&name)), "{name}");
        }
    }
}
