//! When a signal is sent next: at its pace, and after failures later and later.

use std::time::{Duration, Instant};

use super::answer::Failure;

/// The wait after the first failure, which doubles with each further one.
const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Metrics or traces.
#[derive(Debug)]
pub(super) struct Signal {
    /// Its name in paths and messages.
    pub(super) name: &'static str,
    every: Duration,
    next_at: Instant,
    /// In a row.
    failures: u32,
    /// Why the last one was not delivered; `None` if it was.
    why: Option<String>,
}

impl Signal {
    pub(super) fn new(name: &'static str, every: Duration, now: Instant) -> Self {
        Self { name, every, next_at: now, failures: 0, why: None }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next_at
    }

    pub(super) fn delivered(&mut self, now: Instant) {
        (self.failures, self.why, self.next_at) = (0, None, now + self.every);
    }

    pub(super) fn failed(&mut self, failure: Failure, now: Instant) {
        let doubled = WAIT_FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(0));
        let doubled = if doubled.is_zero() { WAIT_MAX } else { doubled.min(WAIT_MAX) };
        let wait = doubled.max(failure.wait.unwrap_or_default()).max(self.every);
        self.failures = self.failures.saturating_add(1);
        (self.next_at, self.why) = (now + wait, Some(failure.why));
    }

    /// Why the last one was not delivered.
    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_half_a_minute_and_begin_anew() {
        let begin = Instant::now();
        let mut signal = Signal::new("traces", Duration::from_secs(1), begin);
        assert!(signal.is_due(begin));
        let at = |s| begin + Duration::from_secs(s);
        let mut waits = Vec::new();
        for _ in 0..40 {
            signal.failed(Failure::unanswered("refused"), begin);
            waits.push((signal.next_at - begin).as_secs());
        }
        assert_eq!(waits[..7], [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!((waits[39], signal.why()), (30, Some("refused")));
        signal.delivered(at(60));
        assert_eq!(signal.why(), None);
        assert!(!signal.is_due(at(60)) && signal.is_due(at(61)));
        let patient = Failure { wait: Some(Duration::from_secs(7)), ..Failure::unanswered("busy") };
        signal.failed(patient, at(61));
        assert!(!signal.is_due(at(67)) && signal.is_due(at(68)));
    }
}
