//! Tables for other programs as `run.db` has them: their columns follow from the declarations by
//! which the rows are stored. Times are in seconds, as in CSVs; of samples there are quantiles;
//! cohorts and hosts have their names.

use std::path::Path;

use rusqlite::Connection;
use throng_observation::canary::{CanaryBrowserRow, CanarySecondRow};
use throng_observation::host::{HostEvent, HostId, HostInfo, HostNames};
use throng_observation::run::{
    CrowdRow, DecodedRow, EventRow, GeneratorRow, LayerSwitchRow, SentRow, TrackRow,
};
use throng_observation::{
    CellType, ChatRow, ExperienceRow, HoldRow, HttpRequestRow, SENDER_CLOCK_EVENT, TableCell,
    TableColumn,
};

use crate::cells::{Binder, Exported};
use crate::reader::at_one_moment;
use crate::table::{self, Column, Stored, columns_of, list};
use crate::{StoreError, info};

/// Takes the cells of a row, and says whether it wants another one.
type Take<'a> = dyn FnMut(Vec<TableCell>) -> bool + 'a;

/// Declares the tables that are exported as they are stored.
macro_rules! stored_tables {
    ($($(#[doc = $about:literal])+ $table:ident: $row:ty;)+) => {
        /// A table that is exported as it is stored; `docs/run-folder.md` has its columns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StoredTable {
            $( $(#[doc = $about])+ $table, )+
        }

        impl StoredTable {
            /// All of them.
            pub const ALL: &'static [Self] = &[$( Self::$table, )+];

            /// Its name in `run.db`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $( Self::$table => <$row as Stored>::TABLE, )+ }
            }

            /// Its columns, as it is exported.
            #[must_use]
            pub fn columns(self) -> Vec<TableColumn> {
                match self { $( Self::$table => exported_columns::<$row>(), )+ }
            }

            fn has_rows(self, db: &Connection) -> rusqlite::Result<bool> {
                match self { $( Self::$table => table::has_rows::<$row>(db), )+ }
            }

            fn each(
                self,
                db: &Connection,
                known: &Known,
                take: &mut Take<'_>,
            ) -> rusqlite::Result<()> {
                match self { $( Self::$table => each_row::<$row>(db, known, take), )+ }
            }
        }
    };
}

stored_tables! {
    /// The crowd by second and cohort.
    Crowd: CrowdRow;
    /// User-seconds by second and cohort.
    Experience: ExperienceRow;
    /// Received tracks over their life.
    Tracks: TrackRow;
    /// Sent tracks by second, cohort and kind.
    Sent: SentRow;
    /// Changes of layers.
    LayerSwitches: LayerSwitchRow;
    /// Participants of a chat by second and cohort.
    Chat: ChatRow;
    /// Requests of players by URI and status.
    HttpRequests: HttpRequestRow;
    /// The loads that a search held.
    Holds: HoldRow;
    /// Events of the run.
    Events: EventRow;
    /// Events of watched hosts.
    HostEvents: HostEvent;
    /// Tapped tracks as they were decoded, by second.
    Decoded: DecodedRow;
    /// Browsers among the crowd.
    CanaryBrowsers: CanaryBrowserRow;
    /// What these measured, by second.
    Canary: CanarySecondRow;
    /// The generator's health by second and thread.
    Generator: GeneratorRow;
}

/// The tables that have rows.
pub(crate) fn with_rows(path: &Path) -> Result<Vec<StoredTable>, StoreError> {
    at_one_moment(path, |db| {
        let mut tables = Vec::new();
        for table in StoredTable::ALL {
            if table.has_rows(db)? {
                tables.push(*table);
            }
        }
        Ok(tables)
    })
}

/// Calls `take` with the rows of `table` until it has enough.
pub(crate) fn each(path: &Path, table: StoredTable, take: &mut Take<'_>) -> Result<(), StoreError> {
    at_one_moment(path, |db| table.each(db, &Known::read(db)?, take))
}

/// What is known of a run by which its rows are exported.
struct Known {
    /// Names of the cohorts by number.
    cohorts: Vec<String>,
    /// Names of the watched hosts.
    hosts: HostNames,
    has_wrong_sender_clock: bool,
}

impl Known {
    fn read(db: &Connection) -> rusqlite::Result<Self> {
        let found = "SELECT EXISTS (SELECT 1 FROM event WHERE kind = ?1)";
        Ok(Self {
            cohorts: info::outline(db)?.info.cohorts,
            hosts: HostNames::of(&list::<HostInfo>(db)?),
            has_wrong_sender_clock: db.query_row(found, [SENDER_CLOCK_EVENT], |row| row.get(0))?,
        })
    }

    /// The name of a cohort; one without a name keeps its number.
    fn cohort(&self, number: i64) -> TableCell {
        let name = usize::try_from(number).ok().and_then(|at| self.cohorts.get(at));
        name.cloned().unwrap_or_else(|| number.to_string()).into()
    }

    fn host(&self, number: i64) -> TableCell {
        u8::try_from(number).ok().map(|id| self.hosts.name(HostId(id))).into()
    }
}

/// What becomes of a stored column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The same.
    Same(CellType),
    /// Its number becomes the cohort's name.
    Cohort,
    /// Its number becomes the host's name.
    Host,
    /// Microseconds become seconds.
    Seconds,
    /// Its samples become their number and quantiles, those of microseconds in milliseconds.
    Samples,
}

impl Form {
    fn of(column: &Column) -> Self {
        match (column.sql_type, column.name) {
            ("BLOB", _) => Self::Samples,
            ("INTEGER", "cohort") => Self::Cohort,
            ("INTEGER", "host") => Self::Host,
            ("INTEGER", _) if column.is_flag => Self::Same(CellType::Flag),
            ("INTEGER", name) if name.ends_with(MICROSECONDS) => Self::Seconds,
            ("INTEGER", _) => Self::Same(CellType::Integer),
            ("TEXT", _) => Self::Same(CellType::Text),
            // REAL and NUMERIC.
            _ => Self::Same(CellType::Number),
        }
    }

    /// The columns of a column of that name.
    fn columns(self, name: &'static str) -> Vec<TableColumn> {
        let stem = name.strip_suffix(MICROSECONDS);
        match self {
            Self::Same(holds) => vec![TableColumn::new(name, holds)],
            Self::Cohort | Self::Host => vec![TableColumn::new(name, CellType::Text)],
            Self::Seconds => {
                vec![TableColumn::new(format!("{}_s", stem.unwrap_or(name)), CellType::Number)]
            }
            Self::Samples => {
                let count = format!("{}_count", stem.unwrap_or(name));
                let of = stem.map_or_else(|| name.to_owned(), |stem| format!("{stem}_ms"));
                let quantiles = ["p50", "p95", "p99", "max"]
                    .map(|which| TableColumn::new(format!("{of}_{which}"), CellType::Number));
                [TableColumn::new(count, CellType::Integer)].into_iter().chain(quantiles).collect()
            }
        }
    }

    /// Adds the cells of such a column of that name.
    fn cells(self, name: &str, value: Exported, known: &Known, out: &mut Vec<TableCell>) {
        match (self, value) {
            (_, Exported::Samples(samples)) => {
                let scale = if name.ends_with(MICROSECONDS) { 1e3 } else { 1.0 };
                out.push(samples.count().into());
                let quantiles = samples
                    .quantiles(scale)
                    .map_or([None; 4], |of| [of.p50, of.p95, of.p99, of.max].map(Some));
                out.extend(quantiles.map(TableCell::from));
            }
            (Self::Cohort, Exported::Cell(TableCell::Integer(number))) => {
                out.push(known.cohort(number));
            }
            (Self::Host, Exported::Cell(TableCell::Integer(number))) => {
                out.push(known.host(number));
            }
            (Self::Seconds, Exported::Cell(TableCell::Integer(us))) => {
                out.push((us as f64 / 1e6).into());
            }
            (_, Exported::Cell(cell)) => out.push(cell),
        }
    }
}

/// What the name of a time ends in.
const MICROSECONDS: &str = "_us";

fn exported_columns<T: Stored>() -> Vec<TableColumn> {
    columns_of::<T>().iter().flat_map(|column| Form::of(column).columns(column.name)).collect()
}

fn each_row<T: Stored>(
    db: &Connection,
    known: &Known,
    take: &mut Take<'_>,
) -> rusqlite::Result<()> {
    let forms: Vec<_> =
        columns_of::<T>().iter().map(|column| (Form::of(column), column.name)).collect();
    let mut failed = None;
    table::each(
        db,
        T::ORDER,
        |_| None,
        |mut row: T| {
            if known.has_wrong_sender_clock {
                row.withdraw_sender_clock();
            }
            let (mut values, mut cells) = (Vec::with_capacity(forms.len()), Vec::new());
            failed = row.bind(&mut Binder::Exported(&mut values)).err();
            for ((form, name), value) in forms.iter().zip(values) {
                form.cells(name, value, known, &mut cells);
            }
            failed.is_none() && take(cells)
        },
    )?;
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
#[path = "exported_tests.rs"]
mod tests;
