//! Two-factor interactions: whether the effect of one factor depends on the level of another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellValues, EffectVerdict, Factor, Margin, Noise, partner};

/// Two factors together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interaction {
    /// The factors.
    pub factors: [String; 2],
    /// The mean of the cells of each pair of levels: a row for each level of the first factor, a
    /// column for each of the second. `null` where no cell was measured.
    pub means: Vec<Vec<Option<f64>>>,
    /// The largest of the differences of differences; `null` if no four cells could be compared.
    pub largest: Option<Contrast>,
}

/// How much the step of one factor differs between two levels of the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contrast {
    /// The levels of both factors, against the first of each.
    pub levels: [String; 2],
    /// (Both − second alone) − (first alone − neither), the mean over all other factors. 0: the
    /// effects add up.
    pub difference: f64,
    /// 95 % interval; `null` without repeats.
    pub interval: Option<[f64; 2]>,
    /// Groups of four cells that were compared.
    pub squares: usize,
    /// What it says.
    pub verdict: EffectVerdict,
}

/// The interaction of each pair of factors.
#[must_use]
pub fn interactions(factors: &[Factor], cells: &[CellValues], margin: Margin) -> Vec<Interaction> {
    let (noise, margin) = (Noise::of(cells), margin.of(cells));
    let mut all = Vec::new();
    for (a, first) in factors.iter().enumerate() {
        for (b, second) in factors.iter().enumerate().skip(a + 1) {
            let steps =
                (1..first.levels.len()).flat_map(|i| (1..second.levels.len()).map(move |j| (i, j)));
            let contrasts = steps.filter_map(|(i, j)| {
                let name =
                    |factor: &Factor, level| factor.levels.get(level).cloned().unwrap_or_default();
                let levels = [name(first, i), name(second, j)];
                Some(Contrast { levels, ..contrast(cells, (a, i), (b, j), noise, margin)? })
            });
            all.push(Interaction {
                factors: [first.name.clone(), second.name.clone()],
                means: means(cells, (a, first.levels.len()), (b, second.levels.len())),
                largest: contrasts.max_by(|x, y| x.difference.abs().total_cmp(&y.difference.abs())),
            });
        }
    }
    all
}

fn means(
    cells: &[CellValues],
    (a, rows): (usize, usize),
    (b, columns): (usize, usize),
) -> Vec<Vec<Option<f64>>> {
    let mean = |i: usize, j: usize| {
        let of_both =
            |cell: &&CellValues| cell.levels.get(a) == Some(&i) && cell.levels.get(b) == Some(&j);
        super::mean(cells.iter().filter(of_both).filter_map(CellValues::mean))
    };
    (0..rows).map(|i| (0..columns).map(|j| mean(i, j)).collect()).collect()
}

fn contrast(
    cells: &[CellValues],
    (a, i): (usize, usize),
    (b, j): (usize, usize),
    noise: Option<Noise>,
    margin: f64,
) -> Option<Contrast> {
    let neither = cells
        .iter()
        .filter(|cell| cell.levels.get(a) == Some(&0) && cell.levels.get(b) == Some(&0));
    let squares: Vec<([usize; 4], f64)> = neither
        .filter_map(|neither| {
            let first = partner(cells, neither, a, i)?;
            let (second, both) = (partner(cells, neither, b, j)?, partner(cells, first, b, j)?);
            let by = (both.mean()? - second.mean()?) - (first.mean()? - neither.mean()?);
            Some(([neither, first, second, both].map(CellValues::count), by))
        })
        .collect();
    let weight = 1.0 / squares.len().max(1) as f64;
    let difference = squares.iter().map(|(_, by)| by * weight).sum::<f64>();
    let runs = squares.iter().flat_map(|(runs, _)| runs.map(|runs| (runs, weight)));
    let interval = noise.map(|noise| noise.around(difference, runs));
    (!squares.is_empty()).then(|| Contrast {
        levels: Default::default(),
        difference,
        interval,
        squares: squares.len(),
        verdict: EffectVerdict::of(interval, margin),
    })
}
