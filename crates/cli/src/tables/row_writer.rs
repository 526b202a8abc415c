//! What writes a table in a format.

use std::io;

use throng_observation::TableCell;

/// Writes the rows of a table.
pub(super) trait RowWriter {
    /// Writes a row, which has a cell for each column.
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()>;

    /// Writes what a file ends with.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
