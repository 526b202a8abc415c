//! What a run is written as, by value: summary.json, its tables, and its rows on their way between
//! machines. The runs are made up, so that nothing of it depends on a machine or on a moment.
//! `THRONG_WRITE_DOCS=1` writes the files anew; their difference is what a change did.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use throng_observation::RunTime;
use throng_observation::run::{Ending, Row};
use throng_report::ReportRows;
use throng_scenario::Scenario;
use throng_store::RunFolder;

use rows::Recorded;

mod rows;

/// Files of a run folder that are compared where they exist: the page is not.
const FILES: [&str; 7] = [
    "summary.json",
    "series.csv",
    "participants.csv",
    "playback.csv",
    "players.csv",
    "conference.csv",
    "hosts.csv",
];

fn golden(run: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden").join(run).join(name)
}

/// Whether the file that is kept is not what was made, or only one of the two exists.
fn differs(run: &str, name: &str, made: Option<&str>) -> bool {
    let file = golden(run, name);
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(golden(run, "")).unwrap();
        if let Some(made) = made {
            std::fs::write(&file, made).unwrap();
        }
    }
    std::fs::read_to_string(file).ok().as_deref() != made
}

/// Writes the run into a folder and makes its report as `throng report --csv` does.
fn report_of(recorded: &Recorded, path: &Path) {
    let mut writer = RunFolder::create(path, &recorded.info).unwrap();
    recorded.rows.iter().for_each(|row| writer.write(row.clone()));
    assert_eq!(writer.rows_lost(), 0);
    writer.finish(Ending::Complete, RunTime(rows::SECONDS * 1_000_000)).unwrap();
    let run = super::read(path, &mut ReportRows::default()).unwrap();
    let folder = RunFolder::open(path).unwrap();
    super::put_all(&folder, &run, &super::summary(&run), true).unwrap();
}

#[test]
fn golden_reports_are_what_they_were() {
    let place = tempfile::tempdir().unwrap();
    let mut differ = Vec::new();
    // Folders of versions that kept no plan have the same.
    let older = rows::all().map(|mut recorded| {
        recorded.info.plan = None;
        recorded
    });
    for (number, recorded) in rows::all().into_iter().chain(older).enumerate() {
        if let Err(error) = Scenario::parse_stored(&recorded.info.scenario) {
            panic!("{}: {error}", recorded.name);
        }
        let path = place.path().join(number.to_string());
        report_of(&recorded, &path);
        for name in FILES {
            let made = std::fs::read_to_string(path.join(name)).ok();
            if differs(recorded.name, name, made.as_deref()) {
                differ.push(format!("{}/{name}", recorded.name));
            }
        }
    }
    assert!(
        differ.is_empty(),
        "{differ:?} differ; if that is meant, write them anew: \
         THRONG_WRITE_DOCS=1 cargo test -p throng-cli golden"
    );
}

/// The kind of a row that travels between machines; `None` of those that do not.
fn kind(row: &Row) -> Option<&'static str> {
    Some(match row {
        Row::Crowd(_) => "crowd",
        Row::Series(_) => "series",
        Row::Sent(_) => "sent",
        Row::Playback(_) => "playback",
        Row::Chat(_) => "chat",
        Row::SecondClosed(_) => "second_closed",
        Row::Participant(_) => "participant",
        Row::Track(_) => "track",
        Row::Player(_) => "player",
        Row::HttpRequests(_) => "http_requests",
        Row::LayerSwitch(_) => "layer_switch",
        Row::Generator(_) => "generator",
        Row::Event(_) => "event",
        Row::Hold(_) | Row::Canary(_) | Row::Host(_) => return None,
    })
}

/// A line for the first row of each kind, its bytes in hexadecimal.
#[test]
fn golden_rows_travel_as_they_did() {
    let mut made = format!("version {}\n", throng_fleet::wire::ROWS_VERSION);
    let mut kinds = Vec::new();
    for row in rows::all().into_iter().flat_map(|recorded| recorded.rows) {
        let Some(kind) = kind(&row).filter(|kind| !kinds.contains(kind)) else { continue };
        kinds.push(kind);
        let _ = write!(made, "{kind} ");
        for byte in postcard::to_stdvec(&row).unwrap() {
            let _ = write!(made, "{byte:02x}");
        }
        made.push('\n');
    }
    assert_eq!(kinds.len(), 13, "a row of each kind that travels: {kinds:?}");
    assert!(
        !differs("wire", "rows.txt", Some(&made)),
        "rows travel in another form: if not by another sum, give \
         throng_fleet::wire::ROWS_VERSION the next number; and write it anew: \
         THRONG_WRITE_DOCS=1 cargo test -p throng-cli golden\n{made}"
    );
}
