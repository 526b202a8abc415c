//! Where a query begins, and its parameters.

use super::names::{SHOWN_BYTES_MAX, is_secret_parameter};
use super::path::is_encoded_url;
use super::{HIDDEN, OPENING, SLASHES, Shown, hidden};

/// Numbers of segments and parts, and seconds since 1970, are no longer.
const NUMBER_BYTES_MAX: usize = 10;

/// `m3u8`, `m4s`, `html`.
const FILE_ENDING_BYTES_MAX: usize = 5;

/// Where the query of a reference without a scheme begins, or its fragment, in the `part` that
/// begins a text of `length` bytes: what has a value later on, `last_equal`. All else is a word of
/// a sentence, or the tag of a playlist, but for the query of a file, and of what is certainly a
/// reference: by its slashes, or as it had user info (`is_known`).
pub(super) fn query_begin(
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

/// A query from its `?` on, and a fragment from its `#` on, of which one that says where a secret
/// is stays.
pub(super) fn masked_query(text: &str, shown: Shown) -> String {
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
pub(super) fn masked_pair(pair: &str) -> String {
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
