//! What something came to in the three windows, and whether that changed with the load.

use throng_observation::host::Unit;

/// What something came to in the three windows; `None` where it was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) base: Option<f64>,
    pub(crate) pass: Option<f64>,
    pub(crate) fail: Option<f64>,
    /// The most under any load that passed.
    pub(crate) most: Option<f64>,
}

/// Whether something is more where users suffer than where they were served well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is more.
    Grew,
    /// It was as much before: it explains nothing.
    Same,
    /// It was not seen before, or not in the failing load: nothing shows that it grew.
    Unknown,
}

/// What of a unit is as good as nothing, and by which factor its values have to grow to be others. Levels of a second's
/// median are steady within a few percent; happenings are counted, and a hundred of them are off by ten by chance.
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

/// As good as nothing, and the factor, of a share of errors.
const ERROR_STEPS: (f64, f64) = (0.003, 1.5);
/// What is off by so much of itself is the same: levels of a second's median are steady within a few percent.
const AS_GOOD_AS: f64 = 0.05;
/// Errors are more than under the loads that passed when there are so many times as many.
const ERRORS_MORE: f64 = 1.25;

impl Reading {
    pub(crate) fn fail(&self) -> f64 {
        self.fail.unwrap_or(0.0)
    }

    /// What it was where users were served well: at the floor, and only where nobody saw that under the load that passed,
    /// for that one may have been near the limit already.
    pub(crate) fn before(&self) -> Option<f64> {
        self.base.or(self.pass)
    }

    /// Whether the failing load has more of it than there was before.
    pub(crate) fn change(&self, unit: Unit) -> Change {
        self.change_by(unit, steps(unit))
    }

    /// The same of a share of errors, of which some in a thousand are something.
    pub(crate) fn change_of_errors(&self, unit: Unit) -> Change {
        match self.change_by(unit, ERROR_STEPS) {
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

    /// Whether no load that passed had as much of it: users were served well with that much. What fills up may have been full
    /// just before; errors must have become more.
    pub(crate) fn surpasses(&self, unit: Unit) -> bool {
        let (Some(most), Some(fail)) = (self.most, self.fail) else { return true };
        match unit {
            Unit::PerSecond => self.has_more_errors(),
            _ => fail + steps(unit).0.max(most * AS_GOOD_AS) >= most,
        }
    }

    /// Whether there are clearly more of it than under any load that passed.
    pub(crate) fn has_more_errors(&self) -> bool {
        self.most.zip(self.fail).is_none_or(|(most, fail)| fail >= most * ERRORS_MORE)
    }

    /// Whether it is known to have been there before, as much as in the failing load.
    pub(crate) fn is_constant(&self, unit: Unit) -> bool {
        self.change(unit) == Change::Same
    }

    /// How far it grew from the floor to the failing load, 0 to 1: sixteen times is 1. `grain` is what is as good as 0.
    pub(crate) fn growth(&self, grain: f64) -> Option<f64> {
        let ratio = (self.fail?.max(0.0) + grain) / (self.before()?.max(0.0) + grain);
        Some((ratio.log2() / 4.0).clamp(0.0, 1.0))
    }

    /// Whether a counter of errors began at the onset: it counts in the failing load, and the floor had next to nothing.
    pub(crate) fn begins(&self) -> bool {
        let fail = self.fail();
        fail > 0.0 && self.before().unwrap_or(0.0) < fail / 10.0
    }

    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let [base, pass, fail, most] =
            [self.base, self.pass, self.fail, self.most].map(|value| value.map(&f));
        Self { base, pass, fail, most }
    }

    /// Less another, where that is known; never below 0.
    pub(crate) fn less(self, other: Self) -> Self {
        let less = |a: Option<f64>, b: Option<f64>| Some((a? - b.unwrap_or(0.0)).max(0.0));
        Self {
            base: less(self.base, other.base),
            pass: less(self.pass, other.pass),
            fail: less(self.fail, other.fail),
            most: less(self.most, other.most),
        }
    }

    pub(crate) fn with(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let both = |a: Option<f64>, b: Option<f64>| Some(f(a?, b?));
        Self {
            base: both(self.base, other.base),
            pass: both(self.pass, other.pass),
            fail: both(self.fail, other.fail),
            most: both(self.most, other.most),
        }
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
            let reading = Reading { base, pass, fail, most: None };
            assert_eq!(reading.change(unit), expect, "{reading:?} {unit:?}");
        }
        let after = |unit, most: f64| {
            let (base, pass, fail) = (Some(0.0), None, Some(0.95));
            Reading { base, pass, fail, most: Some(most) }.change(unit)
        };
        assert_eq!(after(Unit::Ratio, 0.94), Grew, "nearly full before");
        assert_eq!(after(Unit::Ratio, 1.05), Same, "fuller, and users were well");
        assert_eq!((after(Unit::PerSecond, 0.5), after(Unit::PerSecond, 0.9)), (Grew, Same));
    }
}
