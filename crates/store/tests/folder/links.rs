//! Links that somebody put into a run folder: nothing that they lead to is written, and nothing is
//! read as if it were the run's.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use throng_observation::RunTime;
use throng_observation::run::{Ending, RunInfo};
use throng_store::{HostFile, RunFolder, StoreError};

const PRECIOUS: &[u8] = b"precious";

/// A finished run, and a file of somebody else.
fn run() -> (TempDir, PathBuf, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let (folder, victim) = (place.path().join("run"), place.path().join("victim"));
    RunFolder::create(&folder, &RunInfo::default())
        .unwrap()
        .finish(Ending::Complete, RunTime(1))
        .unwrap();
    std::fs::write(&victim, PRECIOUS).unwrap();
    (place, folder, victim)
}

fn is_untouched(victim: &Path) -> bool {
    std::fs::read(victim).unwrap() == PRECIOUS
}

#[test]
fn a_report_replaces_links_and_not_what_they_lead_to() {
    for name in ["summary.json", "report.html", "series.csv", "record.json", "fleet.json"] {
        for planted in [format!(".{name}.unfinished"), name.to_owned()] {
            let (_place, folder, victim) = run();
            symlink(&victim, folder.join(&planted)).unwrap();
            RunFolder::open(&folder).unwrap().put(name, "mine").unwrap();
            assert!(is_untouched(&victim), "{planted}");
            let file = folder.join(name);
            assert!(!file.is_symlink(), "{planted}");
            assert_eq!(std::fs::read_to_string(file).unwrap(), "mine", "{planted}");
        }
    }
}

#[test]
fn a_report_that_fails_removes_only_its_own() {
    let (_place, folder, victim) = run();
    symlink(&victim, folder.join(".summary.json.unfinished")).unwrap();
    let fails = |_: &mut (dyn std::io::Write + Send)| Err(StoreError::NoFile(PathBuf::from("x")));
    assert!(RunFolder::open(&folder).unwrap().put_with("summary.json", fails).is_err());
    assert!(is_untouched(&victim) && !folder.join("summary.json").exists());
}

#[test]
fn a_folder_that_was_opened_stays_the_one() {
    let (place, folder, _victim) = run();
    let opened = RunFolder::open(&folder).unwrap();
    let other = place.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::rename(&folder, place.path().join("moved")).unwrap();
    symlink(&other, &folder).unwrap();
    opened.put("summary.json", "mine").unwrap();
    assert!(place.path().join("moved/summary.json").is_file());
    assert!(!other.join("summary.json").exists());
}

#[test]
fn a_database_is_not_opened_through_a_link() {
    for name in ["run.db", "run.db-wal", "run.db-shm", "run.db-journal"] {
        let (_place, folder, victim) = run();
        let planted = folder.join(name);
        let _ = std::fs::remove_file(&planted);
        symlink(&victim, &planted).unwrap();
        let is_refused =
            |error: StoreError| matches!(error, StoreError::LinkOrPipe(path) if path == planted);
        assert!(is_refused(RunFolder::read(&folder).unwrap_err()), "{name}: read");
        assert!(is_refused(RunFolder::outline(&folder).unwrap_err()), "{name}: outline");
        assert!(is_refused(RunFolder::add_decoded(&folder, &[]).unwrap_err()), "{name}: decoded");
        let again = RunFolder::again(&folder, |_| true).err().unwrap();
        assert!(is_refused(again), "{name}: again");
        if name != "run.db" {
            std::fs::remove_file(folder.join("run.db")).unwrap();
        }
        let made = RunFolder::create(&folder, &RunInfo::default()).err().unwrap();
        assert!(is_refused(made), "{name}: create");
        assert!(is_untouched(&victim), "{name}");
    }
}

/// A test that waits for a writer does not end.
#[test]
fn a_pipe_in_the_place_of_a_file_of_the_database_keeps_nobody_waiting() {
    for name in ["run.db", "run.db-wal", "run.db-shm", "run.db-journal"] {
        let (_place, folder, _victim) = run();
        let planted = folder.join(name);
        let _ = std::fs::remove_file(&planted);
        assert!(std::process::Command::new("mkfifo").arg(&planted).status().unwrap().success());
        let read = RunFolder::read(&folder).unwrap_err();
        assert!(matches!(read, StoreError::LinkOrPipe(path) if path == planted), "{name}");
    }
}

/// A link that leads nowhere would be a file that SQLite makes where it leads to.
#[test]
fn a_database_is_not_made_through_a_link() {
    let place = tempfile::tempdir().unwrap();
    for name in ["host.db", "host.db-wal", "host.db-journal"] {
        let (planted, absent) = (place.path().join(name), place.path().join("absent"));
        symlink(&absent, &planted).unwrap();
        let made = HostFile::create(place.path().join("host.db"), "0", 0).err().unwrap();
        assert!(matches!(made, StoreError::LinkOrPipe(path) if path == planted), "{name}");
        assert!(!absent.exists(), "{name}");
        std::fs::remove_file(&planted).unwrap();
    }
}

#[test]
fn a_run_that_is_begun_again_replaces_a_link_of_its_new_name() {
    let (_place, folder, victim) = run();
    symlink(&victim, folder.join("run.collected")).unwrap();
    let again = RunFolder::again(&folder, |_| true).unwrap();
    again.finish(Ending::Complete, RunTime(1)).unwrap();
    assert!(is_untouched(&victim));
    assert!(RunFolder::read(&folder).is_ok() && !folder.join("run.db").is_symlink());
}

/// Whoever names a link to a folder means the folder, as in `throng report runs/latest`.
#[test]
fn a_folder_may_be_named_by_a_link() {
    let (place, folder, _victim) = run();
    let latest = place.path().join("latest");
    symlink(&folder, &latest).unwrap();
    assert!(RunFolder::read(&latest).is_ok());
    RunFolder::open(&latest).unwrap().put("summary.json", "mine").unwrap();
    assert!(folder.join("summary.json").is_file());
}
