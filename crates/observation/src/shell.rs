//! Words of a command line as a shell takes them: of lines that people paste, and of commands that
//! the shell of another host runs.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::Path;

use crate::untrusted;

/// `word` so that a shell reads just that: no variable, pattern, command or second line.
///
/// Bytes that are no text, and characters that a terminal must not be shown, are octal: `$'\012'`
/// (POSIX.1-2024, 2.2.4; bash, zsh, ksh and busybox, but not dash). The line can be shown and
/// pasted as it is.
#[must_use]
pub fn word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    match word.to_str() {
        Some(text) if is_plain(text) => text.to_owned(),
        Some(text) if !text.contains(untrusted::is_harmful) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        Some(_) | None => octal(word.as_encoded_bytes()),
    }
}

/// A path as an operand: one that begins like a flag has its folder before it.
#[must_use]
pub fn path(path: &Path) -> String {
    if begins_like_a_flag(path.as_os_str()) { word(Path::new(".").join(path)) } else { word(path) }
}

/// A flag and its value; a value that begins like a flag is joined to it.
#[must_use]
pub fn flag(name: &str, value: impl AsRef<OsStr>) -> String {
    let value = value.as_ref();
    if begins_like_a_flag(value) {
        let mut joined = OsString::from(name);
        joined.push("=");
        joined.push(value);
        word(joined)
    } else {
        format!("{name} {}", word(value))
    }
}

/// A command line of `words`.
#[must_use]
pub fn line(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    words.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

fn begins_like_a_flag(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// Whether no shell sees anything in `text` but itself. In zsh `=ls` is the path of `ls`.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    !text.is_empty() && !text.starts_with('=') && text.chars().all(is_plain)
}

fn octal(bytes: &[u8]) -> String {
    let mut out = String::from("$'");
    let escape = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\{byte:03o}");
        }
    };
    for part in bytes.utf8_chunks() {
        for c in part.valid().chars() {
            // An interactive bash looks for `!` before it looks for quotes.
            if untrusted::is_harmful(c) || matches!(c, '\'' | '\\' | '!') {
                escape(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.push(c);
            }
        }
        escape(&mut out, part.invalid());
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_word_is_as_plain_as_it_can_be() {
        for (text, expect) in [
            ("a.toml", "a.toml"),
            ("--set", "--set"),
            ("whep+http://h:1/a,b@c%20d", "whep+http://h:1/a,b@c%20d"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME; `id`", "'$HOME; `id`'"),
            ("=ls", "'=ls'"),
            ("~", "'~'"),
            ("größe", "'größe'"),
            ("a\nb", r"$'a\012b'"),
            ("\x1b[2J'!\\", r"$'\033[2J\047\041\134'"),
            ("\u{202e}1", r"$'\342\200\2561'"),
        ] {
            assert_eq!(word(text), expect, "{text:?}");
            assert_eq!(untrusted::line(expect), expect, "shown as it is");
        }
        assert_eq!(word(OsStr::from_bytes(b"a\xffb")), r"$'a\377b'");
    }

    #[test]
    fn what_begins_like_a_flag_is_none() {
        assert_eq!(path(Path::new("-rf/a b")), "'./-rf/a b'");
        assert_eq!(path(Path::new("runs/-a")), "runs/-a");
        assert_eq!(flag("--set", "a=b c"), "--set 'a=b c'");
        assert_eq!(flag("--set", "-x y"), "'--set=-x y'");
        assert_eq!(line(["throng", "run", "a b", ""]), "throng run 'a b' ''");
    }
}
