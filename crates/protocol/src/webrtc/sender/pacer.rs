//! Spreads the packets of large frames over time, as every real sender does.
//!
//! Source: libwebrtc's `PacingController` with the bursts that Chromium asks of it.

use std::time::{Duration, Instant};

/// How much faster than its path is taken to carry a sender may go: `kDefaultPacingFactor`.
const FACTOR: f64 = 2.5;
/// Packets leave in bursts of what the pacing rate sends in this time, so that most frames leave whole and a sender sleeps
/// in between: `kDefaultBurstInterval`.
const BURST: Duration = Duration::from_millis(40);
/// A burst is no larger, or it would overrun the buffers of sockets: `kMaxBurstSize`.
const BURST_BYTES_MAX: f64 = 63_000.0;
/// A sender is never slower than this, or its first key frame would take seconds.
const RATE_MIN_BPS: f64 = 300_000.0;
/// No frame takes longer than this to leave. An encoder that is told of a lower rate makes smaller key frames from the next
/// on (libvpx's `rc_max_intra_bitrate_pct`); a clip cannot, and the picture would stand still at all of its receivers
/// because of its sender.
const FRAME_S_MAX: f64 = 0.08;

/// A bucket that leaks: what was sent too early is a debt in time.
pub(super) struct Pacer {
    bytes_per_s: f64,
    /// When all that was sent would have left at the pacing rate.
    paid_at: Instant,
    /// The next burst begins no earlier.
    next_at: Instant,
}

impl Pacer {
    /// For a sender whose path is taken to carry `path_bps`.
    pub(super) fn new(path_bps: f64, now: Instant) -> Self {
        let mut pacer = Self { bytes_per_s: 0.0, paid_at: now, next_at: now };
        pacer.set_path(path_bps, 0);
        pacer
    }

    /// The path is taken to carry so much from here on; the largest frame has so many bytes.
    pub(super) fn set_path(&mut self, path_bps: f64, frame_bytes_max: usize) {
        let by_path = path_bps.max(RATE_MIN_BPS) * FACTOR / 8.0;
        self.bytes_per_s = by_path.max(frame_bytes_max as f64 / FRAME_S_MAX);
    }

    /// When the next packet may leave; now or earlier when it may at once.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// A packet of `bytes` leaves.
    pub(super) fn sent(&mut self, now: Instant, bytes: usize) {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
        self.paid_at = self.paid_at.max(now) + cost;
        let burst = BURST.min(Duration::from_secs_f64(BURST_BYTES_MAX / self.bytes_per_s));
        // A burst that has run out is paid for whole before the next.
        if self.paid_at.saturating_duration_since(now) > burst {
            self.next_at = self.paid_at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_frame_takes_its_time_in_bursts() {
        let start = Instant::now();
        // 1 Mbit/s: 2.5 times that are 312,500 bytes a second.
        let mut pacer = Pacer::new(1e6, start);
        let mut now = start;
        let mut bursts = vec![0];
        for _ in 0..110 {
            if pacer.next_at() > now {
                now = pacer.next_at();
                bursts.push(0);
            }
            pacer.sent(now, 1_250);
            *bursts.last_mut().unwrap() += 1;
        }
        // A packet is worth 4 ms: ten, and the one that ends the burst.
        assert_eq!(bursts, [11; 10]);
        assert_eq!((now - start).as_millis(), 9 * 44);
    }

    #[test]
    fn a_burst_is_no_larger_than_sockets_can_take() {
        let now = Instant::now();
        let mut pacer = Pacer::new(100e6, now);
        let burst = (1..).find(|_| {
            pacer.sent(now, 1_250);
            pacer.next_at() > now
        });
        assert_eq!(burst, Some(51));
    }

    #[test]
    fn a_frame_leaves_in_time_however_little_the_path_is_taken_to_carry() {
        let start = Instant::now();
        let mut pacer = Pacer::new(100e3, start);
        pacer.set_path(100e3, 12_500);
        let mut now = start;
        for _ in 0..10 {
            now = now.max(pacer.next_at());
            pacer.sent(now, 1_250);
        }
        assert!((now - start).as_millis() <= 80, "{} ms", (now - start).as_millis());
    }

    #[test]
    fn who_was_idle_owes_nothing() {
        let start = Instant::now();
        let mut pacer = Pacer::new(1e6, start);
        pacer.sent(start + Duration::from_secs(10), 1_250);
        assert!(pacer.next_at() < start + Duration::from_secs(10));
    }
}
