//! Tables defined by their rows: each row type names its columns once; creating, writing and
//! reading follow from that.

use std::collections::HashSet;

use rusqlite::{Connection, Row, Transaction};
use throng_observation::Counters;

use crate::cells::{Binder, Cell, Cells};

/// A column: its name and its declaration.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) sql_type: &'static str,
    /// Whether it is true or false.
    pub(crate) is_flag: bool,
    declaration: String,
    /// What is read from a folder of an earlier version, which lacks the column: an expression of
    /// SQL. Without one, a file that lacks it is damaged.
    older: Option<&'static str>,
    part: Part,
}

/// What of a row a column has: a reader of many rows may leave sums or samples out.
pub(crate) enum Part {
    /// What row it is, and its counts of people and tracks.
    Head,
    /// A sum over people or tracks.
    Sum,
    /// Samples of them; where these are left out, this expression of SQL is read instead.
    Samples(&'static str),
}

impl Column {
    pub(crate) fn new<T: Cell>(name: &'static str) -> Self {
        let null = if T::NULLABLE { "" } else { " NOT NULL" };
        let declaration = format!("{name} {}{null}", T::SQL_TYPE);
        Self {
            name,
            sql_type: T::SQL_TYPE,
            is_flag: T::IS_FLAG,
            declaration,
            older: None,
            part: T::PART,
        }
    }

    /// A column that may hold NULL, of a type of SQL that no [`Cell`] has.
    pub(crate) fn declared(name: &'static str, sql_type: &'static str) -> Self {
        let declaration = format!("{name} {sql_type}");
        Self { name, sql_type, is_flag: false, declaration, older: None, part: Part::Head }
    }

    /// The column, which came later than its table.
    pub(crate) fn or(self, older: &'static str) -> Self {
        Self { older: Some(older), ..self }
    }

    /// The column, as such a part of a row.
    pub(crate) fn part(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// What is read in its place by who wants no samples.
    pub(crate) fn without_samples(&self) -> Option<&'static str> {
        match self.part {
            Part::Samples(absent) => Some(absent),
            Part::Head | Part::Sum => None,
        }
    }

    /// What is read in its place by who wants no sums.
    pub(crate) fn without_sums(&self) -> Option<&'static str> {
        match self.part {
            Part::Sum => Some("0"),
            Part::Head | Part::Samples(_) => None,
        }
    }
}

/// Adjacent columns: a row, or a part of one. [`columns!`] implements it.
pub(crate) trait Columns: Sized {
    fn columns(out: &mut Vec<Column>);
    fn bind(&self, to: &mut Binder<'_, '_>) -> rusqlite::Result<()>;
    fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<Self>;
}

/// The columns of a field that needs more than one cell.
pub(crate) trait Group<T> {
    fn columns(out: &mut Vec<Column>);
    fn bind(field: &T, to: &mut Binder<'_, '_>) -> rusqlite::Result<()>;
    fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<T>;
}

/// A field whose type has columns of its own.
pub(crate) struct Nested;

impl<T: Columns> Group<T> for Nested {
    fn columns(out: &mut Vec<Column>) {
        T::columns(out);
    }
    fn bind(field: &T, to: &mut Binder<'_, '_>) -> rusqlite::Result<()> {
        field.bind(to)
    }
    fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<T> {
        T::read(from)
    }
}

/// The sums of a family, which have a column each.
pub(crate) struct Sums;

impl<T: Counters> Group<T> for Sums {
    fn columns(out: &mut Vec<Column>) {
        out.extend(T::COUNTERS.iter().map(|counter| {
            let column = Column::new::<i64>(counter.name).part(Part::Sum);
            match counter.was {
                "" if counter.came_later() => column.or("0"),
                "" => column,
                was => column.or(was),
            }
        }));
    }
    fn bind(field: &T, to: &mut Binder<'_, '_>) -> rusqlite::Result<()> {
        field.sums().try_for_each(|(_, sum)| to.put(&sum))
    }
    fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<T> {
        <T as Counters>::read(|| from.take())
    }
}

/// A row of a table.
pub(crate) trait Stored: Columns {
    const TABLE: &'static str;
    /// Whether workers of a fleet send such rows, which are read from the bus again where `run.db`
    /// is made anew, or a coordinator writes them itself.
    const IS_OF_CROWD: bool;
    /// The columns of its primary key, separated by commas; empty where rows are only appended.
    const KEY: &'static str = "";
    /// The order in which rows are read: that of the key, unless it says otherwise.
    const ORDER: &'static str = Self::KEY;
    /// Whether not every folder has the table: those of earlier versions, or of runs without such
    /// rows, which read as none.
    const MAY_BE_ABSENT: bool = true;

    /// Takes back what a sender's clock said that was found wrong later.
    fn withdraw_sender_clock(&mut self) {}
}

/// Implements [`Columns`]: the fields of a row in the order of their columns. A column has the name
/// of its field or, after `=`, the name given there; after `or` is what folders of earlier versions
/// have instead. `as` names the [`Group`] of a field that needs more than one cell.
macro_rules! columns {
    ($row:ty {
        $($field:ident $(= $name:literal)? $(or $older:literal)? $(as $group:ty)?),* $(,)?
    }) => {
        impl $crate::table::Columns for $row {
            fn columns(out: &mut Vec<$crate::table::Column>) {
                $( columns!(@declare out, $field $(= $name)? $(or $older)? $(as $group)?); )*
            }
            fn bind(&self, to: &mut $crate::cells::Binder<'_, '_>) -> rusqlite::Result<()> {
                $( columns!(@bind to, &self.$field $(, $group)?)?; )*
                Ok(())
            }
            fn read(from: &mut $crate::cells::Cells<'_, '_>) -> rusqlite::Result<Self> {
                Ok(Self { $( $field: columns!(@read from $(, $group)?)? ),* })
            }
        }
    };
    (@declare $out:ident, $field:ident) => {
        columns!(@column $out, $field, stringify!($field), None)
    };
    (@declare $out:ident, $field:ident = $name:literal) => {
        columns!(@column $out, $field, $name, None)
    };
    (@declare $out:ident, $field:ident or $older:literal) => {
        columns!(@column $out, $field, stringify!($field), Some($older))
    };
    (@declare $out:ident, $field:ident = $name:literal or $older:literal) => {
        columns!(@column $out, $field, $name, Some($older))
    };
    (@declare $out:ident, $field:ident as $group:ty) => {
        $crate::table::group::<Self, _, $group>($out, |row| &row.$field)
    };
    (@column $out:ident, $field:ident, $name:expr, $older:expr) => {
        $crate::table::column::<Self, _>($out, $name, $older, |row| &row.$field)
    };
    (@bind $to:ident, $value:expr) => { $to.put($value) };
    (@bind $to:ident, $value:expr, $group:ty) => {
        <$group as $crate::table::Group<_>>::bind($value, $to)
    };
    (@read $from:ident) => { $from.take() };
    (@read $from:ident, $group:ty) => { <$group as $crate::table::Group<_>>::read($from) };
}
pub(crate) use columns;

/// The column of a field; its type follows from the accessor.
pub(crate) fn column<R, T: Cell>(
    out: &mut Vec<Column>,
    name: &'static str,
    older: Option<&'static str>,
    _field: fn(&R) -> &T,
) {
    out.push(Column { older, ..Column::new::<T>(name) });
}

/// The columns of a field that needs more than one cell.
pub(crate) fn group<R, T, G: Group<T>>(out: &mut Vec<Column>, _field: fn(&R) -> &T) {
    G::columns(out);
}

/// Implements [`Group`] for an array whose elements have a column each.
macro_rules! array_columns {
    ($group:ident: [$cell:ty; $length:expr], $columns:expr) => {
        pub(crate) struct $group;

        impl $crate::table::Group<[$cell; $length]> for $group {
            fn columns(out: &mut Vec<$crate::table::Column>) {
                out.extend($columns);
            }
            fn bind(
                field: &[$cell; $length],
                to: &mut $crate::cells::Binder<'_, '_>,
            ) -> rusqlite::Result<()> {
                field.iter().try_for_each(|cell| to.put(cell))
            }
            fn read(from: &mut $crate::cells::Cells<'_, '_>) -> rusqlite::Result<[$cell; $length]> {
                let mut field = [<$cell>::default(); $length];
                field.iter_mut().try_for_each(|cell| from.take().map(|read| *cell = read))?;
                Ok(field)
            }
        }
    };
}
pub(crate) use array_columns;

/// The columns of `T`, in order.
pub(crate) fn columns_of<T: Columns>() -> Vec<Column> {
    let mut columns = Vec::new();
    T::columns(&mut columns);
    columns
}

/// The statement that creates the table. A table with a key of several columns is ordered by it; a
/// key of one integer is the rowid.
pub(crate) fn create<T: Stored>() -> String {
    let mut parts: Vec<String> =
        columns_of::<T>().into_iter().map(|column| column.declaration).collect();
    if !T::KEY.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", T::KEY));
    }
    let without = if T::KEY.contains(',') { " WITHOUT ROWID" } else { "" };
    format!("CREATE TABLE IF NOT EXISTS {} ({}){without};", T::TABLE, parts.join(", "))
}

/// Makes the table of `T`, unless every run has it.
pub(crate) fn make<T: Stored>(db: &Transaction<'_>) -> rusqlite::Result<()> {
    if T::MAY_BE_ABSENT { db.execute_batch(&create::<T>()) } else { Ok(()) }
}

/// Makes the table of rows of the crowd anew, where there is one: that of an earlier version lacks
/// columns. Other rows stay.
pub(crate) fn renew<T: Stored>(db: &Connection) -> rusqlite::Result<()> {
    let there = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1)";
    if T::IS_OF_CROWD && db.query_row(there, [T::TABLE], |row| row.get(0))? {
        db.execute_batch(&format!("DROP TABLE {}; {}", T::TABLE, create::<T>()))?;
    }
    Ok(())
}

/// Writes `rows`; a row replaces an earlier one with the same key.
pub(crate) fn put<'a, T: Stored + 'a>(
    db: &Transaction<'_>,
    rows: impl IntoIterator<Item = &'a T>,
) -> rusqlite::Result<()> {
    let names: Vec<_> = columns_of::<T>().iter().map(|column| column.name).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let insert =
        format!("INSERT OR REPLACE INTO {} ({}) VALUES ({marks})", T::TABLE, names.join(", "));
    let mut statement = db.prepare_cached(&insert)?;
    for row in rows {
        row.bind(&mut Binder::new(&mut statement))?;
        statement.raw_execute()?;
    }
    Ok(())
}

/// All rows of the table in their order; none where the folder is of a version without this table.
pub(crate) fn list<T: Stored>(db: &Connection) -> rusqlite::Result<Vec<T>> {
    let mut rows = Vec::new();
    each(
        db,
        T::ORDER,
        |_| None,
        |row| {
            rows.push(row);
            true
        },
    )?;
    Ok(rows)
}

/// Whether the table has rows; none where the folder is of a version without this table.
pub(crate) fn has_rows<T: Stored>(db: &Connection) -> rusqlite::Result<bool> {
    let is_there = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1)";
    if T::MAY_BE_ABSENT && !db.query_row(is_there, [T::TABLE], |row| row.get::<_, bool>(0))? {
        return Ok(false);
    }
    db.query_row(&format!("SELECT EXISTS (SELECT 1 FROM {})", T::TABLE), [], |row| row.get(0))
}

/// Calls `take` with the rows one by one in `order`, until it has enough. `instead` is read in
/// place of a column.
pub(crate) fn each<T: Stored>(
    db: &Connection,
    order: &str,
    instead: impl Fn(&Column) -> Option<&'static str>,
    mut take: impl FnMut(T) -> bool,
) -> rusqlite::Result<()> {
    let found: HashSet<String> = db
        .prepare_cached("SELECT name FROM pragma_table_info(?1)")?
        .query_map([T::TABLE], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if found.is_empty() && T::MAY_BE_ABSENT {
        return Ok(());
    }
    let absent = |column: &Column| column.older.filter(|_| !found.contains(column.name));
    let names: Vec<_> = columns_of::<T>()
        .iter()
        .map(|column| instead(column).or_else(|| absent(column)).unwrap_or(column.name))
        .collect();
    let mut statement =
        db.prepare(&format!("SELECT {} FROM {} ORDER BY {order}", names.join(", "), T::TABLE))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if !take(read(row)?) {
            break;
        }
    }
    Ok(())
}

fn read<T: Columns>(row: &Row<'_>) -> rusqlite::Result<T> {
    T::read(&mut Cells::new(row))
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
