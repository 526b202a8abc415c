use std::collections::{BTreeMap, BTreeSet};

use throng_observation::host::{HostEventKind, HostRow};
use throng_observation::run::{CohortId, Ending, ParticipantId, Row, RunInfo};
use throng_observation::{
    CaptureBasis, Codec, Counters as _, Distribution, MediaKind, OneWayDelay, RunTime,
    TrackCounters, TrackId,
};

use super::*;
use crate::RunFolder;

fn track() -> TrackRow {
    let mut relative_delay_us = Distribution::new();
    relative_delay_us.record(4_000);
    let mut absolute_delay_us = Distribution::new();
    absolute_delay_us.record(9_000);
    let basis = Some(CaptureBasis::SenderReport);
    TrackRow {
        participant: ParticipantId(7),
        track: TrackId(1),
        kind: MediaKind::Video,
        codec: Codec::H264,
        from: None,
        first_frame_at: Some(RunTime(1_500_000)),
        counters: TrackCounters { packets_lost: 3, freeze_us: 250_000, ..TrackCounters::default() },
        relative_delay_us,
        absolute_delay: OneWayDelay::from_parts(basis, absolute_delay_us, 0, Distribution::new()),
        fps: Some(29.5),
        jitter_us: None,
        oven_rtc_tester_delay_us: None,
    }
}

fn event(kind: &str) -> Row {
    Row::Event(EventRow {
        at: RunTime(-250_000),
        participant: None,
        kind: kind.into(),
        count: 1,
        detail: "=1+1".into(),
    })
}

fn written(rows: Vec<Row>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let info = RunInfo { cohorts: vec!["viewers".into()], ..RunInfo::default() };
    let mut writer = RunFolder::create(folder.path().join("run"), &info).unwrap();
    rows.into_iter().for_each(|row| writer.write(row));
    writer.commit().unwrap();
    // No ending: it is exported all the same.
    drop(writer);
    folder
}

/// The rows of a table, each cell by the name of its column.
fn rows(folder: &tempfile::TempDir, table: StoredTable) -> Vec<BTreeMap<String, TableCell>> {
    let (columns, mut rows) = (table.columns(), Vec::new());
    RunFolder::export(folder.path().join("run"), table, |cells| {
        assert_eq!(cells.len(), columns.len(), "{}", table.name());
        for (column, cell) in columns.iter().zip(&cells) {
            assert!(cell.holds().is_none_or(|holds| holds == column.holds), "{column:?} {cell:?}");
        }
        rows.push(columns.iter().map(|column| column.name.clone()).zip(cells).collect());
        true
    })
    .unwrap();
    rows
}

#[test]
fn rows_read_as_they_were_stored_with_names_seconds_and_quantiles() {
    let crowd = CrowdRow { second: 4, playing: 9, ..CrowdRow::default() };
    let of_host = HostEvent::new(HostId(3), RunTime(0), HostEventKind::Mark, "begins");
    let written = written(vec![
        Row::Crowd(crowd),
        Row::Crowd(CrowdRow { cohort: CohortId(1), ..crowd }),
        Row::Track(Box::new(track())),
        event("abort"),
        Row::Host(HostRow::Event(of_host)),
    ]);
    let tables = RunFolder::stored_tables(written.path().join("run")).unwrap();
    let (crowd, track) = (rows(&written, StoredTable::Crowd), rows(&written, StoredTable::Tracks));
    let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
    assert_eq!(names, ["crowd", "track", "event", "host_event"]);
    assert_eq!(
        crowd.iter().map(|row| row["cohort"].clone()).collect::<Vec<_>>(),
        [TableCell::from("viewers"), "1".into()],
        "one without a name keeps its number"
    );
    assert_eq!((&crowd[0]["second"], &crowd[0]["playing"]), (&4_i64.into(), &9_i64.into()));
    let track = &track[0];
    assert_eq!(track["first_frame_s"], 1.5_f64.into());
    assert_eq!((&track["freeze_s"], &track["packets_lost"]), (&0.25_f64.into(), &3_i64.into()));
    assert_eq!(track["relative_delay_count"], 1_i64.into());
    assert!(
        matches!(track["relative_delay_ms_p50"], TableCell::Number(ms) if ms > 3.9 && ms < 4.1)
    );
    assert_eq!(track["jitter_s"], TableCell::Absent);
    assert_eq!(track["capture_basis"], "sender_report".into());
    let event = &rows(&written, StoredTable::Events)[0];
    assert_eq!((&event["at_s"], &event["detail"]), (&TableCell::Number(-0.25), &"=1+1".into()));
    assert_eq!(rows(&written, StoredTable::HostEvents)[0]["host"], "host 3".into());
}

#[test]
fn hosts_of_one_name_are_told_apart_and_flags_are_no_numbers() {
    let mut all = Vec::new();
    for host in [HostId(0), HostId(1)] {
        let info = HostInfo { host, name: "lab".into(), ..HostInfo::default() };
        let began = HostEvent::new(host, RunTime(0), HostEventKind::Mark, "begins");
        all.extend([Row::Host(HostRow::Info(info)), Row::Host(HostRow::Event(began))]);
    }
    let hold = |number, bad_to_the_end| {
        Row::Hold(Box::new(HoldRow { number, bad_to_the_end, ..HoldRow::default() }))
    };
    all.extend([hold(1, false), hold(2, true)]);
    let written = written(all);
    let cells = |table, column: &str| -> Vec<TableCell> {
        rows(&written, table).iter().map(|row| row[column].clone()).collect()
    };
    let hosts: [TableCell; 2] = ["lab 0".into(), "lab 1".into()];
    assert_eq!(cells(StoredTable::HostEvents, "host"), hosts);
    let ends: [TableCell; 2] = [false.into(), true.into()];
    assert_eq!(cells(StoredTable::Holds, "bad_to_the_end"), ends);
    let browsers = StoredTable::CanaryBrowsers.columns();
    let is_own = browsers.iter().find(|column| column.name == "failure_is_own");
    assert_eq!(is_own.map(|column| column.holds), Some(CellType::Flag));
}

#[test]
fn delays_by_a_clock_that_was_found_wrong_are_not_exported() {
    let written = written(vec![Row::Track(Box::new(track())), event(SENDER_CLOCK_EVENT)]);
    let track = &rows(&written, StoredTable::Tracks)[0];
    assert_eq!(track["absolute_delay_count"], 0_i64.into());
    assert_eq!(track["absolute_delay_ms_p50"], TableCell::Absent);
    assert_eq!(track["relative_delay_count"], 1_i64.into());
}

#[test]
fn a_folder_of_an_earlier_version_is_exported() {
    let written = written(vec![Row::Track(Box::new(track()))]);
    let db = Connection::open(written.path().join("run/run.db")).unwrap();
    db.execute_batch(
        "ALTER TABLE track RENAME COLUMN packets_original TO packets_received;
         ALTER TABLE track DROP COLUMN missing_us; DROP TABLE experience; DROP TABLE host;",
    )
    .unwrap();
    drop(db);
    let track = &rows(&written, StoredTable::Tracks)[0];
    assert_eq!((&track["missing_s"], &track["packets_original"]), (&0.0_f64.into(), &0_i64.into()));
    assert!(rows(&written, StoredTable::Experience).is_empty());
    let mut taken = 0;
    RunFolder::export(written.path().join("run"), StoredTable::Tracks, |_| {
        taken += 1;
        false
    })
    .unwrap();
    assert_eq!(taken, 1);
}

/// A counter that is added is exported without more.
#[test]
fn each_column_has_a_name_of_its_own_and_counters_have_that_of_csvs() {
    for table in StoredTable::ALL {
        let columns = table.columns();
        let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names.len(), columns.len(), "{}", table.name());
        let left: Vec<&&str> = names.iter().filter(|name| name.ends_with(MICROSECONDS)).collect();
        assert!(left.is_empty(), "{}: {left:?}", table.name());
    }
    let tracks = StoredTable::Tracks.columns();
    for counter in TrackCounters::COUNTERS {
        assert!(tracks.iter().any(|column| column.name == counter.csv()), "{}", counter.name);
    }
}

#[test]
fn the_rows_end_when_there_are_enough() {
    let second = |second| Row::Crowd(CrowdRow { second, ..CrowdRow::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut writer = RunFolder::create(&path, &RunInfo::default()).unwrap();
    (0..5).for_each(|at| writer.write(second(at)));
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let mut seen = 0;
    RunFolder::export(&path, StoredTable::Crowd, |_| {
        seen += 1;
        seen < 3
    })
    .unwrap();
    assert_eq!(seen, 3);
}
