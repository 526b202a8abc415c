//! Text in columns for a terminal.

use std::fmt::Write as _;

use throng_observation::untrusted;

/// On which side the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Rows whose cells stand under each other; cells are escaped.
#[must_use]
pub fn columns(rows: &[Vec<String>]) -> String {
    aligned(rows, &[Align::Left])
}

/// The same. Columns beyond those of `align` stand as its last one.
#[must_use]
pub fn aligned(rows: &[Vec<String>], align: &[Align]) -> String {
    let shown: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| untrusted::line(cell).into_owned()).collect())
        .collect();
    let width = |column: usize| {
        // Words at the end of a row may be a sentence, and make no other cell wider.
        let counts =
            |row: &&Vec<String>| align_of(align, column) == Align::Right || column + 1 < row.len();
        let cells = shown.iter().filter(counts).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let count = shown.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    shown.iter().map(|row| line(row, &widths, align)).collect()
}

/// A row of a table whose rows come one after the other, so that how wide its columns are is not
/// known from them; a wider cell is not cut.
#[must_use]
pub fn row(cells: &[String], widths: &[usize], align: &[Align]) -> String {
    let shown: Vec<String> = cells.iter().map(|cell| untrusted::line(cell).into_owned()).collect();
    line(&shown, widths, align)
}

fn align_of(align: &[Align], column: usize) -> Align {
    align.get(column).or(align.last()).copied().unwrap_or(Align::Left)
}

/// A row of cells that are escaped.
fn line(row: &[String], widths: &[usize], align: &[Align]) -> String {
    let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
        match align_of(align, column) {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        }
    });
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

/// Adds a line for each text, escaped, after `before`.
pub(crate) fn said<T: AsRef<str>>(
    out: &mut String,
    before: &str,
    texts: impl IntoIterator<Item = T>,
) {
    for text in texts {
        let _ = writeln!(out, "{before}{}", untrusted::line(text.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn cells_stand_under_each_other() {
        let rows = rows(&[&["cell", "fps"], &["a long name", "30.0"], &["é\u{1b}", ""]]);
        assert_eq!(columns(&rows), "cell         fps\na long name  30.0\né\\u{1b}\n");
        assert_eq!(
            aligned(&rows, &[Align::Left, Align::Right]),
            "cell          fps\na long name  30.0\né\\u{1b}\n"
        );
        assert_eq!(columns(&[]), "");
    }

    #[test]
    fn a_row_that_comes_alone_has_the_widths_that_are_said() {
        let cells = ["7".to_owned(), "a\u{1b}".into(), "yes".into()];
        assert_eq!(row(&cells, &[3, 2, 0], &[Align::Right]), "  7  a\\u{1b}  yes\n");
    }

    #[test]
    fn a_sentence_at_the_end_of_a_row_makes_no_other_cell_wider() {
        let rows = rows(&[&["a", "b", "c"], &["x", "is not possible on this machine"]]);
        assert_eq!(columns(&rows), "a  b  c\nx  is not possible on this machine\n");
    }
}
