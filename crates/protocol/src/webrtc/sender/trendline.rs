//! Whether a queue grows on the path: the delay-based detector of Google's congestion control
//! (draft-ietf-rmcat-gcc-02 section 5), with the trendline that libwebrtc uses in place of the
//! Kalman filter (`InterArrivalDelta`, `TrendlineEstimator`).
//!
//! Packets that leave together are a group. If groups repeatedly arrive further apart than they
//! left, a queue on the path grows.

/// Packets that leave within this time of the first are one group.
const GROUP_US: i64 = 5_000;
/// The number of groups over which the trend is computed.
const WINDOW: usize = 20;
/// Weight of the previous value in the smoothed delay.
const SMOOTHING: f64 = 0.9;
/// The trend is multiplied by the number of groups, up to this many, and by the gain.
const GROUPS_MAX: u32 = 60;
const GAIN: f64 = 4.0;
/// A trend above the threshold is an over-use only after this time, milliseconds.
const OVER_FOR_MS: f64 = 10.0;
/// The threshold adapts to the path, faster down than up, within these bounds (section 5.4).
const THRESHOLD_MS: f64 = 12.5;
const THRESHOLD_MIN_MS: f64 = 6.0;
const THRESHOLD_MAX_MS: f64 = 600.0;
const FOLLOWS_UP: f64 = 0.0087;
const FOLLOWS_DOWN: f64 = 0.039;
/// A trend that exceeds the threshold by this is a change of the path; the threshold does not adapt
/// to it.
const SPIKE_MS: f64 = 15.0;
/// Clocks that jump by more than this reset the state.
const JUMP_US: i64 = 3_000_000;

/// The use of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// A queue grows.
    Over,
    /// A queue empties.
    Under,
    /// Neither.
    Normal,
}

/// The state of the path's delay.
#[derive(Debug)]
pub(super) struct Trendline {
    group: Option<Group>,
    before: Option<Group>,
    /// Groups compared so far.
    groups: u32,
    /// Sum of all changes of delay, raw and smoothed, milliseconds.
    delay_ms: f64,
    smoothed_ms: f64,
    /// (arrival, smoothed delay) of the last groups in a ring, milliseconds; the index to overwrite
    /// next.
    points: [(f64, f64); WINDOW],
    next: usize,
    slope: f64,
    over_for_ms: Option<f64>,
    overs: u32,
    threshold_ms: f64,
    usage: Usage,
}

/// Packets that left together.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent_us: u32,
    last_sent_us: u32,
    arrived_us: i64,
}

impl Default for Trendline {
    fn default() -> Self {
        Self {
            group: None,
            before: None,
            groups: 0,
            delay_ms: 0.0,
            smoothed_ms: 0.0,
            points: [(0.0, 0.0); WINDOW],
            next: 0,
            slope: 0.0,
            over_for_ms: None,
            overs: 0,
            threshold_ms: THRESHOLD_MS,
            usage: Usage::Normal,
        }
    }
}

impl Trendline {
    /// The use of the path according to the last compared group.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// A packet that was sent at `sent_us`, on a clock that wraps, arrived at `arrived_us`, on
    /// another clock.
    pub(super) fn arrived(&mut self, sent_us: u32, arrived_us: i64) {
        let Some(group) = &mut self.group else {
            self.group = Some(Group { first_sent_us: sent_us, last_sent_us: sent_us, arrived_us });
            return;
        };
        let into_group = after(sent_us, group.first_sent_us);
        if into_group < -GROUP_US {
            return; // of a group that was compared already
        }
        if into_group <= GROUP_US {
            if after(sent_us, group.last_sent_us) > 0 {
                group.last_sent_us = sent_us;
            }
            group.arrived_us = group.arrived_us.max(arrived_us);
            return;
        }
        let whole = std::mem::replace(
            group,
            Group { first_sent_us: sent_us, last_sent_us: sent_us, arrived_us },
        );
        if let Some(before) = self.before.replace(whole) {
            self.compare(&before, &whole);
        }
    }

    fn compare(&mut self, before: &Group, group: &Group) {
        let sent_us = after(group.last_sent_us, before.last_sent_us);
        let arrived_us = group.arrived_us.saturating_sub(before.arrived_us);
        if sent_us.saturating_sub(arrived_us).saturating_abs() > JUMP_US {
            *self = Self { group: self.group, ..Self::default() };
            return;
        }
        self.groups = self.groups.saturating_add(1);
        self.delay_ms += (arrived_us - sent_us) as f64 / 1e3;
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.delay_ms;
        if let Some(point) = self.points.get_mut(self.next) {
            *point = (group.arrived_us as f64 / 1e3, self.smoothed_ms);
        }
        self.next = (self.next + 1) % WINDOW;
        let before = self.slope;
        if self.groups as usize >= WINDOW {
            self.slope = slope(&self.points).unwrap_or(self.slope);
        }
        self.judge(sent_us as f64 / 1e3, before);
        self.adapt(arrived_us as f64 / 1e3);
    }

    fn trend_ms(&self) -> f64 {
        f64::from(self.groups.min(GROUPS_MAX)) * self.slope * GAIN
    }

    fn judge(&mut self, sent_ms: f64, slope_before: f64) {
        let trend_ms = self.trend_ms();
        if trend_ms <= self.threshold_ms {
            (self.over_for_ms, self.overs) = (None, 0);
            self.usage = if trend_ms < -self.threshold_ms { Usage::Under } else { Usage::Normal };
            return;
        }
        let over_for_ms = self.over_for_ms.map_or(sent_ms / 2.0, |over| over + sent_ms);
        self.over_for_ms = Some(over_for_ms);
        self.overs = self.overs.saturating_add(1);
        if over_for_ms > OVER_FOR_MS && self.overs > 1 && self.slope >= slope_before {
            (self.over_for_ms, self.overs) = (Some(0.0), 0);
            self.usage = Usage::Over;
        }
    }

    fn adapt(&mut self, passed_ms: f64) {
        let trend_ms = self.trend_ms().abs();
        if trend_ms > self.threshold_ms + SPIKE_MS {
            return;
        }
        let follows = if trend_ms < self.threshold_ms { FOLLOWS_DOWN } else { FOLLOWS_UP };
        let moved = follows * (trend_ms - self.threshold_ms) * passed_ms.clamp(0.0, 100.0);
        self.threshold_ms = (self.threshold_ms + moved).clamp(THRESHOLD_MIN_MS, THRESHOLD_MAX_MS);
    }
}

/// Microseconds from `earlier` to `later` on a clock that wraps.
fn after(later: u32, earlier: u32) -> i64 {
    i64::from(later.wrapping_sub(earlier) as i32)
}

/// The slope of the least-squares line through the points; `None` if all have the same time.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) =
        points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (up, along) = points.iter().fold((0.0, 0.0), |(up, along), point| {
        let from_middle = point.0 - x;
        (up + from_middle * (point.1 - y), along + from_middle * from_middle)
    });
    (along > 0.0).then(|| up / along)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The detected usages, without repeats, for a frame every 33 ms that is delayed by `delay_us`
    /// of its number.
    fn usages(frames: i64, delay_us: impl Fn(i64) -> i64) -> Vec<Usage> {
        let mut trend = Trendline::default();
        let mut usages_seen = vec![Usage::Normal];
        for frame in 0..frames {
            let sent_us = frame * 33_000;
            // The sender's clock wraps within the test.
            let wrapping = (sent_us as u32).wrapping_sub(1_000_000);
            for packet in 0..3 {
                trend.arrived(wrapping, 7_000_000_000 + sent_us + delay_us(frame) + packet * 100);
            }
            if usages_seen.last() != Some(&trend.usage()) {
                usages_seen.push(trend.usage());
            }
        }
        usages_seen
    }

    #[test]
    fn a_queue_that_grows_is_over_use_and_one_that_empties_is_under_use() {
        assert_eq!(usages(300, |_| 40_000), [Usage::Normal]);
        let grows =
            |frame: i64| (frame - 60).clamp(0, 30) * 5_000 - (frame - 120).clamp(0, 30) * 5_000;
        let usages_seen = usages(300, grows);
        assert_eq!(
            usages_seen,
            [Usage::Normal, Usage::Over, Usage::Normal, Usage::Under, Usage::Normal]
        );
    }

    #[test]
    fn jitter_without_a_trend_is_normal() {
        let mut rng = fastrand::Rng::with_seed(4);
        let jitter: Vec<i64> = (0..3_000).map(|_| rng.i64(0..8_000)).collect();
        assert_eq!(usages(3_000, |frame| jitter[frame as usize]), [Usage::Normal]);
        // A pause of 30 ms once a second, after which the delayed packets arrive at once.
        assert!(
            !usages(3_000, |frame| if frame % 30 == 0 { 30_000 } else { 0 }).contains(&Usage::Over)
        );
    }

    #[test]
    fn clocks_that_jump_or_go_back_are_survived() {
        let mut trend = Trendline::default();
        let mut rng = fastrand::Rng::with_seed(9);
        for _ in 0..20_000 {
            let arrived_us = if rng.bool() { rng.i64(..) } else { rng.i64(0..1_000_000) };
            trend.arrived(rng.u32(..), arrived_us);
            assert!(trend.slope.is_finite() && trend.smoothed_ms.is_finite());
            assert!((THRESHOLD_MIN_MS..=THRESHOLD_MAX_MS).contains(&trend.threshold_ms));
        }
    }
}
