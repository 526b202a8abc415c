//! Text in columns for a terminal.

use throng_observation::untrusted;

/// Rows whose cells stand under each other; cells are escaped.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let shown: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| untrusted::line(cell).into_owned()).collect())
        .collect();
    let width = |column: usize| {
        let cells = shown.iter().filter_map(|row: &Vec<String>| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in &shown {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let fill = " ".repeat(width.saturating_sub(cell.chars().count()));
            format!("{cell}{fill}")
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
