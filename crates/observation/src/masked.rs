//! Text without the secrets of the URLs in it: what is written, shown and sent about a run may name
//! a URL, and a URL may hold a password (user info), a signature (query), a key (path of RTMP).
//!
//! `http://me:pw@h/a.mp4?token=T&n=3: no answer` becomes `http://…@h/a.mp4?token=…&n=3: no answer`.

use std::borrow::Cow;

/// The text that is shown in place of a secret.
pub const HIDDEN: &str = "…";

/// URL parameters whose names contain one of these may be signatures or credentials. In a stream id
/// (SRT) publishers have key and password.
const SECRET_NAMES: [&str; 18] = [
    "token", "key", "secret", "pass", "pwd", "pin", "sig", "auth", "jwt", "policy", "cred", "hash",
    "hmac", "session", "ticket", "code", "access", "streamid",
];

/// Names of streams and rooms are no longer.
const SHOWN_BYTES_MAX: usize = 64;

/// A word that mixes letters and digits and is at least this long counts as random.
const WORD_BYTES_MIN: usize = 20;

/// Numbers of segments and parts, and seconds since 1970, are no longer.
const NUMBER_BYTES_MAX: usize = 10;

/// Characters after a URL that belong to the sentence around it.
const PUNCTUATION: [char; 12] = ['.', ',', ':', ';', ')', ']', '}', '>', '"', '\'', '`', '!'];

/// Whether the query parameter `NAME=VALUE` of a URL that a user wrote may be shown with its value:
/// its name is not that of a secret, and its value looks like a name. Stream names in a query stay
/// visible this way.
#[must_use]
pub fn may_be_shown(pair: &str) -> bool {
    let Some((name, value)) = pair.split_once('=') else { return false };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/:".contains(c);
    let is_random = |word: &str| {
        let has = |is: fn(char) -> bool| word.contains(is);
        word.len() >= WORD_BYTES_MIN
            && has(|c| c.is_ascii_digit())
            && has(|c| c.is_ascii_alphabetic())
    };
    !is_secret_name(name)
        && (1..=SHOWN_BYTES_MAX).contains(&value.len())
        && name.chars().chain(value.chars()).all(is_plain)
        && !value.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

/// `text` with the secrets of its URLs as `…`: user info, values of the query but for numbers,
/// fragments, keys in the path. What was masked stays as it is.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    if !text.contains("://") && !text.contains('?') {
        return Cow::Borrowed(text);
    }
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let bare = word.trim_end_matches(char::is_whitespace);
        let space = word.get(bare.len()..).unwrap_or_default();
        masked_word(bare) + space
    });
    Cow::Owned(words.collect())
}

/// A word without the secrets of a URL, or of a relative reference with a query.
fn masked_word(word: &str) -> String {
    let is_url = word.contains("://");
    let has_query = word.split_once('?').is_some_and(|(_, query)| query.contains('='));
    if !is_url && !has_query {
        return word.to_owned();
    }
    let bare = word.trim_end_matches(PUNCTUATION);
    let punctuation = word.get(bare.len()..).unwrap_or_default();
    let (bare, fragment) = bare.split_once('#').map_or((bare, ""), |(bare, _)| (bare, "#…"));
    let (head, query) = match bare.split_once('?') {
        Some((head, query)) => (head, format!("?{}", masked_query(query))),
        None => (bare, String::new()),
    };
    format!("{}{query}{fragment}{punctuation}", masked_head(head))
}

/// What is before a query. It may name a URL within the path of another.
fn masked_head(head: &str) -> String {
    let Some((scheme, rest)) = head.split_once("://") else { return masked_path(head) };
    let end = rest.find(['/', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => authority.to_owned(),
    };
    let is_rtmp = scheme.to_ascii_lowercase().rsplit("rtmp").next().is_some_and(|end| {
        end.len() < scheme.len() && ["", "s", "e", "t", "te", "ts"].contains(&end)
    });
    let path = match path.trim_end_matches(['/', '\\']).rsplit_once(['/', '\\']) {
        // The last part is the key of a publisher.
        Some((before, _)) if is_rtmp => format!("{before}/{HIDDEN}"),
        _ => masked_head(path),
    };
    format!("{scheme}://{authority}{path}")
}

/// A path whose parts of the form `NAME=VALUE` have signatures in some networks.
fn masked_path(path: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(_) if !may_be_shown(part) => masked_pair(part),
        Some(_) | None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn masked_query(query: &str) -> String {
    let pairs = query
        .split('&')
        .map(|pair| if pair.is_empty() { String::new() } else { masked_pair(pair) });
    pairs.collect::<Vec<_>>().join("&")
}

/// A parameter without its value, but for a number.
fn masked_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, value)) if is_number(name, value) => pair.to_owned(),
        // A long name may be the secret: what has no value is one.
        Some((name, _)) if name.len() <= SHOWN_BYTES_MAX => format!("{name}={HIDDEN}"),
        Some(_) | None => HIDDEN.to_owned(),
    }
}

fn is_number(name: &str, value: &str) -> bool {
    !is_secret_name(name)
        && (1..=NUMBER_BYTES_MAX).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_url_is_in_what_is_shown() {
        for (text, expect) in [
            ("no answer within 10.00 s", "no answer within 10.00 s"),
            ("is it? no", "is it? no"),
            ("http://h:9/a.mp4: TCP", "http://h:9/a.mp4: TCP"),
            ("http://me:PW@h:9/a.mp4?token=PW: TCP", "http://…@h:9/a.mp4?token=…: TCP"),
            ("`http://h/x?a=PW`b` is not", "`http://h/x?a=…` is not"),
            (
                "https://h/s.ts?Expires=1700000000&Signature=PW~&PW",
                "https://h/s.ts?Expires=1700000000&Signature=…&…",
            ),
            ("http://h/l.m3u8?_HLS_msn=12&_HLS_part=3", "http://h/l.m3u8?_HLS_msn=12&_HLS_part=3"),
            ("http://h/x?pin=1234", "http://h/x?pin=…"),
            ("http://h/x#PW, and http://a@b/", "http://h/x#…, and http://…@b/"),
            ("`seg.ts?sig=PW` is not a URI", "`seg.ts?sig=…` is not a URI"),
            ("http://h/hmac=PW/a.ts", "http://h/hmac=…/a.ts"),
            ("http://proxy/http://me:PW@h/a", "http://proxy/http://…@h/a"),
            ("http://a@b:PW@h\\x", "http://…@h\\x"),
            (r#"{"url":"http://me:PW@h/?k=PW","x":"PW"}"#, r#"{"url":"http://…@h/?k=…"}"#),
            ("rtmp://h/live/PW", "rtmp://h/live/…"),
            ("publish+rtmps://h/live/PW/ ended", "publish+rtmps://h/live/… ended"),
            ("srt://127.0.0.1:9000?streamid=publish:PW", "srt://127.0.0.1:9000?streamid=…"),
            (
                "publish+srt://h:9000/?latency=20&streamid=1234",
                "publish+srt://h:9000/?latency=20&streamid=…",
            ),
            ("rtsp://me:PW@h/cam\nws://h/?access=PW\t", "rtsp://…@h/cam\nws://h/?access=…\t"),
        ] {
            assert_eq!(masked(text), expect, "{text}");
            assert_eq!(masked(expect), expect, "masked twice");
        }
    }

    #[test]
    fn names_are_shown_and_what_may_be_a_secret_is_not() {
        for (name, value, is_shown) in [
            ("app", "live", true),
            ("stream", "lesson-12", true),
            ("room", "3fa85f64-5717-4562-b3fc-2c963f66afa6", true),
            ("transport", "tcp", true),
            ("accessToken", "a", false),
            ("X-Amz-Signature", "a", false),
            ("authKey", "a", false),
            ("PIN", "12", false),
            ("streamid", "publish:cam", false),
            // Whatever it is called, it looks like a key.
            ("t", "9f86d081884c7d659a2feaa0c55ad015", false),
            ("t", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", false),
            ("v", "a%20b", false),
            ("v", "", false),
            ("\u{1b}[31m", "a", false),
        ] {
            assert_eq!(may_be_shown(&format!("{name}={value}")), is_shown, "{name}={value}");
        }
        assert!(!may_be_shown("hunter2"), "a value without a name");
    }
}
