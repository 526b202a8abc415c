//! The value of a counter in the three windows that are compared, and whether it changed with the
//! load.

use throng_observation::host::Unit;

/// A counter in the three windows; `None` where it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) base: Option<f64>,
    pub(crate) pass: Option<f64>,
    pub(crate) fail: Option<f64>,
    /// The highest value under any load that passed.
    pub(crate) most: Option<f64>,
    /// Whether users are worse where this error counter counts (see [`super::felt`]); `None` where
    /// that was not asked or cannot be told.
    pub(crate) felt: Option<bool>,
}

/// What a counter counts, which decides how much more of it is growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Growth {
    /// A level, or events a second.
    #[default]
    Level,
    /// A share of errors, where a few in a thousand matter.
    ErrorShare,
    /// Events, of which one may be the whole cause ([`super::Context::events`]).
    Events,
}

/// Whether a counter is higher under the failing load than where service was good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is higher.
    Grew,
    /// It was as high before: it explains nothing.
    Same,
    /// It was not measured before, or not under the failing load: growth cannot be shown.
    Unknown,
}

/// The least difference that counts, and the least factor of growth, by unit. The median second of
/// a level is steady within a few percent; a count of a hundred events varies by ten by chance.
fn steps(unit: Unit) -> (f64, f64) {
    match unit {
        Unit::Ratio => (0.02, 1.1),
        Unit::Count => (0.5, 1.1),
        Unit::PerSecond => (0.1, 1.5),
        Unit::Bytes => (65_536.0, 1.1),
        Unit::BytesPerSecond => (1_000.0, 1.1),
        Unit::Milliseconds => (1.0, 1.1),
    }
}

/// The same for a share of errors.
const ERROR_STEPS: (f64, f64) = (0.003, 1.5);
/// The same for events: half of one, as a window may cut the second in which it was counted.
const EVENT_STEPS: (f64, f64) = (0.5, 1.5);
/// Levels that differ by less than this share are the same: their median second is steady within a
/// few percent.
const AS_GOOD_AS: f64 = 0.05;
/// Errors grew if there are this many times as many as under any load that passed.
const ERRORS_MORE: f64 = 1.25;
/// Errors that users felt need no more than there were under a load that just passed: the line was
/// drawn through them.
const FELT_ERRORS_MORE: f64 = 0.9;

impl Reading {
    /// A value of the failing load alone.
    pub(crate) fn at_failure(value: f64) -> Self {
        Self { fail: Some(value), ..Self::default() }
    }

    /// The reading that is the highest under the failing load; that of nothing without any.
    pub(crate) fn worst(all: impl IntoIterator<Item = Self>) -> Self {
        let highest = all.into_iter().max_by(|a, b| a.fail().total_cmp(&b.fail()));
        highest.unwrap_or_default()
    }

    pub(crate) fn fail(&self) -> f64 {
        self.fail.unwrap_or(0.0)
    }

    /// The value where service was good: at the baseline, or under the load that passed if the
    /// baseline was not measured (that load may have been near the limit already).
    pub(crate) fn before(&self) -> Option<f64> {
        self.base.or(self.pass)
    }

    /// By how much it is higher under the failing load than before.
    pub(crate) fn growth_at_failure(&self) -> f64 {
        self.fail() - self.before().unwrap_or(0.0)
    }

    /// Whether it is higher under the failing load than before.
    pub(crate) fn change(&self, unit: Unit) -> Change {
        self.change_by(unit, steps(unit))
    }

    /// The same of a counter that grows otherwise than a level.
    pub(crate) fn change_as(&self, growth: Growth, unit: Unit) -> Change {
        let steps = match growth {
            Growth::Level => return self.change(unit),
            Growth::ErrorShare => ERROR_STEPS,
            Growth::Events => EVENT_STEPS,
        };
        match self.change_by(unit, steps) {
            Change::Grew if !self.has_more_errors() => Change::Same,
            change => change,
        }
    }

    fn change_by(&self, unit: Unit, (grain, factor): (f64, f64)) -> Change {
        let (Some(before), Some(fail)) = (self.before(), self.fail) else { return Change::Unknown };
        let before = before.max(0.0);
        let has_grown = fail - before >= grain && fail >= before * factor;
        if has_grown && self.surpasses(unit) { Change::Grew } else { Change::Same }
    }

    /// Whether no load that passed had as high a value, with which service was good. A level may
    /// have been nearly as high just before; errors must have increased.
    pub(crate) fn surpasses(&self, unit: Unit) -> bool {
        let (Some(most), Some(fail)) = (self.most, self.fail) else { return true };
        match unit {
            Unit::PerSecond => self.has_more_errors(),
            _ => fail + steps(unit).0.max(most * AS_GOOD_AS) >= most,
        }
    }

    /// Whether there are clearly more errors than under any load that passed, or nearly as many
    /// that users felt.
    pub(crate) fn has_more_errors(&self) -> bool {
        let more = if self.felt == Some(true) { FELT_ERRORS_MORE } else { ERRORS_MORE };
        self.most.zip(self.fail).is_none_or(|(most, fail)| fail >= most * more)
    }

    /// Whether it was measured before and was as high as under the failing load.
    pub(crate) fn is_constant(&self, unit: Unit) -> bool {
        self.change(unit) == Change::Same
    }

    /// Growth from the baseline to the failing load, 0 to 1: sixteen times is 1. `grain` is a value
    /// that counts as 0.
    pub(crate) fn growth(&self, grain: f64) -> Option<f64> {
        let ratio = (self.fail?.max(0.0) + grain) / (self.before()?.max(0.0) + grain);
        Some((ratio.log2() / 4.0).clamp(0.0, 1.0))
    }

    /// Whether an error counter began at the onset: it counts under the failing load, and hardly
    /// did at the baseline.
    pub(crate) fn begins(&self) -> bool {
        let fail = self.fail();
        fail > 0.0 && self.before().unwrap_or(0.0) < fail / 10.0
    }

    /// Combines readings window by window; values that were not measured are left out.
    pub(crate) fn combined(readings: &[Self], f: impl Fn(&[f64]) -> f64) -> Self {
        let of = |window: fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = readings.iter().filter_map(window).collect();
            (!values.is_empty()).then(|| f(&values))
        };
        // `Some(true)` is the highest, and `None` the lowest.
        let felt = readings.iter().map(|reading| reading.felt).max().flatten();
        Self {
            base: of(|r| r.base),
            pass: of(|r| r.pass),
            fail: of(|r| r.fail),
            most: of(|r| r.most),
            felt,
        }
    }

    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let [base, pass, fail, most] =
            [self.base, self.pass, self.fail, self.most].map(|value| value.map(&f));
        Self { base, pass, fail, most, ..self }
    }

    /// The difference to another reading, where that was measured; never below 0.
    pub(crate) fn less(self, other: Self) -> Self {
        self.zip(other, |a, b| Some((a? - b.unwrap_or(0.0)).max(0.0)))
    }

    /// Combines both where both were measured.
    pub(crate) fn with(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        self.zip(other, |a, b| Some(f(a?, b?)))
    }

    /// Whether users felt it is a property of the first of them.
    fn zip(self, other: Self, f: impl Fn(Option<f64>, Option<f64>) -> Option<f64>) -> Self {
        let (base, pass) = (f(self.base, other.base), f(self.pass, other.pass));
        Self { base, pass, fail: f(self.fail, other.fail), most: f(self.most, other.most), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_as_much_before_did_not_grow() {
        use Change::{Grew, Same, Unknown};
        for (unit, base, pass, fail, expect) in [
            (Unit::Ratio, Some(0.98), Some(0.98), Some(0.985), Same),
            (Unit::Ratio, Some(0.98), Some(0.5), Some(0.97), Same),
            (Unit::Ratio, Some(0.1), Some(0.95), Some(0.97), Grew),
            (Unit::Ratio, None, Some(0.95), Some(0.97), Same),
            (Unit::Ratio, Some(0.001), None, Some(0.01), Same),
            (Unit::Ratio, None, None, Some(0.99), Unknown),
            (Unit::Ratio, Some(0.2), None, None, Unknown),
            (Unit::Count, Some(0.0), Some(0.0), Some(1.0), Grew),
            (Unit::PerSecond, Some(0.0), None, Some(3.0), Grew),
            (Unit::PerSecond, Some(5.0), None, Some(5.6), Same),
            (Unit::Milliseconds, Some(2.0), None, Some(80.0), Grew),
        ] {
            let reading = Reading { base, pass, fail, ..Reading::default() };
            assert_eq!(reading.change(unit), expect, "{reading:?} {unit:?}");
        }
        let after = |unit, most: f64| {
            let (base, pass, fail) = (Some(0.0), None, Some(0.95));
            Reading { base, pass, fail, most: Some(most), felt: None }.change(unit)
        };
        assert_eq!(after(Unit::Ratio, 0.94), Grew, "nearly full before");
        assert_eq!(after(Unit::Ratio, 1.05), Same, "fuller, and users were well");
        assert_eq!((after(Unit::PerSecond, 0.5), after(Unit::PerSecond, 0.9)), (Grew, Same));
        let felt = |most: f64| {
            let (base, fail, most) = (Some(0.0), Some(0.95), Some(most));
            Reading { base, fail, most, pass: None, felt: Some(true) }.change(Unit::PerSecond)
        };
        assert_eq!(
            (felt(0.9), felt(1.2)),
            (Grew, Same),
            "nearly as much is enough of what users felt"
        );
    }

    #[test]
    fn one_event_is_growth_where_there_was_none() {
        let of = |base, fail| {
            let (base, fail) = (Some(base), Some(fail));
            let reading = Reading { base, fail, most: base, ..Reading::default() };
            reading.change_as(Growth::Events, Unit::Count)
        };
        assert_eq!((of(0.0, 1.0), of(0.0, 0.0)), (Change::Grew, Change::Same));
        assert_eq!(
            (of(20.0, 25.0), of(20.0, 40.0)),
            (Change::Same, Change::Grew),
            "chance, and more than that"
        );
    }
}
