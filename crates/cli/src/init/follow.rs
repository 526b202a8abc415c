//! Waits for what `throng init` plays, unless a signal asks it to end.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use throng_engine::{RunEnd, RunHandle};
use throng_observation::run::Row;

use crate::console::{CliError, Exit, Interrupt};

/// How often it looks whether a signal came, while no rows come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Hands on the rows of a run until its end. A signal ends the run with the sessions that it has on
/// the server, and is an error then.
pub(super) fn follow(
    handle: RunHandle,
    rows: &Receiver<Row>,
    interrupt: &Interrupt,
    mut take: impl FnMut(Row),
) -> Result<RunEnd, CliError> {
    let mut is_stopping = false;
    loop {
        match rows.recv_timeout(LOOK_EVERY) {
            Ok(row) => take(row),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if interrupt.is_set() && !is_stopping {
            handle.stop();
            is_stopping = true;
        }
    }
    let end = handle.wait();
    go_on(interrupt).map(|()| end)
}

/// An error once a signal came.
pub(super) fn go_on(interrupt: &Interrupt) -> Result<(), CliError> {
    if interrupt.is_set() {
        let why = anyhow::anyhow!("interrupted: no scenario was written");
        return Err(CliError::new(Exit::Interrupted, why));
    }
    Ok(())
}
