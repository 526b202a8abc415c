//! Program output: ffmpeg through a pipe, and a missing journal.

use std::io::{PipeReader, pipe};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throng_watch::logs::{Drain, LogKind, LogSource, Patterns, Tail};

use super::harness::{Watched, installed};

/// ffmpeg encoding for some seconds; its messages come through a pipe.
fn ffmpeg(arguments: &[&str]) -> (Child, PipeReader) {
    let (reader, writer) = pipe().unwrap();
    let child = Command::new("ffmpeg")
        .args(["-hide_banner", "-nostdin"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(writer)
        .spawn()
        .unwrap();
    (child, reader)
}

#[test]
fn the_speed_of_an_ffmpeg_is_a_series() {
    if installed("ffmpeg").is_none() {
        return;
    }
    let source = "testsrc2=s=320x240:r=25";
    let live =
        ["-re", "-f", "lavfi", "-i", source, "-t", "4", "-c:v", "mpeg2video", "-f", "null", "-"];
    let (mut child, said) = ffmpeg(&live);
    let mut watched = Watched::new();
    let mut tail = Tail::new();
    let drain = Drain::start("ffmpeg", said.into()).unwrap();
    let source = LogSource::Output(drain.output().clone());
    watched.lines(&mut tail, "ffmpeg", source, &["ffmpeg", "generic"]);
    child.wait().unwrap();
    tail.stop();
    let speeds = watched.values(&["ffmpeg.speed"]);
    let last = *speeds.last().unwrap();
    assert!((0.8..=1.2).contains(&last), "a live that keeps up has speed 1: {speeds:?}");
    let fps = *watched.values(&["ffmpeg.fps"]).last().unwrap();
    assert!((20.0..=30.0).contains(&fps), "{fps}");
    assert!(watched.events.iter().any(|event| event.starts_with("progress")));
}

#[test]
fn a_program_that_floods_its_pipe_is_not_held_up() {
    // 200,000 lines, 20 times the pipe's capacity: the program ends only if the pipe is drained.
    let (reader, writer) = pipe().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "yes 'Too many open files, and more words to fill the line' | head -n 200000"])
        .stdin(Stdio::null())
        .stdout(writer)
        .spawn()
        .unwrap();
    let mut watched = Watched::new();
    let mut tail = Tail::new();
    let drain = Drain::start("flood", reader.into()).unwrap();
    watched.lines(&mut tail, "flood", LogSource::Output(drain.output().clone()), &["generic"]);
    assert!(child.wait().unwrap().success());
    tail.stop();
    let of = |watched: &mut Watched, word: &str| watched.values(&[word]).iter().sum::<f64>();
    let (all, unsearched) = (of(&mut watched, "pattern=any"), of(&mut watched, "lines_unsearched"));
    let found = of(&mut watched, "pattern=too_many_open_files");
    assert!(found > 0.0 && all > 0.0);
    assert!(
        (all - unsearched - found).abs() <= 0.001 * all,
        "{all} lines, {unsearched} unsearched, {found} found"
    );
}

#[test]
fn a_journal_is_read_through_journalctl_and_its_end_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("journalctl");
    // Prints one line, checks its arguments, and exits.
    let script = "#!/bin/sh\ncase \"$*\" in *--follow*--unit=janus.service) echo 'Too many open files';; esac\n\
                  echo 'no permission' >&2\nexit 1\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut watched = Watched::new();
    let mut tail = Tail::new();
    let source = LogSource::Journal { unit: "janus.service".into(), program };
    watched.lines(&mut tail, "journal", source, &["generic"]);
    watched.wait(&["pattern=too_many_open_files"], |rate| rate > 0.0);
    tail.stop();
    watched.take();
    assert!(watched.events.iter().any(|event| event.contains("journalctl ended: no permission")));
}

#[test]
fn a_unit_name_like_an_option_is_refused_and_a_missing_journal_is_reported() {
    let watched = Watched::new();
    let reader = || LogKind::Lines(std::sync::Arc::new(Patterns::new([]).unwrap()));
    let mut tail = Tail::new();
    for unit in ["", "--file=/etc/shadow", "a b", "../x"] {
        let source = LogSource::journal(unit);
        assert!(
            tail.follow("j", source, reader(), watched.writer(), watched.clock.clone()).is_err(),
            "{unit}"
        );
    }
    let mut watched = watched;
    let program = "/nowhere/journalctl".into();
    let source = LogSource::Journal { unit: "x.service".into(), program };
    tail.follow("j", source, reader(), watched.writer(), watched.clock.clone()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    tail.stop();
    watched.take();
    assert!(watched.events[0].contains("name the server's log file"), "{:?}", watched.events);
}
