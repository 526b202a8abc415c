//! Consent of a public target: fetches its proof from each address, and again during the run.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use http::uri::Scheme;
use throng_observation::RunTime;
use throng_observation::run::Ending;
use throng_observation::units;
use throng_protocol::participant::ChannelError;

use crate::config::{Consent, EngineError, RunConfig, TlsOptions};
use crate::consent_lost::ConsentEnd;
use crate::control::Control;
use crate::sockets::http::get;
use crate::sockets::{Dialer, DnsCache};

/// Path of the proof on the target's web server.
pub const WELL_KNOWN_PATH: &str = "/.well-known/throng-consent";

/// Longest proof, bytes; real ones are a few lines.
const PROOF_BYTES_MAX: usize = 64 * 1024;

const TIMEOUT: Duration = Duration::from_secs(5);

/// Why no proof could be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// No runtime could be made, or TLS could not be set up.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The well-known file could not be fetched.
    #[error("{place}: {error}")]
    Fetch {
        /// Its URL and address.
        place: String,
        /// Why.
        error: ChannelError,
    },
    /// The server answered with another status than 200.
    #[error("{place}: HTTP status {status}")]
    Status {
        /// Its URL and address.
        place: String,
        /// The status.
        status: u16,
    },
    /// The TXT records could not be resolved.
    #[error("TXT {name}: {detail}")]
    Dns {
        /// The name that was queried.
        name: String,
        /// The resolver's error.
        detail: String,
    },
}

impl ConsentError {
    /// What this says of a consent that was given before. A server that cannot be reached, or is
    /// overloaded, says nothing of it.
    #[must_use]
    pub fn end(&self) -> ConsentEnd {
        match self {
            Self::Status { status: 408 | 429 | 500.., .. } => ConsentEnd::Unanswered,
            Self::Status { .. } => ConsentEnd::Withdrawn,
            Self::Engine(_) | Self::Fetch { .. } | Self::Dns { .. } => ConsentEnd::Unanswered,
        }
    }
}

/// The text of `http(s)://authority/.well-known/throng-consent` from the server at `address`,
/// whatever other addresses the name has. One request; redirects are not followed.
///
/// # Errors
/// If the file cannot be fetched.
pub fn fetch_file(
    secure: bool,
    authority: &str,
    address: IpAddr,
    tls: &TlsOptions,
) -> Result<String, ConsentError> {
    // Only the request for consent needs no consent; it goes only to the address under load.
    let mut config = RunConfig::new(
        Vec::new(),
        RunTime::default(),
        Arc::new(move |_, asked: SocketAddr| asked.ip() == address),
    );
    config.tls = tls.clone();
    config.connect_timeout = TIMEOUT;
    let (mut dialer, scheme) =
        (Dialer::new(&config)?, if secure { Scheme::HTTPS } else { Scheme::HTTP });
    let host = authority
        .rsplit_once(':')
        .filter(|(_, port)| !port.contains(']'))
        .map_or(authority, |(host, _)| host);
    dialer.names = Arc::new(DnsCache::known([(host.to_owned(), vec![address])]));
    let place = format!("{scheme}://{authority}{WELL_KNOWN_PATH} at {address}");
    let response = runtime()?
        .block_on(get(
            &Arc::new(dialer),
            scheme,
            authority,
            WELL_KNOWN_PATH,
            TIMEOUT,
            PROOF_BYTES_MAX,
        ))
        .map_err(|error| ConsentError::Fetch { place: place.clone(), error })?;
    match response.head.status.as_u16() {
        200 => Ok(String::from_utf8_lossy(&response.body).into_owned()),
        status => Err(ConsentError::Status { place, status }),
    }
}

/// The TXT records of `name`, each joined from its strings.
///
/// # Errors
/// When the resolver has no answer.
pub fn fetch_txt(name: &str) -> Result<Vec<String>, ConsentError> {
    let failed = |detail: String| ConsentError::Dns { name: name.into(), detail };
    runtime()?.block_on(async {
        let resolver = TokioResolver::builder_tokio()
            .and_then(hickory_resolver::ResolverBuilder::build)
            .map_err(|e| failed(e.to_string()))?;
        let asking = tokio::time::timeout(TIMEOUT, resolver.txt_lookup(name));
        let answer = asking
            .await
            .map_err(|_| failed(format!("no answer within {}", units::duration(TIMEOUT))))?;
        let answer = answer.map_err(|e| failed(e.to_string()))?;
        Ok(answer.answers().iter().map(|record| record.data.to_string()).collect())
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, EngineError> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Repeats a consent check until the run ends; aborts the run when the check fails.
pub(crate) fn watch(asked: &Consent, ends_at: Instant, control: &Control) {
    let Consent { check, interval } = asked;
    let mut next = Instant::now() + *interval;
    while control.stopped().is_none() && Instant::now() < ends_at {
        let now = Instant::now();
        if now >= next {
            next = now + *interval;
            if let Err(lost) = check() {
                return control.stop(Ending::Aborted, &lost.to_string());
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_nothing_is_there_withdraws_a_consent() {
        let end = |status| ConsentError::Status { place: String::new(), status }.end();
        for status in [301, 401, 403, 404, 410] {
            assert_eq!(end(status), ConsentEnd::Withdrawn, "{status}");
        }
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(end(status), ConsentEnd::Unanswered, "{status}");
        }
        let dns = ConsentError::Dns { name: String::new(), detail: String::new() };
        assert_eq!(dns.end(), ConsentEnd::Unanswered);
    }
}
