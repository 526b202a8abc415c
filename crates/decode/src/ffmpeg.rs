//! A decoder: an FFmpeg process that receives coded frames through a pipe and returns pictures.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_media::container::matroska;
use throng_observation::Codec;
use throng_process::{Ended, Started, end_with_this_thread};

use crate::stderr::{Announced, announced};

/// The size in the header until the decoder knows it.
pub(crate) const SIZE_GUESSED: (u16, u16) = (640, 360);
/// Most error lines that are kept of one process.
const ERROR_LINES_MAX: usize = 8;
/// Most pictures announced and not yet read; the pipe blocks long before.
const ANNOUNCED_MAX: usize = 1_024;
/// How long a process may take to end once its input has ended.
const ENDING: Duration = Duration::from_secs(3);

/// Why decoding failed.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// There is no FFmpeg.
    #[error(
        "no FFmpeg ({program}): install it (Debian: apt-get install ffmpeg), or name one with \
         --ffmpeg PATH"
    )]
    NoFfmpeg {
        /// The program that was not found.
        program: String,
    },
    /// The process could not be started or fed.
    #[error("{program}: {error}")]
    Io {
        /// The program.
        program: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// FFmpeg ended before its input did.
    #[error("FFmpeg failed: {error_lines}")]
    GaveUp {
        /// Its error lines.
        error_lines: String,
    },
    /// The codec is no video codec, or not supported.
    #[error("{} is not decoded; VP8, VP9, AV1, H.264 and H.265 are", .0.name())]
    Codec(Codec),
    /// The stream that was to be decoded could not be made or read.
    #[error("{0}")]
    Stream(String),
}

/// The FFmpeg program and its decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program; searched in `PATH` if it is a bare name.
    pub ffmpeg: PathBuf,
    /// One of its decoders (`ffmpeg -decoders`), such as `libvpx` or `h264_v4l2m2m`; or
    /// `hwaccel:NAME` for a hardware acceleration (`ffmpeg -hwaccels`), such as `hwaccel:vaapi`.
    /// FFmpeg's own choice when absent.
    pub decoder: Option<String>,
}

impl Default for Program {
    fn default() -> Self {
        Self { ffmpeg: "ffmpeg".into(), decoder: None }
    }
}

impl Program {
    /// FFmpeg's own first line, such as `ffmpeg version 5.1.6`.
    ///
    /// # Errors
    /// [`DecodeError::NoFfmpeg`].
    pub fn version(&self) -> Result<String, DecodeError> {
        let asked = self.command().arg("-version").stdin(Stdio::null()).output();
        let output = asked.map_err(|error| self.failed(error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let words = text.lines().next().unwrap_or_default().split_whitespace().take(3);
        Ok(words.collect::<Vec<_>>().join(" "))
    }

    /// FFmpeg, which ends with the thread that starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.ffmpeg);
        // Ctrl-C must not reach it: a decoder ends when its input ends.
        command.process_group(0).args(["-hide_banner", "-nostats", "-nostdin"]);
        end_with_this_thread(&mut command, Ended::AtOnce);
        command
    }

    /// The command that decodes a Matroska stream from its standard input.
    fn decoding(&self, output: Output) -> Command {
        let mut command = self.command();
        // Not `-fflags nobuffer`: it drops the data read to detect the format, which is the first
        // key frame.
        command.args(["-loglevel", "info", "-flags", "low_delay"]);
        command.args(["-probesize", "32", "-analyzeduration", "0", "-threads", "1"]);
        match self.decoder.as_deref().map(|name| (name, name.strip_prefix("hwaccel:"))) {
            Some((_, Some(hardware))) => command.args(["-hwaccel", hardware]),
            Some((name, None)) => command.args(["-c:v", name]),
            None => &mut command,
        };
        command.args([
            "-f",
            "matroska",
            "-i",
            "pipe:0",
            "-map",
            "0:v:0",
            "-fps_mode",
            "passthrough",
        ]);
        match output {
            Output::Luma => command.args([
                "-vf",
                "extractplanes=y,showinfo=checksum=0",
                "-f",
                "rawvideo",
                "pipe:1",
            ]),
            Output::Nothing => command.args(["-vf", "showinfo=checksum=0", "-f", "null", "-"]),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn failed(&self, error: std::io::Error) -> DecodeError {
        let program = self.ffmpeg.display().to_string();
        match error.kind() {
            std::io::ErrorKind::NotFound => DecodeError::NoFfmpeg { program },
            _ => DecodeError::Io { program, error },
        }
    }
}

/// The output of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The luma of each picture (its Y plane).
    Luma,
    /// Only the notice that a picture was decoded, so that only decoding uses CPU.
    Nothing,
}

/// A decoded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The index that its coded frame was fed with.
    pub index: u64,
    /// Width, pixels.
    pub width: u32,
    /// Height, pixels.
    pub height: u32,
    /// The Y plane, a byte a pixel, line by line; empty with [`Output::Nothing`].
    pub luma: Vec<u8>,
    /// When it was decoded.
    pub decoded_at: Instant,
}

/// The input of a decoder. Dropping it ends the stream.
#[derive(Debug)]
pub struct Feed {
    stdin: ChildStdin,
    buffer: Vec<u8>,
    program: String,
    error_lines: ErrorLines,
}

type ErrorLines = Arc<Mutex<VecDeque<String>>>;

impl Feed {
    /// Sends the next coded frame; blocks while the decoder is busy. `index` grows from frame to
    /// frame.
    ///
    /// # Errors
    /// [`DecodeError::GaveUp`] if FFmpeg has ended.
    pub fn frame(&mut self, index: u64, key_frame: bool, bytes: &[u8]) -> Result<(), DecodeError> {
        self.buffer.clear();
        matroska::frame(index, key_frame, bytes, &mut self.buffer);
        self.stdin.write_all(&self.buffer).map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => {
                DecodeError::GaveUp { error_lines: said(&self.error_lines) }
            }
            _ => DecodeError::Io { program: self.program.clone(), error },
        })
    }
}

fn said(error_lines: &ErrorLines) -> String {
    let lines = error_lines.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.is_empty() {
        "without an error message".into()
    } else {
        Vec::from_iter(lines.iter().cloned()).join("; ")
    }
}

/// A running decoder. Dropping it ends the process.
#[derive(Debug)]
pub struct Decoder {
    child: Child,
    _registered: Started,
    error_lines: ErrorLines,
    threads: Vec<JoinHandle<()>>,
}

impl Decoder {
    /// Starts a decoder of `codec`; calls `take` with each picture on a thread of the decoder.
    /// `size` is a first guess, pixels. The process ends with the calling thread.
    ///
    /// # Errors
    /// [`DecodeError::NoFfmpeg`], [`DecodeError::Codec`], or an error of the system.
    pub fn start(
        program: &Program,
        codec: Codec,
        size: (u16, u16),
        output: Output,
        take: impl FnMut(Picture) + Send + 'static,
    ) -> Result<(Self, Feed), DecodeError> {
        let header = matroska::header(codec, size).ok_or(DecodeError::Codec(codec))?;
        let mut child = program.decoding(output).spawn().map_err(|error| program.failed(error))?;
        let registered = Started::group(child.id());
        let error_lines = ErrorLines::default();
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on, returning an error ends the process.
        let mut decoder = Self {
            child,
            _registered: registered,
            error_lines: Arc::clone(&error_lines),
            threads: Vec::new(),
        };
        let missing = || program.failed(std::io::Error::other("a process without its pipes"));
        let (mut stdin, stdout, stderr) = stdin
            .zip(stdout)
            .zip(stderr)
            .map(|((stdin, stdout), stderr)| (stdin, stdout, stderr))
            .ok_or_else(missing)?;
        let (announce, announced) = sync_channel(ANNOUNCED_MAX);
        let lines = Arc::clone(&error_lines);
        let reading: Box<dyn FnOnce() + Send> = match output {
            Output::Luma => {
                let pictures = move || read_pictures(stdout, &announced, take);
                decoder.spawn(pictures).map_err(|error| program.failed(error))?;
                Box::new(move || {
                    listen(stderr, &lines, |picture, _| {
                        let _ = announce.send(picture); // fails once there is no reader
                    });
                })
            }
            Output::Nothing => {
                let mut take = take;
                Box::new(move || {
                    listen(stderr, &lines, |Announced { index, width, height }, decoded_at| {
                        take(Picture { index, width, height, luma: Vec::new(), decoded_at });
                    });
                })
            }
        };
        decoder.spawn(reading).map_err(|error| program.failed(error))?;
        stdin.write_all(&header).map_err(|error| program.failed(error))?;
        let program = program.ffmpeg.display().to_string();
        Ok((decoder, Feed { stdin, buffer: Vec::new(), program, error_lines }))
    }

    fn spawn(&mut self, act: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.threads.push(std::thread::Builder::new().name("decoder".into()).spawn(act)?);
        Ok(())
    }

    /// CPU time of the process: the sum over its threads (`/proc/PID/task/T/schedstat`, first
    /// field).
    #[must_use]
    pub fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let spent = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(tasks.into_iter().flatten().flatten().filter_map(spent).sum())
    }

    /// Why the process ended before its input; `None` while it runs.
    pub fn gave_up(&mut self) -> Option<DecodeError> {
        let is_gone = matches!(self.child.try_wait(), Ok(Some(_)));
        is_gone.then(|| {
            self.end(); // reads its last error lines
            DecodeError::GaveUp { error_lines: said(&self.error_lines) }
        })
    }

    /// Waits until all input is decoded; its [`Feed`] has to be dropped before.
    ///
    /// # Errors
    /// [`DecodeError::GaveUp`] if FFmpeg failed.
    pub fn finish(mut self) -> Result<(), DecodeError> {
        let given_up_at = Instant::now() + ENDING;
        let ended_well = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.success(),
                Ok(None) if Instant::now() < given_up_at => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => break false,
            }
        };
        self.end();
        if ended_well {
            Ok(())
        } else {
            Err(DecodeError::GaveUp { error_lines: said(&self.error_lines) })
        }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        self.end();
    }
}

/// Passes on each picture that FFmpeg announces, and keeps its error lines.
fn listen(stderr: impl Read, error_lines: &ErrorLines, mut take: impl FnMut(Announced, Instant)) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // FFmpeg's lines are shorter.
        match reader.by_ref().take(64 << 10).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        match announced(&text) {
            Some(picture) => take(picture, Instant::now()),
            None if is_error(&text) => {
                let mut lines = error_lines.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.len() == ERROR_LINES_MAX {
                    lines.pop_front();
                }
                lines.push_back(text.trim_end().to_owned());
            }
            None => {}
        }
    }
}

/// Whether a line is an error and not information about streams.
fn is_error(line: &str) -> bool {
    let words = "rror|nvalid|nknown|ailed|annot|orrupt|not found|No such|Unrecognized|nable to";
    words.split('|').any(|word| line.contains(word))
}

fn read_pictures(
    mut stdout: impl Read,
    announced: &Receiver<Announced>,
    mut take: impl FnMut(Picture),
) {
    while let Ok(Announced { index, width, height }) = announced.recv() {
        let mut luma = vec![0; width as usize * height as usize];
        if stdout.read_exact(&mut luma).is_err() {
            return;
        }
        take(Picture { index, width, height, luma, decoded_at: Instant::now() });
    }
}
