//! How each run of a matrix ended, in its run folder.

use std::path::PathBuf;

use throng_folder::read_text;
use throng_report::matrix::{MatrixRun, RunStatus};
use throng_scenario::matrix::PlannedRun;
use throng_store::{RunFolder, create_private};

use super::super::plan::MatrixPlan;
use super::MatrixFolder;
use crate::console::{CliError, Exit};

pub(super) const RECORD: &str = "record.json";
/// Longer names of cells are cut in paths.
const NAME_MAX: usize = 80;

impl MatrixFolder {
    /// The run folder of a run.
    pub(crate) fn run_folder(&self, planned: &PlannedRun, plan: &MatrixPlan) -> PathBuf {
        self.path.join(relative(planned, plan))
    }

    /// How a run ended; `None` if it was not made.
    pub(crate) fn record(&self, planned: &PlannedRun, plan: &MatrixPlan) -> Option<MatrixRun> {
        let text = read_text(&self.run_folder(planned, plan).join(RECORD)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Why another run of the same cell was skipped, if one was.
    pub(crate) fn skipped(&self, planned: &PlannedRun, plan: &MatrixPlan) -> Option<String> {
        let earlier = (1..planned.repeat).map(|repeat| PlannedRun { repeat, ..planned.clone() });
        let skipped = earlier.filter_map(|earlier| self.record(&earlier, plan));
        skipped.filter(|run| run.status == RunStatus::Skipped).find_map(|run| run.reason)
    }

    /// Writes how a run ended. Its figures are measured again from its rows.
    pub(crate) fn keep(
        &self,
        planned: &PlannedRun,
        plan: &MatrixPlan,
        run: &MatrixRun,
    ) -> Result<(), CliError> {
        let folder = self.run_folder(planned, plan);
        let wrong =
            |error| CliError::new(Exit::Invalid, anyhow::anyhow!("{}: {error}", folder.display()));
        create_private(&folder).map_err(wrong)?;
        let record = MatrixRun { figures: None, ..run.clone() };
        let text = serde_json::to_string_pretty(&record).map_err(CliError::invalid)?;
        RunFolder::open(&folder)
            .and_then(|folder| folder.put(RECORD, text))
            .map_err(CliError::invalid)?;
        Ok(())
    }
}

/// The run folder below the matrix's: `cells/04_files=30_storage=disk/1`.
pub(in crate::matrix) fn relative(planned: &PlannedRun, plan: &MatrixPlan) -> String {
    let cell = plan.cell(planned);
    let name = cell.map(|cell| plan.matrix.describe(cell)).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".=_-".contains(c);
    let name: String = name
        .replace(' ', "_")
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(NAME_MAX)
        .collect();
    let run = match planned.repeat {
        PlannedRun::NARROWED => "0-narrowed".to_owned(),
        repeat => repeat.to_string(),
    };
    format!("cells/{:02}_{name}/{run}", cell.map_or(0, |cell| cell.number))
}
