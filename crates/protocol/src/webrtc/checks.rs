//! How often ICE checks a connection that stands. str0m repeats the checks of a pair that has answered as those of one that
//! has not, after 250 ms, 500 ms and so on up to 3 s. Consent (RFC 7675 section 5.1) wants one each 5 s, and each of the
//! early ones costs a join a datagram in both directions and two HMACs.

use std::time::{Duration, Instant};

/// Between checks of a connection that answers: what libwebrtc takes for one that is strong and stable.
const CHECKED_EVERY: Duration = Duration::from_millis(2_500);

/// Message types of a binding request and of its success response (RFC 8489 sections 5 and 18.2).
const REQUEST: [u8; 2] = [0x00, 0x01];
const RESPONSE: [u8; 2] = [0x01, 0x01];

/// What is known of the checks of one connection.
#[derive(Debug, Default)]
pub(super) struct Checks {
    is_connected: bool,
    /// When we asked last, since something about candidates or credentials changed.
    asked_at: Option<Instant>,
    /// Requests that have no answer. One that is lost keeps ICE at its own pace, which is the one to find out by.
    unanswered: u32,
}

impl Checks {
    /// ICE says whether a pair works.
    pub(super) fn connected(&mut self, is_connected: bool) {
        self.is_connected = is_connected;
    }

    /// Candidates or credentials change: what is to be checked now is another thing than before.
    pub(super) fn begin_anew(&mut self) {
        (self.asked_at, self.unanswered) = (None, 0);
    }

    /// A datagram goes out.
    pub(super) fn sent(&mut self, now: Instant, datagram: &[u8]) {
        if datagram.starts_with(&REQUEST) {
            self.asked_at = Some(now);
            self.unanswered = self.unanswered.saturating_add(1);
        }
    }

    /// A datagram came.
    pub(super) fn received(&mut self, datagram: &[u8]) {
        if datagram.starts_with(&RESPONSE) {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
    }

    /// When ICE is to be told the time, which wants that at `at`.
    pub(super) fn due(&self, at: Instant) -> Instant {
        match self.asked_at {
            Some(asked_at) if self.is_connected && self.unanswered == 0 => at.max(asked_at + CHECKED_EVERY),
            _ => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_that_answers_every_check_is_checked_seldom() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut checks = Checks::default();
        let due = |checks: &Checks| checks.due(at(350)).duration_since(start).as_millis();
        checks.sent(at(100), &[0x00, 0x01, 0x00]);
        checks.received(&[0x01, 0x01, 0x00]);
        assert_eq!(due(&checks), 350, "no pair works");
        checks.connected(true);
        assert_eq!(due(&checks), 2_600);
        assert_eq!(checks.due(at(9_000)), at(9_000), "ICE may want it later");
        // What is no check of ours changes nothing: their check, our answer to it, an indication, DTLS.
        checks.received(&[0x00, 0x01, 0x00]);
        checks.sent(at(150), &[0x01, 0x01, 0x00]);
        checks.received(&[0x00, 0x11]);
        checks.sent(at(150), &[0x16, 0xfe]);
        assert_eq!(due(&checks), 2_600);
        checks.sent(at(200), &[0x00, 0x01, 0x00]);
        assert_eq!(due(&checks), 350, "the second is not answered");
        checks.received(&[0x01, 0x01, 0x00]);
        assert_eq!(due(&checks), 2_700);
        checks.connected(false);
        assert_eq!(due(&checks), 350, "consent was lost");
    }

    #[test]
    fn new_candidates_are_checked_at_the_pace_of_ice() {
        let start = Instant::now();
        let mut checks = Checks::default();
        checks.connected(true);
        checks.sent(start, &REQUEST);
        checks.received(&RESPONSE);
        assert_eq!(checks.due(start), start + CHECKED_EVERY);
        checks.begin_anew();
        assert_eq!(checks.due(start), start);
    }
}
