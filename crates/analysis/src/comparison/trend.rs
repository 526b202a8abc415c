//! Where a long row of runs of one scenario changed.
//!
//! Method: each figure against the median of the last [`BEFORE_MAX`] figures before it, in units of
//! their median absolute deviation (MAD × 1.4826, the standard deviation of a normal distribution).
//! A figure is *away* if this modified z-score is above [`SCORE_MAX`] (Iglewicz and Hoaglin 1993)
//! and the difference above the margin. Two figures away on the same side in a row are a *change*,
//! which began with the first of them; what came before is then no reference any more. One alone is
//! an *outlier*, and is no reference either.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures before a run that it is compared with: at most, and at least.
pub const BEFORE_MAX: usize = 10;
/// With fewer, a median and a deviation from it say little.
pub const BEFORE_MIN: usize = 4;
/// The modified z-score above which a figure is away.
pub const SCORE_MAX: f64 = 3.5;

/// What a figure is, against those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrendMark {
    /// Too few figures before it, or no figure.
    #[default]
    NotJudged,
    /// As before.
    Usual,
    /// Away from those before it, and the next was not, or there is no next.
    Outlier,
    /// The first of a new level.
    Change,
}

/// A figure's mark, and what it was compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrendPoint {
    /// The mark.
    pub mark: TrendMark,
    /// The median of those before it.
    pub median: Option<f64>,
    /// The modified z-score, with its sign. Infinite where those before were all equal.
    pub score: Option<f64>,
}

/// Marks `figures` in their order; `None` and figures that are not finite are passed over. `margin`
/// gives, for a median, the difference that does not matter.
#[must_use]
pub fn marks(figures: &[Option<f64>], margin: impl Fn(f64) -> f64) -> Vec<TrendPoint> {
    let mut points = vec![TrendPoint::default(); figures.len()];
    let mut before: Vec<f64> = Vec::new();
    // An earlier figure that was away: its place, its side, its value.
    let mut suspect: Option<(usize, bool, f64)> = None;
    for (place, figure) in figures.iter().enumerate() {
        let Some(value) = figure.filter(|value| value.is_finite()) else { continue };
        let reference = before.get(before.len().saturating_sub(BEFORE_MAX)..).unwrap_or_default();
        let mut point = TrendPoint::default();
        if reference.len() < BEFORE_MIN {
            before.push(value);
            continue;
        }
        let middle = median(reference);
        let deviations: Vec<f64> = reference.iter().map(|other| (other - middle).abs()).collect();
        let (by, deviation) = (value - middle, 1.4826 * median(&deviations));
        let score = if by == 0.0 { 0.0 } else { by / deviation };
        (point.median, point.score) = (Some(middle), Some(score));
        let is_away = score.abs() > SCORE_MAX && by.abs() > margin(middle);
        match suspect.take() {
            Some((first, above, other)) if is_away && above == (by > 0.0) => {
                if let Some(earlier) = points.get_mut(first) {
                    earlier.mark = TrendMark::Change;
                }
                point.mark = TrendMark::Usual;
                before = vec![other, value];
            }
            _ if is_away => {
                point.mark = TrendMark::Outlier;
                suspect = Some((place, by > 0.0, value));
            }
            _ => {
                point.mark = TrendMark::Usual;
                before.push(value);
            }
        }
        if let Some(slot) = points.get_mut(place) {
            *slot = point;
        }
    }
    points
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(0.0);
    let lower = sorted.get(middle.saturating_sub(1)).copied().unwrap_or(upper);
    if sorted.len().is_multiple_of(2) { f64::midpoint(lower, upper) } else { upper }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TrendMark::{Change, NotJudged, Outlier, Usual};

    fn of(figures: &[f64]) -> Vec<TrendMark> {
        let figures: Vec<Option<f64>> = figures.iter().map(|value| Some(*value)).collect();
        marks(&figures, |median| 0.05 * median.abs()).into_iter().map(|point| point.mark).collect()
    }

    #[test]
    fn a_step_is_a_change_at_its_first_run_and_a_spike_is_an_outlier() {
        let step = of(&[100.0, 101.0, 99.0, 100.0, 102.0, 130.0, 131.0, 129.0, 130.0, 131.0]);
        assert_eq!(step[4..7], [Usual, Change, Usual]);
        assert_eq!(step.iter().filter(|mark| **mark == Change).count(), 1, "{step:?}");
        let spike = of(&[100.0, 101.0, 99.0, 100.0, 160.0, 101.0, 100.0]);
        assert_eq!(spike[4..], [Outlier, Usual, Usual]);
        let last = of(&[100.0, 101.0, 99.0, 100.0, 160.0]);
        assert_eq!(last[4], Outlier);
        // Away on one side, then on the other: no level.
        assert_eq!(of(&[100.0, 101.0, 99.0, 100.0, 160.0, 40.0])[4..], [Outlier, Outlier]);
    }

    #[test]
    fn what_does_not_matter_is_usual_however_steady_it_was() {
        assert_eq!(
            of(&[100.0, 100.0, 100.0, 100.0, 104.0]),
            [NotJudged, NotJudged, NotJudged, NotJudged, Usual]
        );
        assert_eq!(of(&[0.0; 6])[4..], [Usual, Usual]);
        assert_eq!(of(&[0.0, 0.0, 0.0, 0.0, 1.0])[4], Outlier);
    }

    #[test]
    fn noise_without_a_change_is_rarely_marked() {
        let mut marked = 0;
        for seed in 0..200 {
            let mut random = crate::search::rng::Rng(seed);
            let row: Vec<f64> = (0..30).map(|_| 100.0 + 3.0 * random.normal()).collect();
            marked += usize::from(of(&row).contains(&Change));
        }
        assert!(marked <= 20, "{marked} of 200");
    }

    #[test]
    fn gaps_and_nonsense_are_passed_over() {
        let figures = [None, Some(f64::NAN), Some(f64::INFINITY)];
        assert!(marks(&figures, |_| 0.0).iter().all(|point| *point == TrendPoint::default()));
        assert_eq!(marks(&[], |_| 0.0), []);
        let with_gap: Vec<Option<f64>> =
            [1.0, 1.0, f64::NAN, 1.0, 1.0, 9.0, 9.0].map(Some).to_vec();
        assert_eq!(marks(&with_gap, |_| 0.1)[5].mark, Change);
    }
}
