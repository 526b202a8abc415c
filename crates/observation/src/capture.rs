//! Absolute one-way delay, with the origin of its capture times: figures of two origins are not
//! mixed.

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;
use crate::measure::ratio;
use crate::units::{duration_ms, percent};
use crate::{Distribution, Quantiles};

/// The part of a protocol with the anomaly "sender reports have an NTP time that is not wall-clock
/// time".
pub const SENDER_CLOCK_PLACE: &str = "sender_clock";
/// The event: `protocol_anomaly_` and the place.
pub const SENDER_CLOCK_EVENT: &str = "protocol_anomaly_sender_clock";

/// The part of a protocol with the anomaly "the RTP time of video jumps".
pub const TIME_JUMP_PLACE: &str = "time_jump";
/// The event: `protocol_anomaly_` and the place.
pub const TIME_JUMP_EVENT: &str = "protocol_anomaly_time_jump";

keyed! {
    /// Where a capture time comes from, best first.
    CaptureBasis {
        /// A mark inside the coded stream.
        Mark = "mark",
        /// The `abs-capture-time` header extension.
        AbsCaptureTime = "abs_capture_time",
        /// The RTCP sender report's NTP to RTP mapping. Most SFUs write their own reports, so that
        /// this is the time at which the server sent the frame, not at which the camera captured
        /// it.
        SenderReport = "sender_report",
    }
}

impl CaptureBasis {
    /// For a person: how the delay was measured.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            CaptureBasis::Mark => "in-media mark",
            CaptureBasis::AbsCaptureTime => "abs-capture-time",
            CaptureBasis::SenderReport => {
                "RTCP SR (the server's own clock: its egress, not the source)"
            }
        }
    }

    /// Whether the capture time is the source's, so that the delay is end to end.
    #[must_use]
    pub fn is_end_to_end(self) -> bool {
        self != CaptureBasis::SenderReport
    }
}

/// Absolute one-way delays of frames, all of one basis: the best one seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OneWayDelay {
    basis: Option<CaptureBasis>,
    /// Negative delays are recorded as 0, so that ranks are right.
    delay_us: Distribution,
    negative: u64,
    /// How much below 0 the negative ones are.
    ahead_us: Distribution,
}

/// Frames that seem to have arrived before they were captured or sent: the clocks differ by more
/// than the delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockDisagreement {
    /// Their share of all frames.
    pub ratio: f64,
    /// How much too early they are: 95th percentile, milliseconds; `None` in runs of earlier
    /// versions, which did not keep it.
    pub ahead_ms_p95: Option<f64>,
}

impl ClockDisagreement {
    /// This, unless clocks whose error is at most `bound_ms` may do so; without a known bound
    /// always this.
    #[must_use]
    pub fn beyond(self, bound_ms: Option<f64>) -> Option<Self> {
        let is_within =
            self.ahead_ms_p95.zip(bound_ms).is_some_and(|(ahead, bound)| ahead <= bound);
        (!is_within).then_some(self)
    }

    /// For a person: `38.0 % of frames seem to arrive before they were sent, by up to 0.4 ms
    /// (p95)`.
    #[must_use]
    pub fn text(&self, basis: CaptureBasis) -> String {
        let done = if basis.is_end_to_end() { "captured" } else { "sent" };
        let by = self.ahead_ms_p95.map(|ms| format!(", by up to {} (p95)", duration_ms(ms)));
        format!(
            "{} of frames seem to arrive before they were {done}{}",
            percent(self.ratio),
            by.unwrap_or_default()
        )
    }
}

impl OneWayDelay {
    /// The parts of a stored row; `delay_us` holds the `negative` frames as 0, and `ahead_us` how
    /// much below 0 they are (empty where that is not known).
    #[must_use]
    pub fn from_parts(
        basis: Option<CaptureBasis>,
        delay_us: Distribution,
        negative: u64,
        ahead_us: Distribution,
    ) -> Self {
        Self { basis, delay_us, negative, ahead_us }
    }

    /// Adds a frame's delay, microseconds; negative when it seems to have arrived before it was
    /// captured, because the clocks differ by more than the delay. Samples of a better basis
    /// replace all of a worse one; samples of a worse basis are ignored.
    pub fn record(&mut self, basis: CaptureBasis, delay_us: i32) {
        if self.prepare(basis) {
            self.delay_us.record(u64::try_from(delay_us).unwrap_or(0));
            if delay_us < 0 {
                self.negative += 1;
                self.ahead_us.record(u64::from(delay_us.unsigned_abs()));
            }
        }
    }

    /// Adds all of `other`, by the same rule.
    pub fn merge(&mut self, other: &Self) {
        if let Some(basis) = other.basis
            && self.prepare(basis)
        {
            self.delay_us.merge(&other.delay_us);
            self.negative = self.negative.saturating_add(other.negative);
            self.ahead_us.merge(&other.ahead_us);
        }
    }

    /// Forgets delays of `basis`.
    pub fn withdraw(&mut self, basis: CaptureBasis) {
        if self.basis == Some(basis) {
            *self = Self::default();
        }
    }

    /// Whether samples of `basis` count here.
    fn prepare(&mut self, basis: CaptureBasis) -> bool {
        match self.basis {
            Some(ours) if ours < basis => false,
            Some(ours) if ours == basis => true,
            _ => {
                *self = Self { basis: Some(basis), ..Self::default() };
                true
            }
        }
    }

    /// How the delays were measured; `None` when there are none.
    #[must_use]
    pub fn basis(&self) -> Option<CaptureBasis> {
        self.basis
    }

    /// The delays, microseconds, negative ones as 0.
    #[must_use]
    pub fn distribution(&self) -> &Distribution {
        &self.delay_us
    }

    /// Frames that seem to have arrived before they were captured.
    #[must_use]
    pub fn negative(&self) -> u64 {
        self.negative
    }

    /// How much too early those frames seem to be, microseconds; empty in runs of earlier versions.
    #[must_use]
    pub fn ahead(&self) -> &Distribution {
        &self.ahead_us
    }

    /// Which share of the frames seems to be too early, and by how much; `None` where none does.
    #[must_use]
    pub fn disagreement(&self) -> Option<ClockDisagreement> {
        let ratio = self.clock_disagrees_ratio().filter(|ratio| *ratio > 0.0)?;
        let ahead_ms_p95 = self.ahead_us.quantile_in(0.95, 1e3);
        Some(ClockDisagreement { ratio, ahead_ms_p95 })
    }

    /// Whether no frame carried a capture time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.delay_us.is_empty()
    }

    /// Share of frames that seem to have arrived before they were captured; `None` without frames.
    #[must_use]
    pub fn clock_disagrees_ratio(&self) -> Option<f64> {
        ratio(self.negative, self.delay_us.count())
    }

    /// The `q`-quantile, microseconds; `None` when it is among the negative delays, which only show
    /// that the clocks differ.
    #[must_use]
    pub fn quantile_us(&self, q: f64) -> Option<u64> {
        let disagrees = self.clock_disagrees_ratio()?;
        if self.negative > 0 && q <= disagrees { None } else { self.delay_us.quantile(q) }
    }

    /// The same in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.quantile_us(q).map(|us| us as f64 / 1e3)
    }

    /// The usual quantiles, in units of `scale` microseconds; `None` when the median is among the
    /// negative ones.
    #[must_use]
    pub fn quantiles(&self, scale: f64) -> Option<Quantiles> {
        self.quantile_us(0.5).and_then(|_| self.delay_us.quantiles(scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_of_an_anomaly_is_its_place() {
        assert_eq!(SENDER_CLOCK_EVENT, format!("protocol_anomaly_{SENDER_CLOCK_PLACE}"));
        assert_eq!(TIME_JUMP_EVENT, format!("protocol_anomaly_{TIME_JUMP_PLACE}"));
    }

    #[test]
    fn every_basis_is_found_again_by_its_key() {
        for basis in CaptureBasis::ALL {
            assert_eq!(CaptureBasis::from_key(basis.key()), Some(basis));
        }
        assert_eq!(CaptureBasis::from_key("guess"), None);
    }

    #[test]
    fn figures_of_two_bases_do_not_mix() {
        let (sr, mark) = (CaptureBasis::SenderReport, CaptureBasis::Mark);
        let mut delay = OneWayDelay::default();
        delay.record(sr, 5);
        delay.record(mark, 40_000);
        delay.record(sr, 5);
        assert_eq!((delay.basis(), delay.distribution().count()), (Some(mark), 1));
        let mut reported = OneWayDelay::default();
        reported.record(sr, -1);
        delay.merge(&reported);
        delay.merge(&OneWayDelay::default());
        assert_eq!((delay.distribution().count(), delay.negative()), (1, 0));
        reported.merge(&delay);
        assert_eq!(
            (reported.basis(), reported.distribution().count(), reported.negative()),
            (Some(mark), 1, 0)
        );
    }

    #[test]
    fn a_quantile_among_frames_from_the_future_is_not_reported() {
        let mut delay = OneWayDelay::default();
        assert_eq!((delay.quantile_us(0.5), delay.clock_disagrees_ratio()), (None, None));
        (0..60).for_each(|_| delay.record(CaptureBasis::Mark, -700));
        (0..40).for_each(|_| delay.record(CaptureBasis::Mark, 3_000));
        assert_eq!(delay.clock_disagrees_ratio(), Some(0.6));
        assert!(delay.quantile_us(0.5).is_none() && delay.quantiles(1e3).is_none());
        assert!(delay.quantile_us(0.95).is_some_and(|us| us.abs_diff(3_000) < 60));
    }

    #[test]
    fn clocks_disagree_by_what_their_known_error_does_not_explain() {
        let mut delay = OneWayDelay::default();
        (0..62).for_each(|_| delay.record(CaptureBasis::SenderReport, 3_000));
        assert_eq!(delay.disagreement(), None);
        (0..38).for_each(|_| delay.record(CaptureBasis::SenderReport, -90));
        let found = delay.disagreement().unwrap();
        assert_eq!((found.ratio, found.ahead_ms_p95), (0.38, Some(0.09)));
        assert_eq!(found.beyond(Some(0.1)), None, "within the error of the clocks");
        assert_eq!((found.beyond(Some(0.05)), found.beyond(None)), (Some(found), Some(found)));
        let mut more = delay.clone();
        (0..38).for_each(|_| more.record(CaptureBasis::SenderReport, -400));
        delay.merge(&more);
        let found = delay.disagreement().unwrap().beyond(Some(0.1)).unwrap();
        assert_eq!(
            found.text(CaptureBasis::SenderReport),
            "47.9 % of frames seem to arrive before they were sent, by up to 0.4 ms (p95)"
        );
        let older = ClockDisagreement { ahead_ms_p95: None, ..found };
        assert_eq!(older.beyond(Some(0.1)), Some(older), "by how much is not known");
        assert_eq!(
            older.text(CaptureBasis::Mark),
            "47.9 % of frames seem to arrive before they were captured"
        );
    }
}
