//! Costs that add up: what each of several kinds of work costs, from the seconds of a run in which
//! they were mixed.
//!
//! Least squares in which no cost is below 0: a kind whose cost would be negative cannot be told
//! from the others, which then carry it.

use super::fit::{invert, t_975};

/// Least rows for each cost.
const ROWS_EACH_MIN: usize = 4;
/// Variance inflation: three consecutive seconds count as one independent second.
const INFLATION: f64 = 3.0;
/// Two kinds that grow together to within this cannot be told apart: variance of a cost beyond that
/// of one which is alone.
const COLLINEAR: f64 = 1e8;

/// A second: how much there was of each kind of work, and what was used.
pub(super) type Row<const N: usize> = ([f64; N], f64);

/// What each kind costs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Costs<const N: usize> {
    /// 0 of a kind that cannot be told from the others, or did not occur.
    pub(super) each: [f64; N],
    /// Their covariances, from the residuals.
    pub(super) covariance: [[f64; N]; N],
    /// The share of the variance that they explain, up to 1.
    pub(super) explained: f64,
}

impl<const N: usize> Costs<N> {
    /// The costs in `rows`; `None` with too few of them, or where nothing costs anything.
    pub(super) fn of(rows: &[Row<N>]) -> Option<Self> {
        let occurs = |kind: &usize| rows.iter().any(|(work, _)| work[*kind] > 0.0);
        let mut kinds: Vec<usize> = (0..N).filter(occurs).collect();
        while !kinds.is_empty() && rows.len() >= ROWS_EACH_MIN * kinds.len() {
            let Some(costs) = solve(rows, &kinds) else {
                kinds = without_one_that_is_alike(rows, &kinds);
                continue;
            };
            let lowest =
                kinds.iter().copied().min_by(|a, b| costs.t(*a).total_cmp(&costs.t(*b)))?;
            if costs.each[lowest] >= 0.0 {
                return Some(costs);
            }
            kinds.retain(|kind| *kind != lowest);
        }
        None
    }

    fn t(&self, kind: usize) -> f64 {
        self.each[kind] / self.covariance[kind][kind].max(f64::MIN_POSITIVE).sqrt()
    }
}

/// The kinds without the last one that is the others in another amount.
fn without_one_that_is_alike<const N: usize>(rows: &[Row<N>], kinds: &[usize]) -> Vec<usize> {
    let without = |at: usize| -> Vec<usize> {
        kinds.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, kind)| *kind).collect()
    };
    let solvable = (0..kinds.len()).rev().map(without).find(|left| solve(rows, left).is_some());
    solvable.unwrap_or_else(|| without(kinds.len().saturating_sub(1)))
}

/// Half the 95 % interval of a sum of costs, each times a factor, by their covariances.
pub(crate) fn half_interval<const N: usize>(
    covariance: &[[f64; N]; N],
    factors: &[f64; N],
    seconds: u32,
) -> f64 {
    let mut variance = 0.0;
    for (row, factor) in covariance.iter().zip(factors) {
        variance +=
            row.iter().zip(factors).map(|(value, other)| factor * value * other).sum::<f64>();
    }
    let independent = usize::try_from(seconds).unwrap_or(usize::MAX) / 3;
    variance.max(0.0).sqrt() * t_975(independent.saturating_sub(N).max(1))
}

/// Least squares with these kinds only, each scaled to 1.
fn solve<const N: usize>(rows: &[Row<N>], kinds: &[usize]) -> Option<Costs<N>> {
    let scale: Vec<f64> = kinds
        .iter()
        .map(|kind| {
            rows.iter().map(|(work, _)| work[*kind].abs()).fold(f64::MIN_POSITIVE, f64::max)
        })
        .collect();
    let scaled = |work: &[f64; N], at: usize| work[kinds[at]] / scale[at];
    let size = kinds.len();
    let (mut normal, mut right) = ([[0.0; N]; N], [0.0; N]);
    for (work, used) in rows {
        for i in 0..size {
            right[i] += scaled(work, i) * used;
            for (j, entry) in normal[i].iter_mut().enumerate().take(size) {
                *entry += scaled(work, i) * scaled(work, j);
            }
        }
    }
    let inverse = invert(normal, size)?;
    if (0..size).any(|at| !(0.0..COLLINEAR).contains(&(inverse[at][at] * normal[at][at]))) {
        return None;
    }
    let mut each = [0.0; N];
    for i in 0..size {
        each[kinds[i]] = (0..size).map(|j| inverse[i][j] * right[j]).sum::<f64>() / scale[i];
    }
    let left = |(work, used): &Row<N>| {
        used - work.iter().zip(&each).map(|(work, cost)| work * cost).sum::<f64>()
    };
    let residuals: f64 = rows.iter().map(|row| left(row).powi(2)).sum();
    let mean = rows.iter().map(|(_, used)| used).sum::<f64>() / rows.len() as f64;
    let spread: f64 = rows.iter().map(|(_, used)| (used - mean).powi(2)).sum();
    let variance = INFLATION * residuals / rows.len().saturating_sub(size).max(1) as f64;
    let mut covariance = [[0.0; N]; N];
    for i in 0..size {
        for j in 0..size {
            covariance[kinds[i]][kinds[j]] = variance * inverse[i][j] / scale[i] / scale[j];
        }
    }
    let explained = if spread > 0.0 { 1.0 - residuals / spread } else { 0.0 };
    let numbers = each.iter().chain(covariance.iter().flatten()).chain([&explained]);
    numbers.copied().all(f64::is_finite).then_some(Costs { each, covariance, explained })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty seconds in which two kinds of work come and go differently.
    fn rows(cost: impl Fn(&[f64; 3]) -> f64) -> Vec<Row<3>> {
        let work = |second: u32| [1.0, f64::from(second % 7), f64::from(second * second % 11)];
        (0..40).map(|second| (work(second), cost(&work(second)))).collect()
    }

    #[test]
    fn the_costs_of_mixed_work_are_told_apart() {
        let costs = Costs::of(&rows(|work| 0.1 + 0.02 * work[1] + 0.003 * work[2])).unwrap();
        for (got, expect) in costs.each.into_iter().zip([0.1, 0.02, 0.003]) {
            assert!((got - expect).abs() < 1e-9, "{:?}", costs.each);
        }
        assert!(costs.explained > 0.999);
        assert!(half_interval(&costs.covariance, &[0.0, 1.0, 0.0], 40) < 1e-6);
    }

    #[test]
    fn no_cost_is_negative_and_work_that_did_not_occur_has_none() {
        let costs = Costs::of(&rows(|work| 0.1 + 0.02 * work[1] - 0.001 * work[2])).unwrap();
        assert!(costs.each[2] == 0.0 && costs.each[1] > 0.015, "{:?}", costs.each);
        let without: Vec<Row<3>> = rows(|work| 0.02 * work[1])
            .into_iter()
            .map(|(work, used)| ([work[0], work[1], 0.0], used))
            .collect();
        let costs = Costs::of(&without).unwrap();
        assert!(costs.each[2] == 0.0 && (costs.each[1] - 0.02).abs() < 1e-9, "{:?}", costs.each);
    }

    #[test]
    fn work_that_always_comes_together_is_carried_by_the_first() {
        let together: Vec<Row<3>> = rows(|work| 0.02 * work[1])
            .into_iter()
            .map(|(work, used)| ([work[0], work[1], 2.0 * work[1]], used))
            .collect();
        let costs = Costs::of(&together).unwrap();
        assert!(costs.each[2] == 0.0 && (costs.each[1] - 0.02).abs() < 1e-9, "{:?}", costs.each);
    }

    #[test]
    fn too_few_seconds_say_nothing() {
        assert_eq!(Costs::of(&rows(|work| work[1])[..6]), None);
        assert_eq!(Costs::<3>::of(&[]), None);
        let odd: Vec<Row<3>> = rows(|_| f64::NAN);
        assert_eq!(Costs::of(&odd), None);
    }
}
