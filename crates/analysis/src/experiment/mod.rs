//! The arithmetic of experiments: what changing a factor did to a measured value, and whether a
//! change that relieves a resource confirms that it was the limit.
//!
//! Method, in one place: a cell has one or more runs. The variance between runs of one cell, pooled
//! over all cells (the pure error), is the noise. A factor's effect is the mean difference between
//! cells that differ in nothing else, so that a cell that is missing takes its partner with it and
//! nothing else is mixed into the effect. Its 95 % interval is Student's, from the pure error;
//! without repeats there is none, and nothing is said to be the same or different. A proof compares
//! two configurations by neighbouring runs: `pairs.rs`.

mod choice;
mod confirm;
mod effects;
mod interactions;
mod noise;
mod pairs;
mod predict;
mod relief;
mod resource;
mod verdict;

pub use choice::{Choice, FoundLimit, NextLimit, SearchReason};
pub use confirm::{Confirmation, ConfirmationOutcome, JudgedCell, Service, confirmations};
pub use effects::{Difference, FactorEffect, LevelMean, effects};
pub use interactions::{Contrast, Interaction, interactions};
pub use noise::Noise;
pub use pairs::{
    Claim, OTHERS_MAX, ProofOutcome, RATIO_MARGIN, RatioEstimate, RunPair, SharedCpu, decide,
    is_control_off, unlike_cpu,
};
pub use predict::{CapacityPrediction, predict, predict_known};
pub use relief::{NamedLimit, is_relieved, most_named, resource_of_relief};
pub use resource::resource_of;
pub use verdict::EffectVerdict;

/// A factor and the names of its levels; the others are compared with the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels.
    pub levels: Vec<String>,
}

/// The values of one response (a measured quantity) in one cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellValues {
    /// The index of the level of each factor.
    pub levels: Vec<usize>,
    /// One value for each valid run; without any, the cell is missing.
    pub values: Vec<f64>,
}

/// How large a difference must be to matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// In the unit of the response.
    Absolute(f64),
    /// A share of the mean of all cells.
    Relative(f64),
}

/// The mean of values; `None` without any.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum) =
        values.into_iter().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then(|| sum / count)
}

impl CellValues {
    /// The mean of its runs; `None` if it is missing.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        mean(self.finite())
    }

    fn finite(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().copied().filter(|value| value.is_finite())
    }

    /// The number of its valid runs.
    fn count(&self) -> usize {
        self.finite().count()
    }
}

impl Margin {
    /// The margin in the unit of the response.
    #[must_use]
    pub fn of(self, cells: &[CellValues]) -> f64 {
        match self {
            Self::Absolute(margin) => margin,
            Self::Relative(share) => {
                let means: Vec<f64> = cells.iter().filter_map(CellValues::mean).collect();
                share * (means.iter().sum::<f64>() / means.len().max(1) as f64).abs()
            }
        }
    }
}

/// The cell with the levels of `cell`, but for `level` of `factor`.
fn partner<'a>(
    cells: &'a [CellValues],
    cell: &CellValues,
    factor: usize,
    level: usize,
) -> Option<&'a CellValues> {
    cells.iter().find(|other| {
        other.levels.len() == cell.levels.len()
            && other.levels.iter().zip(&cell.levels).enumerate().all(|(index, (theirs, ours))| {
                if index == factor { *theirs == level } else { theirs == ours }
            })
    })
}

#[cfg(test)]
mod tests;
