//! Parquet. Rows are gathered by column into row groups of a bounded number of cells, so that
//! memory does not grow with the run.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Stored};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use throng_observation::{CellType, TableCell, TableColumn};

use super::row_writer::RowWriter;

/// Cells of a row group: a cell takes some 10 bytes until its group is written, text more.
const CELLS: usize = 1 << 20;

pub(super) struct Parquet<'w> {
    file: SerializedFileWriter<&'w mut (dyn Write + Send)>,
    columns: Vec<Gathered>,
    /// Gathered rows, and how many make a group.
    rows: usize,
    rows_max: usize,
}

impl<'w> Parquet<'w> {
    pub(super) fn new(
        columns: &[TableColumn],
        file: &'w mut (dyn Write + Send),
    ) -> io::Result<Self> {
        Self::with_groups(columns, file, CELLS / columns.len().max(1))
    }

    /// The same with so many rows in a group.
    pub(super) fn with_groups(
        columns: &[TableColumn],
        file: &'w mut (dyn Write + Send),
        rows_max: usize,
    ) -> io::Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = schema(columns).map_err(io::Error::other)?;
        let file = SerializedFileWriter::new(file, schema, Arc::new(properties))
            .map_err(io::Error::other)?;
        let columns = columns.iter().map(|column| Gathered::new(column.holds)).collect();
        Ok(Self { file, columns, rows: 0, rows_max })
    }

    /// Writes what was gathered, as a row group.
    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for gathered in &mut self.columns {
            if let Some(mut column) = group.next_column()? {
                gathered.write(&mut column)?;
                column.close()?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl RowWriter for Parquet<'_> {
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows >= self.rows_max {
            self.write_group().map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(io::Error::other)?;
        }
        self.file.finish().map(drop).map_err(io::Error::other)
    }
}

/// The columns as Parquet declares them; each cell may be absent.
fn schema(columns: &[TableColumn]) -> Result<TypePtr, ParquetError> {
    let field = |column: &TableColumn| {
        let (stored, logical) = match column.holds {
            CellType::Integer => (Stored::INT64, None),
            CellType::Number => (Stored::DOUBLE, None),
            CellType::Text => (Stored::BYTE_ARRAY, Some(LogicalType::String)),
            CellType::Flag => (Stored::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(&column.name, stored)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder("rows").with_fields(fields).build().map(Arc::new)
}

/// The cells of a column until they are written.
struct Gathered {
    values: Values,
    /// For each cell 1, or 0 where it is absent (definition levels).
    is_present: Vec<i16>,
}

enum Values {
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Texts(Vec<ByteArray>),
    Flags(Vec<bool>),
}

impl Gathered {
    fn new(holds: CellType) -> Self {
        let values = match holds {
            CellType::Integer => Values::Integers(Vec::new()),
            CellType::Number => Values::Numbers(Vec::new()),
            CellType::Text => Values::Texts(Vec::new()),
            CellType::Flag => Values::Flags(Vec::new()),
        };
        Self { values, is_present: Vec::new() }
    }

    fn push(&mut self, cell: TableCell) {
        let is_present = match (&mut self.values, cell) {
            (Values::Integers(values), TableCell::Integer(value)) => push(values, value),
            (Values::Numbers(values), TableCell::Number(value)) => push(values, value),
            (Values::Texts(values), TableCell::Text(value)) => {
                push(values, value.into_bytes().into())
            }
            (Values::Flags(values), TableCell::Flag(value)) => push(values, value),
            (_, cell) => {
                debug_assert!(cell == TableCell::Absent, "a cell of another kind than its column");
                0
            }
        };
        self.is_present.push(is_present);
    }

    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(self.is_present.as_slice());
        match &mut self.values {
            Values::Integers(values) => {
                column.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Numbers(values) => {
                column.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Texts(values) => {
                column.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Flags(values) => {
                column.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        self.is_present.clear();
        Ok(())
    }
}

/// The definition level of a value, which is kept.
fn push<T>(values: &mut Vec<T>, value: T) -> i16 {
    values.push(value);
    1
}
