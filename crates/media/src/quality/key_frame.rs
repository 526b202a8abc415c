//! When to request a key frame from the sender (PLI, RFC 4585 §6.3.1; FIR, RFC 5104 §4.3.1).
//!
//! A viewer that joined in the middle of a GOP waits 200 ms for a key frame that is on its way
//! (libwebrtc's `kMaxWaitForKeyFrame`); one that lost a frame requests at once. Both repeat the
//! request at most once a second, because every request costs the publisher a large frame for all
//! viewers.

use std::time::{Duration, Instant};

/// How long a stream may lack its first key frame before one is requested.
const PATIENCE: Duration = Duration::from_millis(200);

/// Least time between two requests.
const MIN_SPACING: Duration = Duration::from_secs(1);

/// Whether a key frame is needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyFrameRequester {
    /// Request from this moment on; `None` when none is needed.
    ask_at: Option<Instant>,
    asked_at: Option<Instant>,
}

impl KeyFrameRequester {
    /// Packets arrive, and none of their frames can be decoded yet.
    pub fn waiting_since(&mut self, since: Instant) {
        self.ask_at.get_or_insert(since + PATIENCE);
    }

    /// Frames from now on cannot be decoded without a key frame.
    pub fn broken(&mut self, now: Instant) {
        self.ask_at = Some(self.ask_at.map_or(now, |at| at.min(now)));
    }

    /// A key frame was decoded.
    pub fn satisfied(&mut self) {
        self.ask_at = None;
    }

    /// Whether to send a request now; `true` starts the wait of a second.
    pub fn take(&mut self, now: Instant) -> bool {
        let due = self.next_timeout().is_some_and(|at| now >= at);
        if due {
            self.asked_at = Some(now);
        }
        due
    }

    /// When [`Self::take`] returns `true`.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let ask_at = self.ask_at?;
        Some(self.asked_at.map_or(ask_at, |asked_at| ask_at.max(asked_at + MIN_SPACING)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_waits_breaking_does_not_and_both_ask_once_a_second() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut need = KeyFrameRequester::default();
        assert!(!need.take(at(0)));
        need.waiting_since(at(0));
        need.waiting_since(at(100)); // the first counts
        assert!(!need.take(at(199)));
        assert!(need.take(at(200)) && !need.take(at(200)) && !need.take(at(1199)));
        assert_eq!(need.next_timeout(), Some(at(1200)));
        assert!(need.take(at(1200)));
        need.satisfied();
        assert_eq!((need.take(at(9000)), need.next_timeout()), (false, None));
        need.broken(at(9000));
        assert!(need.take(at(9000)));
        need.satisfied();
        need.broken(at(9100));
        assert!(
            !need.take(at(9999)) && need.take(at(10_000)),
            "a new need does not lift the limit"
        );
    }
}
