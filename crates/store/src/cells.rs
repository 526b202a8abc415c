//! How SQLite stores each type of a row's field in one column, and how it is read back.

use std::collections::BTreeMap;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, Statement};
use serde::Serialize;
use serde::de::DeserializeOwned;
use throng_observation::canary::BrowserId;
use throng_observation::host::{
    HostEventKind, HostId, ProcessEvent, ProfileMethod, SeriesId, Unit,
};
use throng_observation::run::{CohortId, ParticipantId};
use throng_observation::{
    Codec, Detail, Distribution, HoldOutcome, Layer, MediaKind, Purpose, RequestOutcome, RunTime,
    SubscribePolicy, TableCell, TrackId, Unloaded, VcardPolicy,
};

use crate::table::Part;

/// A type that fits in one column.
pub(crate) trait Cell: Sized {
    /// Its type in SQL.
    const SQL_TYPE: &'static str;
    /// Whether the column may hold NULL.
    const NULLABLE: bool = false;
    /// Whether it is true or false, which SQLite stores as an integer.
    const IS_FLAG: bool = false;
    /// What it is in rows of a second.
    const PART: Part = Part::Head;
    /// The value as SQLite stores it.
    fn to_sql(&self) -> ToSqlOutput<'_>;
    /// Reads the stored value.
    fn from_sql(value: ValueRef<'_>) -> FromSqlResult<Self>;
    /// The value for other programs.
    fn export(&self) -> Exported {
        Exported::Cell(match self.to_sql() {
            ToSqlOutput::Borrowed(value) => of_stored(value),
            ToSqlOutput::Owned(value) => of_stored((&value).into()),
            // The others are no values of rows.
            _ => TableCell::Absent,
        })
    }
}

/// The value of a column for other programs.
pub(crate) enum Exported {
    /// A single one.
    Cell(TableCell),
    /// Samples, of which they get quantiles.
    Samples(Distribution),
}

fn of_stored(value: ValueRef<'_>) -> TableCell {
    match value {
        ValueRef::Null | ValueRef::Blob(_) => TableCell::Absent,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
    }
}

/// Implements [`Cell`] for a type by conversion to and from another one.
macro_rules! cells {
    ($($type:ty as $by:ty, $sql:literal: $to:expr, $from:expr;)*) => {$(
        impl Cell for $type {
            const SQL_TYPE: &'static str = $sql;
            fn to_sql(&self) -> ToSqlOutput<'_> {
                let to: fn(&Self) -> $by = $to;
                ToSqlOutput::Owned(to(self).into())
            }
            fn from_sql(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let from: fn($by) -> FromSqlResult<Self> = $from;
                from(<$by>::column_result(value)?)
            }
        }
    )*};
}

/// The same for integers, and for types that wrap one.
macro_rules! numbers {
    ($($type:ty),*; $($wrapper:ident($inner:ty)),*) => {
        cells! { $($type as i64, "INTEGER": |n| i64::from(*n), |n| number(n);)* }
        cells! {$(
            $wrapper as i64, "INTEGER": |id| i64::from(id.0), |n| number::<$inner>(n).map(Self);
        )*}
    };
}

fn number<T: TryFrom<i64>>(number: i64) -> FromSqlResult<T> {
    T::try_from(number).map_err(|_| FromSqlError::OutOfRange(number))
}

numbers! {
    u8, u16, u32, i64;
    RunTime(i64), ParticipantId(u32), CohortId(u16), TrackId(u16), BrowserId(u16), HostId(u8),
    SeriesId(u32)
}

cells! {
    // SQLite's integers are signed. A larger counter (none occurs) is stored as the maximum, not as
    // a negative number; a negative counter in a damaged file reads as 0.
    u64 as i64, "INTEGER": |n| i64::try_from(*n).unwrap_or(i64::MAX),
        |n| Ok(u64::try_from(n).unwrap_or(0));
    f64 as f64, "REAL": |n| *n, Ok;
    Codec as String, "TEXT": |codec| codec.name().to_owned(), |name| Ok(Codec::from_name(&name));
    Layer as String, "TEXT": |layer| layer.key().to_owned(),
        |key| Ok(Layer::from_key(&key).unwrap_or(Layer::High));
    MediaKind as String, "TEXT": |kind| kind.key().to_owned(),
        |key| word(&key).ok_or(FromSqlError::InvalidType);
    SubscribePolicy as String, "TEXT": |policy| policy.name(),
        |name| SubscribePolicy::from_name(&name).ok_or(FromSqlError::InvalidType);
    VcardPolicy as String, "TEXT": |policy| policy.name().to_owned(),
        |name| VcardPolicy::from_name(&name).ok_or(FromSqlError::InvalidType);
    RequestOutcome as String, "TEXT": |outcome| outcome.key(),
        |key| RequestOutcome::from_key(&key).ok_or(FromSqlError::InvalidType);
    Purpose as String, "TEXT": key, |key| Ok(word(&key).unwrap_or_default());
    HoldOutcome as String, "TEXT": key, |key| Ok(word(&key).unwrap_or_default());
    Unit as String, "TEXT": key, |key| Ok(word(&key).unwrap_or_default());
    // A kind that this version does not know is still an event that the watcher reported.
    HostEventKind as String, "TEXT": key, |key| Ok(word(&key).unwrap_or(HostEventKind::Watcher));
    ProfileMethod as String, "TEXT": key,
        |key| Ok(word(&key).unwrap_or(ProfileMethod::ThreadState));
    BTreeMap<String, String> as String, "TEXT": json, from_json;
    ProcessEvent as String, "TEXT": json, from_json;
    Vec<String> as String, "TEXT": json, from_json;
    Vec<u32> as String, "TEXT": json, from_json;
    Unloaded as String, "TEXT": json, from_json;
}

impl Cell for bool {
    const SQL_TYPE: &'static str = "INTEGER";
    const IS_FLAG: bool = true;
    fn to_sql(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Owned((*self).into())
    }
    fn from_sql(value: ValueRef<'_>) -> FromSqlResult<Self> {
        bool::column_result(value)
    }
    fn export(&self) -> Exported {
        Exported::Cell((*self).into())
    }
}

impl Cell for String {
    const SQL_TYPE: &'static str = "TEXT";
    fn to_sql(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Borrowed(ValueRef::Text(self.as_bytes()))
    }
    fn from_sql(value: ValueRef<'_>) -> FromSqlResult<Self> {
        String::column_result(value)
    }
}

impl Cell for Detail {
    const SQL_TYPE: &'static str = "TEXT";
    fn to_sql(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Borrowed(ValueRef::Text(self.as_bytes()))
    }
    fn from_sql(value: ValueRef<'_>) -> FromSqlResult<Self> {
        String::column_result(value).map(Self::from)
    }
}

/// An empty distribution is NULL, which takes no room.
impl Cell for Distribution {
    const SQL_TYPE: &'static str = "BLOB";
    const NULLABLE: bool = true;
    const PART: Part = Part::Samples("NULL");
    fn to_sql(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Owned(if self.is_empty() { Value::Null } else { Value::Blob(self.to_bytes()) })
    }
    fn from_sql(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_blob_or_null()? {
            None => Ok(Self::new()),
            Some(bytes) => Self::from_bytes(bytes).map_err(FromSqlError::other),
        }
    }
    fn export(&self) -> Exported {
        Exported::Samples(self.clone())
    }
}

impl<T: Cell> Cell for Option<T> {
    const SQL_TYPE: &'static str = T::SQL_TYPE;
    const NULLABLE: bool = true;
    const IS_FLAG: bool = T::IS_FLAG;
    fn to_sql(&self) -> ToSqlOutput<'_> {
        self.as_ref().map_or(ToSqlOutput::Owned(Value::Null), T::to_sql)
    }
    fn from_sql(value: ValueRef<'_>) -> FromSqlResult<Self> {
        if value == ValueRef::Null { Ok(None) } else { T::from_sql(value).map(Some) }
    }
    fn export(&self) -> Exported {
        self.as_ref().map_or(Exported::Cell(TableCell::Absent), T::export)
    }
}

/// The key of an enum's variant, as serde writes it.
fn key(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(key)) => key,
        _ => String::new(),
    }
}

/// The variant of a key; `None` for one that this version does not know.
fn word<T: DeserializeOwned>(key: &str) -> Option<T> {
    serde_json::from_value(current(key).into()).ok()
}

/// The present key for one of an earlier version.
pub(crate) fn current(key: &str) -> &str {
    match key {
        "again" => "retest",
        "contrast" => "dependence_test",
        "cannot_see" => "unreadable",
        "defect" => "internal_error",
        key => key,
    }
}

/// Lists and maps of text and numbers, which JSON can always hold.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the list of cells above calls each conversion with a value"
)]
fn from_json<T: DeserializeOwned>(text: String) -> FromSqlResult<T> {
    serde_json::from_str(&text).map_err(FromSqlError::other)
}

/// Takes the cells of a row, from left to right.
pub(crate) enum Binder<'a, 'c> {
    /// Binds them to the parameters of a statement, of which so many are bound.
    Statement(&'a mut Statement<'c>, usize),
    /// Lists them for other programs.
    Exported(&'a mut Vec<Exported>),
}

impl<'a, 'c> Binder<'a, 'c> {
    pub(crate) fn new(statement: &'a mut Statement<'c>) -> Self {
        Self::Statement(statement, 0)
    }

    pub(crate) fn put(&mut self, cell: &impl Cell) -> rusqlite::Result<()> {
        match self {
            Self::Statement(statement, bound) => {
                *bound += 1;
                statement.raw_bind_parameter(*bound, cell.to_sql())
            }
            Self::Exported(cells) => {
                cells.push(cell.export());
                Ok(())
            }
        }
    }
}

/// Reads the cells of a row, from left to right.
pub(crate) struct Cells<'r, 's> {
    row: &'r Row<'s>,
    read: usize,
}

impl<'r, 's> Cells<'r, 's> {
    pub(crate) fn new(row: &'r Row<'s>) -> Self {
        Self { row, read: 0 }
    }

    pub(crate) fn take<T: Cell>(&mut self) -> rusqlite::Result<T> {
        struct AsCell<T>(T);
        impl<T: Cell> FromSql for AsCell<T> {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                T::from_sql(value).map(Self)
            }
        }
        let index = self.read;
        self.read += 1;
        self.row.get(index).map(|AsCell(cell)| cell)
    }
}
