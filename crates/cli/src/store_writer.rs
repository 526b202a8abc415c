//! Writes rows from the collector into the run folder, on a thread of its own and in one
//! transaction a second: a slow disk does not block the run, and a crash loses at most the last
//! second.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::fleet::EndClock;
use throng_observation::run::{Ending, Row};
use throng_store::{RunWriter, StoreError};

/// How often rows are committed.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct StoreWriter(JoinHandle<RunWriter>);

impl StoreWriter {
    /// Writes the rows from `rows` until all senders are gone; `observe` sees each row first.
    pub(crate) fn start(
        mut writer: RunWriter,
        rows: Receiver<Row>,
        mut observe: impl FnMut(&Row) + Send + 'static,
    ) -> std::io::Result<Self> {
        let thread = std::thread::Builder::new().name("store".into()).spawn(move || {
            let mut has_failed = false;
            // An error is printed once; the writer keeps trying.
            let mut commit = |writer: &mut RunWriter| match writer.commit() {
                Err(error) if !has_failed => {
                    crate::console::say(&format!(
                        "the run folder cannot be written, the run continues: {error}"
                    ));
                    has_failed = true;
                }
                Err(_) => {}
                Ok(()) => has_failed = false,
            };
            let mut commit_at = Instant::now() + COMMIT_EVERY;
            loop {
                match rows.recv_timeout(commit_at.saturating_duration_since(Instant::now())) {
                    Ok(row) => {
                        observe(&row);
                        writer.write(row);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if Instant::now() >= commit_at {
                    commit(&mut writer);
                    commit_at = Instant::now() + COMMIT_EVERY;
                }
            }
            commit(&mut writer);
            writer
        })?;
        Ok(Self(thread))
    }

    /// Waits for the last row and writes how the run ended, and what was known of the workers'
    /// clocks then.
    pub(crate) fn finish(
        self,
        ending: Ending,
        ended_at: RunTime,
        clocks: &[Option<EndClock>],
    ) -> Result<(), StoreError> {
        let mut writer = self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let lost = writer.rows_lost();
        if lost > 0 {
            crate::console::say(&format!(
                "{lost} rows could not be stored; the run folder is partial"
            ));
        }
        if !clocks.is_empty() {
            writer.end_clocks(clocks)?;
        }
        writer.finish(ending, ended_at)
    }
}
