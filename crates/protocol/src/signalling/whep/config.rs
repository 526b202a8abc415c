//! Where a WHEP player asks, with what, and where it may be sent on to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::super::said;
use super::super::waiting::ANSWER_WITHIN;

/// Whether a place that the server names (redirect, session URL) may be reached. The driver checks addresses again
/// when it connects; this keeps the participant from asking.
pub type MayReach = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// Where and how to ask.
#[derive(Clone)]
pub struct Config {
    /// The WHEP endpoint, `http:` or `https:`.
    pub url: Url,
    /// Bearer token (RFC 6750) sent with every request, redirected ones included.
    pub token: Option<String>,
    /// What may be reached.
    pub may_reach: MayReach,
    /// How long the server may take for one response.
    pub answer_within: Duration,
}

impl Config {
    /// The defaults for `url`: only its own origin may be reached.
    #[must_use]
    pub fn new(url: Url) -> Self {
        let origin = url.origin();
        let may_reach: MayReach = Arc::new(move |to: &Url| to.origin() == origin);
        Self { url, token: None, may_reach, answer_within: ANSWER_WITHIN }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("url", &place(&self.url)).finish_non_exhaustive()
    }
}

/// A URL without what may be secret: user, password, query.
pub(super) fn place(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    said::excerpt(&format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or(""), url.path()))
}
