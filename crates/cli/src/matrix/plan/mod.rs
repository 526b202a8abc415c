//! A matrix ready to run: the file with its scenario, and every cell checked before anything is
//! started.

mod check;
mod overrides;
mod proof;
#[cfg(test)]
mod tests;
mod words;

pub(super) use overrides::HoldTimes;

use std::path::{Path, PathBuf};

use throng_analysis::experiment::Choice;
use throng_report::matrix::{MatrixFactor, MatrixMeasure};
use throng_scenario::matrix::{Cell, CellConfig, Matrix, Measure, Order, Places, PlannedRun};

use super::chosen::Chosen;
use super::options::{Kind, Options};
use super::{shown, shrink};
use crate::console::CliError;

/// The value of `server.watch` for a server that is not watched.
pub(super) const NOT_WATCHED: &str = "none";

/// A matrix and where its files are.
#[derive(Clone)]
pub(super) struct MatrixPlan {
    pub(super) matrix: Matrix,
    /// The file as it was read.
    pub(super) text: String,
    /// The file.
    pub(super) file: PathBuf,
    /// Its folder.
    pub(super) base: PathBuf,
    /// The scenario file, and its text.
    pub(super) scenario: PathBuf,
    pub(super) scenario_text: String,
    pub(super) options: Options,
    pub(super) cells: Vec<Cell>,
    /// Of a proof: after how many pairs it is looked at, by the file.
    pub(super) looks: Vec<u32>,
    /// What a search of the baseline chose to measure; `None` before it, and where the file says
    /// it.
    pub(super) chosen: Option<Chosen>,
    /// It is read for its report: secrets that were not kept are missing.
    pub(super) is_stored: bool,
}

impl MatrixPlan {
    /// Reads the file and its scenario.
    pub(super) fn read(file: &Path, options: Options) -> Result<Self, CliError> {
        let wrong = |path: &Path, error: &dyn std::fmt::Display| {
            CliError::usage(format!("cannot read {}: {error}", path.display()))
        };
        let (file, text) = named(file).map_err(|error| wrong(file, &error))?;
        Self::of_text(&text, &file, None, options)
    }

    /// The plan of a matrix whose file is no longer where it was: for its report.
    pub(super) fn of_copies(
        text: &str,
        scenario: &Path,
        file: &Path,
        options: Options,
    ) -> Result<Self, CliError> {
        Self::of_text(text, file, Some(scenario), options)
    }

    fn of_text(
        text: &str,
        file: &Path,
        scenario: Option<&Path>,
        options: Options,
    ) -> Result<Self, CliError> {
        let matrix = match options.kind {
            Kind::Matrix => Matrix::parse(text),
            Kind::Proof => Matrix::parse_proof(text, options.shrink.as_deref()),
        };
        let matrix = matrix.map_err(|error| {
            CliError::usage(format!("{} cannot be run as it is:\n{error}", file.display()))
        })?;
        let base = file.parent().unwrap_or(Path::new("/")).to_owned();
        let scenario = scenario.map_or_else(|| base.join(&matrix.scenario), Path::to_owned);
        let (_, scenario_text) = named(&scenario).map_err(|error| {
            CliError::usage(format!("cannot read {}: {error}", scenario.display()))
        })?;
        let cells = matrix.cells();
        let looks =
            if options.is_sequential { matrix.looks() } else { matrix.pairs.into_iter().collect() };
        let (text, file) = (text.to_owned(), file.to_owned());
        let (chosen, is_stored) = (None, false);
        Ok(Self {
            matrix,
            text,
            file,
            base,
            scenario,
            scenario_text,
            options,
            cells,
            looks,
            chosen,
            is_stored,
        })
    }

    /// The same of a proof that ends after so many pairs: its runs are the first ones of the longer
    /// proof.
    pub(super) fn ending_after(mut self, pairs: u32) -> Self {
        self.matrix.pairs = Some(pairs);
        self
    }

    /// The same whose pairs measure what was chosen.
    pub(super) fn measuring(mut self, chosen: Chosen) -> Self {
        if let Measure::Auto { hold, search } = self.matrix.measure {
            self.matrix.measure = match chosen.choice {
                Choice::Hold { .. } => Measure::Hold(hold),
                Choice::Search(_) | Choice::NoLimit { .. } => Measure::Find(search),
            };
        }
        if let Choice::NoLimit { .. } = chosen.choice {
            // What has no limit has none to relieve.
            self.matrix.pairs = Some(0);
            self.looks.clear();
        }
        self.chosen = Some(chosen);
        self
    }

    /// The crowd that is held in place of the scenario's, if a search chose it.
    fn held(&self) -> Option<u32> {
        match self.chosen.as_ref()?.choice {
            Choice::Hold { users, .. } => Some(users),
            Choice::Search(_) | Choice::NoLimit { .. } => None,
        }
    }

    /// After how many pairs this is a look that may end the proof, if the run with this index is
    /// next.
    pub(super) fn look_before(&self, index: usize) -> Option<u32> {
        let is_next = |pairs: &u32| {
            self.matrix.pairs.is_some_and(|all| *pairs <= all) && self.runs_of(*pairs) == index
        };
        self.looks.iter().copied().find(is_next)
    }

    /// After how many pairs the next look is, from the run with this index on.
    pub(super) fn next_look(&self, index: usize) -> Option<u32> {
        self.looks.iter().copied().find(|pairs| self.runs_of(*pairs) > index)
    }

    /// The runs of so many pairs of each variant.
    fn runs_of(&self, pairs: u32) -> usize {
        pairs as usize * 2 * self.cells.len().saturating_sub(1)
    }

    /// A cell with the folder of its server's files.
    pub(super) fn config(&self, cell: &Cell, dir: &Path) -> CellConfig {
        self.matrix.cell(cell, &Places { dir: shown(dir), base: shown(&self.base) })
    }

    /// The same with less of what the cell has less of.
    pub(super) fn confined(&self, config: CellConfig) -> Result<CellConfig, CliError> {
        shrink::apply(config).map_err(CliError::usage)
    }

    pub(super) fn runs(&self) -> Vec<PlannedRun> {
        self.matrix.runs()
    }

    pub(super) fn cell(&self, planned: &PlannedRun) -> Option<&Cell> {
        self.cells.get(planned.cell)
    }

    /// `files=30 storage=disk, run 2`.
    pub(super) fn label(&self, planned: &PlannedRun) -> String {
        let name = self.cell(planned).map(|cell| self.matrix.describe(cell)).unwrap_or_default();
        if self.matrix.repeats_of(planned.cell) > 1 {
            format!("{name}, run {}", planned.repeat)
        } else {
            name
        }
    }

    pub(super) fn factors(&self) -> Vec<MatrixFactor> {
        let factor = |factor: &throng_scenario::matrix::Factor| MatrixFactor {
            name: factor.name.clone(),
            levels: factor.levels.iter().map(|level| level.name.clone()).collect(),
        };
        self.matrix.factors.iter().map(factor).collect()
    }

    pub(super) fn measure(&self) -> MatrixMeasure {
        match self.matrix.measure {
            // Nothing was measured yet.
            Measure::Hold(_) | Measure::Auto { .. } => MatrixMeasure::Hold,
            Measure::Find(_) => MatrixMeasure::Find,
        }
    }

    pub(super) fn order(&self) -> &'static str {
        match self.matrix.order {
            Order::Random => "random",
            Order::Written => "written",
            Order::Abba => "abba",
        }
    }

    /// The name of a proof's baseline.
    pub(super) fn baseline(&self) -> &str {
        let first = self.matrix.factors.first().and_then(|factor| factor.levels.first());
        first.map_or("the baseline", |level| level.name.as_str())
    }
}

/// A file, with the path to it, and its text. Who named a link means where it leads; a folder of
/// another user, which a report reads, may name a pipe.
fn named(file: &Path) -> std::io::Result<(PathBuf, String)> {
    let file = file.canonicalize()?;
    let text = throng_folder::read_text(&file)?;
    Ok((file, text))
}
