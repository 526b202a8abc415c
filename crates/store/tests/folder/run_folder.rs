//! A run folder under normal conditions and faults: round trip, `kill -9`, a full disk, garbage,
//! speed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use throng_observation::fleet::{EndClock, WorkerInfo};
use throng_observation::run::*;
use throng_observation::{
    CaptureBasis, ChatCounters, ChatRow, Codec, Distribution, Failure, FailureReason, Layer,
    MediaKind, OneWayDelay, Outcome, Phase, RunTime, SentCounters, TrackCounters, TrackId,
};
use throng_store::{FORMAT, RunFolder, RunWriter, StoreError};

fn distribution(samples: u64) -> Distribution {
    let mut d = Distribution::new();
    (0..samples).for_each(|i| d.record(5_000 + i * 131 % 40_000));
    d
}

fn info() -> RunInfo {
    RunInfo {
        format: FORMAT,
        throng_version: "0.1.0".into(),
        scenario: "[crowd]\nsize = 2".into(),
        target: "ws://127.0.0.1/app".into(),
        cohorts: vec!["a".into(), "b".into()],
        started_at_unix_us: 1_700_000_000_000_000,
        planned_duration_us: 60_000_000,
        generator_host: BTreeMap::from([("cores".into(), "2".into())]),
        media_files: BTreeMap::from([("talk.ivf".into(), "00ff".into())]),
        clock: ClockError { bound_us: Some(20), basis: "same host".into() },
        warnings: vec!["20,000 descriptors".into()],
        workers: vec![WorkerInfo {
            name: "a".into(),
            weight: 3,
            clock_offset_us: -7,
            ..WorkerInfo::default()
        }],
        plan: None,
    }
}

fn counters() -> TrackCounters {
    TrackCounters {
        packets_original: 7,
        packets_lost: -2,
        freeze_us: 3,
        packets_unreadable: 9,
        missing_us: 11,
        rtx_packets_received: 12,
        repeated_bytes: 13,
        ..Default::default()
    }
}

fn crowd(second: i64) -> CrowdRow {
    CrowdRow {
        second,
        cohort: CohortId(1),
        intended: 5,
        playing: 3,
        left: 1,
        ice: [1, 2, 3, 4, 5, 6],
        ..Default::default()
    }
}

fn series(second: i64, samples: u64) -> SeriesRow {
    SeriesRow {
        second,
        kind: Some(MediaKind::Video),
        tracks: 3,
        counters: counters(),
        relative_delay_us: distribution(samples),
        loss_ppm: distribution(samples),
        picture_lines: distribution(samples),
        source_fps: SourceFps { tracks: 2, sum_milli: 59_940 },
        ..Default::default()
    }
}

fn participant(id: u32, outcome: Option<Outcome>) -> ParticipantRow {
    ParticipantRow {
        participant: ParticipantId(id),
        cohort: CohortId(0),
        intended_at: RunTime(100),
        reached: BTreeMap::from([
            (Phase::Started, RunTime(120)),
            (Phase::FirstFrame, RunTime(9_000)),
        ]),
        ended_at: outcome.as_ref().map(|_| RunTime(10_000)),
        outcome,
        local_address: Some("127.0.0.1:40000".into()),
    }
}

fn one_way() -> OneWayDelay {
    OneWayDelay::from_parts(Some(CaptureBasis::SenderReport), distribution(50), 7, distribution(7))
}

fn track(id: u32) -> TrackRow {
    TrackRow {
        participant: ParticipantId(id),
        track: TrackId(1),
        kind: MediaKind::Audio,
        codec: Codec::Opus,
        from: None,
        first_frame_at: None,
        counters: counters(),
        relative_delay_us: distribution(100),
        absolute_delay: one_way(),
        fps: None,
        jitter_us: Some(11),
        oven_rtc_tester_delay_us: Some(12),
    }
}

fn event(at: i64) -> EventRow {
    EventRow {
        at: RunTime(at),
        participant: Some(ParticipantId(4)),
        kind: "failed".into(),
        count: 3,
        detail: "ice".into(),
    }
}

fn generator() -> GeneratorRow {
    GeneratorRow {
        second: 3,
        worker: 2,
        thread: Some(1),
        cpu_us: 500,
        steal_ratio: 0.25,
        open_fds: 7,
        ..Default::default()
    }
}

fn layer_switch(at: i64, shown_at: Option<RunTime>) -> LayerSwitchRow {
    let (width, height) = if shown_at.is_some() { (640, 360) } else { (0, 0) };
    let (participant, track) = (ParticipantId(3), TrackId(2));
    LayerSwitchRow {
        participant,
        track,
        layer: Layer::High,
        requested_at: RunTime(at),
        shown_at,
        width,
        height,
    }
}

fn new_run() -> (tempfile::TempDir, PathBuf, RunWriter) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let writer = RunFolder::create(&path, &info()).unwrap();
    (dir, path, writer)
}

#[test]
fn the_clocks_at_the_end_are_added_to_what_is_known_of_workers() {
    let (_dir, path, mut writer) = new_run();
    let clock = EndClock { offset_us: 5, bound_us: 9 };
    writer.end_clocks(&[Some(clock), None]).unwrap();
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let expected = WorkerInfo { clock_end: Some(clock), ..info().workers.remove(0) };
    assert_eq!(RunFolder::read(&path).unwrap().info.workers, [expected]);
}

#[test]
fn a_run_reads_back_as_it_was_written() {
    let (_dir, path, mut writer) = new_run();
    let failed =
        Some(Outcome::Failed(Failure::new(FailureReason::HttpStatus(404), "no such stream")));
    writer.write(Row::Crowd(crowd(0)));
    writer.write(Row::Series(Box::new(series(0, 50))));
    writer.write(Row::Participant(Box::new(participant(0, None))));
    writer.write(Row::Participant(Box::new(participant(1, Some(Outcome::Completed)))));
    writer.write(Row::Track(Box::new(track(0))));
    writer.commit().unwrap();
    writer.write(Row::Participant(Box::new(participant(0, failed.clone()))));
    writer.write(Row::Track(Box::new(track(0))));
    writer.write(Row::Generator(generator()));
    writer.write(Row::Event(event(5)));
    let switches = [layer_switch(5, Some(RunTime(300))), layer_switch(6, None)];
    switches.into_iter().for_each(|switch| writer.write(Row::LayerSwitch(switch)));
    writer.finish(Ending::Complete, RunTime(60_000_000)).unwrap();

    let run = RunFolder::read(&path).unwrap();
    assert_eq!(run.info, info());
    assert_eq!(
        (run.ending, run.ended_at, run.rows_lost),
        (Ending::Complete, Some(RunTime(60_000_000)), 0)
    );
    assert_eq!(run.crowd, [crowd(0)]);
    assert_eq!(
        run.participants,
        [participant(0, failed), participant(1, Some(Outcome::Completed))]
    );
    assert_eq!(run.generator, [generator()]);
    assert_eq!(run.events, [event(5)]);
    assert_eq!(run.layer_switches, switches);
    let ([series_back], [track_back]) = (&run.series[..], &run.tracks[..]) else {
        panic!("one of each")
    };
    assert_eq!(
        (series_back.counters, series_back.source_fps),
        (counters(), series(0, 0).source_fps)
    );
    assert_eq!(series_back.relative_delay_us.quantiles(1.0), distribution(50).quantiles(1.0));
    assert_eq!(series_back.picture_lines.quantiles(1.0), distribution(50).quantiles(1.0));
    let one_way = &track_back.absolute_delay;
    assert_eq!((one_way.basis(), one_way.negative()), (Some(CaptureBasis::SenderReport), 7));
    assert_eq!((one_way.distribution().count(), one_way.ahead().count()), (50, 7));
    assert!(series_back.absolute_delay.is_empty() && series_back.absolute_delay.basis().is_none());
    assert_eq!(
        (track_back.counters, track_back.codec, track_back.jitter_us),
        (counters(), Codec::Opus, Some(11))
    );
    assert!(!path.join("run.db-wal").exists(), "a finished run is one plain file");
}

#[test]
fn the_worker_of_an_earlier_folder_is_a_thread_and_its_machine_the_only_one() {
    let (_dir, path, mut writer) = new_run();
    for worker in [1, 0] {
        writer.write(Row::Generator(GeneratorRow { worker, ..generator() }));
    }
    writer.finish(Ending::Complete, RunTime(0)).unwrap();
    let workers: Vec<_> =
        RunFolder::read(&path).unwrap().generator.iter().map(|row| row.worker).collect();
    assert_eq!(workers, [0, 1], "in the order of machines");
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    db.execute_batch(
        "DELETE FROM generator WHERE fleet_worker = 0; ALTER TABLE generator DROP COLUMN fleet_worker;
         ALTER TABLE generator RENAME COLUMN thread TO worker",
    )
    .unwrap();
    drop(db);
    assert_eq!(
        RunFolder::read(&path).unwrap().generator,
        [GeneratorRow { worker: 0, ..generator() }]
    );
}

#[test]
fn a_folder_from_before_missing_time_was_counted_reads_as_a_run_without_any() {
    let (_dir, path, mut writer) = new_run();
    writer.write(Row::Series(Box::new(series(0, 50))));
    writer.write(Row::Track(Box::new(track(0))));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    db.execute_batch(
        "ALTER TABLE series DROP COLUMN missing_us; ALTER TABLE track DROP COLUMN missing_us;
         ALTER TABLE series DROP COLUMN rtx_packets_received;
         ALTER TABLE track DROP COLUMN rtx_packets_received;
         ALTER TABLE series DROP COLUMN repeated_bytes;
         ALTER TABLE track DROP COLUMN repeated_bytes",
    )
    .unwrap();
    drop(db);
    let run = RunFolder::read(&path).unwrap();
    let expect =
        TrackCounters { missing_us: 0, rtx_packets_received: 0, repeated_bytes: 0, ..counters() };
    assert_eq!((run.series[0].counters, run.tracks[0].counters), (expect, expect));
}

/// Makes a folder one of format 1.
fn make_older(path: &Path) {
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    for table in ["series", "track"] {
        db.execute_batch(&format!(
            "ALTER TABLE {table} RENAME COLUMN packets_original TO packets_received;
             ALTER TABLE {table} RENAME COLUMN packets_unreadable TO packets_discarded",
        ))
        .unwrap();
    }
    let format = "PRAGMA user_version = 1; UPDATE info SET value = '1' WHERE key = 'format'";
    db.execute_batch(format).unwrap();
}

/// What a reader of an earlier version looks at before it looks for columns.
fn user_version(path: &Path) -> i64 {
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn packets_are_read_by_the_names_that_they_had_in_earlier_folders() {
    let (_dir, path, mut writer) = new_run();
    writer.write(Row::Series(Box::new(series(0, 50))));
    writer.write(Row::Track(Box::new(track(0))));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    assert_eq!(user_version(&path), 2, "the names of today are newer than format 1");
    make_older(&path);
    let run = RunFolder::read(&path).unwrap();
    assert_eq!((run.series[0].counters, run.tracks[0].counters), (counters(), counters()));
    assert_eq!(run.info.format, 1);
}

#[test]
fn frames_of_a_chat_are_read_by_the_names_that_they_had_in_earlier_folders() {
    let (_dir, path, mut writer) = new_run();
    let counters = ChatCounters { frames_received: 5, frames_sent: 3, ..ChatCounters::default() };
    writer.write(Row::Chat(Box::new(ChatRow { counters, ..ChatRow::default() })));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    db.execute_batch(
        "ALTER TABLE chat RENAME COLUMN frames_received TO stanzas_received;
         ALTER TABLE chat RENAME COLUMN frames_sent TO stanzas_sent",
    )
    .unwrap();
    drop(db);
    assert_eq!(RunFolder::read(&path).unwrap().chat[0].counters, counters);
}

#[test]
fn a_folder_of_an_earlier_format_that_is_made_again_is_one_of_this() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    make_older(folder.path());
    let mut again = RunFolder::again(folder.path(), |event| event.kind == "watch").unwrap();
    again.writer.write(Row::Series(Box::new(series(0, 50))));
    again.finish(Ending::Interrupted, RunTime(1)).unwrap();
    assert_eq!(user_version(folder.path()), i64::from(FORMAT));
    let run = RunFolder::read(folder.path()).unwrap();
    assert_eq!((run.series[0].counters, run.info.format), (counters(), FORMAT));
    assert_eq!((run.crowd.len(), run.events.len()), (0, 1));
}

#[test]
fn a_folder_that_has_the_mean_of_its_sources_reads_as_one_with_their_sum() {
    let (_dir, path, mut writer) = new_run();
    (0..2).for_each(|second| writer.write(Row::Series(Box::new(series(second, 0)))));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    db.execute_batch(
        "ALTER TABLE series ADD COLUMN source_fps_milli INTEGER;
         UPDATE series SET source_fps_milli = 25000 WHERE second = 0;
         ALTER TABLE series DROP COLUMN source_tracks;
         ALTER TABLE series DROP COLUMN source_fps_milli_sum",
    )
    .unwrap();
    drop(db);
    let series = RunFolder::read(&path).unwrap().series;
    let expect = [SourceFps { tracks: 3, sum_milli: 75_000 }, SourceFps::default()];
    assert_eq!([series[0].source_fps, series[1].source_fps], expect);
}

#[test]
fn a_folder_from_before_publishers_could_be_blocked_reads_as_one_in_which_none_was() {
    let (_dir, path, mut writer) = new_run();
    let counters = SentCounters { packets_sent: 7, blocked_us: 13, ..SentCounters::default() };
    let row =
        SentRow { second: 3, cohort: CohortId(1), kind: MediaKind::Video, tracks: 2, counters };
    writer.write(Row::Sent(row));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    assert_eq!(RunFolder::read(&path).unwrap().sent, [row]);
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    db.execute_batch("ALTER TABLE sent DROP COLUMN blocked_us").unwrap();
    drop(db);
    let counters = SentCounters { blocked_us: 0, ..counters };
    assert_eq!(RunFolder::read(&path).unwrap().sent, [SentRow { counters, ..row }]);
}

#[test]
fn a_folder_that_did_not_keep_how_early_frames_are_reads_their_number() {
    let (_dir, path, mut writer) = new_run();
    writer.write(Row::Series(Box::new(series(0, 50))));
    writer.write(Row::Track(Box::new(track(0))));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    db.execute_batch(
        "ALTER TABLE series DROP COLUMN absolute_delay_ahead_us;
         ALTER TABLE track DROP COLUMN absolute_delay_ahead_us",
    )
    .unwrap();
    drop(db);
    let run = RunFolder::read(&path).unwrap();
    let one_way = &run.tracks[0].absolute_delay;
    assert_eq!((one_way.negative(), one_way.ahead().count(), run.series.len()), (7, 0, 1));
}

#[test]
fn a_run_that_is_going_on_reads_to_its_last_commit() {
    let (_dir, path, mut writer) = new_run();
    writer.write(Row::Crowd(crowd(0)));
    writer.commit().unwrap();
    writer.write(Row::Crowd(crowd(1)));
    let run = RunFolder::read(&path).unwrap();
    assert_eq!((run.crowd.len(), run.ending), (1, Ending::Unfinished));
}

#[test]
fn a_run_is_in_progress_while_its_writer_is_there() {
    let (_dir, path, writer) = new_run();
    let in_progress = || {
        let whole = RunFolder::read(&path).unwrap().in_progress;
        assert_eq!(RunFolder::outline(&path).unwrap().in_progress, whole);
        assert_eq!(RunFolder::context(&path).unwrap().in_progress, whole);
        whole
    };
    assert!(in_progress());
    drop(writer);
    assert!(!in_progress(), "its process was killed");
    let again = RunFolder::again(&path, |_| true).unwrap();
    assert!(in_progress(), "it is collected");
    again.finish(Ending::Complete, RunTime(1_000_000)).unwrap();
    assert!(!in_progress());
}

#[test]
fn a_reader_that_goes_soon_leaves_a_finished_run_as_one_file() {
    let (_dir, path, mut writer) = new_run();
    writer.write(Row::Crowd(crowd(0)));
    writer.commit().unwrap();
    let text = |db: &rusqlite::Connection, query: &str| {
        db.query_row(query, [], |row| row.get::<_, String>(0)).unwrap()
    };
    let open = || rusqlite::Connection::open(path.join("run.db")).unwrap();
    let reader = open();
    assert_eq!(text(&reader, "SELECT CAST(count(*) AS TEXT) FROM crowd"), "1");
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(reader);
    });
    writer.finish(Ending::Complete, RunTime(1_000_000)).unwrap();
    reading.join().unwrap();
    assert!(!path.join("run.db-wal").exists());
    assert_eq!(text(&open(), "PRAGMA journal_mode"), "delete");
}

const CHILD: &str = "THRONG_STORE_TEST_CHILD";

/// Runs only as the child process of the test below.
#[test]
#[expect(clippy::print_stderr, reason = "the parent reads it to know what was committed")]
fn child_that_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let mut writer = RunFolder::create(Path::new(&path), &info()).unwrap();
    for second in 0..i64::MAX {
        writer.write(Row::Crowd(crowd(second)));
        writer.write(Row::Series(Box::new(series(second, 50))));
        writer.commit().unwrap();
        eprintln!("committed {second}");
    }
}

#[test]
fn kill_9_leaves_every_committed_second() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run_folder::child_that_is_killed", "--nocapture"])
        .env(CHILD, &path)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let committed = lines.filter(|line| line.starts_with("committed")).take(50).count();
    child.kill().unwrap(); // SIGKILL, in the middle of whatever it does
    child.wait().unwrap();
    let run = RunFolder::read(&path).unwrap();
    assert!(
        run.crowd.len() >= committed && run.crowd.len() == run.series.len(),
        "{}",
        run.crowd.len()
    );
    assert_eq!((run.ending, run.in_progress), (Ending::Unfinished, false));
}

#[test]
fn a_full_disk_keeps_what_was_committed_and_the_rest_waits() {
    let (_dir, path, mut writer) = new_run();
    writer.write(Row::Crowd(crowd(0)));
    writer.commit().unwrap();
    writer.limit_pages(Some(0)).unwrap();
    let mut refused = None;
    for second in 1..2_000 {
        writer.write(Row::Series(Box::new(series(second, 400))));
        if second % 100 == 0 {
            refused = writer.commit().err().or(refused);
        }
    }
    assert!(matches!(refused, Some(StoreError::DiskFull { .. })), "{refused:?}");
    assert_eq!(RunFolder::read(&path).unwrap().crowd.len(), 1);
    // With room again, all pending rows are written.
    writer.limit_pages(None).unwrap();
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let run = RunFolder::read(&path).unwrap();
    assert_eq!((run.series.len(), run.rows_lost), (1_999, 0));
}

#[test]
fn rows_that_find_no_room_are_counted() {
    let (_dir, path, mut writer) = new_run();
    (0..10_000).for_each(|second| writer.write(Row::Crowd(crowd(second))));
    let lost = writer.rows_lost();
    assert!(lost > 0);
    writer.finish(Ending::Interrupted, RunTime(1)).unwrap();
    let run = RunFolder::read(&path).unwrap();
    assert_eq!((run.crowd.len() as u64 + lost, run.rows_lost), (10_000, lost));
}

#[test]
fn what_is_not_a_run_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    assert!(matches!(RunFolder::read(&run), Err(StoreError::NoFolder(_))));
    std::fs::create_dir(&run).unwrap();
    assert!(matches!(RunFolder::read(&run), Err(StoreError::NoRun(_))));
    std::fs::write(
        run.join("run.db"),
        b"not a database, and longer than a header so that it is read as one".repeat(9),
    )
    .unwrap();
    assert!(matches!(RunFolder::read(&run), Err(StoreError::NotARun { .. })));
    std::fs::write(run.join("run.db"), b"").unwrap();
    assert!(matches!(RunFolder::read(&run), Err(StoreError::Incomplete { .. })));
    assert!(matches!(RunFolder::create(&run, &info()), Err(StoreError::Exists(_))));
}

/// As a disk leaves it that was full before the tables were there, and a copy to a full disk.
#[test]
fn a_run_db_without_tables_is_incomplete_and_a_short_one_is_cut() {
    let (_dir, path, mut writer) = new_run();
    (0..500).for_each(|second| writer.write(Row::Series(Box::new(series(second, 300)))));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let database = path.join("run.db");
    let bytes = std::fs::metadata(&database).unwrap().len();
    std::fs::File::options().write(true).open(&database).unwrap().set_len(bytes / 2).unwrap();
    let error = RunFolder::read(&path).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, StoreError::Incomplete { .. }), "{said}");
    assert!(said.contains("is cut") && said.contains(&format!("of its {bytes} bytes")), "{said}");

    std::fs::remove_file(&database).unwrap();
    let begun = rusqlite::Connection::open(&database).unwrap();
    begun.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    drop(begun);
    assert!(std::fs::metadata(&database).unwrap().len() > 0, "its first page");
    let error = RunFolder::read(&path).unwrap_err();
    assert!(matches!(error, StoreError::Incomplete { .. }), "{error}");
    let foreign = rusqlite::Connection::open(&database).unwrap();
    foreign.execute_batch("CREATE TABLE a (b);").unwrap();
    drop(foreign);
    assert!(matches!(RunFolder::read(&path), Err(StoreError::NotARun { .. })));
}

/// A reader of a view without an end does not end.
#[test]
fn a_view_in_the_place_of_a_table_is_refused() {
    let (_dir, path, writer) = new_run();
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let database = rusqlite::Connection::open(path.join("run.db")).unwrap();
    let planted = "ALTER TABLE crowd RENAME TO kept;
         CREATE VIEW crowd AS SELECT * FROM kept;";
    database.execute_batch(planted).unwrap();
    drop(database);
    let error = RunFolder::read(&path).unwrap_err();
    assert!(
        matches!(&error, StoreError::Corrupt { detail, .. } if detail.contains("view")),
        "{error}"
    );
}

#[test]
fn a_newer_format_and_a_damaged_file_are_refused() {
    let (_dir, path, mut writer) = new_run();
    (0..500).for_each(|second| writer.write(Row::Series(Box::new(series(second, 300)))));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let database = path.join("run.db");
    let good = std::fs::read(&database).unwrap();
    let mut newer = good.clone();
    newer[60..64].copy_from_slice(&(FORMAT + 1).to_be_bytes()); // user_version in SQLite's header
    std::fs::write(&database, newer).unwrap();
    assert!(matches!(RunFolder::read(&path), Err(StoreError::Newer { .. })));
    let mut damaged = good;
    let middle = damaged.len() / 2;
    damaged[4096..middle].fill(0xA5);
    std::fs::write(&database, damaged).unwrap();
    assert!(matches!(RunFolder::read(&path), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_thousand_participants_for_ten_minutes_read_back_quickly() {
    let (_dir, path, mut writer) = new_run();
    let outcome = Some(Outcome::Completed);
    for second in 0..600 {
        writer.write(Row::Crowd(crowd(second)));
        writer.write(Row::Series(Box::new(series(second, 2_000))));
        writer.write(Row::Series(Box::new(series(second, 2_000))));
        writer.write(Row::Generator(generator()));
        if second % 60 == 59 {
            (0..1_000).for_each(|id| {
                writer.write(Row::Participant(Box::new(participant(id, outcome.clone()))));
            });
            (0..1_000).for_each(|id| writer.write(Row::Track(Box::new(track(id)))));
        }
        writer.commit().unwrap();
    }
    writer.finish(Ending::Complete, RunTime(600_000_000)).unwrap();
    let began = Instant::now();
    let run = RunFolder::read(&path).unwrap();
    let took = began.elapsed();
    assert_eq!((run.series.len(), run.participants.len(), run.tracks.len()), (1_200, 1_000, 1_000));
    // Takes well below a second alone; the margin is for a machine that runs other tests in
    // parallel.
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn the_documented_schema_is_the_one_that_is_made() {
    let (_dir, path, writer) = new_run();
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    let text = [
        include_str!("../../../../docs/run-folder.md"),
        include_str!("../../../../docs/counters.md"),
    ]
    .concat();
    let mut statement = db
        .prepare(
            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'",
        )
        .unwrap();
    let columns = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        .unwrap();
    for (table, column) in columns.map(Result::unwrap) {
        assert!(text.contains(&format!("`{table}`")), "table {table} is not documented");
        assert!(text.contains(&format!("`{column}`")), "{table}.{column} is not documented");
    }
}

/// A run of two seconds whose process was killed: its crowd, and an event of its own.
fn killed(folder: &Path) {
    let mut writer = RunFolder::create(folder, &info()).unwrap();
    for second in 0..2 {
        writer.write(Row::Crowd(CrowdRow { second, playing: 1, ..CrowdRow::default() }));
    }
    for (kind, detail) in [("watch", "the server's log is gone"), ("anomaly", "a: an odd packet")] {
        let (kind, detail) = (kind.to_owned(), detail.into());
        writer.write(Row::Event(EventRow {
            at: RunTime(5),
            participant: None,
            kind,
            count: 1,
            detail,
        }));
    }
    writer.commit().unwrap();
}

#[test]
fn the_rows_of_a_crowd_are_made_again_and_what_else_there_is_stays() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    // Nothing changes until it is complete.
    let mut again = RunFolder::again(folder.path(), |event| event.kind == "watch").unwrap();
    assert_eq!(again.last_second, Some(1));
    for second in 0..4 {
        again.writer.write(Row::Crowd(CrowdRow { second, playing: 2, ..CrowdRow::default() }));
    }
    again.writer.commit().unwrap();
    let run = RunFolder::read(folder.path()).unwrap();
    assert_eq!((run.crowd.len(), run.events.len(), run.ending), (2, 2, Ending::Unfinished));
    again.discard();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only run.db");

    for _ in 0..2 {
        let mut again = RunFolder::again(folder.path(), |event| event.kind == "watch").unwrap();
        for second in 0..4 {
            again.writer.write(Row::Crowd(CrowdRow { second, playing: 2, ..CrowdRow::default() }));
        }
        again.finish(Ending::Interrupted, RunTime(4_000_000)).unwrap();
        let run = RunFolder::read(folder.path()).unwrap();
        assert_eq!(run.crowd.iter().map(|row| row.playing).collect::<Vec<_>>(), [2; 4]);
        assert_eq!(
            run.events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(),
            ["watch"]
        );
        assert_eq!((run.ending, run.ended_at), (Ending::Interrupted, Some(RunTime(4_000_000))));
        assert_eq!((run.info, run.rows_lost), (info(), 0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only run.db");
    }
    assert!(matches!(RunFolder::again("/nowhere", |_| true), Err(StoreError::NoFolder(_))));
}
