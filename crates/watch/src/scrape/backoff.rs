//! The retry schedule of an endpoint, and the events about its failures: one for each new reason,
//! and one for its recovery.

use std::time::Duration;

use throng_observation::host::HostEventKind;

use crate::reading::Reading;

/// Maximum interval between attempts at a failing endpoint.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Maximum number of reasons reported for an endpoint in a run: a faulty one may produce many.
const REASONS_MAX: u32 = 20;

/// The state of an endpoint: whether and why it fails.
#[derive(Debug)]
pub(super) struct Backoff {
    endpoint: String,
    interval: Duration,
    failures: u32,
    reason: Option<String>,
    reasons_reported: u32,
}

impl Backoff {
    pub(super) fn new(endpoint: String, interval: Duration) -> Self {
        Self { endpoint, interval, failures: 0, reason: None, reasons_reported: 0 }
    }

    /// Interval between the starts of two scrapes.
    pub(super) fn pause(&self) -> Duration {
        let longer = 2u32.saturating_pow(self.failures.min(10));
        (self.interval * longer).min(INTERVAL_MAX.max(self.interval))
    }

    /// The scrape succeeded; returns an event if it had failed before.
    pub(super) fn succeeded(&mut self) -> Option<Reading> {
        self.failures = 0;
        let detail = format!("the endpoint {} can be read again", self.endpoint);
        self.reason.take().map(|_| Reading::Event(HostEventKind::Watcher, detail))
    }

    /// The scrape failed; returns an event if the reason is new.
    pub(super) fn failed(&mut self, reason: &str) -> Option<Reading> {
        self.failures = self.failures.saturating_add(1);
        if self.reason.as_deref() == Some(reason) {
            return None;
        }
        self.reason = Some(reason.to_owned());
        self.reasons_reported += 1;
        (self.reasons_reported <= REASONS_MAX).then(|| {
            Reading::unreadable(format!(
                "the endpoint {}: {reason}; it is retried at growing intervals",
                self.endpoint
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_endpoint_is_asked_less_and_less_often_and_at_least_once_a_minute() {
        let mut backoff = Backoff::new("e".into(), Duration::from_secs(5));
        let mut pauses = vec![backoff.pause().as_secs()];
        for _ in 0..20 {
            backoff.failed("x");
            pauses.push(backoff.pause().as_secs());
        }
        assert_eq!(pauses[..6], [5, 10, 20, 40, 60, 60]);
        assert_eq!(pauses[20], 60);
        backoff.succeeded();
        assert_eq!(backoff.pause().as_secs(), 5);
    }

    #[test]
    fn each_new_reason_and_the_recovery_are_reported_once() {
        let mut backoff = Backoff::new("e".into(), Duration::from_secs(1));
        assert_eq!(backoff.succeeded(), None);
        assert!(
            backoff.failed("x").is_some()
                && backoff.failed("x").is_none()
                && backoff.failed("y").is_some()
        );
        assert!(matches!(backoff.succeeded(), Some(Reading::Event(HostEventKind::Watcher, _))));
        assert_eq!(backoff.succeeded(), None);
        let said = (0..100).filter(|n| backoff.failed(&n.to_string()).is_some()).count();
        assert_eq!(said, REASONS_MAX as usize - 2);
    }
}
