//! The folder of a matrix: the file, what was done, and a run folder for each run.
//!
//! ```text
//! matrix.toml  scenario.toml   as they were when it began, without secrets
//! options.json                 where the file is, and the flags, without secrets
//! journal.jsonl                what has to be undone (throng-rig)
//! chosen.json                  what the pairs of a proof measure, if a search chose it
//! decided.json                 after how many pairs a proof was decided, if before its end
//! cells/CELL/REPEAT/           a run folder; REPEAT 0 of the baseline is that search, 0-narrowed
//!                              the one that continues it between its ends
//!   record.json                how the run ended
//!   server/                    the server's files and output
//! matrix.json                  the answer, before each run as far as it is known
//! report.html                  the same as a page
//! ```

mod continued;
mod records;
#[cfg(test)]
mod tests;

pub(super) use records::relative;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throng_folder::read_text;
use throng_scenario::masked_toml;
use throng_store::{RunFolder, create_private};

use super::chosen::Chosen;
use super::options::Options;
use super::plan::MatrixPlan;
use super::shown;
use crate::console::CliError;
use crate::kept::{FolderKind, MATRIX, OPTIONS, check_own};

const SCENARIO: &str = "scenario.toml";
const CHOSEN: &str = "chosen.json";
const DECIDED: &str = "decided.json";

pub(super) struct MatrixFolder {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Decided {
    /// Pairs of each variant.
    pairs: u32,
}

#[derive(Serialize, Deserialize)]
struct StoredMatrix {
    /// The matrix file.
    file: PathBuf,
    options: Options,
}

impl MatrixFolder {
    fn is_one(path: &Path) -> bool {
        FolderKind::of(path) == Some(FolderKind::Matrix)
    }

    /// Makes the folder.
    pub(super) fn create(path: &Path, plan: &MatrixPlan) -> Result<Self, CliError> {
        if Self::is_one(path) {
            return Err(CliError::usage(format!(
                "{} holds a matrix already; continue it with --resume, or choose another --output",
                path.display()
            )));
        }
        let wrong = |error| CliError::usage(format!("{}: {error}", path.display()));
        create_private(path).map_err(wrong)?;
        let folder = Self { path: path.canonicalize().map_err(wrong)? };
        let kept = StoredMatrix { file: plan.file.clone(), options: plan.options.kept() };
        let kept = serde_json::to_string_pretty(&kept).map_err(CliError::invalid)?;
        folder.put(MATRIX, &masked_toml(&plan.text))?;
        folder.put(SCENARIO, &masked_toml(&plan.scenario_text))?;
        // Last: with it the folder is one of a matrix.
        folder.put(OPTIONS, &kept)?;
        Ok(folder)
    }

    /// An existing one.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        if !Self::is_one(path) {
            return Err(CliError::usage(format!("{} holds no matrix", path.display())));
        }
        let path = path
            .canonicalize()
            .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
        Ok(Self { path })
    }

    /// Whether no other user can have written what is run when it is continued: the journal, and
    /// the commands of its files.
    pub(super) fn check_is_own(&self) -> Result<(), CliError> {
        let files = [MATRIX, SCENARIO, OPTIONS].map(|name| self.path.join(name));
        let all = files.into_iter().chain(Some(self.journal()).filter(|path| path.exists()));
        check_own(&self.path, all)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// The plan for a report, which needs no secrets.
    pub(super) fn stored_plan(&self) -> Result<MatrixPlan, CliError> {
        Ok(MatrixPlan { is_stored: true, ..self.plan_of(Ok)? })
    }

    fn kept(&self) -> Result<StoredMatrix, CliError> {
        serde_json::from_str(&self.text(OPTIONS)?).map_err(|error| {
            CliError::usage(format!("{}: {error}", shown(&self.path.join(OPTIONS))))
        })
    }

    /// Read again from its file; from the copy if that file is gone.
    fn plan_of(
        &self,
        options: impl FnOnce(Options) -> Result<Options, CliError>,
    ) -> Result<MatrixPlan, CliError> {
        let kept = self.kept()?;
        let options = options(kept.options)?;
        let plan = if kept.file.is_file() {
            MatrixPlan::read(&kept.file, options)?
        } else {
            // It is read by its name later.
            self.text(SCENARIO)?;
            let scenario = self.path.join(SCENARIO);
            MatrixPlan::of_copies(&self.text(MATRIX)?, &scenario, &kept.file, options)?
        };
        Ok(self.as_decided(self.as_chosen(plan)))
    }

    /// The plan with what a search of the baseline chose to measure, if it did already.
    fn as_chosen(&self, plan: MatrixPlan) -> MatrixPlan {
        let text = read_text(&self.path.join(CHOSEN)).ok();
        let chosen = text.and_then(|text| serde_json::from_str::<Chosen>(&text).ok());
        match chosen.filter(|_| plan.matrix.first_search().is_some()) {
            Some(chosen) => plan.measuring(chosen),
            None => plan,
        }
    }

    /// Writes what the pairs measure: another throng might choose otherwise, and runs of different
    /// crowds cannot be compared.
    pub(super) fn choose(&self, chosen: &Chosen) -> Result<(), CliError> {
        let text = serde_json::to_string(chosen).map_err(CliError::invalid)?;
        self.put(CHOSEN, &text).map(drop)
    }

    /// The plan without the runs that were not needed.
    pub(super) fn as_decided(&self, plan: MatrixPlan) -> MatrixPlan {
        match self.decided().filter(|pairs| plan.looks.contains(pairs)) {
            Some(pairs) => plan.ending_after(pairs),
            None => plan,
        }
    }

    /// After how many pairs the proof was decided, if before its end.
    pub(super) fn decided(&self) -> Option<u32> {
        let text = read_text(&self.path.join(DECIDED)).ok()?;
        serde_json::from_str::<Decided>(&text).ok().map(|decided| decided.pairs)
    }

    /// Writes that no more runs are needed.
    pub(super) fn decide(&self, pairs: u32) -> Result<(), CliError> {
        let text = serde_json::to_string(&Decided { pairs }).map_err(CliError::invalid)?;
        self.put(DECIDED, &text).map(drop)
    }

    pub(super) fn put(&self, name: &str, text: &str) -> Result<PathBuf, CliError> {
        RunFolder::open(&self.path)
            .and_then(|folder| folder.put(name, text))
            .map_err(CliError::invalid)
    }

    fn text(&self, name: &str) -> Result<String, CliError> {
        let path = self.path.join(name);
        read_text(&path).map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
    }
}
