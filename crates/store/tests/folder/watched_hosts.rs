//! Watched hosts in a run folder and in a single file: round trip, NaN, old folders, a full disk,
//! damage.

use std::collections::BTreeMap;

use throng_observation::RunTime;
use throng_observation::host::*;
use throng_observation::run::{Ending, Row, RunInfo};
use throng_store::{HostFile, RunFolder, RunWriter, StoreError};

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn info(host: u8, cpu_us: u64) -> HostInfo {
    HostInfo {
        host: HostId(host),
        name: "media \"one\"".into(),
        facts: labels(&[("kernel", "6.18"), ("net.core.rmem_max", "212992")]),
        clock_error_us: 350,
        watcher_cpu_us: cpu_us,
        watcher_rss_bytes: 9 << 20,
    }
}

fn series(id: u32, limit: Option<f64>) -> HostSeries {
    HostSeries {
        id: SeriesId(id),
        host: HostId(0),
        metric: "thread.cpu".into(),
        unit: Unit::Ratio,
        labels: labels(&[("thread", "hloop 'x'"), ("tid", "4711")]),
        limit,
    }
}

fn sample(series: u32, at_us: i64, value: f64) -> HostSample {
    HostSample { series: SeriesId(series), at: RunTime(at_us), value }
}

fn event(at_us: i64, kind: HostEventKind) -> HostEvent {
    HostEvent::new(HostId(0), RunTime(at_us), kind, "janus (17) ended: killed by 9")
}

fn process_ended(at_us: i64) -> HostEvent {
    let by =
        Culprit::OutOfMemory { group: "/a \"b\"".into(), limit_bytes: None, used_bytes: u64::MAX };
    let end = ProcessEnd {
        how: HowEnded::Signal { number: 9, core: true },
        by: Some(by),
        said: Some("no memory".into()),
    };
    let process = ProcessEvent { target: 1, name: "janus".into(), pid: 17, end: Some(end) };
    HostEvent { process: Some(process), ..event(at_us, HostEventKind::ProcessEnded) }
}

fn profile(moment: &str) -> Profile {
    Profile {
        host: HostId(0),
        moment: moment.into(),
        started_at: RunTime(-4_000_000),
        duration_us: 3_000_000,
        frequency_hz: 99,
        method: ProfileMethod::CpuClock,
        frames: vec![
            Frame { symbol: "janus_ice_outgoing".into(), module: "janus".into() },
            Frame { symbol: "0x7f12".into(), module: "[jit]".into() },
        ],
        stacks: vec![
            Stack { pid: 17, tid: 18, thread: "hloop 1".into(), frames: vec![1, 0], count: 40 },
            Stack { pid: 17, tid: 17, thread: "janus".into(), frames: vec![], count: 1 },
        ],
        samples_lost: 2,
        limits: vec!["no kernel symbols: kptr_restrict is 2".into()],
    }
}

fn write(writer: &mut RunWriter, rows: Vec<HostRow>) {
    rows.into_iter().for_each(|row| writer.write(Row::Host(row)));
}

#[test]
fn a_host_reads_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let mut writer = RunFolder::create(&path, &RunInfo::default()).unwrap();
    write(
        &mut writer,
        vec![
            HostRow::Info(info(0, 1)),
            HostRow::Series(series(7, Some(1.0))),
            HostRow::Series(series(3, None)),
            HostRow::Sample(sample(7, -1_000_000, 0.5)),
            HostRow::Sample(sample(3, -900_000, 3.0)),
            HostRow::Sample(sample(8, 0, 1e300)),
            HostRow::Sample(sample(8, 1, -2.5e9)),
            HostRow::Sample(sample(8, 2, f64::INFINITY)),
            HostRow::Event(event(-1_000_000, HostEventKind::ProcessFound)),
            HostRow::Profile(Box::new(profile("baseline"))),
        ],
    );
    writer.commit().unwrap();
    write(
        &mut writer,
        vec![
            HostRow::Sample(sample(7, 0, 0.25)),
            HostRow::Sample(sample(3, 100_000, 4.0)),
            HostRow::Event(event(2_000_000, HostEventKind::Unreadable)),
            HostRow::Event(process_ended(2_500_000)),
            HostRow::Profile(Box::new(profile("fail"))),
            HostRow::Info(info(0, 12_000)),
        ],
    );
    writer.finish(Ending::Complete, RunTime(3_000_000)).unwrap();
    let host = RunFolder::read(&path).unwrap().host;
    assert_eq!(host.hosts, [info(0, 12_000)], "a later one replaces the earlier");
    assert_eq!(host.series, [series(3, None), series(7, Some(1.0))]);
    let by_series = [
        sample(3, -900_000, 3.0),
        sample(3, 100_000, 4.0),
        sample(7, -1_000_000, 0.5),
        sample(7, 0, 0.25),
        sample(8, 0, 1e300),
        sample(8, 1, -2.5e9),
        sample(8, 2, f64::INFINITY),
    ];
    assert_eq!(host.samples, by_series, "by series and time");
    assert_eq!(
        host.events,
        [
            event(-1_000_000, HostEventKind::ProcessFound),
            event(2_000_000, HostEventKind::Unreadable),
            process_ended(2_500_000)
        ]
    );
    assert_eq!(host.profiles, [profile("baseline"), profile("fail")]);
}

#[test]
fn the_end_of_a_series_survives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let mut writer = HostFile::create(&path, "0.1.0", 5).unwrap();
    write(
        &mut writer,
        vec![
            HostRow::Series(series(0, None)),
            HostRow::Sample(sample(0, 1, 0.5)),
            HostRow::Sample(sample(0, 2, f64::NAN)),
        ],
    );
    writer.finish(Ending::Complete, RunTime(3)).unwrap();
    let run = HostFile::read(&path).unwrap();
    assert_eq!((run.info.started_at_unix_us, run.info.throng_version.as_str()), (5, "0.1.0"));
    assert_eq!(run.host.samples[0], sample(0, 1, 0.5));
    assert!(run.host.samples[1].value.is_nan());
}

#[test]
fn a_lone_file_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    drop(HostFile::create(&path, "0.1.0", 0).unwrap());
    assert!(matches!(HostFile::create(&path, "0.1.0", 0), Err(StoreError::FileExists(_))));
    assert!(matches!(HostFile::read(dir.path().join("other.db")), Err(StoreError::NoFile(_))));
}

#[test]
fn a_file_from_before_ends_of_processes_had_a_column_still_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let mut writer = HostFile::create(&path, "0.1.0", 0).unwrap();
    write(&mut writer, vec![HostRow::Event(process_ended(1))]);
    writer.finish(Ending::Complete, RunTime(3)).unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("ALTER TABLE host_event DROP COLUMN process", []).unwrap();
    assert_eq!(HostFile::read(&path).unwrap().host.events, [event(1, HostEventKind::ProcessEnded)]);
}

#[test]
fn a_folder_from_before_hosts_were_watched_still_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    RunFolder::create(&path, &RunInfo::default())
        .unwrap()
        .finish(Ending::Complete, RunTime(1))
        .unwrap();
    let db = rusqlite::Connection::open(path.join("run.db")).unwrap();
    let tables: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'host%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(tables.len(), 7);
    tables.iter().for_each(|table| assert!(db.execute(&format!("DROP TABLE {table}"), []).is_ok()));
    drop(db);
    assert_eq!(RunFolder::read(&path).unwrap().host, HostData::default());
}

#[test]
fn words_of_a_later_throng_are_read_as_the_nearest_known_and_rubbish_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let mut writer = HostFile::create(&path, "0.1.0", 0).unwrap();
    write(
        &mut writer,
        vec![
            HostRow::Series(series(0, None)),
            HostRow::Event(event(1, HostEventKind::Mark)),
            HostRow::Profile(Box::new(profile("pass"))),
        ],
    );
    writer.finish(Ending::Complete, RunTime(3)).unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("UPDATE host_event SET kind = 'rebooted'", []).unwrap();
    db.execute("UPDATE host_series SET unit = 'furlongs'", []).unwrap();
    let host = HostFile::read(&path).unwrap().host;
    assert_eq!((host.events[0].kind, host.series[0].unit), (HostEventKind::Watcher, Unit::Count));
    for damage in [
        "UPDATE host_profile_stack SET frames = '[1,'",
        "UPDATE host_series SET labels = 7",
        "UPDATE host_series SET host = 256",
    ] {
        db.execute_batch(&format!("SAVEPOINT whole; {damage}; RELEASE whole;")).unwrap();
        assert!(matches!(HostFile::read(&path), Err(StoreError::Corrupt { .. })), "{damage}");
        db.execute_batch(
            "UPDATE host_profile_stack SET frames = '[]'; UPDATE host_series SET labels = '{}', host = 0",
        )
        .unwrap();
        assert!(HostFile::read(&path).is_ok());
    }
}

#[test]
fn a_full_disk_bounds_what_waits_and_counts_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let mut writer = HostFile::create(&path, "0.1.0", 0).unwrap();
    writer.limit_pages(Some(0)).unwrap();
    let offered = 400_000;
    (0..offered).for_each(|at| writer.write(Row::Host(HostRow::Sample(sample(0, at, 0.125)))));
    assert!(matches!(writer.commit(), Err(StoreError::DiskFull { .. })));
    (0..100).for_each(|_| writer.write(Row::Host(HostRow::Profile(Box::new(profile("fail"))))));
    let lost = writer.rows_lost();
    writer.limit_pages(None).unwrap();
    writer.finish(Ending::Interrupted, RunTime(1)).unwrap();
    let run = HostFile::read(&path).unwrap();
    assert!(run.host.profiles.len() < 100 && run.host.samples.len() > 100_000);
    assert_eq!(
        run.host.samples.len() as u64 + run.host.profiles.len() as u64 + lost,
        offered.unsigned_abs() + 100
    );
}

#[test]
fn an_idle_host_and_whole_figures_take_little_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let mut writer = HostFile::create(&path, "0.1.0", 0).unwrap();
    for second in 0..100 {
        for id in 0..1_000 {
            writer.write(Row::Host(HostRow::Sample(sample(
                id,
                second * 1_000_000,
                f64::from(id % 100),
            ))));
        }
        writer.commit().unwrap();
    }
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 100_000 * 20, "{} bytes a sample", bytes as f64 / 1e5);
}
