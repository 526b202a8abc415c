//! How an experiment ends: by its answer, or by why runs are missing.

use throng_report::matrix::MatrixReport;

use super::answer;
use crate::console::{CliError, Exit, say};

/// Why runs are missing at the end.
pub(super) enum Stopped {
    /// A signal came.
    Interrupted,
    /// The workers did not come, or one did not play.
    NoFleet(String),
    /// What a proof measures is not chosen: why.
    NoSearch(String),
}

impl Stopped {
    fn exit(self) -> Result<Exit, CliError> {
        let why = match self {
            Self::Interrupted => return Ok(Exit::Interrupted),
            Self::NoFleet(why) => anyhow::anyhow!("the fleet does not play: {why}"),
            Self::NoSearch(why) => anyhow::anyhow!("not decided: {why}"),
        };
        Err(CliError::invalid(why))
    }
}

/// The exit code of an experiment. Where runs are missing, says `how_to_continue` and ends with
/// why: an answer that could not be written must not keep either from the user.
pub(super) fn ended(
    report: Result<MatrixReport, CliError>,
    stopped: Option<Stopped>,
    how_to_continue: &str,
) -> Result<Exit, CliError> {
    let Some(stopped) = stopped else { return report.map(|report| answer::exit(&report)) };
    if let Err(problem) = report {
        say(&format!("throng: {:#}", problem.error));
    }
    say(how_to_continue);
    stopped.exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_cannot_be_written_does_not_hide_why_runs_are_missing() {
        let ended = |stopped: Option<Stopped>| {
            let unwritten = anyhow::anyhow!("--markdown a.md: no space left");
            super::ended(Err(CliError::invalid(unwritten)), stopped, "to continue: …")
        };
        assert_eq!(ended(Some(Stopped::Interrupted)).unwrap(), Exit::Interrupted);
        for (stopped, expect) in [
            (Some(Stopped::NoFleet("no worker came".into())), "no worker came"),
            (Some(Stopped::NoSearch("its target failed".into())), "its target failed"),
            (None, "--markdown a.md"),
        ] {
            let stop = ended(stopped).unwrap_err();
            assert_eq!(stop.exit, Exit::Invalid);
            assert!(stop.error.to_string().contains(expect), "{}", stop.error);
        }
    }
}
