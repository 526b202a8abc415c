//! What a table is written as.

use std::io::{self, Write};

use throng_observation::{TableCell, TableColumn};
use throng_report::csv;

use super::json_lines::JsonLines;
#[cfg(feature = "parquet")]
use super::parquet::Parquet;
use super::row_writer::RowWriter;

/// A format of files of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// CSV (RFC 4180); an absent cell is empty.
    Csv,
    /// An object of JSON on each line; an absent cell is null.
    JsonLines,
    /// Parquet; an absent cell is null.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// What the names of its files end in.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
        }
    }

    /// Begins a file with these columns.
    pub(super) fn begin<'w>(
        self,
        columns: &[TableColumn],
        file: &'w mut (dyn Write + Send),
    ) -> io::Result<Box<dyn RowWriter + 'w>> {
        Ok(match self {
            Self::Csv => {
                file.write_all(csv::header(columns).as_bytes())?;
                Box::new(Csv(file))
            }
            Self::JsonLines => Box::new(JsonLines::new(columns, file)?),
            #[cfg(feature = "parquet")]
            Self::Parquet => Box::new(Parquet::new(columns, file)?),
        })
    }
}

struct Csv<'w>(&'w mut (dyn Write + Send));

impl RowWriter for Csv<'_> {
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()> {
        self.0.write_all(csv::line(&cells).as_bytes())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
