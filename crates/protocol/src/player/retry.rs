//! When a failed request is sent again.

use std::time::{Duration, Instant};

/// Delay before the first repeat; each further one doubles it, up to [`DELAY_MAX`] (hls.js: `fragLoadPolicy`).
const DELAY: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(8);

/// Repeats of one request after failures without progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    attempts: u32,
    attempts_max: u32,
    at: Option<Instant>,
}

impl Retry {
    /// At most so many repeats.
    pub(super) fn new(attempts_max: u32) -> Self {
        Self { attempts: 0, attempts_max, at: None }
    }

    /// A request failed: whether, and from then on when, it is repeated.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        if self.attempts >= self.attempts_max {
            return false;
        }
        let delay = DELAY.saturating_mul(1 << self.attempts.min(8)).min(DELAY_MAX);
        self.attempts += 1;
        self.at = Some(now + delay);
        true
    }

    /// Data came: later failures are counted anew.
    pub(super) fn progressed(&mut self) {
        (self.attempts, self.at) = (0, None);
    }

    /// Whether a repeat is awaited at `now`.
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now < at)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.at
    }

    /// The repeat has begun.
    pub(super) fn begun(&mut self) {
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_come_later_and_later_until_there_are_no_more_and_progress_forgives() {
        let now = Instant::now();
        let mut retry = Retry::new(6);
        let mut delays = Vec::new();
        while retry.failed(now) {
            delays.push((retry.next_timeout().unwrap() - now).as_secs());
            assert!(retry.waits(now));
            retry.begun();
            assert!(!retry.waits(now));
        }
        assert_eq!(delays, [1, 2, 4, 8, 8, 8]);
        retry.progressed();
        assert!(retry.failed(now) && retry.next_timeout() == Some(now + DELAY));
        assert!(!Retry::new(0).failed(now));
    }
}
