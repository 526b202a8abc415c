//! Percent-encoding (URL standard section 1.3).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// All but the characters that never need it (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Bytes as one part of a URL: a segment of a path, or a value of a query.
#[must_use]
pub fn encoded(part: &[u8]) -> String {
    percent_encoding::percent_encode(part, RESERVED).to_string()
}

/// A part of a URL (a segment of a path, user info) without its `%` escapes. A `+` stays one, which
/// is a space in forms only; an escape that is none stays as it is, and what is not UTF-8 becomes
/// U+FFFD.
#[must_use]
pub fn decoded(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_unreserved_characters_are_encoded() {
        for (part, expect) in [
            (&b"aZ09-._~"[..], "aZ09-._~"),
            (&b"a b/c?d=e&f+g%20"[..], "a%20b%2Fc%3Fd%3De%26f%2Bg%2520"),
            ("\u{fc}\n".as_bytes(), "%C3%BC%0A"),
            (&b"\xff{\x00"[..], "%FF%7B%00"),
        ] {
            assert_eq!(encoded(part), expect, "{part:?}");
        }
        assert_eq!(decoded(&encoded("a b\u{fc}%".as_bytes())), "a b\u{fc}%");
    }

    #[test]
    fn escapes_are_decoded_once_and_nothing_else_is() {
        for (part, expect) in [
            ("", ""),
            ("a%20b+c", "a b+c"),
            ("a&b=c", "a&b=c"),
            ("p%40ss%3Aw%2f", "p@ss:w/"),
            ("%2520", "%20"),
            ("%C3%bc", "\u{fc}"),
            ("50%", "50%"),
            ("%zz%4", "%zz%4"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(decoded(part), expect, "{part}");
        }
    }
}
