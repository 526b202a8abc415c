//! Spreads the packets of large frames over time, as WebRTC senders do.
//!
//! Source: libwebrtc's `PacingController` with Chromium's burst settings.

use std::time::{Duration, Instant};

/// The ratio of pacing rate to estimated path rate: `kDefaultPacingFactor`.
const FACTOR: f64 = 2.5;
/// A burst has the bytes that the pacing rate sends in this time, so that most frames leave in one
/// burst and a sender sleeps in between: `kDefaultBurstInterval`.
const BURST: Duration = Duration::from_millis(40);
/// The largest burst, which fits socket buffers: `kMaxBurstSize`.
const BURST_BYTES_MAX: f64 = 63_000.0;
/// The lowest path rate, so that the first key frame does not take seconds.
const RATE_MIN_BPS: f64 = 300_000.0;
/// The longest time to send a frame. An encoder whose rate is reduced makes smaller key frames from
/// the next one on (libvpx's `rc_max_intra_bitrate_pct`); a clip cannot, and video would freeze at
/// all of its receivers because of its sender.
const FRAME_S_MAX: f64 = 0.08;

/// A leaky bucket: data that was sent early is a debt in time.
pub(super) struct Pacer {
    bytes_per_s: f64,
    /// When all sent data would have left at the pacing rate.
    paid_at: Instant,
    /// The earliest start of the next burst.
    next_at: Instant,
}

impl Pacer {
    /// A pacer for a path with the estimated rate `path_bps`.
    pub(super) fn new(path_bps: f64, now: Instant) -> Self {
        let mut pacer = Self { bytes_per_s: 0.0, paid_at: now, next_at: now };
        pacer.set_path(path_bps, 0);
        pacer
    }

    /// Sets the estimated path rate and the size of the largest frame.
    pub(super) fn set_path(&mut self, path_bps: f64, frame_bytes_max: usize) {
        let by_path = path_bps.max(RATE_MIN_BPS) * FACTOR / 8.0;
        self.bytes_per_s = by_path.max(frame_bytes_max as f64 / FRAME_S_MAX);
    }

    /// When the next packet may leave; not after the present if it may leave at once.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// A packet of `bytes` was sent.
    pub(super) fn sent(&mut self, now: Instant, bytes: usize) {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
        self.paid_at = self.paid_at.max(now) + cost;
        let burst = BURST.min(Duration::from_secs_f64(BURST_BYTES_MAX / self.bytes_per_s));
        // After a burst the debt is paid in full before the next one.
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
        // A packet takes 4 ms: ten, and the one that ends the burst.
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
    fn an_idle_lane_has_no_debt() {
        let start = Instant::now();
        let mut pacer = Pacer::new(1e6, start);
        pacer.sent(start + Duration::from_secs(10), 1_250);
        assert!(pacer.next_at() < start + Duration::from_secs(10));
    }
}
