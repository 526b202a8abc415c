//! A brief fuzz that runs with every `cargo test`: the database of a run, damaged in every simple
//! way. The seed is fixed, so a failure is reproducible; the long search is `fuzz/`.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

use throng_observation::run::{CohortId, Ending, EventRow, ParticipantId, Row, RunInfo, SeriesRow};
use throng_observation::{Distribution, PlannedCohort, PlannedJoin, RunPlan, RunTime};
use throng_store::RunFolder;

/// Each is read four times from disk.
const ROUNDS: usize = 300;

/// The database of a run with some rows, in small pages: as it is, all pages are larger than what
/// they hold.
fn database() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let join = PlannedJoin {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        intended_at: RunTime(3),
        leave_at: Some(RunTime(5)),
    };
    let plan = RunPlan {
        objectives: vec!["failed < 5%".into()],
        cohorts: vec![PlannedCohort::default()],
        joins: vec![join],
        ..RunPlan::default()
    };
    let info =
        RunInfo { scenario: "[crowd]\nsize = 1\n".into(), plan: Some(plan), ..RunInfo::default() };
    let path = folder.path().join("run");
    let mut writer = RunFolder::create(&path, &info).unwrap();
    let mut delays = Distribution::new();
    (0..50).for_each(|delay| delays.record(delay * delay));
    let series = SeriesRow { relative_delay_us: delays, ..SeriesRow::default() };
    writer.write(Row::Series(Box::new(series)));
    writer.write(Row::Event(EventRow {
        at: RunTime(7),
        participant: None,
        kind: "failed".into(),
        count: 1,
        detail: "why".into(),
    }));
    writer.finish(Ending::default(), RunTime(9)).unwrap();
    let database = path.join("run.db");
    let small = "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM;";
    rusqlite::Connection::open(&database).unwrap().execute_batch(small).unwrap();
    assert_eq!(RunFolder::read(&path).unwrap().events.len(), 1);
    std::fs::read(database).unwrap()
}

#[test]
fn databases_of_runs_hold_their_laws_for_any_bytes() {
    let seed = database();
    let len_max = 2 * seed.len();
    let words: [&[u8]; 4] = [&[0xff; 4], &[0; 4], &[0x0d], b"CREATE TABLE "];
    hunt::hunt_within(laws::run_db, &[seed], &words, ROUNDS, len_max);
}

#[test]
fn what_fuzzing_has_kept_holds_the_laws() {
    hunt::replay("run-db", laws::run_db);
}
