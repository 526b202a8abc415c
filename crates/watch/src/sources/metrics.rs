//! The endpoints of a host: those that are scraped, and those that post events. An endpoint that is
//! configured wrongly, or whose port is taken, does not affect the others.

use std::collections::BTreeMap;

use throng_observation::pack::{EndpointKind, Pack};

use super::endpoint::{endpoint, listen_address};
use super::failures::{ReadFailures, RowSink};
use crate::scrape::janus::EventListener;
use crate::scrape::{AddressCheck, Endpoint, EndpointError, Filter, Scraper};

/// The endpoints that are scraped and the listeners for posted events.
pub(super) struct Metrics {
    /// As the user wrote them.
    wanted: Vec<String>,
    sink: RowSink,
    allowed: AddressCheck,
    scraper: Option<Scraper>,
    /// What the running scraper scrapes; a different set needs a new scraper.
    scraped: Vec<Scraped>,
    /// By the endpoint's text.
    listeners: BTreeMap<String, EventListener>,
}

/// The parts of an endpoint that depend on the packs: name, kind and filter.
type Scraped = (String, EndpointKind, Filter);

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The texts may name where secrets are stored.
        f.debug_struct("Metrics")
            .field("scraped", &self.scraped)
            .field("listeners", &self.listeners.len())
            .finish()
    }
}

impl Metrics {
    pub(super) fn new(wanted: Vec<String>, sink: RowSink, allowed: AddressCheck) -> Self {
        let (scraper, scraped, listeners) = (None, Vec::new(), BTreeMap::new());
        Self { wanted, sink, allowed, scraper, scraped, listeners }
    }

    /// Starts the endpoints that do not run yet, with the given packs; running ones continue
    /// undisturbed.
    pub(super) fn update(&mut self, packs: &[Pack], failures: &mut ReadFailures) {
        let mut endpoints = Vec::new();
        for text in &self.wanted {
            // Without the part after `#`: it may be a secret by mistake.
            let bare = text.split('#').next().unwrap_or_default();
            let what = format!("the endpoint {}", crate::logs::redacted(bare.as_bytes()));
            match endpoint(text, packs) {
                Ok(endpoint) if endpoint.kind == EndpointKind::JanusEvents => {
                    if !self.listeners.contains_key(text)
                        && let Some(listener) = failures.report(&what, self.listen(&endpoint))
                    {
                        self.listeners.insert(text.clone(), listener);
                    }
                }
                Ok(endpoint) => {
                    failures.report(&what, Ok::<_, String>(()));
                    endpoints.push(endpoint);
                }
                Err(error) => drop(failures.report(&what, Err::<(), _>(reason(error)))),
            }
        }
        let scraped: Vec<Scraped> =
            endpoints.iter().map(|e| (e.name.clone(), e.kind, e.filter.clone())).collect();
        if scraped != self.scraped {
            // The old scraper ends first, so that nothing is counted twice.
            self.scraper = None;
            let endpoints: Vec<_> =
                endpoints.into_iter().map(|e| (e, self.sink.writer())).collect();
            let begun = Scraper::start(endpoints, &self.sink.clock, &self.allowed);
            self.scraper = failures.report("the set of all endpoints", begun);
            self.scraped = if self.scraper.is_some() { scraped } else { Vec::new() };
        }
    }

    fn listen(&self, endpoint: &Endpoint) -> Result<EventListener, String> {
        let address = listen_address(endpoint).map_err(reason)?;
        let (writer, clock) = (self.sink.writer(), &self.sink.clock);
        EventListener::start(&endpoint.name, address, writer, clock, &self.allowed).map_err(
            |error| {
                let help = match error.reason.kind() {
                    std::io::ErrorKind::AddrInUse => {
                        "; another watcher or run may use it: end that one, or use another port \
                         here"
                    }
                    _ => "",
                };
                format!("{error}{help}")
            },
        )
    }
}

/// The error's text without the endpoint's name.
fn reason(error: EndpointError) -> String {
    match error {
        EndpointError::Address { reason, .. } => reason,
        EndpointError::Thread(_) => error.to_string(),
    }
}
