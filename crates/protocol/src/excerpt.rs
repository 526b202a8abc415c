//! Text that a server sent, made safe to show: short, one line, without control or bidirectional
//! characters.

use http::HeaderMap;
use http::header::RETRY_AFTER;
use throng_observation::masked::{HIDDEN, masked_beginning};

/// How many characters of a server's text are shown.
pub(crate) const EXCERPT_CHARS_MAX: usize = 200;

/// What ends a text that was cut.
const CUT: char = '…';

/// What is shorter is no secret, and a part of many words.
const SECRET_BYTES_MIN: usize = 4;

/// The text of a server without what it repeats of these secrets, also where it was cut within one
/// by a `…`. Secrets of less than 4 bytes are parts of many words, and stay.
#[must_use]
pub fn without<'s>(text: &str, secrets: impl IntoIterator<Item = &'s str>) -> String {
    let secrets = secrets.into_iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN);
    secrets.fold(text.to_owned(), |text, secret| {
        // A recorded page may have hundreds of secrets, and most texts none of them.
        if !text.contains(secret) && !text.contains(CUT) {
            return text;
        }
        let text = text.replace(secret, HIDDEN);
        // Words may follow what was cut.
        let parts: Vec<&str> = text.split(CUT).collect();
        let Some((last, cut)) = parts.split_last() else { return text };
        let mut hidden: String =
            cut.iter().flat_map(|part| [until(part, secret), HIDDEN]).collect();
        hidden.push_str(last);
        hidden
    })
}

/// What stands before the beginning of a secret within which [`excerpt`] has cut a text.
fn until<'t>(cut: &'t str, secret: &str) -> &'t str {
    // What was hidden already, behind a scheme or a name, is not a text that was cut. Base64 may
    // have been cut within its padding.
    let is_hidden = cut.ends_with("://") || cut.ends_with('=');
    let least = if is_hidden { secret.trim_end_matches('=').len() } else { 0 };
    let mut lengths = (least.max(SECRET_BYTES_MIN)..secret.len()).rev();
    lengths.find_map(|length| cut.strip_suffix(secret.get(..length)?)).unwrap_or(cut)
}

/// The beginning of `text` on one line, at most 200 characters; control and invisible characters
/// become spaces. Secrets of its URLs are hidden before it is cut: a URL without its end does not
/// look like one.
pub(crate) fn excerpt(text: &str) -> String {
    let masked = masked_beginning(text.trim());
    let mut short: String =
        masked.chars().take(EXCERPT_CHARS_MAX).map(|c| if is_seen(c) { c } else { ' ' }).collect();
    if masked.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        short.push(CUT);
    }
    short
}

/// Whether a character is visible: neither a control character nor one that changes direction or
/// width of the text.
fn is_seen(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `: ` and the excerpt of `text`; empty if `text` is empty.
pub(crate) fn after_colon(text: &str) -> String {
    match excerpt(text) {
        words if words.is_empty() => words,
        words => format!(": {words}"),
    }
}

/// `, Retry-After: ` and its value where a response says when to come again (RFC 9110 section
/// 10.2.3); else empty.
pub(crate) fn retry_after(headers: &HeaderMap) -> String {
    let wait = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    wait.map_or_else(String::new, |wait| format!(", Retry-After: {}", excerpt(wait)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_to_come_again_is_repeated_where_it_is_said() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), "");
        headers.insert(RETRY_AFTER, http::HeaderValue::from_static("30"));
        assert_eq!(retry_after(&headers), ", Retry-After: 30");
    }

    #[test]
    fn a_secret_is_not_repeated_nor_its_beginning_where_the_text_was_cut() {
        for (text, shown) in [
            ("no S3CRET-1 here", "no … here"),
            ("no S3CRET…", "no …"),
            ("`text S3CRET…` in place of S3CRET-1", "`text …` in place of …"),
            ("no S3C…", "no S3C…"),
            ("no S3CRET", "no S3CRET"),
        ] {
            assert_eq!(without(text, ["S3CRET-1"]), shown);
        }
        let masked = "http://…@h/?token=…";
        assert_eq!(without(masked, ["http://cdn/x", "token=abc"]), masked);
        assert_eq!(without("no S3CRET-1=…", ["S3CRET-1=="]), "no …");
    }

    #[test]
    fn an_excerpt_ends_within_no_password() {
        let said = format!("{} //me:{}@h/", "a ".repeat(80), "PW".repeat(100));
        assert_eq!(excerpt(&said), format!("{} //…@h/", "a ".repeat(80)));
    }

    #[test]
    fn an_excerpt_is_one_short_line_that_steers_no_terminal() {
        assert_eq!(excerpt("  a\r\nb\u{7}c "), "a  b c");
        assert_eq!(excerpt("a\u{1b}[31mb\u{202e}c\u{200b}d\u{2028}e"), "a [31mb c d e");
        assert_eq!(excerpt(&"é".repeat(500)).chars().count(), EXCERPT_CHARS_MAX + 1);
        assert_eq!((after_colon(" \n").as_str(), after_colon("no").as_str()), ("", ": no"));
    }
}
