//! A query to an endpoint, and what the scrapes of all kinds of endpoints share.

use std::collections::BTreeMap;

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The path, if it differs from the endpoint's.
    pub path: Option<String>,
    /// The body of a POST; without it the query is a GET.
    pub body: Option<String>,
}

/// The answer does not have the expected format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnexpectedAnswer(pub String);

/// Larger numbers are no figures of a server: sums and products of these stay finite.
pub(super) const NUMBER_MAX: f64 = 1e30;

/// The beginning of an answer, for error messages.
pub(super) fn beginning(text: &str) -> String {
    crate::logs::redacted(text.as_bytes()).chars().take(80).collect()
}

/// Labels including the endpoint's name.
pub(super) fn labels(endpoint: &str, more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    more.chain([("endpoint".to_owned(), endpoint.to_owned())]).collect()
}
