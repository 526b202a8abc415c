//! Which collector, and what it takes to reach it.

use std::sync::Arc;

use rustls::{ClientConfig, DEFAULT_VERSIONS};
use throng_net::tls::{Trust, client_config, system_roots};
use throng_observation::Url;

use super::environment::{Environment, HEADERS};
use crate::console::CliError;

/// A collector, as the command line and the environment name it.
pub(crate) struct Collector {
    url: Url,
    /// Of https.
    tls: Option<Arc<ClientConfig>>,
    pub(super) environment: Environment,
}

impl Collector {
    /// Of the URL of `--otlp`, with headers and attributes of the environment.
    pub(crate) fn of(text: &str) -> Result<Self, CliError> {
        let url = endpoint(text).map_err(CliError::usage)?;
        let environment = Environment::read(|name| std::env::var(name).ok());
        let environment = environment.map_err(CliError::usage)?;
        let config =
            || client_config(Trust::Authorities(system_roots()), DEFAULT_VERSIONS).map(Arc::new);
        let tls = (url.scheme() == "https").then(config).transpose().map_err(CliError::invalid)?;
        Ok(Self { url, tls, environment })
    }

    /// Scheme, host and port, in which no secret can be.
    pub(super) fn shown(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Host and port to connect to.
    pub(super) fn address(&self) -> (&str, u16) {
        let host = self.url.host_str().unwrap_or_default();
        (host.trim_matches(['[', ']']), self.url.port_or_known_default().unwrap_or(80))
    }

    /// The value of `Host`.
    pub(super) fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The path of a signal: `metrics` or `traces`.
    pub(super) fn path(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.url.in_clear().path().trim_end_matches('/'))
    }

    /// How TLS is done; `None` without it.
    pub(super) fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }
}

/// The URL below which a collector has its paths. An error shows nothing of it: it may have a
/// password.
fn endpoint(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.filter(Url::has_host).ok_or(
        "--otlp: write the URL of a collector, such as http://127.0.0.1:4318, without /v1/metrics",
    )?;
    if !url.has_user() && !text.contains(['?', '#']) {
        return Ok(url);
    }
    Err(format!(
        "--otlp: the URL is without user, query and fragment\n  help: keys and passwords are \
         headers, in the environment: {HEADERS}=authorization=Bearer%20TOKEN"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_the_paths_of_the_signals_below_it() {
        for (text, shown, host, path) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318", "127.0.0.1:4318", "/v1/traces"),
            ("http://[::1]:4318/", "http://[::1]:4318", "[::1]:4318", "/v1/traces"),
            ("https://otlp.lan/a/b/", "https://otlp.lan", "otlp.lan", "/a/b/v1/traces"),
        ] {
            let url = endpoint(text).unwrap();
            let of = Collector { url, tls: None, environment: Environment::default() };
            let read = (of.shown(), of.host(), of.path("traces"));
            assert_eq!(read, (shown.to_owned(), host.to_owned(), path.to_owned()));
        }
        let url = endpoint("https://[::1]").unwrap();
        let of = Collector { url, tls: None, environment: Environment::default() };
        assert_eq!(of.address(), ("::1", 443));
    }

    #[test]
    fn a_url_that_may_hold_a_secret_is_refused_without_showing_it() {
        for text in [
            "hunter2",
            "grpc://hunter2:4317",
            "http://hunter2:pw@h/",
            "http://:hunter2@h/",
            "http://h/?key=hunter2",
            "http://h/#hunter2",
            "http://",
        ] {
            let why = endpoint(text).unwrap_err();
            assert!(why.starts_with("--otlp: ") && !why.contains("hunter2"), "{text}: {why}");
        }
    }
}
