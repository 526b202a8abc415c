//! An endpoint to scrape: URL, kind, credentials and metrics filter.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use throng_observation::Url;
use throng_observation::pack::EndpointKind;

use super::filter::Filter;

/// Decides by the consent rules whether an address may be contacted; the refusal is a sentence.
pub type AddressCheck = Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync>;

/// Credentials for an endpoint. `Debug` does not reveal them.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// No credentials.
    #[default]
    None,
    /// `user:password` of HTTP Basic; OvenMediaEngine's access token.
    Basic(String),
    /// A bearer token.
    Bearer(String),
    /// A secret inside each query: Janus's `admin_secret`.
    Secret(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic(_) => "Basic(…)",
            Self::Bearer(_) => "Bearer(…)",
            Self::Secret(_) => "Secret(…)",
        })
    }
}

/// An endpoint to scrape.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its name, and the label `endpoint` of its series.
    pub name: String,
    /// Its URL: `http`, `https`, `ws` or `wss`.
    pub url: Url,
    /// Its kind.
    pub kind: EndpointKind,
    /// Interval between scrapes.
    pub interval: Duration,
    /// Time limit of one scrape with all its queries.
    pub timeout: Duration,
    /// Its credentials.
    pub credentials: Credentials,
    /// Which metrics to keep.
    pub filter: Filter,
    /// SHA-256 of the only certificate to trust; without it the system's authorities are trusted.
    pub certificate_sha256: Option<[u8; 32]>,
}

/// Why an endpoint cannot be scraped at all.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The URL is invalid.
    #[error("endpoint {name}: {reason}")]
    Address {
        /// Name of the endpoint.
        name: String,
        /// What is wrong and how to fix it.
        reason: String,
    },
    /// The system refused a thread.
    #[error("cannot start a thread to scrape endpoints: {0}")]
    Thread(#[from] std::io::Error),
}

impl Endpoint {
    /// An endpoint that is scraped every five seconds, without credentials.
    ///
    /// # Errors
    /// When the URL's scheme is not `http`, `https`, `ws` (Janus only) or `wss`, or it has no host,
    /// or it contains credentials.
    pub fn new(
        name: impl Into<String>,
        url: &str,
        kind: EndpointKind,
    ) -> Result<Self, EndpointError> {
        let name = name.into();
        let wrong = |reason: String| EndpointError::Address { name: name.clone(), reason };
        let parsed = Url::parse(url).map_err(|error| wrong(format!("{error}")))?;
        let is_socket = matches!(parsed.scheme(), "ws" | "wss");
        if !is_socket && !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong(format!(
                "the scheme {} is not http, https, ws or wss",
                parsed.scheme()
            )));
        }
        if is_socket && kind != EndpointKind::JanusAdmin {
            return Err(wrong(
                "only Janus's admin API supports WebSocket; use http:// or https://".into(),
            ));
        }
        if !parsed.has_host() {
            return Err(wrong("no host".into()));
        }
        if parsed.has_user() {
            return Err(wrong(
                "credentials are not allowed in the address; give them separately after #".into(),
            ));
        }
        Ok(Self {
            name,
            url: parsed,
            kind,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(4),
            credentials: Credentials::None,
            filter: Filter::for_any(),
            certificate_sha256: None,
        })
    }
}
