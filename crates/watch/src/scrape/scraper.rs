//! Asks endpoints while the run goes on: one thread, a task an endpoint, so that one that hangs delays none.

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

/// Whether an address may be asked; the refusal is a sentence. The consent guard's rules.
pub type AddressCheck = Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync>;

/// How often an endpoint may be asked at most.
pub const INTERVAL_MIN: Duration = Duration::from_millis(500);

/// What an endpoint wants to be asked with. It shows nothing of itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    #[default]
    None,
    /// `user:password` of HTTP Basic; OvenMediaEngine's access token.
    Basic(String),
    /// A bearer token.
    Bearer(String),
    /// A secret in each question: Janus's `admin_secret`.
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

/// An endpoint to be asked.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its name; the label `endpoint` of its series.
    pub name: String,
    /// Where it is: `http`, `https`, `ws` or `wss`.
    pub url: Url,
    /// What it speaks.
    pub kind: EndpointKind,
    /// How often it is asked.
    pub interval: Duration,
    /// How long one reading may take, all its questions together.
    pub timeout: Duration,
    /// What it wants to be asked with.
    pub credentials: Credentials,
    /// Which of its metrics are kept.
    pub filter: Filter,
    /// The SHA-256 of the one certificate that is trusted; without it, those of known authorities.
    pub certificate_sha256: Option<[u8; 32]>,
}

/// Why an endpoint cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is none that can be asked.
    #[error("endpoint {name}: {reason}")]
    Address {
        /// Which.
        name: String,
        /// What is wrong and what to do about it.
        reason: String,
    },
    /// The thread that asks cannot be started.
    #[error("no thread to ask endpoints: {0}")]
    Thread(#[from] std::io::Error),
}

impl Endpoint {
    /// An endpoint asked every five seconds, without credentials.
    ///
    /// # Errors
    /// When the address is not one of `http`, `https`, `ws` (Janus only) or `wss` with a host, or holds credentials.
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

/// Asks endpoints until it is dropped.
#[derive(Debug)]
pub struct Scraper {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    /// Asks each endpoint from now on; each has its own way to the run. An endpoint that does not answer is no error:
    /// it is said in the run, and asked again.
    ///
    /// # Errors
    /// When no thread can be made.
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
            // A name that is still being resolved must not hold the end up.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("watch-scrape".into()).spawn(work)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends all asking. Dropping it does the same.
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
        // Counters were read between `began` and now; the end is when the last of them was.
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
                // What was last read is not what is.
                writer.end(now);
            }
        }
        next = began + backoff.pause();
    }
    let now = clock();
    writer.end(now);
}

/// One reading. A connection that was kept and has been closed meanwhile is opened again, once.
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
