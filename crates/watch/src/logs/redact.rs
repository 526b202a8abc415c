//! Redacts log lines for display: short, printable, and without the secrets that servers write into
//! logs.

use std::sync::LazyLock;

use regex::Regex;
use throng_observation::masked::masked;

/// Maximum length of a displayed line, characters.
const SHOWN_CHARACTERS_MAX: usize = 300;

/// Names that precede a secret: `token=`, `"password":"`, `Authorization: Bearer `.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b([a-z_-]*(?:token|secret|passw(?:or)?d|passwd|",
        r"api[_-]?key|apikey|access[_-]?key|signature|credential|",
        r"cookie|stream[_-]?key|sid|pin)",
        r#"["']?\s*[=:]\s*["']?|"#,
        r#"authorization["']?\s*[=:]\s*["']?(?:bearer|basic)?\s*|"#,
        r#"\bbearer\s+)[^\s"'&,;}\]]+"#,
    ))
    .ok()
});

/// Patterns of secrets: a JSON Web Token, a long run of hexadecimal digits, user and password in
/// what is hardly a URL.
static SHAPED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2}|",
        r"://[^/\s:@]+:[^/\s@]+@|",
        r"\b[0-9a-fA-F]{32,}\b",
    ))
    .ok()
});

/// A log line for display: at most 300 characters, control characters as spaces, secrets as `…`,
/// those of URLs (user info, query, keys of RTMP) too.
#[must_use]
pub fn redacted(line: &[u8]) -> String {
    // A secret may straddle the cut, so more than the displayed part is searched.
    let looked_at = line.get(..4 * SHOWN_CHARACTERS_MAX).unwrap_or(line);
    let text = String::from_utf8_lossy(looked_at);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // The expressions are constant and tested; without them nothing is shown, because the line
    // would not be redacted.
    let (Some(named), Some(shaped)) = (NAMED.as_ref(), SHAPED.as_ref()) else {
        return String::new();
    };
    let text = masked(&text);
    let text = named.replace_all(&text, "$1…");
    let text = shaped.replace_all(&text, "…");
    let text = text.trim();
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let cases = [
            ("GET /rtc?access_token=abc123&auto=1", "GET /rtc?access_token=…&auto=1"),
            (
                r#"{"janus":"create","admin_secret":"hush","x":1}"#,
                r#"{"janus":"create","admin_secret":"…","x":1}"#,
            ),
            ("Authorization: Bearer abc.def", "Authorization: Bearer …"),
            ("authorization: Basic dTpw", "authorization: Basic …"),
            ("login password = hunter2 ok", "login password = … ok"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ4In0.sig-na_ture seen", "… seen"),
            ("rtmp://user:pw@host/live", "rtmp://…@host/…"),
            ("rtmp://host/live/hunter2 failed", "rtmp://host/live/… failed"),
            ("\"GET /whep?sig=hunter2 HTTP/1.1\" 401", "\"GET /whep?sig=… HTTP/1.1\" 401"),
            ("srt://h:9000?streamid=publish:hunter2", "srt://h:9000?streamid=…"),
            ("played /hmac=hunter2/live.m3u8", "played /hmac=…/live.m3u8"),
            ("key 0123456789abcdef0123456789abcdef end", "key … end"),
            (
                "Discarding too old outgoing packet (age=6597865us)",
                "Discarding too old outgoing packet (age=6597865us)",
            ),
        ];
        for (line, expect) in cases {
            assert_eq!(redacted(line.as_bytes()), expect);
        }
    }

    #[test]
    fn any_bytes_become_a_short_printable_line() {
        let noise: Vec<u8> =
            (0..5_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let line = redacted(&noise);
        assert!(line.chars().count() <= SHOWN_CHARACTERS_MAX + 1);
        assert!(!line.chars().any(char::is_control));
    }

    #[test]
    fn a_secret_at_the_cut_is_not_shown_in_part() {
        let line = format!("{} token={}", "x".repeat(SHOWN_CHARACTERS_MAX - 12), "s".repeat(600));
        assert!(!redacted(line.as_bytes()).contains("ss"));
    }
}
