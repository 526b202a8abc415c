//! The cells of a matrix and the order in which they run.

use super::{Matrix, Order};

/// One level of each factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its number in the order of the file, from 1.
    pub number: usize,
    /// The index of the level of each factor.
    pub levels: Vec<usize>,
}

/// A run of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// The index of the cell in [`Matrix::cells`].
    pub cell: usize,
    /// Which run of the cell, from 1; 0 for the search of a baseline that comes before
    /// ([`Matrix::first_search`]), [`PlannedRun::NARROWED`] for one that continues it.
    pub repeat: u32,
}

impl PlannedRun {
    /// The `repeat` of the search that continues [`Matrix::first_search`] between its ends.
    pub const NARROWED: u32 = u32::MAX;
}

/// Cells by levels: a factor that it does not name may have any level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFilter {
    /// For a factor (its index), the levels (their indices) that match.
    pub levels: Vec<(usize, Vec<usize>)>,
}

impl CellFilter {
    fn matches(&self, levels: &[usize]) -> bool {
        let is_one = |(factor, wanted): &(usize, Vec<usize>)| {
            levels.get(*factor).is_some_and(|level| wanted.contains(level))
        };
        self.levels.iter().all(is_one)
    }
}

impl Matrix {
    /// The most cells of the full grid, and the most runs.
    pub const CELLS_MAX: usize = 4_096;

    /// Cells of the full grid.
    #[must_use]
    pub fn grid_size(&self) -> usize {
        self.factors.iter().fold(1, |size: usize, factor| size.saturating_mul(factor.levels.len()))
    }

    /// The cells that run, in the order of the file: the last factor changes fastest.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut grid: Vec<Vec<usize>> = vec![Vec::new()];
        for factor in &self.factors {
            let with = |cell: &Vec<usize>, level| cell.iter().copied().chain([level]).collect();
            grid = grid
                .iter()
                .flat_map(|cell| (0..factor.levels.len()).map(move |level| with(cell, level)))
                .take(Self::CELLS_MAX)
                .collect();
        }
        let is_wanted = |levels: &Vec<usize>| {
            (self.only.is_empty() || self.only.iter().any(|filter| filter.matches(levels)))
                && !self.except.iter().any(|filter| filter.matches(levels))
        };
        let wanted = grid.into_iter().filter(is_wanted).enumerate();
        wanted.map(|(index, levels)| Cell { number: index + 1, levels }).collect()
    }

    /// All runs in the order in which they are made: every cell once, then every cell again. At
    /// random, each such round has an order of its own (randomised blocks): what drifts over the
    /// hours is spread over all levels.
    #[must_use]
    pub fn runs(&self) -> Vec<PlannedRun> {
        if self.is_proof() {
            return self.blocks().into_iter().flat_map(|block| block.runs).collect();
        }
        let count = self.cells().len();
        let mut random = fastrand::Rng::with_seed(self.seed);
        let round = |repeat: u32| {
            let mut cells: Vec<usize> = (0..count).collect();
            if self.order == Order::Random {
                random.shuffle(&mut cells);
            }
            cells.into_iter().map(move |cell| PlannedRun { cell, repeat })
        };
        (1..=self.repeats).flat_map(round).collect()
    }

    /// The levels of a cell in words: `files=30 storage=disk`.
    #[must_use]
    pub fn describe(&self, cell: &Cell) -> String {
        let chosen = self.factors.iter().zip(&cell.levels);
        let words = chosen.filter_map(|(factor, level)| {
            Some(format!("{}={}", factor.name, factor.levels.get(*level)?.name))
        });
        words.collect::<Vec<_>>().join(" ")
    }
}
