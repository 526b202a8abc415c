//! A text as a value of YAML 1.2 that is the text again, whatever it contains.

use std::fmt::Write as _;

use throng_observation::untrusted::is_harmful;

/// The columns before each line of a block, below a key of `data`.
const INDENT: &str = "    ";

/// The value that stands behind a key two columns in, with its last line end. As a block if it can
/// be, for people who read it.
pub(super) fn scalar(text: &str) -> String {
    if !is_block(text) {
        return format!("{}\n", quoted(text));
    }
    // The 2 says how far the block is indented below its key: its first line may begin with blanks
    // of its own.
    let line =
        |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{INDENT}{line}\n") };
    format!("|2\n{}", text.lines().map(line).collect::<String>())
}

/// Whether a block says it exactly: only line ends that are one character, only characters that can
/// be written, and one line end at its end, behind something.
fn is_block(text: &str) -> bool {
    let before_end = text.strip_suffix('\n').and_then(|text| text.chars().next_back());
    before_end.is_some_and(|last| !last.is_whitespace())
        && text.chars().all(|c| matches!(c, '\n' | '\t') || !is_escaped(c))
}

/// Characters that are not shown, among them all line ends of YAML, and those that it forbids
/// (section 5.1).
fn is_escaped(c: char) -> bool {
    is_harmful(c) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// A value in quotes, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_escaped(c) => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_each_line_and_what_a_block_cannot_say_is_quoted() {
        for (text, expect) in [
            (
                "a = 1\n\n  b: |\n\tc  \n\"…\" # ü\n",
                "|2\n    a = 1\n\n      b: |\n    \tc  \n    \"…\" # ü\n",
            ),
            ("  first\n", "|2\n      first\n"),
            ("---\n", "|2\n    ---\n"),
            ("", "\"\"\n"),
            ("\n", "\"\\n\"\n"),
            ("no end", "\"no end\"\n"),
            ("two ends\n\n", "\"two ends\\n\\n\"\n"),
            ("blanks \n", "\"blanks \\n\"\n"),
            ("a\r\nb\r\n", "\"a\\r\\nb\\r\\n\"\n"),
            ("\u{1b}[2J\u{2028}\u{feff}\\\n", "\"\\U0000001b[2J\\U00002028\\U0000feff\\\\\\n\"\n"),
        ] {
            assert_eq!(scalar(text), expect, "{text}");
        }
    }
}
