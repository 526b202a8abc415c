//! How throng ends: exit codes that scripts can rely on, and errors that carry one.

use std::process::ExitCode;

use throng_store::StoreError;

/// The exit codes of every `throng` command. Their meaning is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All objectives were met (or there were none, and every participant played).
    Met = 0,
    /// The run is valid and at least one objective was missed.
    Missed = 1,
    /// The command line or the scenario is wrong; nothing was sent.
    Usage = 2,
    /// No participant reached the target, or the target is not allowed.
    Target = 3,
    /// No verdict: the generator was the limit, throng failed, a search could not decide, or the
    /// run is not finished.
    Invalid = 4,
    /// Browsers in the crowd measured another quality than the crowd, so its figures are not
    /// reliable.
    Disputed = 5,
    /// Ended early by a person or a signal; what was measured is kept.
    Interrupted = 130,
}

impl Exit {
    /// All codes with their meaning, for `--help`.
    pub(crate) const HELP: &'static str = "\
Exit codes:
    0  objectives met
    1  objectives missed
    2  usage or scenario error
    3  target unreachable or not allowed
    4  invalid: the generator was the limit or could not do its work, or the run is partial
    5  disputed: a browser of [canary] saw something else than the crowd
  130  interrupted (the run folder is kept and says that it is partial)";
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a command failed, with its exit code.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

impl CliError {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }

    /// The command line or the scenario is wrong.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Usage, error: anyhow::anyhow!("{message}") }
    }

    /// The target cannot be reached, or does not allow the load.
    pub(crate) fn target(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Target, error: anyhow::anyhow!("{message}") }
    }

    /// A run cannot be read: another folder was meant, or it is damaged.
    pub(crate) fn unread(error: StoreError) -> Self {
        let exit = match error {
            StoreError::NoFolder(_) | StoreError::NoRun(_) => Exit::Usage,
            _ => Exit::Invalid,
        };
        Self::new(exit, error)
    }

    /// Throng itself failed.
    pub(crate) fn invalid(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::Invalid, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_code() {
        let all =
            [Exit::Met, Exit::Missed, Exit::Usage, Exit::Target, Exit::Invalid, Exit::Disputed];
        for exit in all.into_iter().chain([Exit::Interrupted]) {
            let code = exit as u8;
            assert!(
                Exit::HELP.lines().any(|line| line.trim_start().starts_with(&format!("{code} "))),
                "{code}"
            );
        }
    }
}
