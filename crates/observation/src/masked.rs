//! Text without the secrets of the URLs in it: what is written, shown and sent about a run may name
//! a URL, and a URL may hold a password (user info), a signature (query), a key (path of RTMP).
//!
//! `http://me:pw@h/a.mp4?token=T&n=3: no answer` becomes `http://…@h/a.mp4?token=…&n=3: no answer`.

use std::borrow::Cow;
use std::ops::Range;

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

/// What a text with a percent-encoded URL has: `@`, `?` and `:`; a `%` may be encoded once more.
const ENCODED: [&str; 6] = ["%40", "%3F", "%3f", "%3A", "%3a", "%25"];

/// What a percent-encoded URL has one of: `@`, `:`, `?` and `=`.
const ESCAPES: [&str; 4] = ["%40", "%3a", "%3f", "%3d"];

/// A URL within a URL within a URL is encoded so often.
const ENCODED_TIMES_MAX: usize = 3;

/// What follows the `@` of an image of a container in place of a host: `image:1.2@sha256:…`.
const DIGESTS: [&str; 2] = ["sha256:", "sha512:"];

/// What stands before a `:` and is no user: schemes of addresses of people and rooms, and a tag of
/// HLS with a range of bytes, `#EXT-X-BYTERANGE:75232@0`.
const NOT_USERS: [&str; 6] = ["mailto", "sip", "sips", "xmpp", "acct", "#ext-x-byterange"];

/// Schemes after which the URL standard takes one slash for two: `http:/HOST`.
const WEB_SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

/// `m3u8`, `m4s`, `html`.
const FILE_ENDING_BYTES_MAX: usize = 5;

/// Beside blanks, what is in no URL as it is sent.
const ENDS: [char; 3] = ['"', '<', '>'];

/// Characters before a URL that belong to the sentence around it.
const OPENING: [char; 9] = ['(', '[', '{', '\'', '`', '*', '“', '„', '«'];

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
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let (begin, after) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
    if after.is_empty() {
        return Cow::Owned(masked_with(text, IN_SENTENCES));
    }
    // The password of a URL that is cut off before its `@` looks like a host.
    let (words, _) = split_last_word(begin);
    Cow::Owned(format!("{}{HIDDEN}", masked_with(words, IN_SENTENCES)))
}

/// The path of a request, [`masked`], of any length.
#[must_use]
pub fn masked_request_path(path: &str) -> Cow<'_, str> {
    if is_plain(path) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(masked_url(path, IN_SENTENCES))
}

/// Whether a text has no URL with a secret, at a glance.
fn is_plain(text: &str) -> bool {
    let may_be_signed = text.contains('=') && text.contains(SLASHES);
    let has_scheme = text.contains("://") || (text.contains(":\\") && text.contains("\\/"));
    !may_be_signed
        && !has_scheme
        && !text.contains(['?', '@', '#'])
        && !ENCODED.iter().any(|escape| text.contains(*escape))
}

/// The beginning of what a server said, [`masked`]: a cut within it cuts no URL before its `@`.
#[must_use]
pub fn masked_beginning(text: &str) -> Cow<'_, str> {
    let (begin, after) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
    let (words, cut) = split_last_word(begin);
    let more = after.split(is_end).next().unwrap_or_default();
    // What is no URL may be much longer than those are, and begins all that is said.
    let may_be_url = cut.contains([':', '@', '?', '%']) || cut.contains("//") || more.contains('@');
    if may_be_url && !more.is_empty() {
        return Cow::Owned(format!("{}{HIDDEN}", masked(words)));
    }
    masked(begin)
}

/// The words that begin a text, and the one that ends it, which may go on where the text is cut.
fn split_last_word(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end_matches(|c: char| !is_end(c)).len())
}

/// Whether a URL ends at this character.
fn is_end(letter: char) -> bool {
    letter.is_whitespace() || ENDS.contains(&letter)
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
    let mut masked = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_end) {
        let url = piece.trim_end_matches(is_end).trim_end_matches(PUNCTUATION);
        masked.push_str(&masked_url(url, shown));
        masked.push_str(piece.get(url.len()..).unwrap_or_default());
    }
    masked
}

/// A URL, or a relative reference, without its secrets. Other URLs may be within its path, before
/// it and behind it, also without a scheme: `//ME:PW@HOST`. One pass: a server may say `://` and
/// `//` as often as it likes.
#[must_use]
pub fn masked_url(text: &str, shown: Shown) -> String {
    match escaped_slash(text) {
        Some(slash) => masked_plain(&text.replace(slash, "/"), shown).replace('/', slash),
        None => masked_plain(text, shown),
    }
}

/// How a text of JSON writes each of its slashes: `\/`, and with more `\` where it is within
/// another.
fn escaped_slash(text: &str) -> Option<&str> {
    let (begin, _) = text.split_at(text.find('/')? + 1);
    let slash = begin.get(begin.trim_end_matches('/').trim_end_matches('\\').len()..)?;
    let is_escaped = slash.len() > 1 && text.matches(slash).count() == text.matches('/').count();
    is_escaped.then_some(slash)
}

/// The same of a text whose slashes are not escaped.
fn masked_plain(text: &str, shown: Shown) -> String {
    let (last_at, last_equal) = (text.rfind('@'), text.rfind('='));
    let ahead = |at: Option<usize>, rest: &str| ahead(at, text, rest);
    let mut masked = String::with_capacity(text.len());
    let first = text.split_once("://");
    let first = first.map_or(text, |(first, _)| first.trim_end_matches(is_of_scheme));
    let (user, is_of_host) = user_info(first);
    let mut is_host = is_of_host || !user.is_empty();
    let (mut scheme, mut rest, mut is_bare): (Option<&str>, _, _) = (None, text, false);
    // Of a publisher. It is kept: a scheme may be long, and is that of many bare hosts.
    let mut has_key = false;
    // The slashes before the first host, which begin no other.
    let mut begin = user.start;
    if is_host {
        masked.push_str(text.get(..user.start).unwrap_or_default());
        masked.push_str(if user.is_empty() { "" } else { "…@" });
        rest = text.get(user.end..).unwrap_or_default();
        begin = 0;
    }
    let first = first.get(text.len() - rest.len()..).unwrap_or_default();
    let has_query = query_begin(first, rest.len(), ahead(last_equal, rest), is_host).is_some();
    loop {
        let is_signed = is_bare && is_signature(rest, scheme);
        if (scheme.is_some() || is_bare) && !is_signed {
            let host = host_begin(rest, ahead(last_at, rest));
            masked.push_str(if host > 0 { "…@" } else { "" });
            rest = rest.get(host..).unwrap_or_default();
            begin = rest.len() - rest.trim_start_matches(SLASHES).len();
        }
        let next = next_host(rest, (begin, is_host), has_key, ahead(last_at, rest));
        let part = next.as_ref().map_or(rest, |next| next.before);
        // What follows is a part of the query, also another URL.
        let query = match scheme {
            Some(_) => part.find(['?', '#']),
            None => query_begin(part, rest.len(), ahead(last_equal, rest), is_host),
        };
        let (part, query) = query.map_or((part, None), |at| {
            let (part, query) = rest.split_at(at);
            (part, Some(query))
        });
        let is_listed = query.is_none() && next.is_some() && has_key;
        let end = part.rfind(['|', ',', ';']).filter(|_| is_listed).unwrap_or(part.len());
        let (place, separator) = part.split_at(end);
        let is_before_bare = next.as_ref().is_some_and(|next| next.scheme.is_none());
        masked.push_str(&match scheme {
            Some(_) if has_key => masked_key(place, is_bare, shown),
            Some(_) if !is_bare => masked_place(place, shown),
            None if !has_query && query.is_none() => {
                let is_path = is_host || is_before_bare || place.contains(SLASHES);
                masked_reference(place, is_path, !is_bare, shown)
            }
            Some(_) | None => masked_path(place, !is_bare, shown),
        });
        masked.push_str(separator);
        if let Some(query) = query {
            return masked + &masked_query(query, shown);
        }
        let Some(next) = next else { return masked };
        masked.push_str(next.sign);
        is_bare = next.scheme.is_none();
        // Without a scheme it is that of the URL before.
        if let Some(found) = next.scheme {
            (scheme, has_key) = (Some(found), is_rtmp(found));
        }
        (rest, begin, is_host) = (next.after, 0, true);
    }
}

/// The place `at` of a text in the `rest` that ends it; `None` if it is before.
fn ahead(at: Option<usize>, text: &str, rest: &str) -> Option<usize> {
    (at? + rest.len()).checked_sub(text.len())
}

/// Where another host begins in a text.
struct NextHost<'t> {
    before: &'t str,
    /// `SCHEME://`, or slashes alone.
    sign: &'t str,
    scheme: Option<&'t str>,
    after: &'t str,
}

/// The first host of a text whose sign has its slashes at or behind `begin`, where a host begins if
/// `is_host`, else a path. Of a text that `has_key`, that of a publisher, which may have any
/// letters, another URL follows in a list of FFmpeg's only. `last_at` is the last `@`.
fn next_host(
    text: &str,
    (begin, is_host): (usize, bool),
    has_key: bool,
    last_at: Option<usize>,
) -> Option<NextHost<'_>> {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let mut from = begin;
    loop {
        let mut pairs = text.as_bytes().get(from..)?.windows(2);
        let slashes = from + pairs.position(|pair| pair.iter().all(is_slash))?;
        let (left, right) = text.split_at(slashes);
        let (before, scheme, after) = match (left.strip_suffix(':'), right.strip_prefix("//")) {
            (Some(left), Some(after)) => {
                let (before, scheme) = left.split_at(left.trim_end_matches(is_of_scheme).len());
                (before, Some(scheme), after)
            }
            (Some(_) | None, _) => (left, None, right.trim_start_matches(SLASHES)),
        };
        let place = before.get(begin..).unwrap_or_default();
        let is_one = if has_key {
            before.ends_with([',', ';', '|', ']', '\''])
        } else {
            scheme.is_some()
                || !is_path(place, is_host)
                || begins_with_password(after, ahead(last_at, text, after))
        };
        if is_one {
            let sign = text.get(before.len()..text.len() - after.len()).unwrap_or_default();
            return Some(NextHost { before, sign, scheme, after });
        }
        if scheme.is_some() {
            return None;
        }
        from = text.len() - after.len();
    }
}

/// Whether what stands before bare slashes is a path, in which they are a typing error rather than
/// the sign of a host: `img//logo@2x.mp4`, `C:\\Users\\ada@corp`. It is none directly behind a
/// host, where a proxy has the URL that it asks for.
fn is_path(place: &str, is_host: bool) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.~".contains(c);
    let is_segment = |part: &str| !part.is_empty() && part.chars().all(is_plain);
    match place.rsplit_once(SLASHES) {
        Some((_, part)) => is_segment(part),
        None if is_host => false,
        None => {
            let part = place.trim_start_matches(OPENING);
            let drive = part.strip_suffix(':').filter(|drive| drive.len() == 1);
            is_segment(part) || drive.is_some_and(is_segment)
        }
    }
}

/// Whether a text begins with a user who has a password. `last_at` is its last `@`.
fn begins_with_password(text: &str, last_at: Option<usize>) -> bool {
    text.get(..host_begin(text, last_at)).is_some_and(|user| user.contains(':'))
}

/// Whether what follows slashes begins with a part that signs a path, whose value may have `@`.
fn is_signature(text: &str, scheme: Option<&str>) -> bool {
    let part = text.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let is_secret = if scheme.is_some() { is_secret_part(part) } else { names_a_signature(part) };
    is_secret && !may_have_user(part)
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

/// The user info of a reference without a scheme: of `//ME:PW@HOST/x`, also behind `NAME=`, of
/// `http:/ME@HOST/x`, and of `ME:PW@HOST/x`. Empty where there is none: a name alone before `@` is
/// an address of mail or of a chat. And whether slashes say that a host is there.
fn user_info(text: &str) -> (Range<usize>, bool) {
    let rest = text.trim_start_matches(OPENING);
    let is_of_name = |c: char| is_of_scheme(c) || c == '_';
    let name = rest.split_once('=').filter(|(name, _)| name.chars().all(is_of_name));
    let rest = name.map_or(rest, |(_, value)| value.trim_start_matches(OPENING));
    let web = rest.split_once(':').filter(|(name, after)| {
        after.starts_with(SLASHES) && WEB_SCHEMES.iter().any(|web| name.eq_ignore_ascii_case(web))
    });
    let (slashes_min, rest) = web.map_or((2, rest), |(_, after)| (1, after));
    let place = rest.trim_start_matches(SLASHES);
    let begin = text.len() - place.len();
    let (user, host) = place.split_at(host_begin(place, place.rfind('@')));
    let is_of_host = rest.len() - place.len() >= slashes_min;
    let is_user_info = is_of_host || (has_password(user, host) && !is_address(user, host));
    let end = if is_user_info { begin + user.len() } else { begin };
    (begin..end, is_of_host)
}

/// Whether `user`, all up to the `@` before `host`, has a password.
fn has_password(user: &str, host: &str) -> bool {
    user.contains(':') && !DIGESTS.iter().any(|digest| host.starts_with(digest))
}

/// Whether `user`, all up to the `@` before `host`, is none: the address of a person or a room, or
/// a range of bytes. It has no path, but for the nickname in a room: `sip:PW@HOST/x` is of a user
/// `sip`.
fn is_address(user: &str, host: &str) -> bool {
    let Some((name, rest)) = user.split_once(':') else { return false };
    let is_before = |c: char| c == '=' || OPENING.contains(&c);
    let name = name.rsplit(is_before).next().unwrap_or_default();
    let may_have_path = name.eq_ignore_ascii_case("xmpp");
    // Behind another `:` or a slash another user may be.
    NOT_USERS.iter().any(|word| name.eq_ignore_ascii_case(word))
        && !rest.contains([':', '/', '\\'])
        && (may_have_path || !host.contains(SLASHES))
}

/// Where the query of a reference without a scheme begins, or its fragment, in the `part` that
/// begins a text of `length` bytes: what has a value later on, `last_equal`. All else is a word of
/// a sentence, or the tag of a playlist, but for the query of a file, and of what is certainly a
/// reference: by its slashes, or as it had user info (`is_known`).
fn query_begin(
    part: &str,
    length: usize,
    last_equal: Option<usize>,
    is_known: bool,
) -> Option<usize> {
    let bare = part.trim_start_matches(OPENING);
    let is_reference =
        is_known || bare.starts_with(SLASHES) || bare.starts_with("./") || bare.starts_with("../");
    let has_value = |at: usize| last_equal.is_some_and(|equal| equal > at);
    let is_query = |at: usize| {
        has_value(at) || (length > at + 1 && (is_reference || is_file(part.split_at(at).0)))
    };
    let query = part.find('?').filter(|at| is_query(*at));
    // A tag of a playlist may be quoted.
    let is_tag = |at: usize| !is_known && at <= part.len() - bare.len();
    let fragment = part.find('#').filter(|at| !is_tag(*at) && has_value(*at));
    query.into_iter().chain(fragment).min()
}

/// Whether a place is a file's, so that what follows its `?` is a query: `seg.ts?hunter2`.
fn is_file(place: &str) -> bool {
    let is_ending = |ending: &str| {
        (1..=FILE_ENDING_BYTES_MAX).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let file = place.rsplit(SLASHES).next().and_then(|name| name.rsplit_once('.'));
    file.is_some_and(|(name, ending)| {
        name.ends_with(|c: char| c.is_ascii_alphanumeric()) && is_ending(ending)
    })
}

/// The host of a publisher with its path, without the key that it ends with. What follows bare
/// slashes (`is_bare`) may be the rest of a key.
fn masked_key(place: &str, is_bare: bool, shown: Shown) -> String {
    let place = place.trim_end_matches(SLASHES);
    let host_end = if is_bare { 0 } else { place.len() };
    let (before, key) = place.split_at(place.rfind(SLASHES).map_or(host_end, |at| at + 1));
    let key = if key.is_empty() { String::new() } else { (shown.key)(key) };
    format!("{before}{key}")
}

/// The host with its path.
fn masked_place(place: &str, shown: Shown) -> String {
    let slashes = place.len() - place.trim_start_matches(SLASHES).len();
    let (_, host) = place.split_at(slashes);
    let (host, path) = place.split_at(slashes + host.find(SLASHES).unwrap_or(host.len()));
    format!("{host}{}", masked_path(path, true, shown))
}

fn is_rtmp(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    let end = scheme.rsplit_once("rtmp").map(|(_, end)| end);
    end.is_some_and(|end| ["", "s", "e", "t", "te", "ts"].contains(&end))
}

/// A path whose parts of the form `NAME=VALUE` have signatures in some networks.
fn masked_path(path: &str, is_begin: bool, shown: Shown) -> String {
    each_part(path, is_begin, |part, is_first| masked_part(part, is_first, is_secret_part, shown))
}

/// What may be a reference without a scheme or a query: a path has signatures too, but a word may
/// have any `=`.
fn masked_reference(place: &str, is_path: bool, is_begin: bool, shown: Shown) -> String {
    let is_secret = |part: &str| is_path && names_a_signature(part);
    each_part(place, is_begin, |part, is_first| masked_part(part, is_first, is_secret, shown))
}

/// Whether a part of the path of a URL may have a secret.
fn is_secret_part(part: &str) -> bool {
    part.contains('=') && !may_be_shown(part)
}

/// Whether a part of a path signs it: `hmac=…`, `exp=1~acl=%2f*~hmac=…`, `token=…`.
fn names_a_signature(part: &str) -> bool {
    // Base64 ends with `=`.
    let name = part.trim_end_matches('=').rsplit_once('=').map(|(name, _)| name);
    name.is_some_and(|name| names_a_secret(name) || name.to_ascii_lowercase().contains("hmac"))
}

/// A part of a path: the value of one that `is_secret` is hidden, and so is user info. Only the
/// first may be an address.
fn masked_part(
    part: &str,
    is_first: bool,
    is_secret: impl Fn(&str) -> bool,
    shown: Shown,
) -> String {
    let is_user_sought = may_have_user(part) || !is_secret(part);
    let part = if is_user_sought { masked_user(part, is_first) } else { part.to_owned() };
    if is_secret(&part) { (shown.pair)(&part) } else { part }
}

/// Whether a part of a path that is like a signature may rather be user info: a password may have
/// `=`, and a signature `:` and `@`.
fn may_have_user(part: &str) -> bool {
    part.split_once('=').is_none_or(|(name, _)| name.contains([':', '%']))
}

/// A path with each of its parts as `shown` says, which learns whether it is the first of a
/// reference, `is_begin` that of the path. That of a path behind a host is empty.
fn each_part(path: &str, is_begin: bool, shown: impl Fn(&str, bool) -> String) -> String {
    let mut out = String::with_capacity(path.len());
    for (nth, piece) in path.split_inclusive(SLASHES).enumerate() {
        let part = piece.trim_end_matches(SLASHES);
        out.push_str(&shown(part, is_begin && nth == 0));
        out.push_str(piece.get(part.len()..).unwrap_or_default());
    }
    out
}

/// A part of a path, which may be another URL: `ME:PW@HOST` after `//`, after a proxy, after a
/// scheme with less than two slashes, or with all of it percent-encoded.
fn masked_user(part: &str, may_be_address: bool) -> String {
    // What was masked stays as it is: the `@` is not that of an encoded URL.
    let (seen, part) = part.strip_prefix("…@").map_or(("", part), |rest| ("…@", rest));
    if is_encoded_url(part) {
        return format!("{seen}{HIDDEN}");
    }
    let (user, host) = part.split_at(part.rfind('@').map_or(0, |at| at + 1));
    let is_user = has_password(user, host) && !(may_be_address && is_address(user, host));
    if is_user { format!("{seen}…@{host}") } else { format!("{seen}{part}") }
}

/// Whether a part of a path is a percent-encoded URL that may have a secret: a user with a
/// password, a query, or a key of RTMP.
fn is_encoded_url(part: &str) -> bool {
    if !part.contains('%') {
        return false;
    }
    let mut lower = part.to_ascii_lowercase();
    for _ in 0..ENCODED_TIMES_MAX {
        lower = lower.replace("%25", "%");
    }
    // A `%` alone is none: `cpu@core0:95%`.
    let is_encoded = ESCAPES.iter().any(|escape| lower.contains(escape));
    let has = |letter: char, escape: &str| lower.contains(letter) || lower.contains(escape);
    let has_user = has('@', "%40") && has(':', "%3a");
    let has_query = has('?', "%3f") && has('=', "%3d");
    let has_key = lower.contains("rtmp") && lower.contains("%3a%2f%2f");
    is_encoded && (has_user || has_query || has_key)
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
    let pair = |pair: &str| {
        // The query may be another URL, with a query of its own: `?http://ME:PW@HOST/x?n=1`.
        let name = pair.split_once('=').map_or("", |(name, _)| name);
        let is_url = name.contains(['@', '?', '/', '\\']) || is_encoded_url(name);
        match pair {
            "" => String::new(),
            pair if is_url => hidden(pair),
            pair => (shown.pair)(pair),
        }
    };
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
#[path = "masked_tests.rs"]
mod tests;
