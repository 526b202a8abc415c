//! Scrapes endpoints during the run: one thread, one task for each endpoint, so that a slow one
//! does not delay the others.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::backoff::Backoff;
use super::endpoint::{AddressCheck, Credentials, Endpoint, EndpointError};
use super::fetch::{EndpointConnection, FetchError};
use super::query::UnexpectedAnswer;
use super::rates::Rates;
use super::round::Round;
use crate::background::BackgroundThread;
use crate::reading::{Clock, ReadingWriter};

/// Minimum interval between scrapes of an endpoint.
pub const INTERVAL_MIN: Duration = Duration::from_millis(500);

/// Why a scrape failed.
#[derive(Debug, thiserror::Error)]
enum ScrapeError {
    /// A query had no answer, or one that is not of a metrics endpoint.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// An answer does not have the expected format.
    #[error(transparent)]
    Answer(#[from] UnexpectedAnswer),
}

impl ScrapeError {
    /// Whether it may only mean that the endpoint had closed a kept connection. What the endpoint
    /// has answered it would answer again.
    fn is_of_connection(&self) -> bool {
        // 408: that it waited for a request for too long (RFC 9110 15.5.9).
        let is_timeout = |status| status == 408;
        match self {
            Self::Fetch(FetchError::Protocol(_)) => true,
            Self::Fetch(FetchError::Status { status, .. }) => is_timeout(*status),
            Self::Fetch(_) | Self::Answer(_) => false,
        }
    }
}

/// Scrapes endpoints until it is dropped.
#[derive(Debug)]
pub struct Scraper {
    // Dropped in this order: the thread ends when the sender is gone.
    _stop: watch::Sender<()>,
    _thread: BackgroundThread,
}

impl Scraper {
    /// Starts scraping; each endpoint has its own writer. An endpoint that does not answer is not
    /// an error: that is an event of the run, and the endpoint is tried again.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(
        endpoints: Vec<(Endpoint, ReadingWriter)>,
        clock: &Clock,
        allowed: &AddressCheck,
    ) -> Result<Self, EndpointError> {
        let (stop, stopped) = watch::channel(());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (clock, allowed) = (clock.clone(), allowed.clone());
        let work = move || {
            let _cost = endpoints.first().map(|(_, writer)| writer.charge());
            runtime.block_on(async {
                let mut tasks = tokio::task::JoinSet::new();
                for (endpoint, writer) in endpoints {
                    let task =
                        follow(endpoint, writer, clock.clone(), allowed.clone(), stopped.clone());
                    tasks.spawn(task);
                }
                while tasks.join_next().await.is_some() {}
            });
            // A pending name resolution must not delay the end.
            runtime.shutdown_background();
        };
        Ok(Self { _stop: stop, _thread: BackgroundThread::spawn("watch-scrape", work)? })
    }

    /// Ends all scraping. Dropping it does the same.
    pub fn stop(self) {
        drop(self);
    }
}

async fn follow(
    endpoint: Endpoint,
    mut writer: ReadingWriter,
    clock: Clock,
    allowed: AddressCheck,
    mut stopped: watch::Receiver<()>,
) {
    let mut backoff = Backoff::new(endpoint.name.clone(), endpoint.interval.max(INTERVAL_MIN));
    let mut rates = Rates::default();
    let mut connection = None;
    let mut next = Instant::now();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            () = sleep_until(next) => {}
        }
        let began = Instant::now();
        let reading = tokio::select! {
            _ = stopped.changed() => break,
            reading = timeout(endpoint.timeout, read(&endpoint, &mut connection, &allowed)) => {
                reading
            }
        };
        let reading = reading
            .unwrap_or_else(|_| Err(FetchError::TimedOut(endpoint.timeout.as_millis()).into()));
        // Counters were read between `began` and now; now is when the last was.
        let now = clock();
        let readings = reading.and_then(|round| {
            round
                .finish(now, &endpoint.name, &endpoint.filter, &mut rates)
                .map_err(ScrapeError::from)
        });
        match readings {
            Ok(readings) => {
                writer.write(now, backoff.succeeded());
                writer.write(now, readings);
            }
            Err(error) => {
                connection = None;
                writer.write(now, backoff.failed(&error.to_string()));
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
    connection: &mut Option<EndpointConnection>,
    allowed: &AddressCheck,
) -> Result<Round, ScrapeError> {
    let kept = connection.as_ref().is_some_and(EndpointConnection::is_open);
    match scrape(endpoint, connection, allowed).await {
        Err(error) if kept && error.is_of_connection() => {
            *connection = None;
            scrape(endpoint, connection, allowed).await
        }
        result => result,
    }
}

async fn scrape(
    endpoint: &Endpoint,
    connection: &mut Option<EndpointConnection>,
    allowed: &AddressCheck,
) -> Result<Round, ScrapeError> {
    let secret = match &endpoint.credentials {
        Credentials::Secret(secret) => Some(secret.as_str()),
        _ => None,
    };
    let mut round = Round::new(endpoint.kind, secret);
    while let Some(query) = round.next_query() {
        let open = match connection.take().filter(EndpointConnection::is_open) {
            Some(open) => open,
            None => EndpointConnection::open(endpoint, allowed).await?,
        };
        let open = connection.insert(open);
        let answer = open.query(endpoint, &query).await?;
        round.process(&answer)?;
    }
    Ok(round)
}

#[cfg(test)]
#[path = "scraper_tests.rs"]
mod tests;
