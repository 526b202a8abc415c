//! A whole URL, with all that is within it.

use super::host::{ahead, host_begin, is_of_scheme, next_host, user_info};
use super::path::{is_rtmp, is_signature, masked_key, masked_path, masked_place, masked_reference};
use super::query::{masked_query, query_begin};
use super::{SLASHES, Shown};

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
