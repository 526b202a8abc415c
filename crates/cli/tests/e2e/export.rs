//! The tables of a run, read back by what reads such files.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::throng::{Stage, plain, run};

const VIEWERS: usize = 3;

/// `throng export RUN FORMAT -o FOLDER`.
fn export(run: &Path, format: &str, folder: &Path) -> (Option<i32>, String) {
    let [run, folder] = [run, folder].map(|path| path.display().to_string());
    let output = plain(&["export", &run, format, "-o", &folder]);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The rows of a CSV without quoted cells, by the names of its columns.
fn of_csv(file: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

fn of_json_lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_of_the_stage_reads_back_from_its_tables() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let viewers = VIEWERS.to_string();
    let target = stage.target();
    let view = ["view", &target, "-n", &viewers, "--for", "3s", "--warm-up", "0s", "--quiet"];
    let ran = run(None, &view);
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for (format, folder) in [("--csv", "csv"), ("--jsonl", "jsonl")] {
        let (code, said) = export(&ran.folder(), format, &at(folder));
        assert_eq!((code, said.as_str()), (Some(0), ""), "{ran}");
    }
    for table in ["run", "series", "participants", "crowd", "experience", "track", "generator"] {
        let csv = of_csv(&at("csv").join(format!("{table}.csv")));
        let json = of_json_lines(&at("jsonl").join(format!("{table}.jsonl")));
        assert!(!csv.is_empty() && csv.len() == json.len(), "{table}");
    }
    let participants = of_csv(&at("csv/participants.csv"));
    let objects = of_json_lines(&at("jsonl/participants.jsonl"));
    assert_eq!(participants.len(), VIEWERS, "{ran}");
    for (line, object) in participants.iter().zip(&objects) {
        let first_frame_s: f64 = line["first_frame_s"].parse().unwrap();
        assert_eq!(object["first_frame_s"].as_f64(), Some(first_frame_s), "{ran}");
        assert_eq!(object["outcome"], "completed", "{ran}");
    }
    // By track, by second and in the summary, which leaves no warm-up out, they are the same.
    let received = |table: &str| -> u64 {
        let rows = of_json_lines(&at("jsonl").join(format!("{table}.jsonl")));
        let videos = rows.iter().filter(|row| row["kind"] == "video");
        videos.filter_map(|row| row["packets_original"].as_u64()).sum()
    };
    let counted = ran.summary()["video"]["packets_original"].as_u64().unwrap_or(0);
    assert!(counted > 0, "{ran}");
    assert_eq!([received("track"), received("series")], [counted; 2], "{ran}");
    let (code, said) = export(&ran.folder(), "--csv", &at("csv"));
    assert!(code == Some(2) && said.contains("is there already"), "{said}");
    in_parquet(&ran.folder(), &at("parquet"));
}

#[cfg(not(feature = "parquet"))]
fn in_parquet(run: &Path, folder: &Path) {
    let (code, said) = export(run, "--parquet", folder);
    assert!(code == Some(2) && said.contains("--features parquet"), "{said}");
    assert!(!folder.exists());
}

#[cfg(feature = "parquet")]
fn in_parquet(run: &Path, folder: &Path) {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let (code, said) = export(run, "--parquet", folder);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let file = std::fs::File::open(folder.join("participants.parquet")).unwrap();
    let rows = SerializedFileReader::new(file).unwrap();
    assert_eq!(rows.get_row_iter(None).unwrap().count(), VIEWERS);
}
