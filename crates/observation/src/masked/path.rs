//! Paths: signatures, keys and users in their parts.

use super::host::{has_password, is_address};
use super::names::{may_be_shown, names_a_secret};
use super::{HIDDEN, SLASHES, Shown};

/// What a percent-encoded URL has one of: `@`, `:`, `?` and `=`.
const ESCAPES: [&str; 4] = ["%40", "%3a", "%3f", "%3d"];

/// A URL within a URL within a URL is encoded so often.
const ENCODED_TIMES_MAX: usize = 3;

/// The host of a publisher with its path, without the key that it ends with. What follows bare
/// slashes (`is_bare`) may be the rest of a key.
pub(super) fn masked_key(place: &str, is_bare: bool, shown: Shown) -> String {
    let place = place.trim_end_matches(SLASHES);
    let host_end = if is_bare { 0 } else { place.len() };
    let (before, key) = place.split_at(place.rfind(SLASHES).map_or(host_end, |at| at + 1));
    let key = if key.is_empty() { String::new() } else { (shown.key)(key) };
    format!("{before}{key}")
}

/// The host with its path.
pub(super) fn masked_place(place: &str, shown: Shown) -> String {
    let slashes = place.len() - place.trim_start_matches(SLASHES).len();
    let (_, host) = place.split_at(slashes);
    let (host, path) = place.split_at(slashes + host.find(SLASHES).unwrap_or(host.len()));
    format!("{host}{}", masked_path(path, true, shown))
}

pub(super) fn is_rtmp(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    let end = scheme.rsplit_once("rtmp").map(|(_, end)| end);
    end.is_some_and(|end| ["", "s", "e", "t", "te", "ts"].contains(&end))
}

/// A path whose parts of the form `NAME=VALUE` have signatures in some networks.
pub(super) fn masked_path(path: &str, is_begin: bool, shown: Shown) -> String {
    each_part(path, is_begin, |part, is_first| masked_part(part, is_first, is_secret_part, shown))
}

/// What may be a reference without a scheme or a query: a path has signatures too, but a word may
/// have any `=`.
pub(super) fn masked_reference(place: &str, is_path: bool, is_begin: bool, shown: Shown) -> String {
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

/// Whether what follows slashes begins with a part that signs a path, whose value may have `@`.
pub(super) fn is_signature(text: &str, scheme: Option<&str>) -> bool {
    let part = text.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let is_secret = if scheme.is_some() { is_secret_part(part) } else { names_a_signature(part) };
    is_secret && !may_have_user(part)
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
pub(super) fn is_encoded_url(part: &str) -> bool {
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
