//! Tests whether bad seconds depend on the load. A backup, a garbage collector or a neighbour
//! degrades service at any load, and a search would take the load of that moment for the limit.
//!
//! A low and a high load are held in turns. The order is the Thue–Morse sequence and the turns
//! differ in length, so that neither a drift nor a period falls on one of the two alone. Each bad
//! stretch is a trial: did it begin at the high load? Wald's sequential probability ratio test
//! (1945) decides between two hypotheses:
//!
//! - dependent: 95 % of the bad stretches fall on the high load;
//! - independent: they fall on each load in proportion to its time.
//!
//! It ends as soon as the likelihood ratio reaches [`LIKELIER`] or [`LIKELIER_AT_ANY`], which
//! bounds the error to 1 in that many cases.

use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose};

/// Likelihood ratio at which bad seconds depend on the load: it confirms a limit.
const LIKELIER: f64 = 99.0;
/// Likelihood ratio at which they are independent of it: it adds a caveat, and rare events take
/// minutes to show.
const LIKELIER_AT_ANY: f64 = 20.0;
/// Share of the bad stretches at the high load if they depend on the load.
const BY_LOAD: f64 = 0.95;
/// Most turns; the result is unknown then.
const TURNS_MAX: u32 = 16;
/// The length of turns, as shares of a hold.
const LENGTHS: [f64; 5] = [1.0, 0.75, 1.3, 0.85, 1.15];
/// Shortest turn; a shorter one would miss rare events.
const TURN_S_MIN: f64 = 15.0;

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependence {
    /// Bad seconds depend on the load.
    OnLoad,
    /// They occur at any load.
    None,
    /// There were too few bad seconds for a decision.
    Unknown,
}

/// The two loads, and the time and the bad stretches at each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DependenceTest {
    pub(crate) low: u32,
    pub(crate) high: u32,
    /// Seconds judged at each, the low one first.
    pub(crate) seconds: [u32; 2],
    /// Bad stretches at each.
    pub(crate) stretches: [u32; 2],
    turns: u32,
}

impl DependenceTest {
    pub(crate) fn new(low: u32, high: u32) -> Self {
        Self { low, high, seconds: [0; 2], stretches: [0; 2], turns: 0 }
    }

    /// The test so far from its holds; while only one load was held, both are that one.
    pub(crate) fn of<'a>(holds: impl Iterator<Item = &'a HoldRow> + Clone) -> Option<Self> {
        let is_turn = |hold: &&'a HoldRow| {
            hold.purpose == Purpose::DependenceTest && hold.until.is_some() && is_decided(hold)
        };
        let turns = holds.filter(is_turn);
        let (low, high) = (
            turns.clone().map(|hold| hold.users).min()?,
            turns.clone().map(|hold| hold.users).max()?,
        );
        let mut dependence_test = Self::new(low, high);
        for hold in turns {
            let side = usize::from(hold.users == high);
            // A hold that failed before it settled counts as well.
            dependence_test.seconds[side] += hold.seconds.max(1);
            dependence_test.stretches[side] += hold.bad_stretches;
            dependence_test.turns += 1;
        }
        Some(dependence_test)
    }

    /// The same with `low` as the low load, if none was held yet.
    pub(crate) fn against(self, low: u32) -> Self {
        let low = if self.low == self.high { low.min(self.high) } else { self.low };
        Self { low, ..self }
    }

    /// The likelihood ratio of dependence on the load to independence.
    pub(crate) fn likelihood_ratio(&self) -> f64 {
        let all = f64::from(self.seconds[0] + self.seconds[1]);
        if all == 0.0 {
            return 1.0;
        }
        // While one load has no time yet, the bounds keep the ratio finite.
        let high = (f64::from(self.seconds[1]) / all).clamp(0.05, 0.95);
        let [low_times, high_times] =
            self.stretches.map(|times| i32::try_from(times).unwrap_or(i32::MAX));
        (BY_LOAD / high).powi(high_times) * ((1.0 - BY_LOAD) / (1.0 - high)).powi(low_times)
    }

    /// The result; `None` while more turns are needed.
    pub(crate) fn dependence(&self) -> Option<Dependence> {
        let ratio = self.likelihood_ratio();
        let has_both = self.seconds.iter().all(|seconds| *seconds > 0);
        if has_both && ratio >= LIKELIER {
            Some(Dependence::OnLoad)
        } else if has_both && ratio <= 1.0 / LIKELIER_AT_ANY {
            Some(Dependence::None)
        } else {
            (self.turns >= TURNS_MAX).then_some(Dependence::Unknown)
        }
    }

    /// The load of the next turn, and its judged seconds.
    pub(crate) fn turn(&self, hold_s: u32) -> (u32, u32) {
        let is_high = self.turns.count_ones().is_multiple_of(2);
        let share = LENGTHS[self.turns as usize % LENGTHS.len()];
        let seconds = (f64::from(hold_s) * share).max(TURN_S_MIN * share).round() as u32;
        (if is_high { self.high } else { self.low }, seconds)
    }
}

/// A turn that the generator limited does not count.
fn is_decided(hold: &HoldRow) -> bool {
    hold.passed(Goal::Acceptable) != HoldOutcome::Undecided
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependence_test(seconds: [u32; 2], stretches: [u32; 2]) -> DependenceTest {
        DependenceTest { seconds, stretches, turns: 4, ..DependenceTest::new(10, 20) }
    }

    #[test]
    fn what_strikes_the_high_load_alone_depends_on_it_and_what_strikes_both_does_not() {
        use Dependence::{None as Independent, OnLoad};
        assert_eq!(dependence_test([50, 50], [0, 8]).dependence(), Some(OnLoad));
        assert_eq!(
            dependence_test([50, 50], [0, 7]).dependence(),
            None,
            "seven heads in a row may be chance"
        );
        assert_eq!(dependence_test([50, 50], [3, 2]).dependence(), Some(Independent));
        assert_eq!(
            dependence_test([50, 50], [1, 1]).dependence(),
            None,
            "one at each may be chance"
        );
        // Most of the time was spent at the high load: that it struck there says little.
        assert_eq!(dependence_test([10, 90], [0, 8]).dependence(), None);
        assert_eq!(dependence_test([0, 90], [0, 80]).dependence(), None);
        let all = DependenceTest { turns: TURNS_MAX, ..dependence_test([200, 200], [0, 0]) };
        assert_eq!(all.dependence(), Some(Dependence::Unknown));
    }

    #[test]
    fn turns_take_both_loads_alike_and_no_period_falls_on_one_of_them() {
        let mut seconds = [0_u32; 2];
        let mut begins = Vec::new();
        for turns in 0..TURNS_MAX {
            let (load, length) = DependenceTest { turns, ..DependenceTest::new(10, 20) }.turn(25);
            begins.push((seconds.iter().sum::<u32>(), length, load));
            seconds[usize::from(load == 20)] += length;
        }
        assert!(seconds[0].abs_diff(seconds[1]) * 10 <= seconds[1], "{seconds:?}");
        for period in [20, 30, 45, 50, 60, 75, 100] {
            let strikes = |load: u32| {
                let of_it = begins.iter().filter(|(_, _, own)| *own == load);
                of_it.map(|(from, length, _)| (from + length) / period - from / period).sum::<u32>()
            };
            assert!(
                strikes(10) > 0 && strikes(20) > 0,
                "every {period} s: {} and {}",
                strikes(10),
                strikes(20)
            );
        }
    }
}
