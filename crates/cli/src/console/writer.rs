//! The terminal, written by a thread of its own: one that takes no output (Ctrl-S, a window that
//! hangs) holds nobody who was asked to end.
//!
//! Who writes a result waits until the terminal has taken it. Once the end was asked, by a signal
//! or a key, it waits only while the terminal still takes something. For what shows a run in
//! progress ([`Frames`]) and for what is said ([`tell`], [`log`]) nobody waits: the run goes on.
//! Files and pipes are written directly: whoever reads them gets all of it.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// How long a terminal may take nothing before who was asked to end no longer waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of one write, which a serial line of 9,600 Bd takes within [`PATIENCE`].
const PIECE_BYTES: usize = 512;

/// How much waits for the terminal before more of what passes is left out: blocks of an hour.
const PASSING_BYTES_MAX: usize = 1 << 20;

/// The same for what is said, so that it has room when the log or blocks have filled theirs.
const SAID_BYTES_MAX: usize = 2 * PASSING_BYTES_MAX;

/// When a terminal is tried again that somebody set to block nobody, and that is full.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(10);

static CONSOLE: Console = Console::new(PATIENCE);

/// One of the two standard streams that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What a text is: whether it is left out where much waits for the terminal already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What shows a run in progress, and the log.
    Passing,
    /// A message.
    Said,
    /// A result: only once the end was asked, when whoever writes it may not wait.
    Result,
    /// The modes of the terminal, some bytes: never, as nothing makes up for them.
    Modes,
}

impl Kind {
    /// How many bytes may wait for the terminal before this is left out; `None`: any number.
    fn waiting_bytes_max(self, is_end_asked: bool) -> Option<usize> {
        match self {
            Self::Passing => Some(PASSING_BYTES_MAX),
            Self::Said => Some(SAID_BYTES_MAX),
            Self::Result => is_end_asked.then_some(SAID_BYTES_MAX),
            Self::Modes => None,
        }
    }
}

/// Writes a result to a stream, and waits. A closed stream is not an error.
pub(crate) fn write(stream: Stream, bytes: &[u8]) {
    if stream.is_terminal() {
        CONSOLE.write(stream, bytes);
    } else {
        let _ = stream.write_all(bytes);
    }
}

/// Writes a message to a stream, and waits for no terminal.
pub(crate) fn tell(stream: Stream, bytes: &[u8]) {
    pass_on(stream, bytes, Kind::Said);
}

/// Writes a line of the log to a stream, and waits for no terminal.
pub(crate) fn log(stream: Stream, bytes: &[u8]) {
    pass_on(stream, bytes, Kind::Passing);
}

fn pass_on(stream: Stream, bytes: &[u8], kind: Kind) {
    if stream.is_terminal() {
        CONSOLE.queue(stream, bytes.to_vec(), kind);
    } else {
        let _ = stream.write_all(bytes);
    }
}

/// Waits for the terminal to take what it has not yet.
pub(crate) fn wait() {
    CONSOLE.wait();
}

/// Whether the terminal has not taken yet what it got.
pub(crate) fn is_behind() -> bool {
    CONSOLE.state().is_behind()
}

/// From now on a terminal that takes nothing is not waited for.
pub(crate) fn end_is_asked() {
    CONSOLE.end_is_asked();
}

/// Whether that was said.
#[cfg(test)]
pub(super) fn is_end_asked() -> bool {
    CONSOLE.state().asked_at.is_some()
}

/// What shows a run in progress: it goes to the terminal when it is flushed, and is not waited for.
pub(crate) struct Frames {
    stream: Stream,
    kind: Kind,
    bytes: Vec<u8>,
}

impl Frames {
    pub(crate) fn on(stream: Stream) -> Self {
        Self { stream, kind: Kind::Passing, bytes: Vec::new() }
    }

    /// For the modes of the terminal, which are not left out.
    pub(crate) fn of_modes(stream: Stream) -> Self {
        Self { kind: Kind::Modes, ..Self::on(stream) }
    }
}

impl Write for Frames {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        if !self.stream.is_terminal() {
            return self.stream.write_all(&bytes);
        }
        if !bytes.is_empty() {
            CONSOLE.queue(self.stream, bytes, self.kind);
        }
        Ok(())
    }
}

impl Stream {
    fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        }
    }

    fn write_all(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Out => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            Self::Err => io::stderr().lock().write_all(bytes),
        }
    }

    /// A part of `bytes`, without the locks of the standard library: the end of the process would
    /// wait for them.
    fn write_some(self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Out => rustix::io::write(io::stdout(), bytes),
            Self::Err => rustix::io::write(io::stderr(), bytes),
        }
    }
}

/// What waits for the terminal, whichever of its streams that is: their order is kept.
struct Console {
    state: Mutex<State>,
    changed: Condvar,
    patience: Duration,
}

struct State {
    waiting: VecDeque<(Stream, Vec<u8>)>,
    /// Bytes that are not taken, with those of the one in hand.
    waiting_bytes: usize,
    /// How many texts were queued, and how many of them were taken.
    queued: u64,
    taken: u64,
    /// How many blocks, messages and lines of the log were left out since that was last said.
    left_out: u64,
    /// When the terminal took something, or had nothing to take, last.
    moved_at: Option<Instant>,
    /// When the end was asked.
    asked_at: Option<Instant>,
    has_thread: bool,
}

impl State {
    fn is_behind(&self) -> bool {
        self.taken < self.queued
    }

    fn push(&mut self, stream: Stream, bytes: Vec<u8>) {
        self.waiting_bytes += bytes.len();
        self.queued += 1;
        self.waiting.push_back((stream, bytes));
    }

    /// How long who waits has patience still; `None`: as long as it takes.
    fn patience_left(&self, patience: Duration, now: Instant) -> Option<Duration> {
        let asked_at = self.asked_at?;
        let since = self.moved_at.map_or(asked_at, |moved_at| moved_at.max(asked_at));
        Some(patience.saturating_sub(now.saturating_duration_since(since)))
    }
}

impl Console {
    const fn new(patience: Duration) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            queued: 0,
            taken: 0,
            left_out: 0,
            moved_at: None,
            asked_at: None,
            has_thread: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), patience }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, which writes by `write`.
    fn start(
        &'static self,
        state: &mut State,
        write: impl FnMut(Stream, &[u8]) -> Result<usize, Errno> + Send + 'static,
    ) {
        let thread = std::thread::Builder::new().name("console".into());
        state.has_thread = thread.spawn(move || self.serve(write)).is_ok();
    }

    fn queue(&'static self, stream: Stream, bytes: Vec<u8>, kind: Kind) {
        let mut state = self.state();
        if !state.has_thread {
            self.start(&mut state, Stream::write_some);
        }
        if !state.has_thread {
            drop(state);
            let _ = stream.write_all(&bytes);
            return;
        }
        let most = kind.waiting_bytes_max(state.asked_at.is_some());
        if most.is_some_and(|most| state.waiting_bytes > most) {
            state.left_out += 1;
            return;
        }
        if !state.is_behind() {
            state.moved_at = Some(Instant::now());
        }
        // Neither comes while a screen is drawn, on which this would be lost.
        if matches!(kind, Kind::Said | Kind::Result)
            && let count @ 1.. = std::mem::take(&mut state.left_out)
        {
            state.push(Stream::Err, left_out(count).into_bytes());
        }
        state.push(stream, bytes);
        self.changed.notify_all();
    }

    fn write(&'static self, stream: Stream, bytes: &[u8]) {
        self.queue(stream, bytes.to_vec(), Kind::Result);
        self.wait();
    }

    /// Waits until all that is queued by now was taken, or patience is at its end.
    fn wait(&self) {
        let mut state = self.state();
        let all = state.queued;
        while state.taken < all {
            let left = state.patience_left(self.patience, Instant::now());
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn end_is_asked(&self) {
        self.state().asked_at.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    fn serve(&self, mut write: impl FnMut(Stream, &[u8]) -> Result<usize, Errno>) {
        loop {
            let (stream, bytes) = self.next_text();
            let mut rest = bytes.as_slice();
            while let Some(piece) = rest.chunks(PIECE_BYTES).next() {
                match write(stream, piece) {
                    Ok(count) if count > 0 => rest = rest.get(count..).unwrap_or_default(),
                    Err(Errno::INTR) => continue,
                    Err(Errno::AGAIN) => {
                        std::thread::sleep(TRY_AGAIN_AFTER);
                        continue;
                    }
                    // It was closed: nothing can be done.
                    Ok(_) | Err(_) => break,
                }
                self.state().moved_at = Some(Instant::now());
            }
            let mut state = self.state();
            state.waiting_bytes = state.waiting_bytes.saturating_sub(bytes.len());
            state.taken += 1;
            state.moved_at = Some(Instant::now());
            self.changed.notify_all();
        }
    }

    fn next_text(&self) -> (Stream, Vec<u8>) {
        let mut state = self.state();
        loop {
            if let Some(text) = state.waiting.pop_front() {
                return text;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn left_out(count: u64) -> String {
    format!("(texts left out above, because the terminal took no output: {count})\n")
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
