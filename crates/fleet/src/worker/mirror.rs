//! The spool of a part on disk: what the bus has not stored within a moment is written to a file,
//! on a thread of its own, so that a slow disk holds up neither rows nor pulses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::rows::RowSpool;
use crate::spool_file::SpoolError;
use crate::spool_folder::KeptSpool;

/// How often it is looked what the bus has not stored.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Says something to the owner of the worker.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The thread that writes.
pub(super) struct Mirror {
    is_over: Arc<AtomicBool>,
    writing: JoinHandle<Writer>,
}

/// A file, and what happened to it.
pub(super) struct Writer {
    pub(super) kept: KeptSpool,
    say: Say,
    has_failed: bool,
}

impl Mirror {
    /// Writes what `spool` holds to `kept`.
    pub(super) fn start(spool: RowSpool, kept: KeptSpool, say: Say) -> std::io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let mut writer = Writer { kept, say, has_failed: false };
        let writing = std::thread::Builder::new().name("fleet-spool".into()).spawn(move || {
            while !ends.load(Ordering::Acquire) {
                std::thread::park_timeout(LOOK_EVERY);
                let _ = writer.take(&spool);
            }
            writer
        })?;
        Ok(Self { is_over, writing })
    }

    /// Ends the thread; what it writes to is the caller's then.
    pub(super) fn stop(self) -> Option<Writer> {
        self.is_over.store(true, Ordering::Release);
        self.writing.thread().unpark();
        self.writing.join().ok()
    }
}

impl Writer {
    /// Writes what has come since the last time. A disk that is full is told once; rows wait in
    /// memory then.
    pub(super) fn take(&mut self, spool: &RowSpool) -> Result<(), SpoolError> {
        let (first, batches) = spool.unsent_from(self.kept.next());
        let taken = self.kept.take(first, &batches);
        let path = self.kept.path().display();
        match &taken {
            Err(error) if !self.has_failed => {
                (self.say)(&format!("{path}: {error}; rows wait in memory only"));
            }
            Ok(()) if self.has_failed => (self.say)(&format!("{path} is written again")),
            _ => {}
        }
        self.has_failed = taken.is_err();
        taken
    }
}
