//! Errors of a browser.

/// Why a browser could not be started or a command failed.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The program could not be started; it may not be installed.
    #[error("cannot start {program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: std::io::Error,
    },
    /// Its process ended, or closed the pipe that controls it.
    #[error(
        "the browser ended{}",
        .said.as_ref().map_or_else(String::new, |said| format!("; its last output: {said}"))
    )]
    Ended {
        /// The last line that it wrote to standard error, if any.
        said: Option<String>,
    },
    /// No answer arrived in time.
    #[error("the browser did not answer {what} within {within_ms} ms")]
    Silent {
        /// The DevTools command, or what was awaited.
        what: String,
        /// The time limit, milliseconds.
        within_ms: u128,
    },
    /// It returned an error, or the script threw.
    #[error("the browser refused {what}: {said}")]
    Refused {
        /// The DevTools command.
        what: String,
        /// Its error message.
        said: String,
    },
    /// An error of one of throng's own pipes or files.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
