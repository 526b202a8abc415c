//! A program of this machine as a stream of a participant.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use throng_process::{Ended, Started, end_with_this_thread};
use throng_protocol::participant::{ChannelError, TOLD};
use throng_scenario::Secret;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// Lines of its standard error that are kept, for the reason of its end: newer versions of FFmpeg
/// say three more behind it.
const LAST_WORDS: usize = 5;

/// How long they may take to be read once it has ended: a child of its own may keep the pipe open.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);

/// Longest of those lines, bytes.
const LINE_BYTES_MAX: usize = 400;

/// Shorter parts of arguments are words of any message.
const HIDDEN_BYTES_MIN: usize = 4;

/// A running program. Dropped, it is killed; the kernel ends it with the thread that started it: a
/// server that does not read keeps it in a write, where the end of its input is not seen.
pub(super) struct Process {
    program: &'static str,
    child: Child,
    _registered: Option<Started>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    /// Collects them until its standard error ends.
    listener: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts `program`, which reads what it is `told`. Needs a runtime, on a thread that outlives
    /// what is started.
    pub(super) fn start(
        program: &'static str,
        arguments: &[String],
        told: Option<&Secret>,
    ) -> Result<Self, ChannelError> {
        let file = told.map(file_of).transpose().map_err(|e| {
            ChannelError::Generator(format!("cannot pass its input to {program}: {e}"))
        })?;
        let path = file.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
        let path = path.unwrap_or_default();
        let mut command = Command::new(program);
        command.args(arguments.iter().map(|word| if word == TOLD { &path } else { word }));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C goes to throng, whose participants leave in order.
        command.kill_on_drop(true).process_group(0);
        end_with_this_thread(command.as_std_mut(), Ended::AtOnce);
        let mut child = command
            .spawn()
            .map_err(|e| ChannelError::Generator(format!("cannot start {program}: {e}")))?;
        let registered = child.id().map(Started::group);
        drop(file);
        let last_words = Arc::default();
        let hidden = hidden(arguments, told);
        let listener = child
            .stderr
            .take()
            .map(|stderr| tokio::spawn(listen(stderr, hidden, Arc::clone(&last_words))));
        Ok(Self { program, child, _registered: registered, last_words, listener })
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

/// A file in memory with the text, which has no name. The next program inherits it; another one
/// that is started at the same moment may have it too, which is one of the same user.
fn file_of(text: &Secret) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("told", MemfdFlags::empty())?);
    file.write_all(text.expose().as_bytes())?;
    Ok(file)
}

/// What is not repeated, the longest first: what programs say of a URL that they cannot use has its
/// path, in which publishers have their keys, and they repeat what they were told.
fn hidden(arguments: &[String], told: Option<&Secret>) -> Vec<String> {
    let path = |url: &String| {
        let (_, rest) = url.split_once("://")?;
        Some(rest.split_once(['/', '?'])?.1.to_owned())
    };
    let paths: Vec<String> = arguments.iter().filter_map(path).collect();
    let last = paths.iter().filter_map(|path| path.rsplit('/').next()).map(str::to_owned);
    let lines = told.map(Secret::expose).unwrap_or_default().lines();
    let lines: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('=')).collect();
    // An application is a word such as `live`, but where there is no key: then it is the key.
    let has_key = lines.iter().any(|(name, _)| *name == "rtmp_playpath");
    let values = lines.iter().filter(|(name, _)| !(has_key && *name == "rtmp_app"));
    let values: Vec<&str> = values.map(|(_, value)| *value).collect();
    // What refuses a key with a query may repeat the one or the other.
    let parts = values.iter().flat_map(|value| value.split(['?', '&']));
    let parts = parts.map(|part| part.split_once('=').map_or(part, |(_, value)| value));
    let values: Vec<String> = values.iter().copied().chain(parts).map(str::to_owned).collect();
    let mut hidden: Vec<String> = last.chain(values).chain(paths.iter().cloned()).collect();
    hidden.retain(|text| text.len() >= HIDDEN_BYTES_MIN);
    hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
    hidden
}

async fn listen(
    stderr: ChildStderr,
    hidden: Vec<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = hidden.iter().fold(line, |line, text| line.replace(text.as_str(), "…"));
        let mut line: String = line.chars().filter(|letter| !letter.is_control()).collect();
        line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
        let mut kept = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LAST_WORDS {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_key_are_hidden_and_an_application_is_not() {
        let of = |told: &str| hidden(&[], Some(&Secret::new(told)));
        let key = of("rtmp_app=live\nrtmp_playpath=hunter2?sig=secret");
        assert_eq!(key, ["hunter2?sig=secret", "hunter2", "secret"]);
        assert_eq!(of("rtmp_app=hunter2"), ["hunter2", "hunter2"]);
        let stream = of("streamid=publish:cam\npassphrase=hunter2");
        assert!(stream.contains(&"publish:cam".to_owned()), "{stream:?}");
    }
}
