//! Output of started programs: drained, counted, and its last lines reported.

use std::time::Duration;

use throng_observation::host::HostEventKind::{LogLine, ProcessEnded};
use throng_observation::host::HostId;
use throng_watch::{SourceConfig, Target, WatchConfig};

use crate::recorded::{RecordedRows, watch, watch_as};

const SOON: Duration = Duration::from_secs(20);

pub(crate) fn shell(script: &str) -> Target {
    Target::Command(["sh", "-c", script].map(String::from).to_vec())
}

#[test]
fn lines_of_a_command_are_counted_from_the_first_and_the_last_are_reported() {
    let script = "echo 'Too many open files' >&2; echo ready; echo listening; sleep 2; \
                  echo 'token=hunter2 is refused' >&2; echo 'bind: address in use' >&2; exit 3";
    let targets = vec![shell(script)];
    let (watched, rows) =
        watch_as(WatchConfig { targets: targets.clone(), ..WatchConfig::default() });
    let processes = watched.watching.watched_processes();
    let listened =
        SourceConfig::default().begin(&targets, &processes, HostId(0), watched.zero, &rows);
    assert!(listened.problems.is_empty(), "{:?}", listened.problems);
    let mut seen = RecordedRows::default();
    watched.until(&mut seen, SOON, "its first line", |seen| {
        let labels = [("log", "sh stderr"), ("pattern", "too_many_open_files")];
        seen.max("log.lines", &labels).is_some_and(|rate| rate > 0.0)
    });
    watched.until(&mut seen, SOON, "its output", |seen| {
        seen.max("log.lines", &[("log", "sh stdout"), ("pattern", "any")])
            .is_some_and(|rate| rate > 0.0)
    });
    watched.until(&mut seen, SOON, "its end", |seen| {
        seen.said(ProcessEnded, "exit code 3; last lines on")
    });
    assert!(seen.said(ProcessEnded, "on stderr: "), "{:?}", seen.events);
    assert!(seen.said(ProcessEnded, "is refused / bind: address in use"), "{:?}", seen.events);
    assert!(!seen.said(ProcessEnded, "hunter2"), "{:?}", seen.events);
    listened.stop();
    let seen = watched.end(seen);
    // Rates of whole seconds, though the command may write all it has in an instant.
    assert!(seen.max("log.lines", &[]).unwrap() < 20.0);
    assert!(seen.said(LogLine, "Too many open files"), "{:?}", seen.events);
}

#[test]
fn a_command_that_floods_ends_though_its_output_is_not_read() {
    // Some 50 MB on both streams, and neither has a reader but the watcher.
    let script = "head -c 25000000 /dev/zero; head -c 25000000 /dev/zero >&2; echo >&2; echo is over >&2; exit 4";
    let watched = watch(vec![shell(script)]);
    let mut seen = RecordedRows::default();
    watched.until(&mut seen, SOON, "its end", |seen| seen.said(ProcessEnded, "is over"));
    watched.end(seen);
}

#[test]
fn packs_of_a_later_process_apply_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let janus = folder.path().join("janus");
    std::fs::copy("/bin/sleep", &janus).unwrap();
    let script = format!(
        "sleep 2; {} 60 & while sleep 0.2; do echo 'Discarding too old outgoing packet (age=1us)'; done",
        janus.display()
    );
    let targets = vec![shell(&script)];
    let (watched, rows) =
        watch_as(WatchConfig { targets: targets.clone(), ..WatchConfig::default() });
    let processes = watched.watching.watched_processes();
    let listened =
        SourceConfig::default().begin(&targets, &processes, HostId(0), watched.zero, &rows);
    let names = |packs: &[throng_observation::pack::Pack]| {
        packs.iter().map(|pack| pack.pack.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&listened.packs), ["generic"]);
    let mut seen = RecordedRows::default();
    watched.until(&mut seen, SOON, "its lines", |seen| {
        let labels = [("log", "sh stdout"), ("pattern", "old_packet_discarded")];
        seen.max("log.lines", &labels).is_some_and(|rate| rate > 0.0)
    });
    assert_eq!(names(&listened.changed_packs().unwrap()), ["janus", "generic"]);
    assert!(listened.changed_packs().is_none(), "unchanged packs are not reported");
    listened.stop();
    watched.end(seen);
}
