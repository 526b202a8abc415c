//! The target bitrate of a sender, from its receivers' feedback: REMB, loss, and arrival times.
//!
//! Loss has the effect of the sender side of Google's congestion control (draft-ietf-rmcat-gcc-02
//! section 6): above 10 % the rate falls by half the loss, below 2 % it grows by 5 %, between them
//! it stays. The estimate from delay (`estimate/`) is one more upper bound.

use std::time::{Duration, Instant};

const LOSS_HIGH: f64 = 0.1;
const LOSS_LOW: f64 = 0.02;
/// Reports arrive about once a second from each receiver; the rate is adjusted no more often.
const JUDGED_EVERY: Duration = Duration::from_secs(1);
/// An upper bound from REMB expires if it is not repeated.
const CEILING_LIFE: Duration = Duration::from_secs(10);
/// How far probes find the path to exceed the wanted rate: libwebrtc probes up to twice the
/// encoders' largest rate, for the bursts of their key frames (`ProbeController`,
/// `second_allocation_probe_scale`).
const PROBED: f64 = 2.0;

/// The rate that a sender keeps to.
pub(super) struct TargetBitrate {
    wanted_bps: f64,
    by_loss_bps: f64,
    remb: Option<(f64, Instant)>,
    by_delay: Option<(f64, Instant)>,
    worst_loss: f64,
    judged_at: Instant,
}

impl TargetBitrate {
    /// For a sender that wants to send `wanted_bps`.
    pub(super) fn new(wanted_bps: f64, now: Instant) -> Self {
        Self {
            wanted_bps,
            by_loss_bps: wanted_bps,
            remb: None,
            by_delay: None,
            worst_loss: 0.0,
            judged_at: now,
        }
    }

    /// Sets the rate that the sender wants.
    pub(super) fn want(&mut self, wanted_bps: f64) {
        let share = self.by_loss_bps / self.wanted_bps.max(1.0);
        self.wanted_bps = wanted_bps;
        self.by_loss_bps = wanted_bps * share.min(1.0);
    }

    /// The rate without limits, bits per second.
    pub(super) fn wanted_bps(&self) -> f64 {
        self.wanted_bps
    }

    /// The receiver's REMB.
    pub(super) fn remb(&mut self, now: Instant, bits_per_second: f64) {
        self.remb = Some((bits_per_second, now));
    }

    /// The bound from arrival times, if there is one.
    pub(super) fn by_delay(&mut self, now: Instant, bits_per_second: Option<f64>) {
        self.by_delay = bits_per_second.map(|bps| (bps, now));
    }

    /// The receiver lost this share of the packets since its last report.
    pub(super) fn loss(&mut self, now: Instant, ratio: f64) {
        self.worst_loss = self.worst_loss.max(ratio);
        if now.saturating_duration_since(self.judged_at) < JUDGED_EVERY {
            return;
        }
        self.judged_at = now;
        let loss = std::mem::take(&mut self.worst_loss);
        if loss > LOSS_HIGH {
            self.by_loss_bps *= 1.0 - loss / 2.0;
        } else if loss < LOSS_LOW {
            self.by_loss_bps = (self.by_loss_bps * 1.05).min(self.wanted_bps);
        }
    }

    /// The rate that may be sent at `now`, bits per second.
    pub(super) fn bps(&self, now: Instant) -> f64 {
        self.below_ceilings(self.by_loss_bps, now)
    }

    /// The estimated path rate at `now`, bits per second, by which packets are paced: the probed
    /// rate, unless loss or the receiver limits it.
    pub(super) fn path_bps(&self, now: Instant) -> f64 {
        let is_lossy = self.by_loss_bps < self.wanted_bps;
        self.below_ceilings(if is_lossy { self.by_loss_bps } else { self.probed_bps() }, now)
    }

    /// The estimated path rate without limits, bits per second.
    pub(super) fn probed_bps(&self) -> f64 {
        PROBED * self.wanted_bps
    }

    fn below_ceilings(&self, bps: f64, now: Instant) -> f64 {
        let is_fresh =
            |(_, at): &&(f64, Instant)| now.saturating_duration_since(*at) < CEILING_LIFE;
        let ceilings = [&self.remb, &self.by_delay].into_iter().flatten().filter(is_fresh);
        ceilings.fold(bps, |bps, (ceiling, _)| bps.min(*ceiling))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_lowers_the_rate_and_its_end_raises_it() {
        let start = Instant::now();
        let mut target_bitrate = TargetBitrate::new(1e6, start);
        let mut second = 0;
        let mut judge = |target_bitrate: &mut TargetBitrate, loss| {
            second += 1;
            let now = start + Duration::from_secs(second);
            target_bitrate.loss(now, loss);
            target_bitrate.bps(now).round()
        };
        assert_eq!(judge(&mut target_bitrate, 0.05), 1e6);
        assert_eq!(judge(&mut target_bitrate, 0.2), 9e5);
        assert_eq!(judge(&mut target_bitrate, 0.05), 9e5);
        assert_eq!(judge(&mut target_bitrate, 0.0), 945_000.0);
        assert_eq!(judge(&mut target_bitrate, 0.0), 992_250.0);
        assert_eq!(judge(&mut target_bitrate, 0.0), 1e6, "and never above what is wanted");
    }

    #[test]
    fn the_worst_receiver_of_a_second_counts() {
        let start = Instant::now();
        let mut target_bitrate = TargetBitrate::new(1e6, start);
        target_bitrate.loss(start + Duration::from_millis(400), 0.5);
        target_bitrate.loss(start + Duration::from_millis(1_100), 0.0);
        assert_eq!(target_bitrate.bps(start), 75e4);
    }

    #[test]
    fn remb_is_a_ceiling_while_it_is_repeated() {
        let start = Instant::now();
        let mut target_bitrate = TargetBitrate::new(1e6, start);
        target_bitrate.remb(start, 3e5);
        assert_eq!(target_bitrate.bps(start + Duration::from_secs(9)), 3e5);
        assert_eq!(target_bitrate.bps(start + Duration::from_secs(11)), 1e6);
    }

    #[test]
    fn a_path_is_assumed_to_carry_twice_the_target_until_feedback_says_less() {
        let start = Instant::now();
        let mut target_bitrate = TargetBitrate::new(1e6, start);
        assert_eq!(target_bitrate.path_bps(start), 2e6);
        target_bitrate.remb(start, 1.2e6);
        assert_eq!((target_bitrate.path_bps(start), target_bitrate.bps(start)), (1.2e6, 1e6));
        let later = start + Duration::from_secs(11);
        target_bitrate.loss(later, 0.5);
        assert_eq!(target_bitrate.path_bps(later), 75e4);
    }
}
