//! Spreads the packets of large frames over time, as every real sender does.

use std::time::{Duration, Instant};

/// How much faster than its path is taken to carry a sender may go: libwebrtc's `kDefaultPacingFactor`.
const FACTOR: f64 = 2.5;
/// Packets leave in groups this far apart, so that a crowd of senders does not wake a thousand times a second each.
const GROUP: Duration = Duration::from_millis(5);
/// A sender is never slower than this, or its first key frame would take seconds.
const RATE_MIN_BPS: f64 = 300_000.0;

/// A bucket that leaks: what was sent too early is a debt in time.
pub(super) struct Pacer {
    bytes_per_s: f64,
    /// When all that was sent would have left at the pacing rate.
    paid_at: Instant,
}

impl Pacer {
    /// For a sender whose path is taken to carry `path_bps`.
    pub(super) fn new(path_bps: f64, now: Instant) -> Self {
        let mut pacer = Self { bytes_per_s: 0.0, paid_at: now };
        pacer.set_path(path_bps);
        pacer
    }

    /// The path is taken to carry so much from here on.
    pub(super) fn set_path(&mut self, path_bps: f64) {
        self.bytes_per_s = path_bps.max(RATE_MIN_BPS) * FACTOR / 8.0;
    }

    /// When the next packet may leave; now or earlier when it may at once.
    pub(super) fn next_at(&self) -> Instant {
        // Within a group the debt is let stand.
        self.paid_at.checked_sub(GROUP).unwrap_or(self.paid_at)
    }

    /// A packet of `bytes` leaves.
    pub(super) fn sent(&mut self, now: Instant, bytes: usize) {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
        self.paid_at = self.paid_at.max(now) + cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_frame_takes_its_time_in_groups() {
        let start = Instant::now();
        // 1 Mbit/s: 2.5 times that are 312,500 bytes a second.
        let mut pacer = Pacer::new(1e6, start);
        let mut now = start;
        let mut groups = vec![0];
        for _ in 0..100 {
            if pacer.next_at() > now {
                now = pacer.next_at() + GROUP;
                groups.push(0);
            }
            pacer.sent(now, 1_250);
            *groups.last_mut().unwrap() += 1;
        }
        let took = now - start;
        assert!((380..=405).contains(&took.as_millis()), "{took:?} for 125 kB");
        assert!(groups.iter().all(|packets| (1..=4).contains(packets)), "{groups:?}");
    }

    #[test]
    fn who_was_idle_owes_nothing() {
        let start = Instant::now();
        let mut pacer = Pacer::new(1e6, start);
        pacer.sent(start + Duration::from_secs(10), 1_250);
        assert!(pacer.next_at() < start + Duration::from_secs(10));
    }
}
