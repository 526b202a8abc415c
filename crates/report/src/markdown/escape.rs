//! The one way text gets into the Markdown. Names and details come from servers, so all of it is
//! hostile: it stays text, as one line, whatever GitHub or GitLab would make of it (markup, links,
//! mentions, references to issues and commits, emoji, quick actions).
//!
//! A word that only has letters, digits and the marks of plain sentences stands as it is. Any other
//! one is a code span, in which neither of them looks for anything.

use throng_observation::untrusted::{NAME_CHARS_MAX, escaped};

/// Most characters of a sentence: a comment may have 65,536.
const SENTENCE_CHARS_MAX: usize = 400;
/// The least hexadecimal digits that are taken for a commit.
const COMMIT_DIGITS_MIN: usize = 7;

/// A sentence, to stand behind throng's own words: a line must not begin with what others said.
pub(super) fn sentence(text: &str) -> String {
    words(text, SENTENCE_CHARS_MAX)
}

/// A cell of a table. There a bar is escaped in code, too (GFM 4.10).
pub(super) fn cell(text: &str) -> String {
    words(text, NAME_CHARS_MAX).replace('|', "\\|")
}

fn words(text: &str, chars_max: usize) -> String {
    let line = escaped(text, chars_max);
    let words: Vec<String> =
        line.split(' ').filter(|word| !word.is_empty()).map(compared).collect();
    words.join(" ")
}

/// A word, before which a comparison may stand: `<`, `>=`, `<0.01`.
fn compared(word: &str) -> String {
    let rest = word.trim_start_matches(['<', '=', '>']);
    if !rest.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return plain_or_code(word);
    }
    let sign = word.strip_suffix(rest).unwrap_or_default();
    let sign = sign.replace('<', "&lt;").replace('>', "&gt;");
    format!("{sign}{}", plain_or_code(rest))
}

/// The marks of a sentence around a word are not part of its code.
fn plain_or_code(word: &str) -> String {
    let opened = word.strip_prefix(['(', '[']).unwrap_or(word);
    let core = opened.trim_end_matches([')', ']', ',', ';', ':', '.']);
    if is_plain(core) {
        return word.to_owned();
    }
    let open = word.strip_suffix(opened).unwrap_or_default();
    let close = opened.strip_prefix(core).unwrap_or_default();
    format!("{open}{}{close}", code(core))
}

/// Whether nobody finds more than text in it.
fn is_plain(core: &str) -> bool {
    let letters: Vec<char> = core.chars().collect();
    let at = |place: Option<usize>| place.and_then(|place| letters.get(place)).copied();
    let is_text = |(place, letter): (usize, &char)| {
        let (before, after) = (at(place.checked_sub(1)), at(Some(place + 1)));
        let between = |of: fn(char) -> bool| before.is_some_and(of) && after.is_some_and(of);
        match letter {
            '.' | ',' | ':' => between(|c| c.is_ascii_digit()),
            '/' => between(char::is_alphanumeric),
            '\'' => {
                before.is_some_and(char::is_alphabetic) && after.is_none_or(char::is_alphabetic)
            }
            // Trackers of issues have names such as `AB-12`.
            '-' => between(char::is_lowercase) || between(|c| c.is_ascii_digit()),
            '+' => before.is_none() && after.is_some_and(|c| c.is_ascii_digit()),
            '%' => after.is_none(),
            other => other.is_ascii_alphanumeric() || !other.is_ascii(),
        }
    };
    let is_commit = |part: &str| {
        part.len() >= COMMIT_DIGITS_MIN && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    letters.iter().enumerate().all(is_text)
        && !core.split(|c: char| !c.is_ascii_alphanumeric()).any(is_commit)
}

/// A code span, fenced by more backticks than follow each other in it (CommonMark 6.1).
fn code(text: &str) -> String {
    let longest = text.split(|c: char| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
pub(super) mod tests {
    use throng_observation::untrusted::is_harmful;

    use super::*;

    const HOSTILE: [&str; 24] = [
        "a | b || c \\| d \\\\| e",
        "`` ` ``` `x` a`b``c ``` x",
        "line\nline\r\n\r\n# heading\n| - | - |",
        "\n/close\n/merge",
        "<img src=x onerror=alert(1)> <!-- x --> <b>",
        "</details></td><script>",
        "@everyone @a/team (@me) [@me]: a@b.example",
        "#1 owner/repo#1 GH-1 AB-12 !2 ~3 %4 %\"m\" &5 $6 owner/repo@deadbeef",
        "http://a.example https://b.example/?x=|y www.c.example ftp://d",
        "[text](http://a.example) ![alt](x.png) [a]: http://b [[page]] [^1]",
        "mailto:a@b.example xmpp:a@b.example <http://a.example>",
        "*a* **b** _c_ __d__ ~~e~~ ^f^ ==g== {+h+} [-i-]",
        "$x$ $`x`$ $$y$$ :smile: :+1:",
        "&lt; &#64;me &#96; &amp;",
        "deadbeef 0123456789abcdef a/deadbeef0 –deadbeef",
        "- a * b + c 1. d > e = f --- ===",
        "[ ] [x] [TOC] [[_TOC_]]",
        "\u{202e}evil\u{200b}\u{feff}\x1b[2J",
        "trailing  \ntwo\\",
        "||||",
        "`",
        "<0.01 >=5 <1> <",
        "](x) )( ]( [(x",
        "",
    ];

    /// What is left of a line without its code spans, by their rule in CommonMark; nothing if a
    /// fence stays open.
    fn outside_code(line: &str) -> Option<String> {
        let (mut out, mut rest) = (String::new(), line);
        while let Some(at) = rest.find('`') {
            let (before, fenced) = rest.split_at(at);
            out.push_str(before);
            let content = fenced.trim_start_matches('`');
            let fence = fenced.len() - content.len();
            let mut from = 0;
            rest = loop {
                let begin = from + content.get(from..)?.find('`')?;
                let run = content.get(begin..)?;
                let length = run.len() - run.trim_start_matches('`').len();
                from = begin + length;
                if length == fence {
                    break content.get(from..)?;
                }
            };
        }
        Some(out + rest)
    }

    /// That a line has nothing outside its code spans that means more than it says.
    #[track_caller]
    pub(in crate::markdown) fn is_text(line: &str) {
        let outside = outside_code(line).unwrap_or_else(|| panic!("an open fence: {line}"));
        let outside = outside.replace("&lt;", "").replace("&gt;", "");
        let found = outside.chars().find(|c| "<>&@#!*_~$^{}\\|\"".contains(*c));
        assert_eq!(found, None, "{line}");
        for part in ["](", "[[", "://", "www.", "][", "deadbeef"] {
            assert!(!outside.contains(part), "{part}: {line}");
        }
        assert!(!line.contains(is_harmful), "{line:?}");
    }

    #[test]
    fn what_others_said_stays_text() {
        for text in HOSTILE {
            is_text(&sentence(text));
            // In a table a bar that stands behind a backslash is no end of a cell.
            let cell = cell(text);
            is_text(&cell.replace("\\|", "│"));
            assert!(!cell.replace("\\|", "").contains('|'), "{cell}");
        }
    }

    #[test]
    fn every_pair_of_ascii_characters_stays_text() {
        for (a, b) in (' '..='~').flat_map(|a| (' '..='~').map(move |b| (a, b))) {
            for text in [format!("{a}{b}"), format!("x{a}{b}x"), format!("{a}x{b} {b}{a}")] {
                is_text(&sentence(&text));
            }
        }
    }

    #[test]
    fn sentences_read_as_they_are_said() {
        for text in [
            "20 viewers played cleanly for 60 s",
            "delay of the users' frames",
            "server's user-seconds at 82.9 Mbit/s: ×2.10 (1.80 to 2.45), 95 %; 3 of 4.",
            "[−2.6 ms, +4.2 ms] ±0.50 points",
            "for 60 s from 2026-11-21 00:44 UTC",
        ] {
            assert_eq!(sentence(text), text);
        }
        for (text, expect) in [
            ("thread.cpu of stage-worker-0 (4055):", "`thread.cpu` of `stage-worker-0` (4055):"),
            ("--workers (throng stage)", "`--workers` (throng stage)"),
            ("video.loss p95 < 1%", "`video.loss` p95 &lt; 1%"),
            ("<0.01 % (http_404)", "&lt;0.01 % (`http_404`)"),
            ("a`b", "``a`b``"),
            ("`a", "`` `a ``"),
            ("a  b ", "a b"),
        ] {
            assert_eq!(sentence(text), expect);
        }
        assert_eq!(cell("a|b"), "`a\\|b`");
        let long = sentence(&"word ".repeat(1_000));
        assert!(long.chars().count() <= SENTENCE_CHARS_MAX + 1 && long.ends_with('…'), "{long}");
    }
}
