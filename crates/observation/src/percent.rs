//! Percent-encoding (URL standard section 1.3), decoded.

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
