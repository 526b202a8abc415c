use std::path::PathBuf;

use throng_observation::run::RunInfo;

use super::*;

/// A run that was not finished, and where its tables go.
fn run() -> (tempfile::TempDir, Export) {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    RunFolder::create(at("run"), &RunInfo::default()).unwrap().commit().unwrap();
    let command =
        Export { run: at("run"), output: at("a/tables"), csv: true, jsonl: false, parquet: false };
    (place, command)
}

/// How it ends, and what it says.
fn refused(command: &Export) -> (Exit, String) {
    let stop = export(command).unwrap_err();
    (stop.exit, stop.error.to_string())
}

#[test]
fn a_partial_run_is_exported_once_and_never_over_what_is_there() {
    let (place, command) = run();
    assert_eq!(export(&command).unwrap(), Exit::Met);
    let files = std::fs::read_dir(&command.output).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["run.csv"], "a run without rows");
    let (exit, said) = refused(&command);
    assert!(exit == Exit::Usage && said.contains("is there already"), "{said}");
    // Nor where a file has the name.
    std::fs::write(place.path().join("file"), "mine").unwrap();
    let over = Export { output: place.path().join("file"), ..command };
    assert_eq!(refused(&over).0, Exit::Usage);
    assert_eq!(std::fs::read_to_string(place.path().join("file")).unwrap(), "mine");
}

#[test]
fn what_is_no_run_leaves_no_folder() {
    let (place, command) = run();
    let none = Export { run: PathBuf::from("/nonexistent/run"), ..command };
    assert_eq!(refused(&none).0, Exit::Usage);
    std::fs::write(place.path().join("run/run.db"), "no database at all").unwrap();
    let damaged = Export { run: place.path().join("run"), ..none };
    assert_eq!(refused(&damaged).0, Exit::Invalid);
    assert!(!place.path().join("a").exists());
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so_and_what_else_there_is() {
    let (place, command) = run();
    let (exit, said) = refused(&Export { csv: false, parquet: true, ..command });
    assert_eq!(exit, Exit::Usage);
    assert!(said.contains("--features parquet") && said.contains("--csv"), "{said}");
    assert!(!place.path().join("a").exists());
}
