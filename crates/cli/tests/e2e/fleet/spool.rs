//! Rows that the bus has not taken survive the worker's process, on a disk that may be full.

use super::*;

/// The files of a folder of spools.
fn spools(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "spool")).collect()
}

#[test]
fn rows_of_a_worker_that_ended_without_its_bus_arrive_once_when_it_is_started_again() {
    if !Nats::is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool").display().to_string();
    let kept = ["--once", "--spool", &path];
    let mut stand = Stand::of(&[&["--once"], &kept]);
    let bus = stand.nats.url();
    let mut running = stand.run("4", "60s", &[]);
    running.when_playing(4);
    // The coordinator goes, then the bus; the worker is interrupted while there is none.
    running.signal("KILL");
    let ran = running.wait();
    stand.nats.kill();
    std::thread::sleep(Duration::from_secs(2));
    stand.workers[1].signal("INT");
    stand.workers[1].ended_within(Duration::from_secs(20));
    let said = stand.workers[1].said();
    assert!(said.contains("batches of rows were not delivered; they are in"), "{said}");
    assert_eq!(spools(std::path::Path::new(&path)).len(), 1, "{said}");

    // The bus comes back with what it had; the other worker brings its rows by itself.
    stand.nats.start_again().unwrap();
    stand.workers[0].ended_within(Duration::from_secs(40));
    let shown = ran.folder().display().to_string();
    let collect = || {
        let output = plain(&["run", "--resume", &shown, "--fleet", &bus, "--fleet-wait", "6s"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = collect();
    assert!(code != Some(0) && said.contains("rows of b are missing"), "{code:?} {said}");
    let lost = |run: &RunData| run.participants.iter().filter(|row| row.was_censored()).count();
    let without = rows(&ran);
    assert_eq!(lost(&without), 2, "{said}");

    let again = Worker::start(&bus, "b", &kept);
    again.waits_until_it_says("were handed in late", Duration::from_secs(15));
    assert!(spools(std::path::Path::new(&path)).is_empty(), "{}", again.said());
    let (code, said) = collect();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("worker b ended early: the worker was interrupted"), "{said}");
    let run = rows(&ran);
    all_are_there(&run, 4);
    assert_eq!(lost(&run), 0, "{said}");
    let seconds: Vec<i64> = run.crowd.iter().map(|row| row.second).collect();
    assert_eq!(seconds, (0..seconds.len() as i64).collect::<Vec<_>>());
    assert_eq!(stand.nats.streams(), 0);
}

#[test]
fn a_full_disk_on_a_worker_is_named_and_costs_the_run_nothing() {
    if !Nats::is_installed() || !requires_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else { return };
    std::fs::write(folder.path().join("ballast"), vec![0; 64 << 10]).unwrap();
    assert!(std::fs::write(folder.path().join("more"), "more").is_err(), "the disk is not full");
    let path = folder.path().display().to_string();
    let mut stand = Stand::of(&[&[], &["--spool", &path]]);
    let mut running = stand.run("4", "14s", &[]);
    running.when_playing(4);
    stand.nats.kill();
    std::thread::sleep(Duration::from_secs(3));
    stand.nats.start_again().unwrap();
    let ran = running.wait();
    let said = stand.workers[1].said();
    assert!(said.contains("No space left on device") && said.contains("rows wait in memory only"), "{said}");
    let run = rows(&ran);
    all_are_there(&run, 4);
    assert!(run.participants.iter().all(|row| row.outcome.is_some() && row.failure().is_none()), "{ran}");
    if ran.spoiled_by().is_none() {
        assert_eq!(ran.code, Some(0), "{ran}");
    }
    drop(stand);
    drop(disk);
}

/// A file system in memory of 64 kB; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &std::path::Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"]).arg(at);
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        if !is_mounted {
            throng_sim::skipped("no file system can be mounted here");
        }
        is_mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
