//! What all test servers share: their error, commands, child processes, and waiting for a port.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use crate::priority::BeforeOthers as _;

/// Why a server could not be started, or a request to it failed.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A program could not be started; it may not be installed.
    #[error("cannot start {program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: std::io::Error,
    },
    /// A command failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command line.
        command: String,
        /// What it wrote to standard error.
        said: String,
    },
    /// A server did not become ready.
    #[error("{what} did not answer within {within_ms} ms")]
    NotReady {
        /// The server.
        what: String,
        /// Time limit, milliseconds.
        within_ms: u128,
    },
    /// A browser did not do what it was asked.
    #[error(transparent)]
    Browser(#[from] throng_browser::BrowserError),
    /// A file or socket.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A server sent something unexpected.
    #[error("{0}")]
    Said(String),
}

/// Folder for what is built or encoded once per machine: `~/.cache/throng`, as in the scripts.
pub(crate) fn cache_folder() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("throng")
}

/// Runs `command` and waits for its end.
pub(crate) fn run(command: &mut Command) -> Result<Output, SimError> {
    let line = format!("{command:?}");
    let output =
        command.output().map_err(|error| SimError::Start { program: line.clone(), error })?;
    if output.status.success() {
        Ok(output)
    } else {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(SimError::Command { command: line, said })
    }
}

/// Waits until `to` accepts TCP in this thread's namespace.
pub(crate) fn wait_for_port(
    what: &str,
    to: SocketAddr,
    within: Duration,
) -> Result<TcpStream, SimError> {
    let until = Instant::now() + within;
    loop {
        match TcpStream::connect_timeout(&to, Duration::from_millis(200)) {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => {
                return Err(SimError::NotReady {
                    what: what.into(),
                    within_ms: within.as_millis(),
                });
            }
        }
    }
}

/// A child process that is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct ChildGuard(Child);

impl ChildGuard {
    pub(crate) fn start(command: &mut Command) -> Result<Self, SimError> {
        Self::of(command.get_program().to_string_lossy().into_owned(), command.spawn())
    }

    /// As [`Self::start`], with [priority](crate::priority).
    pub(crate) fn start_before_others(command: &mut Command) -> Result<Self, SimError> {
        Self::of(
            command.get_program().to_string_lossy().into_owned(),
            command.spawn_before_others(),
        )
    }

    fn of(program: String, spawned: std::io::Result<Child>) -> Result<Self, SimError> {
        spawned.map(Self).map_err(|error| SimError::Start { program, error })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // SIGTERM first, so that a program can end its own children.
        if let (Ok(None), Ok(pid)) = (self.0.try_wait(), i32::try_from(self.0.id())) {
            // SAFETY: kill only sends a signal, to a child of ours that has not been waited for.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            match self.0.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                _ => return,
            }
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
