//! The output of a program that throng started: drained continuously, so that the program never
//! blocks, and buffered for pattern counters and for the message at the program's end.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::redact::redacted;
use crate::background::BackgroundThread;

/// Size of the buffer, bytes. A reader that falls further behind skips.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// How often to check for the end of reading.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// Readers that attach this soon after the start get the output from its beginning: a program is
/// started shortly before its packs are known. Readers that attach later get only new output.
const EARLY: Duration = Duration::from_secs(10);
/// How far from the end the last lines are searched, bytes.
const LAST_BYTES: usize = 4 * 1024;

/// A program's standard output or error.
#[derive(Clone, Debug)]
pub struct Output(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: String,
    started_at: Instant,
    buffered: Mutex<Buffered>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Buffered {
    kept: VecDeque<u8>,
    /// Number of bytes before those that are buffered.
    dropped: u64,
    is_over: bool,
}

impl Output {
    fn new(name: String) -> Self {
        let (started_at, buffered, more) = (Instant::now(), Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { name, started_at, buffered, more }))
    }

    /// Its name in labels.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether all writers have closed it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.buffered().is_over
    }

    /// Its last lines, at most `lines_max`, shortened and redacted for display.
    #[must_use]
    pub fn last_lines(&self, lines_max: usize) -> Vec<String> {
        let buffered = self.buffered();
        let skipped = buffered.kept.len().saturating_sub(LAST_BYTES);
        let last: Vec<u8> = buffered.kept.iter().skip(skipped).copied().collect();
        drop(buffered);
        let lines = last.split(|byte| matches!(byte, b'\n' | b'\r')).map(redacted);
        let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        lines.split_off(lines.len().saturating_sub(lines_max))
    }

    fn buffered(&self) -> MutexGuard<'_, Buffered> {
        self.0.buffered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, bytes: &[u8]) {
        let mut buffered = self.buffered();
        let over = (buffered.kept.len() + bytes.len()).saturating_sub(KEPT_BYTES_MAX);
        let over = over.min(buffered.kept.len());
        buffered.kept.drain(..over);
        buffered.dropped += over as u64;
        buffered.kept.extend(bytes);
        drop(buffered);
        self.0.more.notify_all();
    }

    fn end(&self) {
        self.buffered().is_over = true;
        self.0.more.notify_all();
    }
}

/// The result of waiting for bytes.
pub(super) enum ReadOutcome {
    /// Bytes were read.
    Read(usize),
    /// None arrived in time.
    TimedOut,
    /// The stream has ended.
    Ended,
}

/// Waits up to `timeout` for bytes and reads at most the buffer's size.
pub(super) fn read_within(
    from: &mut (impl AsFd + Read),
    buffer: &mut [u8],
    timeout: Duration,
) -> ReadOutcome {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let ready = {
        let mut fds = [PollFd::new(from, PollFlags::IN)];
        poll(&mut fds, Some(&timeout))
    };
    match ready {
        Ok(0) => ReadOutcome::TimedOut,
        Ok(_) => match from.read(buffer) {
            Ok(0) => ReadOutcome::Ended,
            Ok(count) => ReadOutcome::Read(count),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock
                ) =>
            {
                ReadOutcome::TimedOut
            }
            Err(_) => ReadOutcome::Ended,
        },
        Err(rustix::io::Errno::INTR) => ReadOutcome::TimedOut,
        Err(_) => ReadOutcome::Ended,
    }
}

/// Drains an output until it ends, or until this is dropped.
#[derive(Debug)]
pub struct Drain {
    output: Output,
    stop: Arc<AtomicBool>,
    _thread: BackgroundThread,
}

impl Drain {
    /// Starts draining a pipe. `name` is the output's name in labels.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(name: impl Into<String>, pipe: OwnedFd) -> io::Result<Self> {
        let output = Output::new(name.into());
        let stop = Arc::new(AtomicBool::new(false));
        let (its_output, its_stop) = (output.clone(), stop.clone());
        let thread = BackgroundThread::spawn("watch-output", move || {
            drain(File::from(pipe), &its_output, &its_stop);
            its_output.end();
        })?;
        Ok(Self { output, stop, _thread: thread })
    }

    /// The buffered output.
    #[must_use]
    pub fn output(&self) -> &Output {
        &self.output
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

fn drain(mut pipe: File, output: &Output, stop: &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    let mut stopped_at: Option<Instant> = None;
    loop {
        // What was written before the stop is still read, but a writer that never pauses must not
        // delay the end.
        if stopped_at.is_some_and(|at| at.elapsed() > POLL_EVERY) {
            return;
        }
        if stop.load(Relaxed) {
            stopped_at.get_or_insert_with(Instant::now);
        }
        let timeout = if stopped_at.is_some() { Duration::ZERO } else { POLL_EVERY };
        match read_within(&mut pipe, &mut buffer, timeout) {
            ReadOutcome::Read(count) => output.add(buffer.get(..count).unwrap_or_default()),
            ReadOutcome::TimedOut if stopped_at.is_some() => return,
            ReadOutcome::TimedOut => {}
            ReadOutcome::Ended => return,
        }
    }
}

/// One reader's position in an output.
#[derive(Debug)]
pub(super) struct OutputReader {
    output: Output,
    at: u64,
}

impl OutputReader {
    /// Starts at the beginning of an output younger than [`EARLY`], else at its end.
    pub(super) fn new(output: Output) -> Self {
        let buffered = output.buffered();
        let is_early = output.0.started_at.elapsed() < EARLY;
        let at = if is_early { 0 } else { buffered.dropped + buffered.kept.len() as u64 };
        drop(buffered);
        Self { output, at }
    }

    /// Waits up to `timeout` for bytes and reads at most the buffer's size. Also returns how many
    /// bytes had to be skipped before them.
    pub(super) fn read_within(
        &mut self,
        buffer: &mut [u8],
        timeout: Duration,
    ) -> (ReadOutcome, u64) {
        let buffered = self.output.buffered();
        let is_idle = |buffered: &mut Buffered| {
            !buffered.is_over && buffered.dropped + buffered.kept.len() as u64 <= self.at
        };
        let waited = self.output.0.more.wait_timeout_while(buffered, timeout, is_idle);
        let (buffered, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let skipped = buffered.dropped.saturating_sub(self.at);
        self.at += skipped;
        let from = usize::try_from(self.at - buffered.dropped)
            .unwrap_or(usize::MAX)
            .min(buffered.kept.len());
        let count = buffer.len().min(buffered.kept.len() - from);
        for (to, byte) in buffer.iter_mut().zip(buffered.kept.range(from..)) {
            *to = *byte;
        }
        self.at += count as u64;
        let waited = match count {
            0 if buffered.is_over => ReadOutcome::Ended,
            0 => ReadOutcome::TimedOut,
            _ => ReadOutcome::Read(count),
        };
        (waited, skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: &mut OutputReader) -> (Option<String>, u64) {
        let mut buffer = vec![0; 2 * KEPT_BYTES_MAX];
        match reader.read_within(&mut buffer, Duration::ZERO) {
            (ReadOutcome::Read(count), skipped) => {
                (Some(String::from_utf8(buffer[..count].to_vec()).unwrap()), skipped)
            }
            (ReadOutcome::TimedOut, skipped) => (Some(String::new()), skipped),
            (ReadOutcome::Ended, skipped) => (None, skipped),
        }
    }

    #[test]
    fn what_was_written_before_the_first_reader_came_is_read_and_each_reader_has_its_own_place() {
        let output = Output::new("x".into());
        output.add(b"one\n");
        let mut first = OutputReader::new(output.clone());
        assert_eq!(read(&mut first), (Some("one\n".into()), 0));
        output.add(b"two\n");
        let mut second = OutputReader::new(output.clone());
        assert_eq!(read(&mut first), (Some("two\n".into()), 0));
        assert_eq!(read(&mut second), (Some("one\ntwo\n".into()), 0));
        assert_eq!(read(&mut second), (Some(String::new()), 0));
        output.end();
        assert_eq!(read(&mut second), (None, 0));
    }

    #[test]
    fn an_output_uses_bounded_memory_and_reports_skipped_bytes() {
        let output = Output::new("x".into());
        let mut reader = OutputReader::new(output.clone());
        let block = vec![b'x'; 64 * 1024];
        let blocks = 5 * KEPT_BYTES_MAX / block.len();
        (0..blocks).for_each(|_| output.add(&block));
        assert!(output.buffered().kept.capacity() <= 2 * KEPT_BYTES_MAX);
        let (text, skipped) = read(&mut reader);
        assert_eq!((text.unwrap().len(), skipped), (KEPT_BYTES_MAX, 4 * KEPT_BYTES_MAX as u64));
    }

    #[test]
    fn the_last_lines_are_as_they_may_be_shown() {
        let output = Output::new("x".into());
        assert!(output.last_lines(2).is_empty());
        output.add("many words\n".repeat(1_000).as_bytes());
        output.add(b"frame=1\rbind: address in use\n\ntoken=hunter2 is wrong\n");
        assert_eq!(output.last_lines(2), ["bind: address in use", "token=… is wrong"]);
    }

    #[test]
    fn a_writer_that_never_pauses_does_not_keep_the_end_away() {
        let (reader, mut writer) = io::pipe().unwrap();
        let drain = Drain::start("x", reader.into()).unwrap();
        let flood = std::thread::spawn(move || {
            use std::io::Write;
            // Until the reading end is closed.
            while writer.write_all(&[b'x'; 4096]).is_ok() {}
        });
        let output = drain.output().clone();
        drop(drain);
        flood.join().unwrap();
        assert!(output.is_over());
    }
}
