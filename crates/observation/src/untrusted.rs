//! Untrusted text: names of processes, threads, rooms and participants, log lines, responses of
//! servers. It may contain terminal commands (ECMA-48), characters that change the direction of the
//! text around them (Unicode UAX 9), and line ends that make one line look like several. Wherever
//! such text is shown, it is escaped here.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Most characters of a name, a label, a cell.
pub const NAME_CHARS_MAX: usize = 120;
/// Most characters of a sentence: a response of a server, a log line.
pub const LINE_CHARS_MAX: usize = 2_000;

/// Stands for characters that were cut off.
const CUT: char = '…';

/// Whether `c` affects how other text is shown: control characters (C0, DEL, C1), direction marks,
/// line separators, and invisible characters that can hide text.
#[must_use]
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction.
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators.
            | '\u{2028}' | '\u{2029}'
            // Soft hyphen, zero width, annotations.
            | '\u{00ad}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Tags.
            | '\u{e0000}'..='\u{e0fff}')
}

/// `text` as one line of at most `chars_max` characters: harmful characters as escapes such as `\n`
/// and `\u{1b}`; longer text ends with `…`.
#[must_use]
pub fn escaped(text: &str, chars_max: usize) -> Cow<'_, str> {
    // Most text is short and plain, and bytes are at least as many as characters.
    if text.len() <= chars_max && !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut chars = 0;
    for c in text.chars() {
        let before = out.len();
        if is_harmful(c) {
            write_visibly(&mut out, c);
            chars += out.len() - before;
        } else {
            out.push(c);
            chars += 1;
        }
        if chars > chars_max {
            out.truncate(before);
            out.push(CUT);
            break;
        }
    }
    Cow::Owned(out)
}

/// A name: [`escaped`] at its length.
#[must_use]
pub fn name(text: &str) -> Cow<'_, str> {
    escaped(text, NAME_CHARS_MAX)
}

/// A sentence: [`escaped`] at its length.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, LINE_CHARS_MAX)
}

/// Output of several lines for a terminal: of the harmful characters only line ends and tabs
/// remain.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    let passes = |c: char| matches!(c, '\n' | '\t') || !is_harmful(c);
    if text.chars().all(passes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if passes(c) { out.push(c) } else { write_visibly(&mut out, c) }
    }
    Cow::Owned(out)
}

/// JSON text that is safe to show: harmful characters as `\u…` (RFC 8259 section 7), which parses
/// to the same value. Outside of strings JSON has only line ends, blanks and ASCII.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    let passes = |c: char| c == '\n' || !is_harmful(c);
    if text.chars().all(passes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if passes(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(out)
}

fn write_visibly(out: &mut String, c: char) {
    out.extend(c.escape_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_harmful_is_written_out_and_what_is_long_is_cut() {
        for (text, expect) in [
            ("hloop 1", "hloop 1"),
            ("Grüße, 世界 👩‍🏫", "Grüße, 世界 👩‍🏫"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\x1b]52;c;cm0=\x07", "\\u{1b}]52;c;cm0=\\u{7}"),
            ("a\r\nb\tc\0", "a\\r\\nb\\tc\\u{0}"),
            ("\u{202e}cod.exe\u{2066}", "\\u{202e}cod.exe\\u{2066}"),
            ("a\u{2028}b\u{e0041}", "a\\u{2028}b\\u{e0041}"),
        ] {
            assert_eq!(name(text), expect);
        }
        assert_eq!(escaped("abcdef", 5), "abcde…");
        assert_eq!(escaped("äöüäö", 5), "äöüäö");
        assert_eq!(escaped("abc\x1b", 5), "abc…", "nothing stands half");
        assert_eq!(lines("a\n\t\x1b[0m\r\n"), "a\n\t\\u{1b}[0m\\r\n");
    }

    #[test]
    fn json_reads_as_what_it_was() {
        let value =
            serde_json::json!({ "a\u{9b}": ["\u{202e}", "\u{e0041}\x7f", "\x1b\n", "plain"] });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = json(&text);
        assert!(!safe.contains(|c| c != '\n' && is_harmful(c)), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }

    #[test]
    fn no_character_that_is_harmful_passes_and_no_line_grows_beyond_its_length() {
        for c in '\0'..=char::MAX {
            let text: String = [c, 'a', c].iter().collect();
            for max in [0, 1, 3, 9, 60] {
                let one = escaped(&text, max);
                assert!(
                    !one.contains(is_harmful) && one.chars().count() <= max + 1,
                    "{text:?} {max}"
                );
            }
            assert!(
                !lines(&text).contains(|c| !matches!(c, '\n' | '\t') && is_harmful(c)),
                "{text:?}"
            );
        }
    }
}
