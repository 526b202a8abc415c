//! Two runs next to each other, one without a change and one with it, many times: the ratio of what
//! they measured.
//!
//! In the order A B B A a steady drift of the machine favours B in one pair as much as A in the
//! next, and is no part of the mean. The logarithm makes "twice" and "half" equally far from "the
//! same".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use throng_observation::units::percent;

use super::noise::Level;

/// A change of less than this share does not matter.
pub const RATIO_MARGIN: f64 = 0.05;

/// Most difference of the share of CPU time that a hypervisor took from the runs of a pair: 2
/// points.
const STEAL_DIFFERENCE_MAX: f64 = 0.02;
/// From this share of a machine's CPU time on, others use what a server and its crowd may need.
pub const OTHERS_MAX: f64 = 0.10;
/// With less than this share of the CPU time left, a server did not get more of it if it needed
/// more.
const IDLE_MIN: f64 = 0.05;

/// Who else had the CPU time of a machine around a run, as shares of all of it, 0 to 1; `None`
/// where it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SharedCpu {
    /// A hypervisor, during the run.
    pub stolen: Option<f64>,
    /// Other processes, in the second before the run.
    pub others_before: Option<f64>,
    /// Other processes, during the run. Not known where some of them may be the server: one that a
    /// daemon started, or that was there before.
    pub others: Option<f64>,
    /// Nobody, while the crowd was judged; waiting for disks is part of it.
    pub idle: Option<f64>,
}

impl SharedCpu {
    /// What others took where nothing was left; `None` if the server could have had more.
    fn missing(&self) -> Option<f64> {
        self.others
            .filter(|others| *others > OTHERS_MAX && self.idle.is_some_and(|idle| idle < IDLE_MIN))
    }
}

/// Why the runs of a pair cannot be compared, by who else had the CPU time; `None` if they can.
/// `busy_difference`: the most by which the share of other processes may differ; from 1 on they are
/// ignored.
#[must_use]
pub fn unlike_cpu(a: &SharedCpu, b: &SharedCpu, busy_difference: f64) -> Option<String> {
    let rules = [
        (a.stolen, b.stolen, STEAL_DIFFERENCE_MAX, "a hypervisor took"),
        (
            a.others_before,
            b.others_before,
            busy_difference,
            "before they began, other processes used",
        ),
        (a.others, b.others, busy_difference, "while they ran, other processes used"),
    ];
    for (a, b, most, what) in rules {
        let (Some(a), Some(b)) = (a, b) else { continue };
        if (a - b).abs() > most {
            return Some(format!("{what} {:.0} % and {:.0} % of the CPU time", a * 1e2, b * 1e2));
        }
    }
    let missing = [a, b].into_iter().find_map(SharedCpu::missing);
    missing.filter(|_| busy_difference < 1.0).map(|others| {
        format!("other processes used {} of the CPU time, and no core was idle", percent(others))
    })
}

/// What two neighbouring runs measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunPair {
    /// Without the change, and with it; both above 0.
    pub values: [f64; 2],
    /// The resolution of each as a standard deviation of its logarithm: a search that tries loads
    /// 10 % apart knows the capacity no better, however well its repeats agree.
    pub resolution: [f64; 2],
}

/// The ratio of pairs of runs: their geometric mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioEstimate {
    /// With the change ÷ without it.
    pub ratio: f64,
    /// Its 95 % interval by Student's t over the pairs, at least as wide as the resolution of the
    /// measurement; `null` with one pair.
    pub interval: Option<[f64; 2]>,
    /// Pairs.
    pub pairs: usize,
}

/// What a variant is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It has more of a resource, which is said to be the limit: the value rises.
    Relieved,
    /// It has less of one: the value falls.
    Shrunk,
    /// Nothing in particular; a placebo is the same.
    Nothing,
}

/// What a proof says about a variant.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ProofOutcome {
    /// The resource was the limit: more of it gives more, or less of it less, beyond the margin.
    Confirmed,
    /// The resource was not the limit: a change beyond the margin is excluded.
    Refuted,
    /// No difference that matters, in a variant that claims nothing.
    Same,
    /// Better beyond the margin, in a variant that claims nothing.
    Better,
    /// Worse beyond the margin, in a variant that claims nothing.
    Worse,
    /// The pairs do not say.
    #[default]
    NotDecided,
}

impl ProofOutcome {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NotDecided => "not decided",
        }
    }
}

impl RatioEstimate {
    /// The estimate from `pairs`; pairs with a value that is not above 0 are left out. `None`
    /// without any.
    #[must_use]
    pub fn of(pairs: &[RunPair]) -> Option<Self> {
        Self::of_looks(pairs, 1)
    }

    /// The same where the pairs are looked at up to `looks` times while they become more, and the
    /// first look that decides is the last: each interval is wider, so that all hold together with
    /// 95 %.
    #[must_use]
    pub fn of_looks(pairs: &[RunPair], looks: usize) -> Option<Self> {
        let level = Level::of_looks(looks);
        let is_good =
            |pair: &&RunPair| pair.values.iter().all(|value| value.is_finite() && *value > 0.0);
        let good: Vec<&RunPair> = pairs.iter().filter(is_good).collect();
        let logs: Vec<f64> =
            good.iter().map(|pair| (pair.values[1] / pair.values[0]).ln()).collect();
        let count = logs.len() as f64;
        if logs.is_empty() {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / count;
        let interval = (logs.len() > 1).then(|| {
            let freedom = logs.len() - 1;
            let variance =
                logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / freedom as f64;
            let resolution =
                good.iter().flat_map(|pair| pair.resolution).map(|one| one.powi(2)).sum::<f64>();
            let spread = level.t(freedom) * (variance / count).sqrt();
            let half = spread.max(level.z * resolution.sqrt() / count);
            [(mean - half).exp(), (mean + half).exp()]
        });
        Some(Self { ratio: mean.exp(), interval, pairs: logs.len() })
    }

    /// How far it is from 1, whichever way.
    fn distance(&self) -> f64 {
        self.ratio.ln().abs()
    }

    /// The share by which the value follows the resource: 1 if `to` of the resource leaves `to` of
    /// the value (elasticity), with its interval. `None` for a resource that was not shrunk.
    #[must_use]
    pub fn elasticity(&self, to: f64) -> Option<(f64, Option<[f64; 2]>)> {
        let whole = to.ln();
        let of = |ratio: f64| ratio.ln() / whole;
        (whole < 0.0)
            .then(|| (of(self.ratio), self.interval.map(|[low, high]| [of(high), of(low)])))
    }
}

/// Whether runs of equal configuration differ by more than the change did, or by more than matters
/// where it did nothing: what they show is then no effect of the change.
#[must_use]
pub fn is_control_off(effect: &RatioEstimate, control: Option<&RatioEstimate>) -> bool {
    control.is_some_and(|control| {
        control.distance() > effect.distance().max((1.0 + RATIO_MARGIN).ln())
    })
}

/// What the pairs of a variant say. `control` are runs of equal configuration (A/A);
/// `is_still_named`: the resource that the variant has more of is still named as its limit.
#[must_use]
pub fn decide(
    effect: Option<&RatioEstimate>,
    control: Option<&RatioEstimate>,
    claim: Claim,
    is_still_named: bool,
) -> ProofOutcome {
    let most = 1.0 + RATIO_MARGIN;
    let least = 1.0 / most;
    let Some((effect, [low, high])) = effect.and_then(|effect| Some((effect, effect.interval?)))
    else {
        return ProofOutcome::NotDecided;
    };
    if is_control_off(effect, control) {
        return ProofOutcome::NotDecided;
    }
    let rises = low > 1.0 && effect.ratio > most;
    let falls = high < 1.0 && effect.ratio < least;
    match claim {
        Claim::Relieved if rises && !is_still_named => ProofOutcome::Confirmed,
        Claim::Relieved if high <= most => ProofOutcome::Refuted,
        Claim::Shrunk if falls => ProofOutcome::Confirmed,
        Claim::Shrunk if low >= least => ProofOutcome::Refuted,
        Claim::Nothing if low >= least && high <= most => ProofOutcome::Same,
        Claim::Nothing if rises => ProofOutcome::Better,
        Claim::Nothing if falls => ProofOutcome::Worse,
        _ => ProofOutcome::NotDecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::rng::Rng;

    fn pair(a: f64, b: f64) -> RunPair {
        RunPair { values: [a, b], resolution: [0.0; 2] }
    }

    /// Blocks A B B A of runs in time: their pairs, and their runs of equal configuration. `value`
    /// of a run, by whether it has the change and its place.
    fn abba(
        blocks: usize,
        mut value: impl FnMut(bool, usize) -> f64,
    ) -> (Option<RatioEstimate>, Option<RatioEstimate>) {
        let (mut pairs, mut same) = (Vec::new(), Vec::new());
        for block in 0..blocks {
            let starts_changed = block % 2 == 1;
            let mut run = |place: usize| {
                value((place == 1 || place == 2) != starts_changed, block * 4 + place)
            };
            let [first, second, third, fourth] = [run(0), run(1), run(2), run(3)];
            let both = [pair(first, second), pair(fourth, third)];
            let turned =
                |pair: RunPair| RunPair { values: [pair.values[1], pair.values[0]], ..pair };
            pairs.extend(if starts_changed { both.map(turned) } else { both });
            same.extend([pair(first, fourth), pair(second, third)]);
        }
        (RatioEstimate::of(&pairs), RatioEstimate::of(&same))
    }

    /// A server whose CPU time is not known to be its own is none of the others.
    #[test]
    fn where_others_are_not_known_they_discard_no_pair() {
        let known =
            |others: Option<f64>| SharedCpu { others, idle: Some(0.0), ..SharedCpu::default() };
        assert!(unlike_cpu(&known(Some(0.4)), &known(Some(0.4)), 0.25).is_some());
        assert!(unlike_cpu(&known(Some(0.0)), &known(Some(0.4)), 0.25).is_some());
        assert_eq!(unlike_cpu(&known(None), &known(None), 0.25), None);
    }

    #[test]
    fn a_planted_ratio_is_in_95_of_100_intervals() {
        let mut covered = 0;
        for seed in 0..400 {
            let mut random = Rng(seed);
            let (effect, _) = abba(2, |is_changed, _| {
                let level = if is_changed { 1.5 * 60.0 } else { 60.0 };
                level * (0.04 * random.normal()).exp()
            });
            let [low, high] = effect.unwrap().interval.unwrap();
            covered += i32::from(low <= 1.5 && 1.5 <= high);
        }
        assert!((368..=395).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn a_planted_gain_is_confirmed_and_a_placebo_is_the_same() {
        let (mut confirmed, mut same, mut false_alarms) = (0, 0, 0);
        for seed in 0..200 {
            let mut random = Rng(seed);
            let mut noise = || (0.01 * random.normal()).exp();
            let (effect, control) =
                abba(2, |is_changed, _| if is_changed { 80.0 } else { 60.0 } * noise());
            let outcome = decide(effect.as_ref(), control.as_ref(), Claim::Relieved, false);
            confirmed += i32::from(outcome == ProofOutcome::Confirmed);
            let (effect, control) = abba(2, |_, _| 60.0 * noise());
            let outcome = decide(effect.as_ref(), control.as_ref(), Claim::Nothing, false);
            same += i32::from(outcome == ProofOutcome::Same);
            false_alarms +=
                i32::from(matches!(outcome, ProofOutcome::Better | ProofOutcome::Worse));
        }
        assert!(confirmed >= 195, "{confirmed} of 200 confirmed");
        assert!(
            same >= 150 && false_alarms == 0,
            "{same} of 200 the same, {false_alarms} false alarms"
        );
    }

    /// Up to four looks, after two pairs each, at a change that does nothing, and at one that does.
    #[test]
    fn looking_after_every_block_does_not_decide_by_chance() {
        let (mut wrong, mut found, mut looked) = (0, 0, 0);
        for seed in 0..2_000 {
            let mut random = Rng(seed);
            let mut measured = |gain: f64| -> Vec<RunPair> {
                (0..8)
                    .map(|_| {
                        pair((0.08 * random.normal()).exp(), gain * (0.08 * random.normal()).exp())
                    })
                    .collect()
            };
            let decides = |pairs: &[RunPair], count: usize| {
                let [low, high] =
                    RatioEstimate::of_looks(&pairs[..count], 4).unwrap().interval.unwrap();
                low > 1.0 || high < 1.0
            };
            let nothing = measured(1.0);
            wrong += i32::from([2, 4, 6, 8].into_iter().any(|count| decides(&nothing, count)));
            let twice = measured(2.0);
            let first = [2, 4, 6, 8].into_iter().find(|count| decides(&twice, *count));
            found += i32::from(first.is_some());
            looked += first.unwrap_or(8);
        }
        assert!(wrong <= 130, "{wrong} of 2,000 by chance");
        assert!(found >= 1_990 && looked < 2_000 * 5, "{found} of 2,000, after {looked} pairs");
    }

    #[test]
    fn a_steady_drift_is_no_effect() {
        // A tenth less with each run: A alone, then B alone, would look like half.
        let drift = |place: usize| 100.0 * 0.9f64.powi(place as i32);
        let (effect, control) = abba(2, |_, place| drift(place));
        assert!((effect.unwrap().ratio - 1.0).abs() < 1e-9, "{effect:?}");
        assert!(control.unwrap().ratio < 0.9, "and the control shows it: {control:?}");
        assert_eq!(
            decide(effect.as_ref(), control.as_ref(), Claim::Nothing, false),
            ProofOutcome::NotDecided
        );
    }

    #[test]
    fn the_outcome_follows_from_interval_and_claim() {
        use Claim::{Nothing, Relieved, Shrunk};
        use ProofOutcome::{Better, Confirmed, NotDecided, Refuted, Same, Worse};
        let estimate = |ratio: f64, low: f64, high: f64| RatioEstimate {
            ratio,
            interval: Some([low, high]),
            pairs: 4,
        };
        for (effect, claim, is_still_named, expect) in [
            (estimate(2.0, 1.8, 2.2), Relieved, false, Confirmed),
            (estimate(2.0, 1.8, 2.2), Relieved, true, NotDecided),
            (estimate(2.0, 0.9, 4.2), Relieved, false, NotDecided),
            (estimate(1.04, 1.02, 1.06), Relieved, false, NotDecided),
            (estimate(1.0, 0.97, 1.03), Relieved, false, Refuted),
            (estimate(0.8, 0.7, 0.9), Relieved, false, Refuted),
            (estimate(0.8, 0.75, 0.85), Shrunk, false, Confirmed),
            (estimate(1.0, 0.97, 1.03), Shrunk, false, Refuted),
            (estimate(0.9, 0.7, 1.1), Shrunk, false, NotDecided),
            (estimate(1.0, 0.97, 1.03), Nothing, false, Same),
            (estimate(1.3, 1.2, 1.4), Nothing, false, Better),
            (estimate(0.7, 0.6, 0.8), Nothing, false, Worse),
            (estimate(1.0, 0.9, 1.1), Nothing, false, NotDecided),
        ] {
            assert_eq!(
                decide(Some(&effect), None, claim, is_still_named),
                expect,
                "{effect:?} {claim:?}"
            );
        }
        assert_eq!(decide(None, None, Nothing, false), NotDecided);
        let one = RatioEstimate::of(&[pair(1.0, 2.0)]).unwrap();
        assert_eq!((one.interval, decide(Some(&one), None, Relieved, false)), (None, NotDecided));
        // Runs of equal configuration that differ by more than the change did.
        let (effect, control) = (estimate(1.2, 1.1, 1.3), estimate(1.3, 1.0, 1.6));
        assert_eq!(decide(Some(&effect), Some(&control), Relieved, false), NotDecided);
        assert_eq!(
            decide(Some(&effect), Some(&estimate(0.9, 0.8, 1.0)), Relieved, false),
            Confirmed
        );
    }

    #[test]
    fn a_coarse_measurement_is_not_exact_because_it_repeats() {
        // Loads 10 % apart: a width of ln 1.1, evenly distributed.
        let coarse = RunPair { values: [60.0, 60.0], resolution: [1.1f64.ln() / 12f64.sqrt(); 2] };
        let [low, high] = RatioEstimate::of(&[coarse; 2]).unwrap().interval.unwrap();
        assert!(low < 0.96 && high > 1.04, "[{low}, {high}]");
        let [low, high] = RatioEstimate::of(&[coarse; 6]).unwrap().interval.unwrap();
        assert!(low > 1.0 / 1.05 && high < 1.05, "[{low}, {high}]");
    }

    #[test]
    fn elasticity_is_1_where_the_value_follows_the_resource() {
        let shrunk = RatioEstimate { ratio: 0.8, interval: Some([0.75, 0.85]), pairs: 4 };
        let (elasticity, interval) = shrunk.elasticity(0.8).unwrap();
        let [low, high] = interval.unwrap();
        assert!((elasticity - 1.0).abs() < 1e-9 && low < 1.0 && high > 1.0 && low > 0.7);
        let same = RatioEstimate { ratio: 1.0, interval: None, pairs: 1 };
        assert_eq!(same.elasticity(0.8), Some((-0.0, None)));
        assert_eq!(same.elasticity(1.0), None);
    }

    #[test]
    fn runs_in_which_others_had_the_cpu_are_not_compared() {
        let of = |stolen, others_before, others, idle| SharedCpu {
            stolen: Some(stolen),
            others_before: Some(others_before),
            others: Some(others),
            idle: Some(idle),
        };
        let quiet = of(0.01, 0.05, 0.03, 0.4);
        for (other, most, expect) in [
            (of(0.025, 0.28, 0.27, 0.4), 0.25, None),
            (of(0.05, 0.05, 0.03, 0.4), 0.25, Some("a hypervisor took 1 % and 5 %")),
            (of(0.05, 0.05, 0.03, 0.4), 1.0, Some("a hypervisor took 1 % and 5 %")),
            (
                of(0.01, 0.60, 0.03, 0.4),
                0.25,
                Some("before they began, other processes used 5 % and 60 %"),
            ),
            (
                of(0.01, 0.05, 0.50, 0.4),
                0.25,
                Some("while they ran, other processes used 3 % and 50 %"),
            ),
            (of(0.01, 0.60, 0.50, 0.0), 1.0, None),
            // A server that is full by itself.
            (of(0.01, 0.05, 0.09, 0.0), 0.25, None),
            (of(0.01, 0.05, 0.20, 0.06), 0.25, None),
            (of(0.01, 0.05, 0.20, 0.01), 0.25, Some("other processes used 20")),
            (SharedCpu::default(), 0.25, None),
        ] {
            let why = unlike_cpu(&quiet, &other, most);
            assert_eq!(why.is_some(), expect.is_some(), "{other:?} {why:?}");
            assert!(why.unwrap_or_default().starts_with(expect.unwrap_or_default()), "{other:?}");
        }
        // Both alike, and both without what they needed.
        let taken = of(0.01, 0.30, 0.30, 0.0);
        assert!(unlike_cpu(&taken, &taken, 0.25).is_some());
    }

    #[test]
    fn values_without_a_logarithm_are_left_out() {
        let pairs = [pair(0.0, 1.0), pair(1.0, f64::NAN), pair(2.0, 4.0)];
        assert_eq!(
            RatioEstimate::of(&pairs).map(|one| (one.ratio.round(), one.pairs)),
            Some((2.0, 1))
        );
        assert_eq!(RatioEstimate::of(&[]), None);
    }
}
