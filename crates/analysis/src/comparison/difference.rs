//! The difference of a quantity between two sides, and its standard error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student;

/// A quantity as one run measured it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Over the whole of what was measured. Not finite: not measured, or never reached.
    pub value: f64,
    /// The same over parts of it; without two of them, the run alone gives no interval.
    pub parts: Vec<f64>,
}

/// Where the standard error of a difference comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// How much the runs of each side differ.
    Runs,
    /// How much the runs of one side differ; the other side has one run.
    RunsOfOneSide,
    /// How much the parts of each run differ: one run a side.
    Parts,
    /// There is none: one run a side, and too few parts that stand for other runs.
    #[default]
    None,
}

/// A difference, new − base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean over the runs of the base.
    pub base: f64,
    /// Mean over the new runs.
    pub new: f64,
    /// The standard error of the difference and its degrees of freedom; `None` without a basis.
    pub error: Option<(f64, f64)>,
    /// Where the error comes from.
    pub basis: Basis,
}

impl Difference {
    /// New − base.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.new - self.base
    }

    /// The 95 % interval.
    #[must_use]
    pub fn interval(&self) -> Option<[f64; 2]> {
        let (error, freedom) = self.error?;
        // Without any spread there is nothing to multiply, whatever the freedom.
        let half = if error == 0.0 { 0.0 } else { student::quantile(0.05, freedom) * error };
        half.is_finite().then(|| [self.value() - half, self.value() + half])
    }

    /// The two-sided p-value: how often sides that do not differ would differ this much.
    #[must_use]
    pub fn p_value(&self) -> Option<f64> {
        let (error, freedom) = self.error?;
        if error == 0.0 {
            return Some(if self.value() == 0.0 { 1.0 } else { 0.0 });
        }
        Some(student::two_sided(self.value() / error, freedom))
    }
}

/// The difference between the figures of two sides; `None` if one side has no finite figure.
/// `resolution` is the step in which the quantity can be measured: a figure is known only to within
/// half of it.
#[must_use]
pub fn difference(base: &[Figure], new: &[Figure], resolution: f64) -> Option<Difference> {
    let finite = |side: &[Figure]| -> Vec<f64> {
        side.iter().map(|figure| figure.value).filter(|value| value.is_finite()).collect()
    };
    let (b, n) = (Spread::of(&finite(base))?, Spread::of(&finite(new))?);
    // A value that is rounded to whole steps varies by a uniform distribution over one.
    let rounding = resolution * resolution / 12.0 * (1.0 / b.count + 1.0 / n.count);
    let (error, basis) = match (b.variance, n.variance) {
        (Some(_), Some(_)) => (welch([b.of_mean(), n.of_mean()]), Basis::Runs),
        (Some(variance), None) | (None, Some(variance)) => {
            let freedom = b.count.max(n.count) - 1.0;
            (Some((variance * (1.0 / b.count + 1.0 / n.count), freedom)), Basis::RunsOfOneSide)
        }
        (None, None) => match (within(base), within(new)) {
            (Some(b), Some(n)) => (welch([b, n]), Basis::Parts),
            _ => (None, Basis::None),
        },
    };
    let error = error.map(|(variance, freedom)| ((variance + rounding).sqrt(), freedom));
    Some(Difference { base: b.mean, new: n.mean, error, basis })
}

/// Mean, number and variance of the runs of a side.
struct Spread {
    mean: f64,
    count: f64,
    /// `None` for one run.
    variance: Option<f64>,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value / count).sum::<f64>();
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = (values.len() > 1).then(|| squares / (count - 1.0));
        let is_usable =
            !values.is_empty() && mean.is_finite() && variance.is_none_or(f64::is_finite);
        is_usable.then_some(Self { mean, count, variance })
    }

    /// The variance of the mean, and its degrees of freedom.
    fn of_mean(&self) -> (f64, f64) {
        (self.variance.unwrap_or(0.0) / self.count, self.count - 1.0)
    }
}

/// The variance of the only finite figure by its parts, around the figure of the whole: where the
/// mean of the parts is not the figure of the whole, as with percentiles, the deviation counts too.
fn within(side: &[Figure]) -> Option<(f64, f64)> {
    let figure = side.iter().find(|figure| figure.value.is_finite())?;
    let parts: Vec<f64> = figure.parts.iter().copied().filter(|part| part.is_finite()).collect();
    // A part without a figure would be left out of the variance, and is part of the whole.
    if parts.len() < 2 || parts.len() < figure.parts.len() {
        return None;
    }
    let count = parts.len() as f64;
    let squares: f64 = parts.iter().map(|part| (part - figure.value).powi(2)).sum();
    squares.is_finite().then(|| (squares / (count - 1.0) / count, count - 1.0))
}

/// The variance of the difference of two means, and Welch's and Satterthwaite's degrees of freedom.
fn welch(sides: [(f64, f64); 2]) -> Option<(f64, f64)> {
    let [(a, a_freedom), (b, b_freedom)] = sides;
    let sum = a + b;
    if sum == 0.0 {
        return Some((0.0, a_freedom.min(b_freedom)));
    }
    // Shares, because squares of small variances vanish.
    let (a, b) = (a / sum, b / sum);
    Some((sum, 1.0 / (a * a / a_freedom + b * b / b_freedom)))
}
