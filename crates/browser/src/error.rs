//! What can go wrong with a browser.

/// Why a browser could not be started or did not do what it was asked.
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
    /// Its process ended, or closed the pipe by which it is driven.
    #[error("the browser ended{}", .said.as_ref().map_or_else(String::new, |said| format!("; it said last: {said}")))]
    Ended {
        /// The last line that it wrote to standard error, if any.
        said: Option<String>,
    },
    /// No answer came in time.
    #[error("the browser did not answer {what} within {within_ms} ms")]
    Silent {
        /// The command of the protocol, or what was waited for.
        what: String,
        /// How long was waited, milliseconds.
        within_ms: u128,
    },
    /// It answered with an error, or the script threw.
    #[error("the browser refused {what}: {said}")]
    Refused {
        /// The command of the protocol.
        what: String,
        /// Its words.
        said: String,
    },
    /// A pipe or a file of ours.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
