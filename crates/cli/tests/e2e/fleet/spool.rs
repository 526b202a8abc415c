//! Rows that the bus has not taken survive the worker's process, on a disk that may be full.

use super::*;

/// The files of a folder of spools.
fn spools(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "spool"))
        .collect()
}

/// Half a minute: workers wait 8 s for their coordinator, and a collector 6 s for missing rows.
#[test]
fn rows_of_a_worker_that_ended_without_its_bus_arrive_once_when_it_is_started_again() {
    if !Nats::is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool").display().to_string();
    let kept = ["--once", "--spool", &path];
    let mut fixture = Fixture::of(&[&["--once"], &kept]);
    let bus = fixture.nats.url();
    let mut running = fixture.run("4", "60s", &[]);
    running.when_playing(4);
    // The coordinator goes, then the bus; the worker is interrupted while there is none.
    running.signal("KILL");
    let ran = running.wait();
    fixture.nats.kill();
    std::thread::sleep(Duration::from_secs(2));
    fixture.workers[1].signal("INT");
    fixture.workers[1].ended_within(Duration::from_secs(20));
    let said = fixture.workers[1].said();
    assert!(said.contains("batches of rows were not delivered; they are kept in"), "{said}");
    assert_eq!(spools(std::path::Path::new(&path)).len(), 1, "{said}");

    // The bus comes back with what it had; the other worker brings its rows by itself.
    fixture.nats.start_again().unwrap();
    fixture.workers[0].ended_within(Duration::from_secs(40));
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
    assert_eq!(fixture.nats.streams(), 0);
}

/// 20 s: a fleet starts, and its run takes 14 s, in 3 s of which the bus is away.
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
    let mut fixture = Fixture::of(&[&[], &["--spool", &path]]);
    let mut running = fixture.run("4", "14s", &[]);
    running.when_playing(4);
    fixture.nats.kill();
    std::thread::sleep(Duration::from_secs(3));
    fixture.nats.start_again().unwrap();
    let ran = running.wait();
    let said = fixture.workers[1].said();
    assert!(
        said.contains("No space left on device") && said.contains("rows wait in memory only"),
        "{said}"
    );
    let run = rows(&ran);
    all_are_there(&run, 4);
    assert!(
        run.participants.iter().all(|row| row.outcome.is_some() && row.failure().is_none()),
        "{ran}"
    );
    if ran.spoiled_by().is_none() {
        assert_eq!(ran.code, Some(0), "{ran}");
    }
    drop(fixture);
    drop(disk);
}

/// 35 s: a run of 28 s, in which the disk fills, the bus is away, and the disk has room again.
#[test]
fn a_disk_that_fills_during_a_run_is_named_until_it_has_room_again_and_costs_the_run_nothing() {
    if !Nats::is_installed() || !requires_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else { return };
    let path = folder.path().display().to_string();
    // Nearly all of the crowd joins at the worker with the disk, so that each second has more rows
    // than a page of it holds.
    let mut fixture = Fixture::of(&[&["--weight", "1"], &["--weight", "7", "--spool", &path]]);
    let (target, bus) = (fixture.stage.target(), fixture.nats.url());
    let view = ["view", &target, "-n", "40", "--every", "200ms", "--for", "28s", "--plain"];
    let fleet = ["--fleet", &bus, "--workers", "2"];
    let mut running = Running::start(None, &[&view[..], &fleet].concat());
    running.when_playing(4);
    assert_eq!(spools(folder.path()).len(), 1, "{}", fixture.workers[1].said());
    let said = fixture.workers[1].said();
    assert!(!said.contains("rows wait in memory only"), "there was room at the start: {said}");

    // The disk fills, and then rows have to wait: the bus is away, though for less than workers go
    // on without it.
    let ballast = folder.path().join("ballast");
    let _ = std::fs::write(&ballast, vec![0; 64 << 10]);
    assert!(std::fs::write(folder.path().join("more"), "more").is_err(), "the disk is not full");
    fixture.nats.kill();
    let away_since = Instant::now();
    fixture.workers[1].waits_until_it_says("No space left on device", Duration::from_secs(4));
    std::thread::sleep(Duration::from_secs(3).saturating_sub(away_since.elapsed()));
    fixture.nats.start_again().unwrap();
    let said = fixture.workers[1].said();
    let line = said.lines().find(|line| line.contains("No space left on device")).unwrap();
    assert!(line.contains(&path) && line.contains("rows wait in memory only"), "{said}");

    // The bus takes all that waits, and the disk is as full as before.
    std::thread::sleep(Duration::from_secs(4));
    let said = fixture.workers[1].said();
    assert!(!said.contains("is written again"), "{said}");
    assert_eq!(said.matches("rows wait in memory only").count(), 1, "{said}");
    std::fs::remove_file(&ballast).unwrap();
    fixture.workers[1].waits_until_it_says("is written again", Duration::from_secs(5));

    let ran = running.wait();
    let run = rows(&ran);
    all_are_there(&run, 40);
    assert!(
        run.participants.iter().all(|row| row.outcome.is_some() && row.failure().is_none()),
        "{ran}"
    );
    let seconds: Vec<i64> = run.crowd.iter().map(|row| row.second).collect();
    assert_eq!(seconds, (0..seconds.len() as i64).collect::<Vec<_>>(), "each second once\n{ran}");
    assert_eq!(run.crowd.iter().map(|row| row.intended).max(), Some(40), "{ran}");
    assert_eq!(
        run.events.iter().filter(|event| event.kind.starts_with("worker_")).count(),
        0,
        "{ran}"
    );
    if ran.spoiled_by().is_none() {
        assert_eq!(ran.code, Some(0), "{ran}");
    }
    // Nothing is left to be handed in a second time.
    let until = Instant::now() + Duration::from_secs(5);
    while !spools(folder.path()).is_empty() {
        assert!(Instant::now() < until, "{}", fixture.workers[1].said());
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(fixture);
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
