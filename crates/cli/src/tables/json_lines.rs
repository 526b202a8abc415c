//! JSON lines: an object a line, with the names of the columns as keys.

use std::io::{self, Write};

use throng_observation::{TableCell, TableColumn};

use super::row_writer::RowWriter;

pub(super) struct JsonLines<'w> {
    file: &'w mut (dyn Write + Send),
    /// What stands before the cell of each column.
    keys: Vec<String>,
}

impl<'w> JsonLines<'w> {
    pub(super) fn new(
        columns: &[TableColumn],
        file: &'w mut (dyn Write + Send),
    ) -> io::Result<Self> {
        let key = |(at, column): (usize, &TableColumn)| {
            let begin = if at == 0 { '{' } else { ',' };
            serde_json::to_string(&column.name).map(|name| format!("{begin}{name}:"))
        };
        let keys = columns.iter().enumerate().map(key).collect::<Result<_, _>>()?;
        Ok(Self { file, keys })
    }
}

impl RowWriter for JsonLines<'_> {
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()> {
        for (key, cell) in self.keys.iter().zip(&cells) {
            self.file.write_all(key.as_bytes())?;
            let file = &mut *self.file;
            match cell {
                TableCell::Absent => file.write_all(b"null")?,
                TableCell::Integer(number) => serde_json::to_writer(file, number)?,
                TableCell::Number(number) => serde_json::to_writer(file, number)?,
                TableCell::Text(text) => serde_json::to_writer(file, text)?,
                TableCell::Flag(flag) => serde_json::to_writer(file, flag)?,
            }
        }
        self.file.write_all(b"}\n")
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
