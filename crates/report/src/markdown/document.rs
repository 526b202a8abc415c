//! A document that grows part by part. What is a `&'static str` is throng's own; all other text is
//! escaped on its way in.

use std::fmt::Write as _;

use super::escape::{cell, sentence};

/// Most lines of one label: a comment is for reading at a glance.
const ITEMS_MAX: usize = 5;
/// Most rows of a table.
const ROWS_MAX: usize = 40;

/// Markdown with a heading.
pub(super) struct Document(String);

impl Document {
    /// `what: outcome`, both of throng's own words.
    pub(super) fn new(what: &'static str, outcome: &'static str) -> Self {
        Self(format!("### {what}: {outcome}\n\n"))
    }

    /// A line of a list.
    pub(super) fn item(&mut self, label: &'static str, text: &str) {
        let _ = writeln!(self.0, "- **{label}:** {}", sentence(text));
    }

    /// Lines with the same label, and how many there are besides the first ones.
    pub(super) fn items(&mut self, label: &'static str, texts: &[String]) {
        texts.iter().take(ITEMS_MAX).for_each(|text| self.item(label, text));
        let more = texts.len().saturating_sub(ITEMS_MAX);
        if more > 0 {
            self.item(label, &format!("{more} more, which the report has"));
        }
    }

    /// A table, of which the first row is the head; nothing without another one.
    pub(super) fn table(&mut self, rows: &[Vec<String>]) {
        let Some((head, rows)) = rows.split_first().filter(|(_, rows)| !rows.is_empty()) else {
            return;
        };
        self.0.push('\n');
        self.row(head);
        let _ = writeln!(self.0, "|{}", "---|".repeat(head.len()));
        rows.iter().take(ROWS_MAX).for_each(|row| self.row(row));
        self.0.push('\n');
        let more = rows.len().saturating_sub(ROWS_MAX);
        if more > 0 {
            let _ = writeln!(self.0, "The report has {more} rows more.\n");
        }
    }

    fn row(&mut self, cells: &[String]) {
        let cells: String = cells.iter().map(|text| format!(" {} |", cell(text))).collect();
        let _ = writeln!(self.0, "|{cells}");
    }

    /// Lines in a font whose characters have one width. They are of throng's own characters.
    pub(super) fn block(&mut self, lines: &str) {
        let _ = write!(self.0, "\n```text\n{lines}```\n");
    }

    /// The whole, with a line end.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_and_said_to_be() {
        let mut document = Document::new("throng", "met");
        let texts: Vec<String> = (0..ITEMS_MAX + 2).map(|number| number.to_string()).collect();
        document.items("Note", &texts);
        document.table(&[vec!["alone".to_owned()]]);
        let rows = (0..=ROWS_MAX + 3).map(|row| vec![row.to_string(), "a|b".to_owned()]);
        document.table(&rows.collect::<Vec<_>>());
        let text = document.finish();
        assert!(text.starts_with("### throng: met\n\n- **Note:** 0\n- **Note:** 1\n"), "{text}");
        assert!(text.contains("- **Note:** 2 more, which the report has\n\n| 0 |"), "{text}");
        assert!(text.contains("\n| 0 | `a\\|b` |\n|---|---|\n| 1 | `a\\|b` |\n"), "{text}");
        assert!(text.ends_with("\n\nThe report has 3 rows more.\n\n"), "{text}");
        assert!(!text.contains("alone"), "{text}");
    }
}
