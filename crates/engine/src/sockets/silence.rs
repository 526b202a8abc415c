//! Silences of a peer, and the bursts after them: a server that stood still sends at once what it could not send before, and no
//! reader is fast enough for that.

use std::time::{Duration, Instant};

/// A peer is silent after this long without a datagram: media has a packet each 400 ms at least, also with DTX (RFC 7587
/// section 3.1.3).
const SILENT: Duration = Duration::from_secs(1);

/// How long after a silence datagrams count as the burst that a stalled peer sends at once.
const BURST: Duration = Duration::from_secs(1);

/// When a socket's peer sent, and was silent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    arrived_at: Option<Instant>,
    /// When the first datagram arrived after a silence, and the length of that silence.
    ended: Option<(Instant, Duration)>,
}

impl Silence {
    /// A datagram arrived.
    pub(crate) fn arrived(&mut self, at: Instant) {
        let before = self.arrived_at.replace(at).unwrap_or(at);
        let silent = at.saturating_duration_since(before);
        if silent >= SILENT {
            self.ended = Some((at, silent));
        }
    }

    /// The length of the silence after which datagrams that arrive `at` come in a burst.
    pub(crate) fn before_burst(&self, at: Instant) -> Option<Duration> {
        let (ended_at, silent) = self.ended?;
        (at.saturating_duration_since(ended_at) <= BURST).then_some(silent)
    }

    /// The same for datagrams of the second that ends `now`, those included of which none was seen: the peer is silent, or was at most
    /// two seconds ago.
    pub(crate) fn before_burst_in_second(&self, now: Instant) -> Option<Duration> {
        let silent = now.saturating_duration_since(self.arrived_at?);
        if silent >= SILENT {
            return Some(silent);
        }
        let (ended_at, silent) = self.ended?;
        (now.saturating_duration_since(ended_at) <= BURST + Duration::from_secs(1)).then_some(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_what_comes_within_a_second_after_a_silence() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut silence = Silence::default();
        assert_eq!(silence.before_burst_in_second(at(0)), None);
        [0, 400, 800].into_iter().for_each(|ms| silence.arrived(at(ms)));
        assert_eq!((silence.before_burst(at(800)), silence.before_burst_in_second(at(1000))), (None, None));
        // Nothing of the burst has been seen yet.
        let silent = Some(Duration::from_millis(3200));
        assert_eq!(silence.before_burst_in_second(at(4000)), silent);
        silence.arrived(at(4000));
        [4300, 4900].into_iter().for_each(|ms| silence.arrived(at(ms)));
        assert_eq!(
            (silence.before_burst(at(5000)), silence.before_burst_in_second(at(5800))),
            (silent, silent)
        );
        [5500, 5900].into_iter().for_each(|ms| silence.arrived(at(ms)));
        assert_eq!((silence.before_burst(at(5900)), silence.before_burst_in_second(at(6100))), (None, None));
    }
}
