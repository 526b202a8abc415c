//! A program of this machine as a stream of a participant.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throng_protocol::participant::ChannelError;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// Lines of its standard error that are kept, for the reason of its end.
const LAST_WORDS: usize = 3;

/// How long they may take to be read once it has ended: a child of its own may keep the pipe open.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);

/// Longest of those lines, bytes.
const LINE_BYTES_MAX: usize = 400;

/// A running program. Dropped, it is killed.
pub(super) struct Process {
    program: &'static str,
    child: Child,
    last_words: Arc<Mutex<VecDeque<String>>>,
    /// Collects them until its standard error ends.
    listener: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts `program`. Needs a runtime.
    pub(super) fn start(program: &'static str, arguments: &[String]) -> Result<Self, ChannelError> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| ChannelError::Generator(format!("cannot start {program}: {e}")))?;
        let last_words = Arc::default();
        let listener =
            child.stderr.take().map(|stderr| tokio::spawn(listen(stderr, Arc::clone(&last_words))));
        Ok(Self { program, child, last_words, listener })
    }

    /// Its standard output and input, once.
    pub(super) fn pipes(&mut self) -> Result<(ChildStdout, ChildStdin), ChannelError> {
        let lost = || ChannelError::Generator(format!("{} has no pipes", self.program));
        let pipes = self.child.stdout.take().zip(self.child.stdin.take());
        pipes.ok_or_else(lost)
    }

    /// Its end. Where its input was closed on purpose (`carried` is no error), it has `goodbye` to
    /// finish; where it closed its pipes by itself, its last words are the reason.
    pub(super) async fn end(
        mut self,
        carried: Result<(), ChannelError>,
        goodbye: Duration,
    ) -> Result<(), ChannelError> {
        let status = tokio::time::timeout(goodbye, self.child.wait()).await;
        if carried.is_ok() {
            return Ok(());
        }
        if let Some(listener) = self.listener.take() {
            let _ = tokio::time::timeout(LAST_WORDS_WITHIN, listener).await;
        }
        let how = match status {
            Ok(Ok(status)) => format!("{} ended ({status})", self.program),
            Ok(Err(error)) => format!("{}: {error}", self.program),
            Err(_) => format!("{} has closed its pipes", self.program),
        };
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words =
            if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
        Err(ChannelError::Process(format!("{how}{words}")))
    }
}

async fn listen(stderr: ChildStderr, last_words: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut line: String = line.chars().filter(|letter| !letter.is_control()).collect();
        line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
        let mut kept = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LAST_WORDS {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}
