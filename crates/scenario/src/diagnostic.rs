//! Errors of a scenario: each has its line and column, an excerpt of the source, and a hint.

use std::fmt;

use crate::masked::Mask;

/// All errors that were found in a scenario, in the order of their locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// At least one.
    pub diagnostics: Vec<Diagnostic>,
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it is; `None` for a missing table.
    pub location: Option<Location>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}

/// A location in the scenario file or in an override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The text that the line belongs to.
    pub origin: Origin,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Number of characters that are marked; at least 1.
    pub width: usize,
    /// The line without its secrets, control characters replaced by spaces; a very long line is cut
    /// around the column.
    pub source_line: String,
    /// Number of characters before the caret in [`Self::source_line`].
    pub caret_at: usize,
}

/// The source of a part of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The scenario file.
    File,
    /// An override, named by its flag (`--set crowd.size`, `--every`).
    Override(String),
}

/// Longer source lines are cut.
const SHOWN_CHARACTERS_MAX: usize = 120;

impl Location {
    /// The location of bytes `start..end` of a text, of which the mask hides a part. Offsets beyond
    /// the text or within a character are moved back.
    pub(crate) fn of(
        origin: Origin,
        (text, mask): (&str, &Mask),
        start: usize,
        end: usize,
    ) -> Self {
        let start = boundary_at_or_before(text, start);
        let end = boundary_at_or_before(text, end.max(start));
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let rest = text.get(line_start..).unwrap_or_default();
        let line_end = line_start + rest.lines().next().unwrap_or_default().len();
        let column = text.get(line_start..start).unwrap_or_default().chars().count() + 1;
        let shown_before = mask.show(text, line_start..start).chars().count();
        let marked = mask.show(text, start..end.min(line_end).max(start)).chars().count();
        let skipped = shown_before.saturating_sub(SHOWN_CHARACTERS_MAX / 2);
        let source_line: String = mask
            .show(text, line_start..line_end)
            .chars()
            .skip(skipped)
            .take(SHOWN_CHARACTERS_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let caret_at = shown_before - skipped;
        let room = source_line.chars().count().saturating_sub(caret_at);
        let width = marked.min(room).max(1);
        Self { origin, line, column, width, source_line, caret_at }
    }
}

fn boundary_at_or_before(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        if let Some(location) = &self.location {
            let number = location.line.to_string();
            let gutter = " ".repeat(number.len());
            match &location.origin {
                Origin::File => {
                    writeln!(f, "{gutter}--> line {}, column {}", location.line, location.column)?;
                }
                Origin::Override(words) => writeln!(f, "{gutter}--> in {words}")?,
            }
            writeln!(f, "{gutter} |")?;
            writeln!(f, "{number} | {}", location.source_line)?;
            writeln!(
                f,
                "{gutter} | {}{}",
                " ".repeat(location.caret_at),
                "^".repeat(location.width)
            )?;
        }
        if let Some(help) = &self.help {
            writeln!(f, "  help: {help}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_counted_in_lines_and_characters() {
        let text = "a = 1\nß = \"ü\"\n";
        let at = text.find("\"ü\"").unwrap();
        let location = Location::of(Origin::File, (text, &Mask::default()), at, at + "\"ü\"".len());
        assert_eq!((location.line, location.column, location.width), (2, 5, 3));
        assert_eq!(location.source_line, "ß = \"ü\"");
    }

    #[test]
    fn no_offset_is_too_far_or_within_a_character() {
        for text in ["", "ü", "\n", "a\r\nb", "x"] {
            for start in 0..6 {
                for end in 0..6 {
                    let location =
                        Location::of(Origin::File, (text, &Mask::of_toml(text)), start, end);
                    assert!(location.line >= 1 && location.column >= 1 && location.width >= 1);
                }
            }
        }
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_location() {
        let text = format!("{}HERE{}", "a".repeat(5000), "b".repeat(5000));
        let location = Location::of(Origin::File, (&text, &Mask::of_toml(&text)), 5000, 5004);
        assert_eq!(location.source_line.chars().count(), SHOWN_CHARACTERS_MAX);
        let shown: String =
            location.source_line.chars().skip(location.caret_at).take(location.width).collect();
        assert_eq!(shown, "HERE");
    }

    #[test]
    fn an_excerpt_has_no_secret_and_its_mark_stands_where_the_secret_was() {
        let text = "[target]\ntoken = \"hunter2 hunter2\" # was hunter1=\n";
        let at = text.find("\"hunter2").unwrap();
        let end = at + "\"hunter2 hunter2\"".len();
        let location = Location::of(Origin::File, (text, &Mask::of_toml(text)), at, end);
        assert_eq!((location.line, location.column), (2, 9));
        assert_eq!(location.source_line, "token = \"…\" # …");
        assert_eq!((location.caret_at, location.width), (8, 3));
    }

    #[test]
    fn the_caret_stands_under_the_marked_text() {
        let diagnostic = Diagnostic {
            location: Some(Location::of(
                Origin::File,
                ("[crowd]\nsize = 0\n", &Mask::default()),
                15,
                16,
            )),
            message: "a crowd of 0".into(),
            help: Some("at least 1".into()),
        };
        assert_eq!(
            diagnostic.to_string(),
            "error: a crowd of 0\n --> line 2, column 8\n  |\n2 | size = 0\n  |        ^\n  help: at least 1\n"
        );
    }
}
