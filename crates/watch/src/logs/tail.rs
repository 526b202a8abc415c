//! Reads the logs of a host during the run: one thread for each log.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, Unit};

use super::access::{AccessCounter, UriGroups};
use super::output::{OutputReader, ReadOutcome, read_within};
use super::source::{Journal, is_unit};
use super::{Chunk, FileTail, LineCounter, LogSource, Patterns, SourceError};
use crate::background::BackgroundThread;
use crate::reading::{Clock, Reading, ReadingWriter};

/// How often a file is polled, and how long to wait for an output.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// How often the counts are written.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Delay before `journalctl` is restarted after its end: initial and maximum.
const JOURNAL_RETRY_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The kind of a log.
#[derive(Clone, Debug)]
pub enum LogKind {
    /// A log whose lines are counted by pattern.
    Lines(Arc<Patterns>),
    /// An access log, whose requests and bytes are counted by URI group.
    Access(Arc<UriGroups>),
}

/// The readers of a host's logs; dropping it ends them.
#[derive(Debug, Default)]
pub struct Tail {
    stop: Arc<AtomicBool>,
    readers: Vec<(BackgroundThread, Next)>,
}

/// The patterns and groups that a reader applies from its next second on.
type Next = Arc<Mutex<Option<(Arc<Patterns>, Arc<UriGroups>)>>>;

impl Tail {
    /// No logs yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts reading another log. `log` names it in labels; `rows` is the reader's own writer.
    ///
    /// # Errors
    /// When a unit's name is invalid, or the system refuses a thread. A log that cannot be read is
    /// not an error: that is an event of the run, and the log is tried again.
    pub fn follow(
        &mut self,
        log: impl Into<String>,
        source: LogSource,
        reader: LogKind,
        rows: ReadingWriter,
        clock: Clock,
    ) -> Result<(), SourceError> {
        if let LogSource::Journal { unit, .. } = &source
            && !is_unit(unit)
        {
            return Err(SourceError::Unit(unit.clone()));
        }
        let log = log.into();
        let counter = match reader {
            LogKind::Lines(patterns) => {
                Counter::Lines(LineCounter::new(log.clone(), patterns, clock()))
            }
            LogKind::Access(groups) => {
                Counter::Access(AccessCounter::new(log.clone(), groups, clock()))
            }
        };
        let next = Next::default();
        let writer = Writer {
            log,
            counter,
            next: next.clone(),
            rows,
            clock,
            last: Instant::now(),
            skipped_bytes: 0,
            skipped_before: false,
        };
        // Lines written after this returns are counted.
        let stop = self.stop.clone();
        let work: Box<dyn FnOnce() + Send> = match source {
            LogSource::File(path) => {
                let mut file = FileTail::new(path);
                let mut writer = writer;
                writer.poll(&mut file);
                Box::new(move || follow_file(file, writer, &stop))
            }
            LogSource::Output(output) => {
                let output = OutputReader::new(output);
                Box::new(move || follow_output(output, writer, &stop))
            }
            LogSource::Journal { unit, program } => {
                Box::new(move || follow_journal(&program, &unit, writer, &stop))
            }
        };
        self.readers.push((BackgroundThread::spawn("watch-log", work)?, next));
        Ok(())
    }

    /// Replaces patterns and groups from the next second on, without losing a line.
    pub fn set_rules(&self, patterns: &Arc<Patterns>, groups: &Arc<UriGroups>) {
        for (_, next) in &self.readers {
            let both = (patterns.clone(), groups.clone());
            *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(both);
        }
    }

    /// Stops all readers after they have read and written what is already there. Dropping it does
    /// the same.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum Counter {
    Lines(LineCounter),
    Access(AccessCounter),
}

impl Counter {
    fn read(&mut self, bytes: &[u8]) {
        match self {
            Self::Lines(counter) => counter.read(bytes),
            Self::Access(counter) => counter.read(bytes),
        }
    }

    fn finish(&mut self) {
        match self {
            Self::Lines(counter) => counter.finish(),
            Self::Access(counter) => counter.finish(),
        }
    }

    fn tick(&mut self, now: throng_observation::RunTime) -> Vec<Reading> {
        match self {
            Self::Lines(counter) => counter.tick(now),
            Self::Access(counter) => counter.tick(now),
        }
    }
}

/// A counter and the writer of its rows.
struct Writer {
    log: String,
    counter: Counter,
    next: Next,
    rows: ReadingWriter,
    clock: Clock,
    last: Instant,
    skipped_bytes: u64,
    skipped_before: bool,
}

impl Writer {
    fn poll(&mut self, file: &mut FileTail) {
        let counter = &mut self.counter;
        let progress = file.read(|piece| match piece {
            Chunk::Bytes(bytes) => counter.read(bytes),
            // An unfinished line is a line of its own, not the beginning of what follows.
            Chunk::Gap => counter.finish(),
        });
        self.skipped_bytes += progress.skipped_bytes;
        if let Some(trouble) = progress.trouble {
            self.event(HostEventKind::Unreadable, format!("the log {}: {trouble}", self.log));
        }
        if progress.recovered {
            self.event(HostEventKind::Watcher, format!("the log {} can be read again", self.log));
        }
    }

    fn event(&mut self, kind: HostEventKind, detail: String) {
        let now = (self.clock)();
        self.rows.write(now, [Reading::Event(kind, detail)]);
    }

    fn write_when_due(&mut self) {
        if self.last.elapsed() < WRITE_EVERY {
            return;
        }
        self.write();
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((patterns, groups)) = next {
            match &mut self.counter {
                Counter::Lines(counter) => counter.set_patterns(patterns),
                Counter::Access(counter) => counter.set_groups(groups),
            }
        }
    }

    fn write(&mut self) {
        let seconds = self.last.elapsed().as_secs_f64().max(1e-3);
        self.last = Instant::now();
        let now = (self.clock)();
        let mut readings = self.counter.tick(now);
        if self.skipped_bytes > 0 || self.skipped_before {
            let rate = self.skipped_bytes as f64 / seconds;
            let labels = [("log", self.log.as_str())];
            readings.push(Reading::value("log.bytes_skipped", Unit::BytesPerSecond, &labels, rate));
            (self.skipped_before, self.skipped_bytes) = (true, 0);
        }
        self.rows.write(now, readings);
    }

    /// Writes what is left and ends the series.
    fn end(mut self) {
        self.counter.finish();
        self.write();
        let now = (self.clock)();
        self.rows.end(now);
    }
}

fn follow_file(mut file: FileTail, mut writer: Writer, stop: &AtomicBool) {
    let _cost = writer.rows.charge();
    loop {
        // Checked before reading, so that everything written before the stop is read.
        let last = stop.load(Ordering::Relaxed);
        writer.poll(&mut file);
        if last {
            break;
        }
        writer.write_when_due();
        std::thread::park_timeout(POLL_EVERY);
    }
    writer.end();
}

fn follow_output(mut output: OutputReader, mut writer: Writer, stop: &AtomicBool) {
    let _cost = writer.rows.charge();
    let mut buffer = vec![0; 64 * 1024];
    let mut stopped_at: Option<Instant> = None;
    loop {
        let last = stop.load(Ordering::Relaxed);
        if last {
            stopped_at.get_or_insert_with(Instant::now);
        }
        let (waited, skipped) =
            output.read_within(&mut buffer, if last { Duration::ZERO } else { POLL_EVERY });
        if skipped > 0 {
            writer.counter.finish();
            writer.skipped_bytes += skipped;
        }
        match waited {
            ReadOutcome::Read(count) => {
                writer.counter.read(buffer.get(..count).unwrap_or_default());
            }
            ReadOutcome::TimedOut if last => break,
            ReadOutcome::TimedOut => {}
            ReadOutcome::Ended => break,
        }
        writer.write_when_due();
        // A writer that never pauses must not delay the reader's end.
        if stopped_at.is_some_and(|at| at.elapsed() >= POLL_EVERY) {
            break;
        }
    }
    // Complete the last second: a rate over an instant is meaningless.
    writer.counter.finish();
    while writer.last.elapsed() < WRITE_EVERY && !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(POLL_EVERY);
    }
    writer.end();
}

fn follow_journal(program: &PathBuf, unit: &str, mut writer: Writer, stop: &AtomicBool) {
    let _cost = writer.rows.charge();
    let mut buffer = vec![0; 64 * 1024];
    let mut retry_after = JOURNAL_RETRY_AFTER.0;
    let mut said = String::new();
    while !stop.load(Ordering::Relaxed) {
        let reason = match Journal::start(program, unit) {
            Ok(mut journal) => {
                while !stop.load(Ordering::Relaxed) {
                    match read_within(&mut journal.lines, &mut buffer, POLL_EVERY) {
                        ReadOutcome::Read(count) => {
                            retry_after = JOURNAL_RETRY_AFTER.0;
                            writer.counter.read(buffer.get(..count).unwrap_or_default());
                        }
                        ReadOutcome::TimedOut => {}
                        ReadOutcome::Ended => break,
                    }
                    writer.write_when_due();
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                format!("the journal of {unit}: journalctl ended: {}", journal.end())
            }
            Err(reason) => reason,
        };
        if reason != said {
            writer.event(HostEventKind::Unreadable, reason.clone());
            said = reason;
        }
        let waits_until = Instant::now() + retry_after;
        while Instant::now() < waits_until && !stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(POLL_EVERY);
            writer.write_when_due();
        }
        retry_after = (retry_after * 2).min(JOURNAL_RETRY_AFTER.1);
    }
    writer.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::clock_from;
    use std::io::Write;
    use throng_observation::host::{HostId, HostRow};
    use throng_observation::pack::LogPattern;

    /// The patterns found in a log that contains `before` and then undergoes `change`, polled in
    /// between.
    fn found(before: &str, change: impl Fn(&std::path::Path)) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "").unwrap();
        let pattern = |id: &str, text: &str| LogPattern {
            id: id.into(),
            pattern: text.into(),
            ..LogPattern::default()
        };
        let patterns =
            Patterns::new([&pattern("half", "^half a$"), &pattern("new", "^new line$")]).unwrap();
        let (rows, receiver) = crate::rows(100);
        let clock = clock_from(Instant::now());
        let counter = LineCounter::new("log", Arc::new(patterns), clock());
        let mut writer = Writer {
            log: "log".into(),
            counter: Counter::Lines(counter),
            next: Next::default(),
            rows: ReadingWriter::new(HostId(0), rows),
            clock,
            last: Instant::now(),
            skipped_bytes: 0,
            skipped_before: false,
        };
        let mut file = FileTail::new(&path);
        writer.poll(&mut file);
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(before.as_bytes())
            .unwrap();
        writer.poll(&mut file);
        change(&path);
        writer.poll(&mut file);
        std::thread::sleep(Duration::from_millis(2));
        writer.write();
        drop(writer);
        let labels = receiver.try_iter().filter_map(|row| match row {
            HostRow::Series(series) => Some(series.labels.get("pattern")?.clone()),
            _ => None,
        });
        labels.collect()
    }

    #[test]
    fn half_a_line_before_a_rotation_is_no_part_of_the_first_line_after_it() {
        let renamed = |path: &std::path::Path| {
            std::fs::rename(path, path.with_extension("1")).unwrap();
            std::fs::write(path, "new line\n").unwrap();
        };
        let cut = |path: &std::path::Path| std::fs::write(path, "new line\n").unwrap();
        let changes: [&dyn Fn(&std::path::Path); 2] = [&renamed, &cut];
        for change in changes {
            let found = found("a first line\nhalf a", change);
            for wanted in ["half", "new"] {
                assert!(found.iter().any(|pattern| pattern == wanted), "{wanted} in {found:?}");
            }
        }
    }
}
