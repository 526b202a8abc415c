//! Text without the secrets of the URLs in it: what is written, shown and sent about a run may name
//! a URL, and a URL may hold a password (user info), a signature (query), a key (path of RTMP).
//!
//! `http://me:pw@h/a.mp4?token=T&n=3: no answer` becomes `http://…@h/a.mp4?token=…&n=3: no answer`.

use std::borrow::Cow;

/// The text that is shown in place of a secret.
pub const HIDDEN: &str = "…";

/// Words that are names of secrets: of keys in files, variables of the environment, parameters.
const SECRET_WORDS: [&str; 9] =
    ["auth", "authorization", "bearer", "cookie", "jwt", "pin", "sig", "signature", "streamid"];

/// Words of names of secrets end with one of these: `privateKey`, `PGPASS`, `DB_CRED`.
const SECRET_ENDS: [&str; 6] = ["key", "keys", "pass", "pwd", "cred", "creds"];

/// Parts of words that are names of secrets.
pub const SECRET_STEMS: [&str; 8] =
    ["token", "password", "passwd", "passphrase", "secret", "apikey", "authkey", "streamkey"];

/// Parameters of URLs whose names contain one of these may be signatures or credentials too; other
/// things have names with them (`codec`, `access_log`).
const SECRET_PARAMETERS: [&str; 14] = [
    "key", "pass", "pwd", "pin", "sig", "auth", "policy", "cred", "hash", "hmac", "session",
    "ticket", "code", "access",
];

/// Names of streams and rooms are no longer.
const SHOWN_BYTES_MAX: usize = 64;

/// A word that mixes letters and digits and is at least this long counts as random.
const WORD_BYTES_MIN: usize = 20;

/// Numbers of segments and parts, and seconds since 1970, are no longer.
const NUMBER_BYTES_MAX: usize = 10;

/// Characters after a URL that belong to the sentence around it. A brace may be one of a variable.
const PUNCTUATION: [char; 9] = ['.', ',', ':', ';', ')', ']', '\'', '`', '!'];

const SLASHES: [char; 2] = ['/', '\\'];

/// Beside blanks, what is in no URL as it is sent.
const ENDS: [char; 3] = ['"', '<', '>'];

/// Of a sentence, more is not shown where it may hold a URL: a server chose how long it is.
const TEXT_BYTES_MAX: usize = 4096;

/// Whether the query parameter `NAME=VALUE` of a URL that a user wrote may be shown with its value:
/// its name is not that of a secret, and its value looks like a name. Stream names in a query stay
/// visible this way.
#[must_use]
pub fn may_be_shown(pair: &str) -> bool {
    let Some((name, value)) = pair.split_once('=') else { return false };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/:".contains(c);
    let is_random = |word: &str| {
        let has = |is: fn(char) -> bool| word.contains(is);
        // `conference-room-2024` is of words and numbers.
        let is_plain = |piece: &str| {
            piece.bytes().all(|b| b.is_ascii_digit())
                || piece.bytes().all(|b| b.is_ascii_lowercase())
        };
        word.len() >= WORD_BYTES_MIN
            && has(|c| c.is_ascii_digit())
            && has(|c| c.is_ascii_alphabetic())
            && !word.split(['-', '_']).all(is_plain)
    };
    // Signatures in base64url have hyphens and low lines within.
    let is_between = |c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c);
    !is_secret_parameter(name)
        && (1..=SHOWN_BYTES_MAX).contains(&value.len())
        && name.trim_end_matches("[]").chars().chain(value.chars()).all(is_plain)
        && (!value.contains("://") || masked_url(value, IN_SENTENCES) == value)
        && (is_uuid(value) || !value.split(is_between).any(is_random))
}

/// Whether a value of this name is a secret, wherever the name is one of a value.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.map(str::to_ascii_lowercase).any(|word| {
        SECRET_WORDS.contains(&word.as_str())
            || SECRET_ENDS.iter().any(|end| word.ends_with(end))
            || SECRET_STEMS.iter().any(|stem| word.contains(stem))
    })
}

fn is_secret_parameter(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    names_a_secret(name) || SECRET_PARAMETERS.iter().any(|part| lower.contains(part))
}

/// The id of a room or a video, by its form (RFC 9562, section 4).
fn is_uuid(value: &str) -> bool {
    let mut parts = value.split('-');
    let is_part = |length: usize| {
        move |part: &str| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    [8, 4, 4, 4, 12].into_iter().all(|length| parts.next().is_some_and(is_part(length)))
        && parts.next().is_none()
}

/// `text` with the secrets of its URLs as `…`: user info, values of the query but for numbers,
/// fragments, keys in the path. What was masked stays as it is. Of a text with URLs that is longer
/// than a sentence, the words that begin it.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    if !text.contains("://") && !text.contains('?') {
        return Cow::Borrowed(text);
    }
    let begin = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default();
    if begin.len() == text.len() {
        return Cow::Owned(masked_with(text, IN_SENTENCES));
    }
    // The password of a URL that is cut off before its `@` looks like a host.
    let whole = begin.rsplit_once(char::is_whitespace).map_or("", |(words, _)| words);
    Cow::Owned(format!("{}{HIDDEN}", masked_with(whole, IN_SENTENCES)))
}

/// How a part of a URL that may be a secret is shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// A parameter of the query, `NAME=VALUE`.
    pub pair: fn(&str) -> String,
    /// The last part of a path of RTMP, which is the key of a publisher.
    pub key: fn(&str) -> String,
}

/// Of what a server says no value of a parameter is shown.
const IN_SENTENCES: Shown = Shown { pair: masked_pair, key: hidden };

fn hidden(_: &str) -> String {
    HIDDEN.to_owned()
}

/// `text` with the secrets of the URLs in it as `shown` says. A URL ends at blanks, double quotes
/// and angle brackets.
#[must_use]
pub fn masked_with(text: &str, shown: Shown) -> String {
    let is_end = |c: char| c.is_whitespace() || ENDS.contains(&c);
    let mut masked = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_end) {
        let url = piece.trim_end_matches(is_end).trim_end_matches(PUNCTUATION);
        masked.push_str(&masked_url(url, shown));
        masked.push_str(piece.get(url.len()..).unwrap_or_default());
    }
    masked
}

/// A URL, or a relative reference with a query, without its secrets. Other URLs may be within its
/// path, before it and behind it. One pass: a server may say `://` as often as it likes.
#[must_use]
pub fn masked_url(text: &str, shown: Shown) -> String {
    let last_at = text.rfind('@');
    let mut masked = String::with_capacity(text.len());
    let (mut scheme, mut rest): (Option<&str>, _) = (None, text);
    loop {
        if scheme.is_some() {
            let last_at = last_at.and_then(|at| at.checked_sub(text.len() - rest.len()));
            let host = host_begin(rest, last_at);
            masked.push_str(if host > 0 { "…@" } else { "" });
            rest = rest.get(host..).unwrap_or_default();
        }
        // The key of a publisher may have any letters; in a list of FFmpeg's another URL follows.
        let is_separate = |(before, _): &(&str, &str)| {
            before.trim_end_matches(is_of_scheme).ends_with([',', ';', '|', ']', '\''])
        };
        let next =
            rest.split_once("://").filter(|next| !scheme.is_some_and(is_rtmp) || is_separate(next));
        let part = next.map_or(rest, |(before, _)| before.trim_end_matches(is_of_scheme));
        // What follows is a part of the query, also another URL.
        let query = match scheme {
            Some(_) => part.find(['?', '#']),
            None => part.find('?').filter(|at| rest.rfind('=').is_some_and(|equal| equal > *at)),
        };
        let (part, query) = query.map_or((part, None), |at| {
            let (part, query) = rest.split_at(at);
            (part, Some(query))
        });
        let is_listed = query.is_none() && next.is_some() && scheme.is_some_and(is_rtmp);
        let end = part.rfind(['|', ',', ';']).filter(|_| is_listed).unwrap_or(part.len());
        let (place, separator) = part.split_at(end);
        masked.push_str(&match scheme {
            Some(scheme) => masked_place(scheme, place, shown),
            None if query.is_some() => masked_path(place, shown),
            None => place.to_owned(),
        });
        masked.push_str(separator);
        if let Some(query) = query {
            return masked + &masked_query(query, shown);
        }
        let Some((before, after)) = next else { return masked };
        let name = before.get(part.len()..).unwrap_or_default();
        masked.push_str(name);
        masked.push_str("://");
        (scheme, rest) = (Some(name), after);
    }
}

fn is_of_scheme(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "+.-".contains(letter)
}

/// Where the host begins in what follows `://`: at 0 without user info. `last_at` is the last `@`.
///
/// A password with `/`, `?` or `#` ends the authority too early: what then stands where a port does
/// is none, and an `@` is to come.
fn host_begin(rest: &str, last_at: Option<usize>) -> usize {
    let slashes = rest.len() - rest.trim_start_matches(SLASHES).len();
    let (_, place) = rest.split_at(slashes);
    let (authority, after) =
        place.split_at(place.find(['/', '\\', '?', '#']).unwrap_or(place.len()));
    let user = authority.rfind('@').map_or(0, |at| at + 1);
    let (_, host) = authority.split_at(user);
    // Another URL may follow, after a comma.
    let before = host.strip_suffix(':').filter(|_| after.starts_with("//"));
    let before = before.map(|before| before.trim_end_matches(is_of_scheme));
    let host = before.filter(|before| !before.ends_with(':')).unwrap_or(host);
    let host = host.trim_end_matches([',', ';', '.', ')', '\'', '`']);
    let port = host.rsplit(']').next().and_then(|port| port.split_once(':'));
    let is_port = port.is_none_or(|(_, port)| port.is_empty() || port.parse::<u16>().is_ok());
    match last_at.filter(|at| !is_port && *at >= slashes + user) {
        Some(at) => at + 1,
        None if user > 0 => slashes + user,
        None => 0,
    }
}

/// The host with its path: a path of RTMP without the key that it ends with.
fn masked_place(scheme: &str, place: &str, shown: Shown) -> String {
    if is_rtmp(scheme) {
        let place = place.trim_end_matches(SLASHES);
        let (before, key) = place.split_at(place.rfind(SLASHES).map_or(place.len(), |at| at + 1));
        let key = if key.is_empty() { String::new() } else { (shown.key)(key) };
        return format!("{before}{key}");
    }
    let slashes = place.len() - place.trim_start_matches(SLASHES).len();
    let (_, host) = place.split_at(slashes);
    let (host, path) = place.split_at(slashes + host.find(SLASHES).unwrap_or(host.len()));
    format!("{host}{}", masked_path(path, shown))
}

fn is_rtmp(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    let end = scheme.rsplit_once("rtmp").map(|(_, end)| end);
    end.is_some_and(|end| ["", "s", "e", "t", "te", "ts"].contains(&end))
}

/// A path whose parts of the form `NAME=VALUE` have signatures in some networks.
fn masked_path(path: &str, shown: Shown) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(_) if !may_be_shown(part) => (shown.pair)(part),
        Some(_) | None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// A query from its `?` on, and a fragment from its `#` on, of which one that says where a secret
/// is stays.
fn masked_query(text: &str, shown: Shown) -> String {
    let (query, fragment) = text.split_at(text.find('#').unwrap_or(text.len()));
    let is_reference = |pair: &str| {
        let value = pair.split_once('=').map_or("", |(_, value)| value);
        let is_fingerprint = pair.starts_with("sha256=");
        is_fingerprint || value.starts_with("env:") || value.starts_with("file:")
    };
    let fragment = match fragment.strip_prefix('#') {
        Some(inner) if !inner.split('&').all(is_reference) => "#…",
        Some(_) | None => fragment,
    };
    let Some(query) = query.strip_prefix('?') else { return fragment.to_owned() };
    let pair = |pair: &str| if pair.is_empty() { String::new() } else { (shown.pair)(pair) };
    format!("?{}{fragment}", query.split('&').map(pair).collect::<Vec<_>>().join("&"))
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
    !is_secret_parameter(name)
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
            (r#"{"url":"http://me:PW@h/?k=PW","x":"y"}"#, r#"{"url":"http://…@h/?k=…","x":"y"}"#),
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

    /// Of URLs in the places where they are hard to find. What a scenario shows has no more.
    #[test]
    fn no_secret_is_shown_wherever_its_url_stands() {
        for (text, expect) in [
            (r#"{"a":"http://h","b":"http://me:PW@x/"}"#, r#"{"a":"http://h","b":"http://…@x/"}"#),
            ("http://a,http://me:PW@b/", "http://a,http://…@b/"),
            ("http://a:80,http://me:PW@b/", "http://a:80,http://…@b/"),
            ("http://h/?x=/y,http://me:PW@b/", "http://h/?x=…"),
            ("http://proxy/http://me:PW@h/a", "http://proxy/http://…@h/a"),
            ("http://h/hmac=PW/a.ts", "http://h/hmac=…/a.ts"),
            ("rtmpt://h/live/PW", "rtmpt://h/live/…"),
            ("rtmp:///PW", "rtmp:///…"),
            (
                "[f=flv]rtmp://a/live/PW|[f=flv]rtmp://b/live/PW",
                "[f=flv]rtmp://a/live/…|[f=flv]rtmp://b/live/…",
            ),
            ("rtmp://a/live/PW|http://me:PW@h/x", "rtmp://a/live/…|http://…@h/x"),
            ("rtmp://h/live/a://PW", "rtmp://h/live/a://…"),
            ("http:///me:PW@h/", "http://…@h/"),
            // A password with what ends an authority.
            ("whep+http://me:PW#1@h/x", "whep+http://…@h/x"),
            ("whep+http://me:PW/1@h/x", "whep+http://…@h/x"),
            ("whep+http://me:PW?1@h/x", "whep+http://…@h/x"),
            ("whep+http://a@me:PW/1@h/x", "whep+http://…@h/x"),
            ("http://h:80/a@b", "http://h:80/a@b"),
            ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
            ("http://h/m#bearer=PW", "http://h/m#…"),
            ("http://h/m#bearer=env:TOKEN&sha256=ab", "http://h/m#bearer=env:TOKEN&sha256=ab"),
        ] {
            let as_names = |pair: &str| {
                if may_be_shown(pair) { pair.to_owned() } else { masked_pair(pair) }
            };
            let with_names = Shown { pair: as_names, key: hidden };
            assert_eq!(masked(text), expect, "{text}");
            assert_eq!(masked(expect), expect, "masked twice");
            assert_eq!(masked_with(text, with_names), expect, "{text}");
        }
    }

    /// A line of a playlist is as long as its server likes.
    #[test]
    fn a_text_of_very_many_schemes_is_masked_in_one_pass_and_a_long_one_is_cut() {
        let text = format!("x{}", ":///".repeat(1 << 18));
        assert_eq!(masked_url(&text, IN_SENTENCES), text);
        assert_eq!(masked(&text), HIDDEN);
        let cut = format!("at http://me:{}@h/", "PW".repeat(TEXT_BYTES_MAX));
        assert_eq!(masked(&cut), "at…");
        assert_eq!(masked(&"é".repeat(TEXT_BYTES_MAX)).len(), 2 * TEXT_BYTES_MAX, "no URL");
    }

    #[test]
    fn names_are_shown_and_what_may_be_a_secret_is_not() {
        for (name, value, is_shown) in [
            ("app", "live", true),
            ("stream", "lesson-12", true),
            ("room", "3fa85f64-5717-4562-b3fc-2c963f66afa6", true),
            ("stream", "conference-room-2024", true),
            ("collect[]", "cpu", true),
            ("src", "rtsp://cam/1", true),
            ("src", "rtmp://b/live/hunter2", false),
            ("transport", "tcp", true),
            ("accessToken", "a", false),
            ("X-Amz-Signature", "a", false),
            ("authKey", "a", false),
            ("PIN", "12", false),
            ("streamid", "publish:cam", false),
            // Whatever it is called, it looks like a key.
            ("t", "9f86d081884c7d659a2feaa0c55ad015", false),
            ("md5", "_e4Nc3idu-kWRm01TBBNYw", false),
            ("privateKey", "a", false),
            ("db_cred", "a", false),
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
