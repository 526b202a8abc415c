//! The schema of what `player` says of HTTP, and how it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::http::{HttpMix, HttpVersionPolicy};
use crate::keys::{NameOf, Named as _};
use crate::secret::TokenSource;

/// A version of HTTP for all viewers, or weights of versions: `{ "3" = 41, "2" = 51, "1.1" = 8 }`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum HttpFile {
    /// One for all.
    Word(NameOf<HttpVersionPolicy>),
    /// Weights.
    Mix(
        #[schemars(extend("propertyNames" = { "enum": HttpVersionPolicy::names() }))]
        BTreeMap<String, f64>,
    ),
}

/// The versions as in a file; `None` for the default.
pub(super) fn versions(mix: &HttpMix) -> Option<HttpFile> {
    match mix.only() {
        Some(HttpVersionPolicy::Negotiated) => None,
        Some(policy) => Some(HttpFile::Word(NameOf(policy))),
        None => {
            let weight = |(policy, weight_milli): (HttpVersionPolicy, u32)| {
                (policy.name().to_owned(), f64::from(weight_milli) / 1e3)
            };
            Some(HttpFile::Mix(mix.entries().map(weight).collect()))
        }
    }
}

/// The headers as in a file, without secrets; `None` if there are none.
pub(super) fn headers(headers: &[(String, TokenSource)]) -> Option<BTreeMap<String, String>> {
    let written = |(name, value): &(String, TokenSource)| (name.clone(), value.to_string());
    (!headers.is_empty()).then(|| headers.iter().map(written).collect())
}
