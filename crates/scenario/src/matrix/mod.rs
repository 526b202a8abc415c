//! A matrix: one scenario run in the cells of a grid of factors, each with a server started for it.
//!
//! A factor's level changes the scenario (`set`), the server, or a variable of templates; a cell is
//! one level of each factor. `crates/scenario/src/read/matrix/` reads the file, [`Matrix::cell`]
//! resolves a cell. A proof is a matrix of one factor, run in pairs ([`Matrix::blocks`]).

use std::time::Duration;

use throng_observation::Relief;

mod cell;
mod grid;
mod proof;
mod server;
mod template;

pub use cell::{CellConfig, Places};
pub use grid::{Cell, CellFilter, PlannedRun};
pub use proof::{Block, Pair, Shrink, ShrunkResource, VARIANT};
pub use server::{DiskLimit, Ready, ReadyWhen, Server, ServerFile, Stop};
pub use template::Template;

/// Variables that every template has: the cell's own folder, the folder of the matrix file.
pub(crate) const BUILT_IN: [&str; 2] = ["dir", "base"];

/// What a level can relieve, as findings name limits (docs/findings.md).
pub const RESOURCES: [&str; 5] = ["cpu", "disk", "memory", "network", "sockets"];

/// A matrix file.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Its title in reports.
    pub name: Option<String>,
    /// The path of the scenario, as written: relative to the matrix file.
    pub scenario: String,
    /// What is measured in each cell.
    pub measure: Measure,
    /// Runs of each cell.
    pub repeats: u32,
    /// The seed of the order.
    pub seed: u64,
    /// In which order cells run.
    pub order: Order,
    /// Of a proof: pairs of runs, one of the baseline and one of the variant, for each variant;
    /// even.
    pub pairs: Option<u32>,
    /// Of a proof: the most by which the share of CPU time that other processes used just before
    /// and during the two runs of a pair may differ, 0 to 1.
    pub busy_difference: f64,
    /// Defaults of variables.
    pub variables: Vec<(String, String)>,
    /// Overrides of the scenario in all cells.
    pub set: Vec<SetValue>,
    /// The server of all cells.
    pub server: Server<Template>,
    /// Commands before the server starts, and what undoes them, in all cells.
    pub setup: Vec<Step<Template>>,
    /// The factors, in the order of the file.
    pub factors: Vec<Factor>,
    /// Where there are any, only cells that match one of them are in the grid.
    pub only: Vec<CellFilter>,
    /// Cells that match one of these are not in the grid.
    pub except: Vec<CellFilter>,
}

/// What is measured in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The crowd of the scenario is held for this long after it has gathered: how well is it
    /// served?
    Hold(Duration),
    /// A search (`throng find`): how large a crowd is served well?
    Find(SearchKeys),
    /// Of a proof: one of both, by what a search of the baseline finds before all pairs.
    Auto {
        /// How long a crowd would be held.
        hold: Duration,
        /// The search of the baseline, and those of the pairs.
        search: SearchKeys,
    },
}

/// How a search is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchKeys {
    /// Its budget.
    pub budget: Duration,
    /// The crowd to begin with.
    pub start: Option<u32>,
    /// The largest crowd to try.
    pub ceiling: Option<u32>,
}

/// The order of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// At random, anew for each repeat, so that a drift of the machine is no effect of a factor.
    #[default]
    Random,
    /// As written: the last factor changes fastest.
    Written,
    /// In blocks of A B B A: of a proof.
    Abba,
}

/// Something that has several values in the matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Its name, also that of a variable with the name of the cell's level.
    pub name: String,
    /// Its levels, at least one; the first is the one that others are compared with.
    pub levels: Vec<Level>,
    /// What later levels have more of.
    pub relieves: Option<Relief>,
}

/// One value of a factor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// Its name; unique in the factor.
    pub name: String,
    /// Variables with another value in this level.
    pub variables: Vec<(String, String)>,
    /// Overrides of the scenario.
    pub set: Vec<SetValue>,
    /// What differs of the server.
    pub server: Server<Template>,
    /// Further commands before the server starts.
    pub setup: Vec<Step<Template>>,
    /// What this level has more of than the levels that do not say so.
    pub relieves: Option<Relief>,
    /// How many times as much of it: for the prediction of a proof.
    pub more: Option<f64>,
    /// Resources of which it has less.
    pub shrink: Vec<Shrink>,
}

/// An override of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct SetValue {
    /// Dotted path, such as `crowd.streams`.
    pub path: String,
    /// The value.
    pub value: SetTo,
}

/// The value of an override.
#[derive(Clone, Debug, PartialEq)]
pub enum SetTo {
    /// A text.
    Text(Template),
    /// Any other value, as TOML.
    Toml(Template),
}

/// A command before the server starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<T> {
    /// Program and arguments.
    pub run: Vec<T>,
    /// What undoes it, after the cell or when a later start finds that it was not undone; empty:
    /// nothing to undo.
    pub undo: Vec<T>,
}

impl Matrix {
    /// What the change of a factor from one level to another gives more of, in cells that differ in
    /// nothing else.
    #[must_use]
    pub fn relieved(&self, factor: usize, from: usize, to: usize) -> Option<&Relief> {
        let factor = self.factors.get(factor)?;
        let (a, b) = (factor.levels.get(from)?, factor.levels.get(to)?);
        match (&b.relieves, &factor.relieves) {
            (Some(relief), _) if a.relieves.as_ref() != Some(relief) => Some(relief),
            (_, Some(relief)) if to > from => Some(relief),
            _ => None,
        }
    }
}
