//! The watcher's report of its own cost.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, HostId};
use throng_watch::logs::{LogKind, LogSource, Patterns, Tail};
use throng_watch::{ReadingWriter, WatchConfig, clock_from};

use crate::recorded::{RecordedRows, watch_as};

const SOON: Duration = Duration::from_secs(60);

/// CPU time of this process's threads of that name.
fn cpu_of_threads(name: &str) -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = threads.filter(|thread| {
        std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    });
    let on_cpu_ns = named.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(on_cpu_ns.sum())
}

#[test]
fn a_busy_log_is_part_of_what_watching_cost() {
    let (watched, rows) = watch_as(WatchConfig::default());
    let mut log = tempfile::NamedTempFile::new().unwrap();
    let patterns = Patterns::new([]).unwrap();
    let (source, reader) =
        (LogSource::File(log.path().to_owned()), LogKind::Lines(Arc::new(patterns)));
    let mut tail = Tail::new();
    let (writer, clock) = (ReadingWriter::new(HostId(0), rows), clock_from(watched.zero));
    tail.follow("busy", source, reader, writer, clock).unwrap();
    let lines = "a log line that no pattern matches\n".repeat(20_000);
    let until = Instant::now() + SOON;
    while cpu_of_threads("watch-log") < Duration::from_millis(400) {
        assert!(Instant::now() < until, "the log is not read");
        log.write_all(lines.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let truth = cpu_of_threads("watch-log");
    tail.stop();
    let seen = watched.end(RecordedRows::default());
    let reported = Duration::from_micros(seen.info.unwrap().watcher_cpu_us);
    assert!(reported >= truth, "{reported:?} were reported, {truth:?} went into the log alone");
}

#[test]
fn a_process_that_only_watches_counts_as_a_whole_and_keeps_to_its_budget() {
    let (watched, _rows) = watch_as(WatchConfig { is_exclusive: true, ..WatchConfig::default() });
    let mut seen = RecordedRows::default();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        while stopped
            .recv_timeout(Duration::from_millis(2))
            .is_err_and(|e| e.to_string().contains("timed out"))
        {
            std::hint::black_box((0..200_000_u64).fold(0, |a, b| a ^ b.rotate_left(3)));
        }
    });
    let is_lowered =
        |seen: &RecordedRows| seen.said(HostEventKind::RateLowered, "a full pass each");
    watched.until(&mut seen, SOON, "a lower rate", is_lowered);
    drop(stop);
    other.join().unwrap();
    watched.end(seen);
}
