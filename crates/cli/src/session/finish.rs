//! The end of a run: everything stops, how it ended is stored, the report is made.

use throng_folder::AtWork;
use throng_observation::RunTime;
use throng_observation::run::Ending;

use super::start::Session;
use super::tap::RunTap;
use crate::console::{CliError, Exit, say};
use crate::report;
use crate::watchers::LAST_LOOK;

impl Session {
    /// Ends the run and reports. `ending` is how the command ended it; `None` leaves that to the
    /// engine, whose reason is then printed.
    pub(crate) fn finish(self, ending: Option<Ending>) -> Result<Exit, CliError> {
        let Self { handle, watchers, rows, folder, canaries, tap, store, report } = self;
        canaries.stop();
        let (was_over, ends_at) = (handle.is_finished() && !handle.is_stopped(), handle.ends_at());
        let last_failure_at = handle.live().last_failure_at;
        handle.stop();
        let (end, clocks) = handle.wait();
        tap.into_iter().for_each(RunTap::finish);
        if was_over && end.ended_at < ends_at && ended_by_failure(end.ended_at, last_failure_at) {
            watchers.wait_for_an_end();
        }
        watchers.stop();
        let ending = ending.unwrap_or_else(|| {
            end.why.iter().for_each(|why| say(&format!("the run ended early: {why}")));
            end.ending
        });
        // The store waits for the last sender of rows.
        drop(rows);
        let stored = store.finish(ending, end.ended_at, &clocks);
        if let Err(error) = &stored {
            say(&format!("the end of the run could not be stored, the report is partial: {error}"));
        }
        // Nobody deletes it before it has its report. Without an ending it would be in progress.
        let _at_work = stored.is_ok().then(|| AtWork::begin(&folder).ok());
        let exit = report::make(&folder, &report).map_err(CliError::invalid)?;
        Ok(if stored.is_ok() { exit } else { Exit::Invalid })
    }
}

/// Whether users were lost in the last moments of a run, so that its server may have ended with it:
/// whoever failed long before did not take the others along.
fn ended_by_failure(ended_at: RunTime, last_failure_at: Option<RunTime>) -> bool {
    let within_us = u64::try_from(LAST_LOOK.as_micros()).unwrap_or(u64::MAX);
    last_failure_at.is_some_and(|failed| failed.0.abs_diff(ended_at.0) <= within_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_in_the_last_moments_makes_a_run_wait_for_the_end_of_its_server() {
        let ended_by = |failed_ms: i64| {
            ended_by_failure(RunTime(20_000_000), Some(RunTime(failed_ms * 1_000)))
        };
        assert!(ended_by(20_000) && ended_by(17_000));
        assert!(!ended_by(16_999), "the others played on");
        assert!(!ended_by_failure(RunTime(20_000_000), None));
    }
}
