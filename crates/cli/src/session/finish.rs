//! The end of a run: everything stops, how it ended is stored, the report is made.

use throng_observation::run::Ending;

use super::start::Session;
use crate::exit::Exit;
use crate::tap::RunTap;
use crate::{CliError, report, say};

impl Session {
    /// Ends the run and reports. `ending` is how the command ended it; `None` leaves that to the
    /// engine, whose reason is then printed.
    pub(crate) fn finish(self, ending: Option<Ending>) -> Result<Exit, CliError> {
        let Self { handle, watchers, rows, folder, canaries, tap, store, report } = self;
        canaries.stop();
        let (was_over, ends_at) = (handle.is_finished() && !handle.is_stopped(), handle.ends_at());
        let has_failures = !handle.live().failures.is_empty();
        handle.stop();
        let (end, clocks) = handle.wait();
        tap.into_iter().for_each(RunTap::finish);
        if has_failures && was_over && end.ended_at < ends_at {
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
        let exit = report::make(&folder, &report).map_err(CliError::invalid)?;
        Ok(if stored.is_ok() { exit } else { Exit::Invalid })
    }
}
