//! The answer while runs are made: `matrix.json` has it before each run, for pages and for what a
//! kill leaves. A run that is made measures the same each time, so it is read once.

use std::collections::BTreeMap;

use throng_analysis::demand::Demand;
use throng_analysis::experiment::ProofOutcome;
use throng_report::matrix::{MatrixReport, MatrixRun, RunStatus, VariantProof, so_far};
use throng_scenario::matrix::PlannedRun;

use super::answer::{self, MATRIX_JSON};
use super::folder::MatrixFolder;
use super::plan::MatrixPlan;
use crate::console::say;

/// Least pairs that count for an early end that says that a change has no effect.
const PAIRS_TO_BE_SAME: usize = 4;

/// The runs that were made, measured once.
pub(super) struct SoFar<'a> {
    plan: &'a MatrixPlan,
    folder: &'a MatrixFolder,
    measured: BTreeMap<(usize, u32), (MatrixRun, Vec<Demand>)>,
}

impl<'a> SoFar<'a> {
    /// None is measured yet.
    pub(super) fn of(plan: &'a MatrixPlan, folder: &'a MatrixFolder) -> Self {
        Self { plan, folder, measured: BTreeMap::new() }
    }

    /// Writes the answer before the run with this index; what it is, in sentences. Where it cannot
    /// be written the runs go on: the last one is written after them.
    pub(super) fn put(&mut self, index: usize) -> Vec<String> {
        let report = self.report(self.plan).in_progress();
        if let Err(problem) = self.folder.put(MATRIX_JSON, &report.to_json()) {
            say(&format!("the answer so far could not be written: {:#}", problem.error));
        }
        let mut said = so_far(&report);
        said.extend(
            self.plan.next_look(index).map(|pairs| format!("next look after {pairs} pairs")),
        );
        said
    }

    /// Whether the first `pairs` pairs of a proof decide all of its variants.
    pub(super) fn is_decided(&mut self, pairs: u32) -> bool {
        let report = self.report(&self.plan.clone().ending_after(pairs));
        // Two pairs that are alike by chance have no spread: that nothing changed takes more of
        // them.
        let is_settled = |proof: &VariantProof| match proof.outcome {
            ProofOutcome::NotDecided => false,
            ProofOutcome::Same | ProofOutcome::Refuted => {
                proof.effect.is_some_and(|effect| effect.pairs >= PAIRS_TO_BE_SAME)
            }
            _ => true,
        };
        !report.proofs.is_empty() && report.proofs.iter().all(is_settled)
    }

    fn report(&mut self, plan: &MatrixPlan) -> MatrixReport {
        let folder = self.folder;
        answer::report(plan, folder, &mut |planned| self.measured(planned))
    }

    fn measured(&mut self, planned: &PlannedRun) -> (MatrixRun, Vec<Demand>) {
        let key = (planned.cell, planned.repeat);
        if let Some(known) = self.measured.get(&key) {
            return known.clone();
        }
        let measured = answer::measured(planned, self.plan, self.folder);
        // What was not made, or was cut off, will be.
        if measured.0.status != RunStatus::Pending {
            self.measured.insert(key, measured.clone());
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::options::{Kind, Options};
    use super::*;

    const TWO_CELLS: &str = "scenario = \"viewers.toml\"\nhold = \"5s\"\n\
                             [[factor]]\nname = \"workers\"\nlevels = [1, 2]\n";

    /// An experiment of two cells in this place.
    fn two_cells(place: &Path) -> (MatrixPlan, MatrixFolder) {
        let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 2\n";
        std::fs::write(place.join("matrix.toml"), TWO_CELLS).unwrap();
        std::fs::write(place.join("viewers.toml"), scenario).unwrap();
        let options = Options { kind: Kind::Matrix, ..Options::default() };
        let plan = MatrixPlan::read(&place.join("matrix.toml"), options)
            .unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let folder =
            MatrixFolder::create(&place.join("out"), &plan).unwrap_or_else(|_| panic!("a folder"));
        (plan, folder)
    }

    #[test]
    fn runs_go_on_where_the_answer_cannot_be_written() {
        let place = tempfile::tempdir().unwrap();
        let (plan, folder) = two_cells(place.path());
        // Nothing is renamed onto a folder.
        std::fs::create_dir(folder.path().join(MATRIX_JSON)).unwrap();
        assert!(SoFar::of(&plan, &folder).put(0).is_empty());
        assert!(folder.path().join(MATRIX_JSON).is_dir());
    }

    #[test]
    fn the_answer_is_written_before_each_run_and_what_was_made_is_read_once() {
        let place = tempfile::tempdir().unwrap();
        let (plan, folder) = two_cells(place.path());
        let written = || -> MatrixReport {
            let text = std::fs::read_to_string(folder.path().join(MATRIX_JSON)).unwrap();
            serde_json::from_str(&text).unwrap()
        };
        let mut known = SoFar::of(&plan, &folder);
        assert!(known.put(0).is_empty());
        assert!(written().partial && written().headline.ends_with("; not finished"));
        for (index, planned) in plan.runs().iter().enumerate() {
            let failed = MatrixRun {
                repeat: planned.repeat,
                place: Some(index + 1),
                status: RunStatus::Failed,
                reason: Some("the server did not start".into()),
                ..MatrixRun::default()
            };
            folder.keep(planned, &plan, &failed).unwrap_or_else(|_| panic!("a record"));
            let said = known.put(index + 1);
            let expect = format!("last {}, run 1: failed: the server", plan.label(planned));
            assert!(said.len() == 1 && said[0].starts_with(&expect), "{said:?}");
        }
        assert!(written().partial, "the command goes on");
        std::fs::remove_dir_all(folder.path().join("cells")).unwrap();
        known.put(2);
        let mut runs = written().cells.into_iter().flat_map(|cell| cell.runs);
        assert!(runs.all(|run| run.status == RunStatus::Failed), "read again");
    }
}
