//! What stands on a terminal after a program has written to it: the part of ECMA-48 that
//! full-screen views use. What changes no text, such as colours, is left out.

use std::str::Chars;

/// The lines of the terminal.
pub const LINES: u16 = 24;
/// Its columns.
pub const COLUMNS: u16 = 80;

/// The text of the screen, line by line, after all of `written`. Each entering and leaving of the
/// alternate screen begins with an empty one.
#[must_use]
pub fn after(written: &str) -> String {
    let mut screen = Screen::empty();
    let mut rest = written.chars();
    while let Some(next) = rest.next() {
        match next {
            '\x1b' => screen.command(&mut rest),
            '\r' => screen.column = 0,
            '\n' => screen.line += 1,
            shown => screen.put(shown),
        }
    }
    let lines = screen.cells.iter().map(|line| line.iter().collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The cells of the screen, and where the cursor is, counted from 0.
struct Screen {
    cells: Vec<Vec<char>>,
    line: usize,
    column: usize,
}

impl Screen {
    fn empty() -> Self {
        let line = vec![' '; usize::from(COLUMNS)];
        Self { cells: vec![line; usize::from(LINES)], line: 0, column: 0 }
    }

    fn put(&mut self, shown: char) {
        let line = self.cells.get_mut(self.line);
        if let Some(cell) = line.and_then(|line| line.get_mut(self.column)) {
            *cell = shown;
        }
        self.column += 1;
    }

    /// What follows an Escape.
    fn command(&mut self, rest: &mut Chars<'_>) {
        match rest.next() {
            Some('[') => self.sequence(rest),
            // A title, or the like: it ends with BEL, or with an Escape and a backslash.
            Some(']') => title(rest),
            _ => {}
        }
    }

    /// Parameters and the letter that says what to do with them.
    fn sequence(&mut self, rest: &mut Chars<'_>) {
        let mut parameters = String::new();
        let letter = loop {
            match rest.next() {
                Some(letter @ '@'..='~') => break letter,
                Some(parameter) => parameters.push(parameter),
                None => return,
            }
        };
        match (letter, parameters.as_str()) {
            ('H' | 'f', place) => {
                let mut numbers = place.split(';').map(|number| number.parse().unwrap_or(1_usize));
                self.line = numbers.next().unwrap_or(1).saturating_sub(1);
                self.column = numbers.next().unwrap_or(1).saturating_sub(1);
            }
            ('J', "2") => self.cells = Self::empty().cells,
            ('J', _) => {
                self.erase_line();
                for line in self.cells.iter_mut().skip(self.line + 1) {
                    line.fill(' ');
                }
            }
            ('K', _) => self.erase_line(),
            ('h' | 'l', "?1049") => *self = Self::empty(),
            _ => {}
        }
    }

    /// From the cursor to the end of its line.
    fn erase_line(&mut self) {
        for line in self.cells.iter_mut().skip(self.line).take(1) {
            line.iter_mut().skip(self.column).for_each(|cell| *cell = ' ');
        }
    }
}

/// Passes over a title to its end.
fn title(rest: &mut Chars<'_>) {
    if rest.find(|c| matches!(*c, '\x07' | '\x1b')) == Some('\x1b') {
        rest.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_where_it_was_written_last() {
        for (written, expect) in [
            ("a\r\nb", "a\nb"),
            ("\x1b[2;3Hx\x1b[1;1H\x1b[38;5;6my\x1b[0m", "y\n  x"),
            ("abc\x1b[1;2Hx\x1b[Hz", "zxc"),
            ("abc\x1b[1;2H\x1b[K", "a"),
            ("abc\r\ndef\x1b[1;2H\x1b[J", "a"),
            ("abc\x1b[2Jd", "   d"),
            ("before\x1b[?1049h\x1b[?25l━", "━"),
            ("in it\x1b[?1049lafter", "after"),
            ("\x1b]0;title\x07a\x1b]0;title\x1b\\b", "ab"),
            ("\x1b[99;99Hnowhere\x1b[1", ""),
            ("\x1b", ""),
        ] {
            assert_eq!(after(written).trim_end(), expect, "{written:?}");
        }
        assert_eq!(after("").split('\n').count(), usize::from(LINES));
        assert_eq!(after(&"x".repeat(100)).trim_end(), "x".repeat(usize::from(COLUMNS)));
    }
}
