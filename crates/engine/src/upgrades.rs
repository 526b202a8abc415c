//! Counts the requests for WebSockets, which are requests with a status as all others: tasks of
//! their own make them, and a socket that is open has bytes long before it ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use throng_observation::{HttpRequestCounters, RequestOutcome, Url};
use throng_protocol::participant::ChannelError;

use crate::requests::{RequestKind, RequestTable, no_response};

/// Status of an upgrade that was granted (RFC 9110 section 15.2.2).
const SWITCHING_PROTOCOLS: u16 = 101;

/// How often the bytes of an open socket are counted.
const EVERY: Duration = Duration::from_secs(1);

/// The upgrades of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upgrades(Arc<Mutex<RequestTable>>);

/// One upgrade, and the socket that it became.
#[derive(Debug)]
pub(crate) struct Upgrade {
    table: Upgrades,
    host: String,
    path: String,
    sent_at: Instant,
    received: u64,
    counted_at: Instant,
}

impl Upgrades {
    /// A request for a socket that is sent now.
    pub(crate) fn begin(&self, url: &Url) -> Upgrade {
        let name = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let now = Instant::now();
        let (table, path) = (self.clone(), url.shown_path().into_owned());
        Upgrade { table, host, path, sent_at: now, received: 0, counted_at: now }
    }

    /// What was counted since the last call.
    pub(crate) fn take(&self) -> RequestTable {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Upgrade {
    /// It was answered, or not.
    pub(crate) fn answered(&mut self, result: Result<(), &ChannelError>) {
        let (outcome, version) = match result {
            Ok(()) => (RequestOutcome::Status(SWITCHING_PROTOCOLS), 1),
            Err(ChannelError::Status(status, _)) => (RequestOutcome::Status(*status), 1),
            Err(error) => (RequestOutcome::NoResponse(no_response(error)), 0),
        };
        self.count(
            outcome,
            version,
            HttpRequestCounters { requests: 1, ..HttpRequestCounters::default() },
        );
    }

    /// A message came.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
        if self.counted_at.elapsed() >= EVERY {
            self.count_received();
        }
    }

    /// Counts what came since the last time.
    pub(crate) fn count_received(&mut self) {
        if self.received == 0 {
            return;
        }
        self.counted_at = Instant::now();
        let body_bytes = std::mem::take(&mut self.received);
        let counters = HttpRequestCounters { body_bytes, ..HttpRequestCounters::default() };
        self.count(RequestOutcome::Status(SWITCHING_PROTOCOLS), 1, counters);
    }

    fn count(&self, outcome: RequestOutcome, version: u8, counters: HttpRequestCounters) {
        let mut table = self.table.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = RequestKind { method: &Method::GET, outcome, version };
        table.add((&self.host, &self.path), kind, (counters, self.sent_at, Instant::now()));
    }
}

impl Drop for Upgrade {
    fn drop(&mut self) {
        self.count_received();
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::HttpRequestRow;

    use super::*;
    use crate::clock::RunClock;

    fn rows(upgrades: &Upgrades) -> Vec<HttpRequestRow> {
        upgrades.take().take_changed(RunClock { start: Instant::now() })
    }

    #[test]
    fn an_upgrade_counts_without_the_secret_of_its_path() {
        let (upgrades, url) = (Upgrades::default(), Url::parse("ws://a/token=S3CRET/ws").unwrap());
        upgrades.begin(&url).answered(Ok(()));
        assert_eq!(rows(&upgrades)[0].key.path, "/token=…/ws");
    }

    #[test]
    fn an_upgrade_counts_with_its_status_and_the_bytes_of_its_socket() {
        let (upgrades, url) =
            (Upgrades::default(), Url::parse("ws://me:pw@chat.example:81/ws?token=1").unwrap());
        let mut granted = upgrades.begin(&url);
        granted.answered(Ok(()));
        granted.received(400);
        // It says goodbye, and hears a little more meanwhile.
        granted.count_received();
        granted.received(300);
        upgrades.begin(&url).answered(Err(&ChannelError::Status(502, "Bad Gateway".into())));
        upgrades.begin(&url).answered(Err(&ChannelError::Timeout(EVERY)));
        drop(granted);
        let mut seen: Vec<_> = rows(&upgrades)
            .into_iter()
            .map(|row| {
                (
                    row.key.host + &row.key.path,
                    row.key.outcome.key(),
                    row.counters.requests,
                    row.counters.body_bytes,
                )
            })
            .collect();
        seen.sort();
        let of =
            |status: &str, bytes| ("chat.example:81/ws".to_owned(), status.to_owned(), 1, bytes);
        assert_eq!(seen, [of("101", 700), of("502", 0), of("timeout", 0)]);
        assert!(rows(&upgrades).is_empty());
    }
}
