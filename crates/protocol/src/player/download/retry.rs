//! When a failed request is sent again, as hls.js does it (`LoadPolicy` of its `config.ts`).

use std::time::{Duration, Instant};

use super::transfer::TransferError;

/// Delay before the first repeat after an error; each further one doubles it, up to [`DELAY_MAX`].
const DELAY: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(8);

/// How often a request is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) struct RetryPolicy {
    /// After errors, with growing delays.
    errors_max: u32,
    /// After time-outs, at once.
    timeouts_max: u32,
    /// Also after 4xx, and always after [`DELAY`].
    repeats_refusals: bool,
}

const fn policy(errors_max: u32, timeouts_max: u32) -> RetryPolicy {
    RetryPolicy { errors_max, timeouts_max, repeats_refusals: false }
}

/// Never.
pub(in crate::player) const NO_RETRY: RetryPolicy = policy(0, 0);
/// Files: as segments.
pub(in crate::player) const FILE_RETRY: RetryPolicy = policy(6, 0);
/// `manifestLoadPolicy`.
pub(in crate::player) const MANIFEST_RETRY: RetryPolicy = policy(1, 2);
/// `playlistLoadPolicy`.
pub(in crate::player) const PLAYLIST_RETRY: RetryPolicy = policy(2, 2);
/// `fragLoadPolicy`.
pub(in crate::player) const SEGMENT_RETRY: RetryPolicy = policy(6, 4);
/// Live DASH: a segment that should exist by the clock may be late (`retryAttempts` and
/// `retryIntervals` of dash.js).
pub(in crate::player) const DASH_SEGMENT_RETRY: RetryPolicy =
    RetryPolicy { repeats_refusals: true, ..policy(3, 0) };

/// Repeats of one request after failures without progress.
#[derive(Clone, Copy, Debug)]
pub(in crate::player) struct Retry {
    policy: RetryPolicy,
    errors: u32,
    timeouts: u32,
    at: Option<Instant>,
}

impl Retry {
    /// Repeats by `policy`.
    pub(in crate::player) fn new(policy: RetryPolicy) -> Self {
        Self { policy, errors: 0, timeouts: 0, at: None }
    }

    /// A request failed: whether, and from then on when, it is repeated.
    pub(in crate::player) fn failed(&mut self, now: Instant, error: &TransferError) -> bool {
        let is_repeated = error.may_retry || error.is_refused && self.policy.repeats_refusals;
        if !is_repeated {
            return false;
        }
        let is_timeout = error.is_timeout && self.policy.timeouts_max > 0;
        let (count, count_max) = if is_timeout {
            (&mut self.timeouts, self.policy.timeouts_max)
        } else {
            (&mut self.errors, self.policy.errors_max)
        };
        if *count >= count_max {
            return false;
        }
        let doubled = if self.policy.repeats_refusals { 0 } else { (*count).min(8) };
        let delay = DELAY.saturating_mul(1 << doubled).min(DELAY_MAX);
        *count += 1;
        self.at = Some(if is_timeout { now } else { now + delay });
        true
    }

    /// The request is given up; the next one waits as long as a first repeat.
    pub(in crate::player) fn given_up(&mut self, now: Instant, delay: Duration) {
        *self = Self { at: Some(now + delay), ..Self::new(self.policy) };
    }

    /// Data came: later failures are counted anew.
    pub(in crate::player) fn progressed(&mut self) {
        *self = Self::new(self.policy);
    }

    /// Whether a repeat is awaited at `now`.
    pub(in crate::player) fn waits(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now < at)
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        self.at
    }

    /// The repeat has begun.
    pub(in crate::player) fn begun(&mut self) {
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::{Failure, FailureReason};

    use super::*;

    fn error(may_retry: bool, is_timeout: bool) -> TransferError {
        let failure = Failure::new(FailureReason::Tcp, "");
        TransferError { failure, may_retry, is_timeout, is_refused: !may_retry }
    }

    #[test]
    fn repeats_come_later_and_later_until_there_are_no_more_and_progress_forgives() {
        let now = Instant::now();
        let mut retry = Retry::new(SEGMENT_RETRY);
        let mut delays = Vec::new();
        while retry.failed(now, &error(true, false)) {
            delays.push((retry.next_timeout().unwrap() - now).as_secs());
            assert!(retry.waits(now) || retry.next_timeout() == Some(now));
            retry.begun();
            assert!(!retry.waits(now));
        }
        assert_eq!(delays, [1, 2, 4, 8, 8, 8]);
        retry.progressed();
        assert!(
            retry.failed(now, &error(true, false)) && retry.next_timeout() == Some(now + DELAY)
        );
        assert!(!Retry::new(NO_RETRY).failed(now, &error(true, false)));
        assert!(
            !Retry::new(SEGMENT_RETRY).failed(now, &error(false, false)),
            "the request is to blame"
        );
        let mut late = Retry::new(DASH_SEGMENT_RETRY);
        (0..3).for_each(|_| {
            assert!(
                late.failed(now, &error(false, false)) && late.next_timeout() == Some(now + DELAY)
            );
        });
        assert!(!late.failed(now, &error(false, false)));
    }

    #[test]
    fn after_a_time_out_the_request_is_repeated_at_once() {
        let now = Instant::now();
        let mut retry = Retry::new(PLAYLIST_RETRY);
        for _ in 0..2 {
            assert!(retry.failed(now, &error(true, true)) && !retry.waits(now));
        }
        assert!(!retry.failed(now, &error(true, true)));
        assert!(retry.failed(now, &error(true, false)), "errors are counted apart");
    }
}
