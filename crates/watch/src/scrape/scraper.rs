//! Scrapes endpoints during the run: one thread, one task for each endpoint, so that a slow one does not delay the
//! others.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use throng_observation::pack::EndpointKind;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use url::Url;

use super::backoff::Backoff;
use super::fetch::{EndpointConnection, FetchError};
use super::filter::Filter;
use super::rates::Rates;
use super::round::Round;
use crate::reading::{Clock, ReadingWriter};

/// Decides by the consent rules whether an address may be contacted; the refusal is a sentence.
pub type AddressCheck = Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync>;

/// Minimum interval between scrapes of an endpoint.
pub const INTERVAL_MIN: Duration = Duration::from_millis(500);

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
    #[error("no thread to ask endpoints: {0}")]
    Thread(#[from] std::io::Error),
}

impl Endpoint {
    /// An endpoint that is scraped every five seconds, without credentials.
    ///
    /// # Errors
    /// When the URL's scheme is not `http`, `https`, `ws` (Janus only) or `wss`, or it has no host, or it contains
    /// credentials.
    pub fn new(name: impl Into<String>, url: &str, kind: EndpointKind) -> Result<Self, EndpointError> {
        let name = name.into();
        let wrong = |reason: String| EndpointError::Address { name: name.clone(), reason };
        let parsed = Url::parse(url).map_err(|error| wrong(format!("{error}")))?;
        let is_socket = matches!(parsed.scheme(), "ws" | "wss");
        if !is_socket && !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong(format!("{}: is not http, https, ws or wss", parsed.scheme())));
        }
        if is_socket && kind != EndpointKind::JanusAdmin {
            return Err(wrong(
                "only Janus's admin API is asked over a WebSocket; give http:// or https://".into(),
            ));
        }
        if !parsed.has_host() {
            return Err(wrong("no host".into()));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong("credentials do not belong into an address; give them by themselves".into()));
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

/// Scrapes endpoints until it is dropped.
#[derive(Debug)]
pub struct Scraper {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    /// Starts scraping; each endpoint has its own writer. An endpoint that does not answer is not an error: that is an
    /// event of the run, and the endpoint is tried again.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(
        endpoints: Vec<(Endpoint, ReadingWriter)>,
        clock: &Clock,
        allowed: &AddressCheck,
    ) -> Result<Self, EndpointError> {
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (clock, allowed) = (clock.clone(), allowed.clone());
        let work = move || {
            let _cost = endpoints.first().map(|(_, writer)| writer.charge());
            runtime.block_on(async {
                let mut tasks = tokio::task::JoinSet::new();
                for (endpoint, writer) in endpoints {
                    let task = follow(endpoint, writer, clock.clone(), allowed.clone(), stopped.clone());
                    tasks.spawn(task);
                }
                while tasks.join_next().await.is_some() {}
            });
            // A pending name resolution must not delay the end.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("watch-scrape".into()).spawn(work)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends all scraping. Dropping it does the same.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.end();
    }
}

async fn follow(
    endpoint: Endpoint,
    mut writer: ReadingWriter,
    clock: Clock,
    allowed: AddressCheck,
    mut stopped: watch::Receiver<bool>,
) {
    let mut backoff = Backoff::new(endpoint.name.clone(), endpoint.interval.max(INTERVAL_MIN));
    let mut rates = Rates::default();
    let mut link = None;
    let mut next = Instant::now();
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => break,
            () = sleep_until(next) => {}
        }
        let began = Instant::now();
        let reading = tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => break,
            reading = timeout(endpoint.timeout, read(&endpoint, &mut link, &allowed)) => reading,
        };
        let reading =
            reading.unwrap_or_else(|_| Err(FetchError::TimedOut(endpoint.timeout.as_millis()).to_string()));
        // Counters were read between `began` and now; now is when the last was.
        let now = clock();
        let seen = reading.and_then(|round| {
            round.finish(now, &endpoint.name, &endpoint.filter, &mut rates).map_err(|error| error.to_string())
        });
        match seen {
            Ok(seen) => {
                writer.write(now, backoff.succeeded());
                writer.write(now, seen);
            }
            Err(reason) => {
                link = None;
                writer.write(now, backoff.failed(&reason));
                // The last values are no longer current.
                writer.end(now);
            }
        }
        next = began + backoff.pause();
    }
    let now = clock();
    writer.end(now);
}

/// One scrape. A kept connection that has been closed meanwhile is reopened once.
async fn read(
    endpoint: &Endpoint,
    link: &mut Option<EndpointConnection>,
    allowed: &AddressCheck,
) -> Result<Round, String> {
    let kept = link.as_ref().is_some_and(EndpointConnection::is_open);
    match converse(endpoint, link, allowed).await {
        Err(_) if kept => {
            *link = None;
            converse(endpoint, link, allowed).await
        }
        result => result,
    }
}

async fn converse(
    endpoint: &Endpoint,
    link: &mut Option<EndpointConnection>,
    allowed: &AddressCheck,
) -> Result<Round, String> {
    let secret = match &endpoint.credentials {
        Credentials::Secret(secret) => Some(secret.as_str()),
        _ => None,
    };
    let mut round = Round::new(endpoint.kind, secret);
    while let Some(ask) = round.ask() {
        let open = match link.take().filter(EndpointConnection::is_open) {
            Some(open) => open,
            None => EndpointConnection::open(endpoint, allowed).await.map_err(|error| error.to_string())?,
        };
        let open = link.insert(open);
        let answer = open.ask(endpoint, &ask).await.map_err(|error| error.to_string())?;
        round.told(&answer).map_err(|error| error.to_string())?;
    }
    Ok(round)
}

#[cfg(test)]
#[path = "scraper_tests.rs"]
mod tests;
