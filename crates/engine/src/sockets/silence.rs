//! Silences of a peer, and the bursts after them: a server that stood still sends at once what it
//! could not send before, and no reader is fast enough for that.

use std::time::{Duration, Instant};

/// A peer is silent after this long without a datagram: media has a packet each 400 ms at least,
/// also with DTX (RFC 7587 section 3.1.3).
const SILENT: Duration = Duration::from_secs(1);

/// How long after a silence datagrams count as the burst that a stalled peer sends at once.
const BURST: Duration = Duration::from_secs(1);

/// Calls of [`Silence::arrived`] between two silences that show that a peer plays: others send now
/// and then.
const PLAYS: u32 = 20;

/// When a socket's peer sent, and was silent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    arrived_at: Option<Instant>,
    /// How often something arrived since the last silence.
    arrivals: u32,
    /// When the first datagram arrived after a silence of a peer that had played, and the length of
    /// that silence.
    ended: Option<(Instant, Duration)>,
}

/// A second of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerSecond {
    /// It does not play.
    Idle,
    /// It played, and has been silent for so long.
    Silent(Duration),
    /// It was silent for so long, and plays again for two seconds at most.
    Resumed(Duration),
    /// It plays.
    Playing,
}

impl Silence {
    /// A datagram arrived.
    pub(crate) fn arrived(&mut self, at: Instant) {
        let before = self.arrived_at.replace(at).unwrap_or(at);
        let silent = at.saturating_duration_since(before);
        if silent >= SILENT {
            self.ended = (self.arrivals >= PLAYS).then_some((at, silent));
            self.arrivals = 0;
        }
        self.arrivals = self.arrivals.saturating_add(1);
    }

    /// The length of the silence after which datagrams that arrive `at` come in a burst.
    pub(crate) fn before_burst(&self, at: Instant) -> Option<Duration> {
        let (ended_at, silent) = self.ended?;
        (at.saturating_duration_since(ended_at) <= BURST).then_some(silent)
    }

    /// What the second was that ends `now`.
    pub(crate) fn second(&self, now: Instant) -> PeerSecond {
        let silent = self.arrived_at.map_or(SILENT, |at| now.saturating_duration_since(at));
        let resumed = |(at, _): &(Instant, Duration)| {
            now.saturating_duration_since(*at) <= BURST + Duration::from_secs(1)
        };
        match self.ended.filter(resumed) {
            _ if silent >= SILENT && self.arrivals >= PLAYS => PeerSecond::Silent(silent),
            _ if silent >= SILENT => PeerSecond::Idle,
            Some((_, silent)) => PeerSecond::Resumed(silent),
            None if self.arrivals >= PLAYS => PeerSecond::Playing,
            None => PeerSecond::Idle,
        }
    }
}

/// The length of the silence before a burst that filled what all these peers share: at least half
/// of those that play were silent before, or all are still.
pub(crate) fn before_shared_burst(seconds: impl Iterator<Item = PeerSecond>) -> Option<Duration> {
    let (mut resumed, mut playing) = (0, 0);
    let (mut longest, mut still) = (Duration::ZERO, None);
    for second in seconds {
        match second {
            PeerSecond::Idle => {}
            PeerSecond::Silent(silent) => still = still.max(Some(silent)),
            PeerSecond::Playing => playing += 1,
            PeerSecond::Resumed(silent) => {
                resumed += 1;
                longest = longest.max(silent);
            }
        }
    }
    if resumed + playing == 0 { still } else { (resumed >= playing).then_some(longest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A peer that sent each 40 ms from `from` until `until`.
    fn playing(silence: &mut Silence, start: Instant, from: u64, until: u64) {
        (from..=until).step_by(40).for_each(|at| silence.arrived(start + ms(at)));
    }

    #[test]
    fn a_burst_is_what_comes_within_a_second_after_a_silence() {
        let start = Instant::now();
        let at = |at| start + ms(at);
        let mut silence = Silence::default();
        assert_eq!(silence.second(at(0)), PeerSecond::Idle);
        playing(&mut silence, start, 0, 1000);
        assert_eq!(
            (silence.before_burst(at(1000)), silence.second(at(1010))),
            (None, PeerSecond::Playing)
        );
        // Nothing of the burst has been seen yet.
        assert_eq!(silence.second(at(4200)), PeerSecond::Silent(ms(3200)));
        playing(&mut silence, start, 4200, 6600);
        assert_eq!(silence.before_burst(at(5200)), Some(ms(3200)));
        assert_eq!(silence.second(at(6200)), PeerSecond::Resumed(ms(3200)));
        assert_eq!(
            (silence.before_burst(at(5201)), silence.second(at(6600))),
            (None, PeerSecond::Playing)
        );
    }

    #[test]
    fn who_sends_now_and_then_excuses_nothing() {
        let start = Instant::now();
        let mut silence = Silence::default();
        playing(&mut silence, start, 0, 1000);
        for second in 3..60 {
            silence.arrived(start + Duration::from_secs(second * 3));
            let seen = silence.second(start + Duration::from_secs(second * 3) + ms(500));
            assert!(second == 3 || seen == PeerSecond::Idle, "{seen:?}");
        }
        use PeerSecond::{Idle, Playing, Resumed, Silent};
        let of = |seconds: &[PeerSecond]| before_shared_burst(seconds.iter().copied());
        assert_eq!(of(&[Silent(ms(9000)), Silent(ms(9000)), Idle, Playing]), None);
        assert_eq!(of(&[Silent(ms(9000)), Idle, Silent(ms(2000))]), Some(ms(9000)));
        assert_eq!(of(&[Resumed(ms(1500)), Playing, Silent(ms(9000))]), Some(ms(1500)));
        assert_eq!(of(&[Resumed(ms(1500)), Playing, Playing]), None);
        assert_eq!(of(&[Idle]), None);
    }
}
