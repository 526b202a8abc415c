//! What the readers and writers of target URLs have in common.

use throng_observation::Url;

use super::{Account, TargetError};
use crate::secret::HIDDEN;
use crate::url_template::without_secrets;

/// What URLs of publishers begin with whose protocol viewers use too, here or elsewhere.
const PUBLISH: &str = "publish+";

/// The URL that stands after `prefix` in `text`. The URL standard knows the hosts of `ws:` and
/// `http:` only, so the prefix goes before parsing.
pub(super) fn after_prefix(prefix: &str, text: &str) -> Result<Url, TargetError> {
    let rest = text.get(prefix.len()..).unwrap_or_default();
    let mut url = Url::parse(rest).map_err(|why| not_url(text, &why.to_string()))?;
    // No server ever sees a fragment (RFC 3986, 3.5).
    url.remove_fragment();
    // An empty query would not be written.
    if url.in_clear().query() == Some("") {
        url.set_query(None);
    }
    Ok(url)
}

/// The same the other way round, secrets redacted.
pub(super) fn shown_after(prefix: &str, url: &Url) -> String {
    format!("{prefix}{}", without_secrets(url.in_clear().as_str()))
}

/// The scheme and the URL of a publisher, without `publish+`.
pub(super) fn published<'a>(scheme: &'a str, text: &'a str) -> (&'a str, &'a str) {
    let after = |text: &'a str| text.get(PUBLISH.len()..).unwrap_or_default();
    (after(scheme), after(text))
}

/// A URL of a publisher: `shown` stands after `publish+`.
pub(super) fn shown_published(shown: &str) -> String {
    format!("{PUBLISH}{shown}")
}

/// A URL of a scheme whose hosts the URL standard does not know, as one of HTTP; of HTTPS if the
/// scheme is one over TLS. It has the usual port where none is written; `text` begins with
/// `scheme`.
pub(super) fn with_ports(
    scheme: &str,
    text: &str,
    (plain, secured): (u16, u16),
) -> Result<Url, TargetError> {
    let (known, port) = if scheme.ends_with('s') { ("https", secured) } else { ("http", plain) };
    let rest = text.get(scheme.len()..).unwrap_or_default();
    let mut url =
        Url::parse(&format!("{known}{rest}")).map_err(|why| not_url(text, &why.to_string()))?;
    // A port that is written and usual for the other scheme is not kept by the URL type.
    let authority =
        rest.trim_start_matches("://").split(['/', '?', '#']).next().unwrap_or_default();
    let has_port = authority.rsplit(['@', ']']).next().is_some_and(|host| host.contains(':'));
    if url.port().is_none() && !has_port && !url.set_port(port) {
        return Err(not_url(text, "it has no host"));
    }
    // It is no part of what a server is asked for: a key or stream id would end before it.
    if url.in_clear().fragment().is_some() {
        return Err(TargetError::Fragment);
    }
    Ok(url)
}

/// A URL that is kept as one of HTTP, with the scheme that it was written with: plain or over TLS,
/// each with its usual port.
pub(super) fn as_scheme(url: &str, plain: (&str, u16), secured: (&str, u16)) -> String {
    let (tls, rest) = match url.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix("http://").unwrap_or(url)),
    };
    let (scheme, usual) = if tls { secured } else { plain };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let known = if tls { 443 } else { 80 };
    let has_port = authority.rsplit([']', '@']).next().is_some_and(|host| host.contains(':'));
    let authority = match authority.strip_suffix(&format!(":{usual}")) {
        Some(host) => host.to_owned(),
        None if has_port || known == usual => authority.to_owned(),
        None => format!("{authority}:{known}"),
    };
    format!("{scheme}://{authority}{path}")
}

/// A URL that `account` was taken out of, with a sign that there is one.
pub(super) fn with_hidden(account: Option<&Account>, url: String) -> String {
    match account {
        Some(_) => url.replacen("://", &format!("://{HIDDEN}@"), 1),
        None => url,
    }
}

/// The parts of the path that are not empty.
pub(super) fn parts_of_path(url: &Url) -> impl DoubleEndedIterator<Item = &str> {
    url.in_clear().path_segments().into_iter().flatten().filter(|part| !part.is_empty())
}

/// The value of a parameter of the query, the first one of this name.
pub(super) fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.in_clear().query_pairs();
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Takes the parameters of these names out of the query.
pub(super) fn remove_parameters(url: &mut Url, names: &[&str]) {
    let pairs = url.in_clear().query_pairs().into_owned();
    let further: Vec<_> = pairs.filter(|(key, _)| !names.contains(&key.as_str())).collect();
    url.set_query(None);
    further.iter().for_each(|(name, value)| url.add_parameter(name, value));
}

/// Adds a parameter to what is shown of a URL.
pub(super) fn with_parameter(shown: &str, name: &str, value: &str) -> String {
    format!("{shown}{}{name}={value}", if shown.contains('?') { '&' } else { '?' })
}

pub(super) fn not_url(text: &str, why: &str) -> TargetError {
    TargetError::NotUrl { text: before_secrets(text), why: why.into() }
}

/// The part of a URL-like text before its query, without user info and without a key; cut to a
/// line's length.
pub(super) fn before_secrets(text: &str) -> String {
    let shown = without_secrets(text);
    let head = shown.split('?').next().unwrap_or_default();
    let is_rtmp = |scheme: &str| scheme.to_ascii_lowercase().contains("rtmp");
    let head = match (head.split_once(':'), head.rsplit_once('@')) {
        (Some((_, rest)), _) if rest.starts_with("//") => head.to_owned(),
        // Without the slashes, no part of it is known for what it is.
        (Some((scheme, _)), _) if is_rtmp(scheme) => format!("{scheme}:{HIDDEN}"),
        (_, Some((_, host))) => format!("{HIDDEN}@{host}"),
        (_, None) => head.to_owned(),
    };
    head.chars().take(120).collect()
}
