//! Every table has rows of its columns, in each format; and the page has the columns.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use throng_observation::CellType;
use throng_observation::host::{HostId, HostInfo, HostRow, HostSample, HostSeries, SeriesId};
use throng_observation::run::{
    CohortId, EventRow, ParticipantId, ParticipantRow, RunInfo, SeriesRow,
};
use throng_observation::{MediaKind, Outcome, Phase, PlaybackCounters, PlayerRow, RunTime};
use throng_store::RunWriter;

use super::*;

fn rows() -> Vec<Row> {
    let mut series = SeriesRow { kind: Some(MediaKind::Video), tracks: 2, ..SeriesRow::default() };
    series.counters.packets_original = 90;
    series.counters.packets_lost = 10;
    series.relative_delay_us.record(4_000);
    let participant = ParticipantRow {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        intended_at: RunTime(250_000),
        reached: BTreeMap::from([(Phase::FirstFrame, RunTime(1_500_000))]),
        ended_at: None,
        outcome: Some(Outcome::Completed),
        local_address: Some("=a \"quoted\", one".into()),
    };
    let player = PlayerRow {
        participant: ParticipantId(0),
        startup_us: None,
        buffer_us: 0,
        delivery_ppm_min: None,
        counters: PlaybackCounters::default(),
    };
    let info = HostInfo { name: "media one".into(), ..HostInfo::default() };
    let thread = HostSeries {
        metric: "thread.cpu".into(),
        labels: BTreeMap::from([("thread".into(), "worker".into())]),
        ..HostSeries::default()
    };
    let sample = |at, value| HostSample { series: SeriesId(0), at: RunTime(at), value };
    let event = EventRow {
        at: RunTime(2_000_000),
        participant: None,
        kind: "path_host".into(),
        count: 1,
        detail: "a\nb".into(),
    };
    let mut rows: Vec<Row> = (0..3)
        .map(|second| Row::Series(Box::new(SeriesRow { second, ..series.clone() })))
        .collect();
    rows.extend([
        Row::Participant(Box::new(participant)),
        Row::Playback(Box::default()),
        Row::Player(Box::new(player)),
        Row::Host(HostRow::Info(info)),
        Row::Host(HostRow::Series(thread)),
        Row::Host(HostRow::Sample(sample(-1_000_000, 0.25))),
        Row::Host(HostRow::Sample(sample(1_000_000, f64::NAN))),
        Row::Event(event),
    ]);
    rows
}

/// A run, and a folder for tables.
fn written() -> (tempfile::TempDir, RunFolder) {
    let (place, folder, _) = in_progress(rows());
    (place, folder)
}

/// A run that goes on after these rows, and a folder for tables.
fn in_progress(rows: Vec<Row>) -> (tempfile::TempDir, RunFolder, RunWriter) {
    let place = tempfile::tempdir().unwrap();
    let info = RunInfo { cohorts: vec!["viewers".into()], ..RunInfo::default() };
    let mut writer = RunFolder::create(place.path().join("run"), &info).unwrap();
    put_rows(&mut writer, rows);
    throng_store::create_new_private(place.path().join("tables")).unwrap();
    let folder = RunFolder::open(place.path().join("tables")).unwrap();
    (place, folder, writer)
}

fn put_rows(writer: &mut RunWriter, rows: Vec<Row>) {
    rows.into_iter().for_each(|row| writer.write(row));
    writer.commit().unwrap();
}

/// Writes all tables of the run in a format; how many rows each has.
fn put_all(place: &Path, folder: &RunFolder, format: Format) -> BTreeMap<&'static str, u64> {
    let path = place.join("run");
    let run = RunFolder::context(&path).unwrap();
    let tables = of_run(&path, &run, || unreachable!("it is no conference")).unwrap();
    tables.iter().map(|table| (table.name, put(folder, table, format).unwrap())).collect()
}

/// The objects of a file of JSON lines.
fn objects(folder: &RunFolder, name: &str) -> Vec<Value> {
    let file = folder.path().join(format!("{name}.jsonl"));
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const ROWS: [(&str, u64); 7] = [
    ("event", 1),
    ("hosts", 2),
    ("participants", 1),
    ("playback", 1),
    ("players", 1),
    ("run", 1),
    ("series", 3),
];

#[test]
fn tables_with_rows_are_written_as_json_lines_that_have_each_column() {
    let (place, folder) = written();
    assert_eq!(put_all(place.path(), &folder, Format::JsonLines), BTreeMap::from(ROWS));
    let participant = &objects(&folder, "participants")[0];
    assert_eq!(participant["cohort"], "viewers");
    assert_eq!(participant["first_frame_s"], 1.5);
    assert_eq!(participant["participant"], 0);
    assert_eq!(participant["ended_s"], Value::Null);
    assert_eq!(participant["local_address"], "=a \"quoted\", one", "as it is, not as in a CSV");
    let keys: Vec<&String> = participant.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), csv::participant_columns().len());
    let hosts = objects(&folder, "hosts");
    assert_eq!(
        (hosts[0]["host"].as_str(), hosts[0]["value"].as_f64()),
        (Some("media one"), Some(0.25))
    );
    assert_eq!((hosts[1]["at_s"].as_f64(), &hosts[1]["value"]), (Some(1.0), &Value::Null));
    assert_eq!(objects(&folder, "series")[2]["loss_ratio"], 0.1);
    let run = &objects(&folder, "run")[0];
    assert_eq!(
        (run["ending"].as_str(), run["partial"].as_bool()),
        (Some("unfinished"), Some(true))
    );
}

#[test]
fn a_csv_has_the_lines_of_the_report() {
    let (place, folder) = written();
    assert_eq!(put_all(place.path(), &folder, Format::Csv), BTreeMap::from(ROWS));
    let of = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let columns = csv::participant_columns();
    let participants = of("participants.csv");
    assert_eq!(participants.lines().next(), csv::header(&columns).lines().next());
    assert!(
        participants.ends_with(",completed,,,\"'=a \"\"quoted\"\", one\"\r\n"),
        "{participants}"
    );
    assert_eq!(of("event.csv"), "at_s,participant,kind,count,detail\r\n2,,path_host,1,a\\nb\r\n");
}

#[test]
fn tables_without_rows_have_no_file() {
    let watched = Row::Host(HostRow::Series(HostSeries::default()));
    let (place, folder, _) = in_progress(vec![watched]);
    let all = put_all(place.path(), &folder, Format::Csv);
    assert_eq!(all, BTreeMap::from([("run", 1)]), "a series without samples has no row");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn samples_of_a_series_that_has_just_begun_are_written_and_each_watch_has_its_own() {
    let (place, folder, mut writer) = in_progress(rows());
    let path = place.path().join("run");
    let run = RunFolder::context(&path).unwrap();
    let tables = of_run(&path, &run, || unreachable!("it is no conference")).unwrap();
    let info = HostInfo { host: HostId(1), name: "media one".into(), ..HostInfo::default() };
    let series = HostSeries { id: SeriesId(1), host: HostId(1), ..HostSeries::default() };
    let sample = HostSample { series: SeriesId(1), at: RunTime(1_000_000), value: 0.5 };
    let begun = [HostRow::Info(info), HostRow::Series(series), HostRow::Sample(sample)];
    put_rows(&mut writer, begun.map(Row::Host).into());
    let hosts = tables.iter().find(|table| table.name == "hosts").unwrap();
    assert_eq!(put(&folder, hosts, Format::JsonLines).unwrap(), 3);
    let objects = objects(&folder, "hosts");
    let names: Vec<&str> = objects.iter().filter_map(|row| row["host"].as_str()).collect();
    assert_eq!(names, ["media one 0", "media one 0", "media one 1"]);
}

/// Fails at its second row, and at no later one.
#[derive(Default)]
struct FailsOnce {
    rows: u32,
}

impl RowWriter for FailsOnce {
    fn row(&mut self, _: Vec<TableCell>) -> io::Result<()> {
        self.rows += 1;
        if self.rows == 2 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_row_that_is_not_written_ends_the_table() {
    let rows = (0..5_i64).map(|n| vec![n.into()]).collect();
    let table = of_rows("five", vec![TableColumn::new("n", CellType::Integer)], rows);
    let failed = |error| StoreError::Io { path: "five.csv".into(), error };
    let error = write(&table, Box::<FailsOnce>::default(), failed).unwrap_err();
    assert!(matches!(&error, StoreError::Io { error, .. }
        if error.kind() == io::ErrorKind::StorageFull));
}

#[test]
fn what_fails_leaves_no_half_of_a_table() {
    let (_place, folder) = written();
    let table = Table {
        name: "half",
        columns: vec![TableColumn::new("a", CellType::Integer)],
        rows: Box::new(|take| {
            take(vec![TableCell::Integer(1)]);
            Err(StoreError::NoFile("gone".into()))
        }),
    };
    assert!(put(&folder, &table, Format::Csv).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn requests_have_the_columns_that_the_command_prints() {
    let columns = StoredTable::HttpRequests.columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, csv::REQUEST_COLUMNS);
}

/// The columns of all tables, as the page lists them.
fn listed() -> String {
    let mut tables = vec![
        ("run", csv::run_columns()),
        ("series", csv::series_columns()),
        ("participants", csv::participant_columns()),
        ("playback", csv::playback_columns()),
        ("players", csv::player_columns()),
        ("conference", csv::pair_columns()),
        ("hosts", csv::host_columns()),
    ];
    tables.extend(StoredTable::ALL.iter().map(|table| (table.name(), table.columns())));
    let mut out = String::new();
    for (name, columns) in tables {
        let _ = write!(out, "\n### `{name}`\n");
        for (holds, what) in [
            (CellType::Text, "Text"),
            (CellType::Flag, "True or false"),
            (CellType::Integer, "Integers"),
            (CellType::Number, "Numbers"),
        ] {
            let of = columns.iter().filter(|column| column.holds == holds);
            let names: Vec<String> = of.map(|column| format!("`{}`", column.name)).collect();
            if !names.is_empty() {
                let _ = writeln!(out, "- {what}: {}", names.join(", "));
            }
        }
    }
    out
}

#[test]
fn the_page_lists_the_columns_of_all_tables() {
    const HEADING: &str = "\n## All columns\n";
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export.md");
    let page = std::fs::read_to_string(file).unwrap();
    let (before, there) = page.split_once(HEADING).unwrap();
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        std::fs::write(file, [before, HEADING, &listed()].concat()).unwrap();
        return;
    }
    let anew = "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-cli the_page_lists";
    assert_eq!(there, listed(), "{anew}");
}

#[cfg(feature = "parquet")]
mod of_parquet {
    use ::parquet::file::metadata::RowGroupMetaData;
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::{Field, Row as Record};

    use super::super::parquet::Parquet;
    use super::super::row_writer::RowWriter as _;
    use super::*;

    fn field(row: &Record, name: &str) -> Field {
        let found = row.get_column_iter().find(|(column, _)| *column == name);
        found.map(|(_, field)| field.clone()).unwrap()
    }

    #[test]
    fn a_run_reads_back() {
        let (place, folder) = written();
        assert_eq!(put_all(place.path(), &folder, Format::Parquet), BTreeMap::from(ROWS));
        let open = |name: &str| {
            let file = std::fs::File::open(folder.path().join(format!("{name}.parquet"))).unwrap();
            SerializedFileReader::new(file).unwrap()
        };
        let first = |name: &str| open(name).get_row_iter(None).unwrap().next().unwrap().unwrap();
        let (participant, run) = (first("participants"), first("run"));
        assert_eq!(field(&participant, "first_frame_s"), Field::Double(1.5));
        assert_eq!(field(&participant, "participant"), Field::Long(0));
        assert_eq!(field(&participant, "ended_s"), Field::Null);
        assert_eq!(field(&participant, "cohort"), Field::Str("viewers".into()));
        assert_eq!(field(&run, "partial"), Field::Bool(true));
        assert_eq!(open("series").get_row_iter(None).unwrap().count(), 3);
    }

    #[test]
    fn rows_are_written_in_groups() {
        let columns =
            [TableColumn::new("n", CellType::Integer), TableColumn::new("odd", CellType::Text)];
        let mut file = tempfile::tempfile().unwrap();
        let mut out = Box::new(Parquet::with_groups(&columns, &mut file, 4).unwrap());
        for n in 0..10_i64 {
            out.row(vec![n.into(), (n % 2 == 1).then_some("odd").into()]).unwrap();
        }
        out.finish().unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        let groups = file.metadata().row_groups().iter().map(RowGroupMetaData::num_rows);
        assert_eq!(groups.collect::<Vec<_>>(), [4, 4, 2]);
        let rows: Vec<Record> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        for (n, row) in (0..10).zip(&rows) {
            assert_eq!(field(row, "n"), Field::Long(n));
            let odd = if n % 2 == 1 { Field::Str("odd".into()) } else { Field::Null };
            assert_eq!(field(row, "odd"), odd);
        }
    }
}
