//! Tables for other programs: what the cells of a column are, and the cells of a row.

/// What all cells of a column are, where they are not absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellType {
    /// A whole number.
    Integer,
    /// A number with a fraction.
    Number,
    /// Text.
    Text,
    /// True or false.
    Flag,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name, which has the unit.
    pub name: String,
    /// What its cells are.
    pub holds: CellType,
}

impl TableColumn {
    /// A column of that name.
    #[must_use]
    pub fn new(name: impl Into<String>, holds: CellType) -> Self {
        Self { name: name.into(), holds }
    }
}

/// A cell of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TableCell {
    /// Not known, or there is none.
    #[default]
    Absent,
    /// Of a [`CellType::Integer`].
    Integer(i64),
    /// Of a [`CellType::Number`].
    Number(f64),
    /// Of a [`CellType::Text`].
    Text(String),
    /// Of a [`CellType::Flag`].
    Flag(bool),
}

impl TableCell {
    /// What it is; `None` where it is absent.
    #[must_use]
    pub fn holds(&self) -> Option<CellType> {
        match self {
            Self::Absent => None,
            Self::Integer(_) => Some(CellType::Integer),
            Self::Number(_) => Some(CellType::Number),
            Self::Text(_) => Some(CellType::Text),
            Self::Flag(_) => Some(CellType::Flag),
        }
    }
}

/// Integers that `i64` has all of.
macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for TableCell {
            fn from(number: $integer) -> Self {
                Self::Integer(number.into())
            }
        }
    )*};
}

integers! { u8, u16, u32, i64 }

/// A number that no table can hold (none occurs) is the largest that it can.
impl From<u64> for TableCell {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// What is no number is absent.
impl From<f64> for TableCell {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Absent }
    }
}

impl From<bool> for TableCell {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<TableCell>> From<Option<T>> for TableCell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Absent, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_what_it_was_made_of_and_no_number_is_absent() {
        assert_eq!(TableCell::from(Some(7_u32)), TableCell::Integer(7));
        assert_eq!(TableCell::from(u64::MAX), TableCell::Integer(i64::MAX));
        assert_eq!(TableCell::from("a").holds(), Some(CellType::Text));
        let absent: [TableCell; 3] = [f64::NAN.into(), f64::INFINITY.into(), None::<bool>.into()];
        assert_eq!(absent.map(|cell| cell.holds()), [None; 3]);
    }
}
