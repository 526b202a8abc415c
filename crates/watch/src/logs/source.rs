//! The sources of log lines: a file, the output of a started program, or the journal of a unit.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use throng_process::{Ended, Started, end_with_this_thread};

use super::Output;

/// Where a log is read from.
#[derive(Debug)]
pub enum LogSource {
    /// A file, followed by its name.
    File(PathBuf),
    /// Standard output or standard error of a program.
    Output(Output),
    /// The journal of a systemd unit, through `journalctl`.
    Journal {
        /// The unit.
        unit: String,
        /// The program to run, usually `journalctl`.
        program: PathBuf,
    },
}

impl LogSource {
    /// The journal of a unit.
    pub fn journal(unit: impl Into<String>) -> Self {
        Self::Journal { unit: unit.into(), program: "journalctl".into() }
    }
}

/// Why a source cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The name is not a valid unit name.
    #[error("`{0}` is not a valid systemd unit name")]
    Unit(String),
    /// The system refused a thread.
    #[error("cannot start a thread to read the log: {0}")]
    Thread(#[from] std::io::Error),
}

/// A running `journalctl`; dropping it ends it.
#[derive(Debug)]
pub(super) struct Journal {
    child: Child,
    _registered: Started,
    pub(super) lines: ChildStdout,
    stderr: Option<ChildStderr>,
}

impl Journal {
    /// Follows the journal of `unit`, starting now. It ends with the calling thread.
    pub(super) fn start(program: &PathBuf, unit: &str) -> Result<Self, String> {
        let mut command = Command::new(program);
        command
            .args(["--follow", "--lines=0", "--output=cat", "--quiet", "--no-pager"])
            .arg(format!("--unit={unit}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A quiet unit never breaks its pipe.
        command.process_group(0);
        end_with_this_thread(&mut command, Ended::AtOnce);
        let mut child = command.spawn().map_err(|error| {
            format!(
                "the journal of {unit}: {}: {error}; without systemd name the server's log file",
                program.display()
            )
        })?;
        let registered = Started::group(child.id());
        let Some(lines) = child.stdout.take() else {
            return Err(format!("the journal of {unit}: no pipe"));
        };
        let stderr = child.stderr.take();
        Ok(Self { child, _registered: registered, lines, stderr })
    }

    /// Ends it and returns what it wrote to standard error.
    pub(super) fn end(mut self) -> String {
        let _ = self.child.kill();
        let mut said = Vec::new();
        if let Some(stderr) = self.stderr.take() {
            let _ = stderr.take(4_096).read_to_end(&mut said);
        }
        super::redacted(&said)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether `unit` is a valid unit name (systemd.unit(5)), which no program can take for an option
/// or a path.
pub(crate) fn is_unit(unit: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.@\\".contains(&byte);
    !unit.is_empty() && unit.len() <= 255 && !unit.starts_with('-') && unit.bytes().all(fits)
}
