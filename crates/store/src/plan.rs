//! What the run was planned to be, as far as its report needs it: written with its information,
//! before anybody joins.

use rusqlite::{Connection, Transaction};
use throng_observation::{PlannedCohort, PlannedJoin, RunPlan};

use crate::table::{Stored, columns, list, make, put as put_rows};

columns! { PlannedCohort {
    cohort, room, size, has_own_url, confers, only_publishes, watches, plays_from_buffer,
    loads_page, is_in_chat, sends_video, sends_audio, sends_layers, video = "subscribe_video",
    audio = "subscribe_audio", vcards, sent_bps,
} }

impl Stored for PlannedCohort {
    const TABLE: &'static str = "planned_cohort";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "cohort";
}

columns! { PlannedJoin { participant, cohort, intended_at = "intended_us", leave_at = "leave_us" } }

impl Stored for PlannedJoin {
    const TABLE: &'static str = "planned_join";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "participant";
}

/// Writes the rows of a plan.
pub(crate) fn put(db: &Transaction<'_>, plan: &RunPlan) -> rusqlite::Result<()> {
    put_any(db, &plan.cohorts)?;
    put_any(db, &plan.joins)
}

/// Writes rows; without any there is no table, which would take room on a small disk.
fn put_any<T: Stored>(db: &Transaction<'_>, rows: &[T]) -> rusqlite::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    make::<T>(db)?;
    put_rows(db, rows)
}

/// Reads the rows of a plan, for what the information of the run says of it.
pub(crate) fn read(db: &Connection, of_info: RunPlan) -> rusqlite::Result<RunPlan> {
    Ok(RunPlan { cohorts: list(db)?, joins: list(db)?, ..of_info })
}

#[cfg(test)]
mod tests {
    use throng_observation::run::{CohortId, Ending, ParticipantId, RunData, RunInfo, TrackRow};
    use throng_observation::{RowSelector, RunTime, SubscribePolicy, VcardPolicy};

    use super::*;
    use crate::RunFolder;

    /// Keeps nothing, and what the plan was when it had to choose.
    #[derive(Default)]
    struct Chooses(Option<RunPlan>);

    impl RowSelector for Chooses {
        fn stretches(&mut self, run: &RunData) -> Vec<i64> {
            self.0.clone_from(&run.info.plan);
            Vec::new()
        }

        fn tracks(&mut self, _: Vec<TrackRow>, _: &mut RunData) {}

        fn finish(&mut self, _: &mut RunData) {}
    }

    fn plan() -> RunPlan {
        let pupils = PlannedCohort {
            cohort: CohortId(1),
            room: 3,
            size: 24,
            video: SubscribePolicy::LastSpeakers(9),
            audio: SubscribePolicy::None,
            vcards: VcardPolicy::None,
            sent_bps: Some(0.1),
            ..PlannedCohort::default()
        };
        let join = |number, leave_at| PlannedJoin {
            participant: ParticipantId(number),
            cohort: CohortId(1),
            intended_at: RunTime(7),
            leave_at,
        };
        RunPlan {
            warm_up_us: 1_500_000,
            objectives: vec!["failed < 5%".into()],
            cohorts: vec![PlannedCohort::default(), pupils],
            joins: vec![join(0, None), join(1, Some(RunTime(9)))],
        }
    }

    /// What is read of a run with `plan`, and the scenarios that were read for it.
    fn read_back(plan: Option<RunPlan>) -> (Option<RunPlan>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let info = RunInfo { scenario: "of old".into(), plan, ..RunInfo::default() };
        let writer = RunFolder::create(&path, &info).unwrap();
        writer.finish(Ending::Complete, RunTime(1)).unwrap();
        assert_eq!(RunFolder::read(&path).unwrap().info.plan, info.plan);
        let (mut chooses, mut asked) = (Chooses::default(), Vec::new());
        let run = RunFolder::read_selected(&path, &mut chooses, |scenario| {
            asked.push(scenario.to_owned());
            Some(RunPlan { warm_up_us: 5, ..RunPlan::default() })
        });
        assert_eq!(run.unwrap().info.plan, chooses.0, "it is known when rows are chosen");
        (chooses.0, asked)
    }

    #[test]
    fn the_plan_of_a_run_reads_back_without_its_scenario() {
        assert_eq!(read_back(Some(plan())), (Some(plan()), Vec::new()));
        // One without rows is one.
        let bare = RunPlan { cohorts: Vec::new(), joins: Vec::new(), ..plan() };
        assert_eq!(read_back(Some(bare.clone())), (Some(bare), Vec::new()));
    }

    #[test]
    fn a_plan_that_cannot_be_read_does_not_keep_the_run_from_being_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let info = RunInfo { plan: Some(plan()), ..RunInfo::default() };
        RunFolder::create(&path, &info).unwrap().finish(Ending::Complete, RunTime(1)).unwrap();
        let db = Connection::open(path.join("run.db")).unwrap();
        db.execute_batch("UPDATE planned_cohort SET vcards = 'of a later version'").unwrap();
        let run = RunFolder::read(&path).unwrap();
        assert_eq!((run.info.plan, run.ending), (None, Ending::Complete));
    }

    #[test]
    fn a_folder_from_before_plans_were_kept_has_that_of_its_scenario() {
        let (plan, asked) = read_back(None);
        assert_eq!(plan.map(|plan| plan.warm_up_us), Some(5));
        assert_eq!(asked, ["of old"]);
    }
}
