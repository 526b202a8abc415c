//! What is wrong with a scenario: every problem with its line, column, the line itself and what to do about it.

use std::fmt;

/// All problems found in a scenario, in the order of their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is; `None` for something that is missing altogether.
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A place in the scenario's text, or in what overrides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which text the line is of.
    pub origin: Origin,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// How many characters are meant; at least 1.
    pub width: usize,
    /// The line itself, tabs shown as spaces, cut around the column when it is very long.
    pub source_line: String,
    /// How many characters of the line precede the caret in [`Self::source_line`].
    pub caret_at: usize,
}

/// Where a piece of the scenario came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The scenario file.
    File,
    /// An override, by the words of the command line (`--set crowd.size`, `--every`).
    Override(String),
}

/// The longest source line that is shown whole.
const SHOWN_CHARACTERS_MAX: usize = 120;

impl Place {
    /// The place of bytes `start..end` of `text`. Offsets beyond the text or within a character are moved back.
    pub(crate) fn of(origin: Origin, text: &str, start: usize, end: usize) -> Self {
        let start = boundary_at_or_before(text, start);
        let end = boundary_at_or_before(text, end.max(start));
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let whole_line = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let before_on_line = text.get(line_start..start).unwrap_or_default().chars().count();
        let meant = text.get(start..end).unwrap_or_default().lines().next().unwrap_or_default();
        let skipped = before_on_line.saturating_sub(SHOWN_CHARACTERS_MAX / 2);
        let source_line: String = whole_line
            .chars()
            .skip(skipped)
            .take(SHOWN_CHARACTERS_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let caret_at = before_on_line - skipped;
        let room = source_line.chars().count().saturating_sub(caret_at);
        let width = meant.chars().count().min(room).max(1);
        Self { origin, line, column: before_on_line + 1, width, source_line, caret_at }
    }
}

fn boundary_at_or_before(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let gutter = " ".repeat(number.len());
            match &place.origin {
                Origin::File => writeln!(f, "{gutter}--> line {}, column {}", place.line, place.column)?,
                Origin::Override(words) => writeln!(f, "{gutter}--> in {words}")?,
            }
            writeln!(f, "{gutter} |")?;
            writeln!(f, "{number} | {}", place.source_line)?;
            writeln!(f, "{gutter} | {}{}", " ".repeat(place.caret_at), "^".repeat(place.width))?;
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
    fn a_place_is_counted_in_lines_and_characters() {
        let text = "a = 1\nß = \"ü\"\n";
        let at = text.find("\"ü\"").unwrap();
        let place = Place::of(Origin::File, text, at, at + "\"ü\"".len());
        assert_eq!((place.line, place.column, place.width), (2, 5, 3));
        assert_eq!(place.source_line, "ß = \"ü\"");
    }

    #[test]
    fn no_offset_is_too_far_or_within_a_character() {
        for text in ["", "ü", "\n", "a\r\nb", "x"] {
            for start in 0..6 {
                for end in 0..6 {
                    let place = Place::of(Origin::File, text, start, end);
                    assert!(place.line >= 1 && place.column >= 1 && place.width >= 1);
                }
            }
        }
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_place() {
        let text = format!("{}HERE{}", "a".repeat(5000), "b".repeat(5000));
        let place = Place::of(Origin::File, &text, 5000, 5004);
        assert_eq!(place.source_line.chars().count(), SHOWN_CHARACTERS_MAX);
        let shown: String = place.source_line.chars().skip(place.caret_at).take(place.width).collect();
        assert_eq!(shown, "HERE");
    }

    #[test]
    fn the_caret_stands_under_what_is_meant() {
        let problem = Problem {
            place: Some(Place::of(Origin::File, "[crowd]\nsize = 0\n", 15, 16)),
            message: "a crowd of 0".into(),
            help: Some("at least 1".into()),
        };
        assert_eq!(
            problem.to_string(),
            "error: a crowd of 0\n --> line 2, column 8\n  |\n2 | size = 0\n  |        ^\n  help: at least 1\n"
        );
    }
}
