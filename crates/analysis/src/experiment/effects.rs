//! Main effects: what changing one factor did, as the mean over the levels of all others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellValues, EffectVerdict, Factor, Margin, Noise, partner};

/// The effect of a factor on a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorEffect {
    /// The factor.
    pub factor: String,
    /// The mean of each level over its cells.
    pub levels: Vec<LevelMean>,
    /// Each level against the first.
    pub differences: Vec<Difference>,
    /// `differs` if one of the differences does, `same` if all are the same.
    pub verdict: EffectVerdict,
}

/// The mean of all cells of a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelMean {
    /// The level.
    pub level: String,
    /// The mean; `null` if all its cells are missing. Where cells are missing it is a mean over
    /// other cells than those of another level: `differences` compares only cells that both have.
    pub mean: Option<f64>,
    /// 95 % interval; `null` without repeats.
    pub interval: Option<[f64; 2]>,
    /// Cells.
    pub cells: usize,
}

/// A level against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The level.
    pub level: String,
    /// The first level.
    pub against: String,
    /// Mean difference between cells that differ in nothing else; `null` if there is no such pair.
    pub difference: Option<f64>,
    /// 95 % interval; `null` without repeats.
    pub interval: Option<[f64; 2]>,
    /// Pairs of cells that were compared.
    pub pairs: usize,
    /// What it says.
    pub verdict: EffectVerdict,
}

/// The effect of each factor.
#[must_use]
pub fn effects(factors: &[Factor], cells: &[CellValues], margin: Margin) -> Vec<FactorEffect> {
    let (noise, margin) = (Noise::of(cells), margin.of(cells));
    factors
        .iter()
        .enumerate()
        .map(|(index, factor)| effect(index, factor, cells, noise, margin))
        .collect()
}

fn effect(
    index: usize,
    factor: &Factor,
    cells: &[CellValues],
    noise: Option<Noise>,
    margin: f64,
) -> FactorEffect {
    let first = factor.levels.first().cloned().unwrap_or_default();
    let levels = factor.levels.iter().enumerate();
    let differences: Vec<Difference> = levels
        .clone()
        .skip(1)
        .map(|(level, name)| Difference {
            level: name.clone(),
            against: first.clone(),
            ..difference(index, level, cells, noise, margin)
        })
        .collect();
    let strongest = differences.iter().map(|difference| difference.verdict).max();
    FactorEffect {
        factor: factor.name.clone(),
        levels: levels.map(|(level, name)| level_mean(index, level, name, cells, noise)).collect(),
        differences,
        verdict: strongest.unwrap_or(EffectVerdict::NotDecided),
    }
}

fn level_mean(
    factor: usize,
    level: usize,
    name: &str,
    cells: &[CellValues],
    noise: Option<Noise>,
) -> LevelMean {
    let of_level = |cell: &&CellValues| cell.levels.get(factor) == Some(&level);
    let means: Vec<(usize, f64)> = cells
        .iter()
        .filter(of_level)
        .filter_map(|cell| Some((cell.count(), cell.mean()?)))
        .collect();
    let weight = 1.0 / means.len().max(1) as f64;
    let mean =
        (!means.is_empty()).then(|| means.iter().map(|(_, mean)| mean * weight).sum::<f64>());
    let interval = noise
        .zip(mean)
        .map(|(noise, mean)| noise.around(mean, means.iter().map(|(runs, _)| (*runs, weight))));
    LevelMean { level: name.to_owned(), mean, interval, cells: means.len() }
}

fn difference(
    factor: usize,
    level: usize,
    cells: &[CellValues],
    noise: Option<Noise>,
    margin: f64,
) -> Difference {
    let of_first = cells.iter().filter(|cell| cell.levels.get(factor) == Some(&0));
    let pairs: Vec<(&CellValues, &CellValues, f64)> = of_first
        .filter_map(|first| {
            let other = partner(cells, first, factor, level)?;
            Some((first, other, other.mean()? - first.mean()?))
        })
        .collect();
    let weight = 1.0 / pairs.len().max(1) as f64;
    let mean = (!pairs.is_empty()).then(|| pairs.iter().map(|(.., by)| by * weight).sum::<f64>());
    let interval = noise.zip(mean).map(|(noise, mean)| {
        let cells = pairs.iter().flat_map(|(a, b, _)| [(a.count(), weight), (b.count(), weight)]);
        noise.around(mean, cells)
    });
    Difference {
        level: String::new(),
        against: String::new(),
        difference: mean,
        interval,
        pairs: pairs.len(),
        verdict: EffectVerdict::of(interval, margin),
    }
}
