//! The folder of `throng worker --spool`: rows that the bus has not taken outlive the process, and
//! are handed in by the next one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use throng_fleet::message::Order;
use throng_fleet::spool_folder::SpoolFolder;
use throng_fleet::{SpoolConfig, Undelivered, Worker};

use crate::args;
use crate::console::{CliError, Interrupt, say};

/// How often it is looked whether rows were left, while nothing is played.
const HAND_IN_EVERY: Duration = Duration::from_secs(3);

/// How often somebody who waits looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The spools of a worker.
pub(super) struct WorkerSpool {
    bytes_max: usize,
    folder: Option<SpoolFolder>,
    is_playing: Arc<AtomicBool>,
}

impl WorkerSpool {
    /// As the flags ask for it.
    pub(super) fn open(command: &args::Worker) -> Result<Self, CliError> {
        let bytes_max = command.spool_mb as usize * 1_000_000;
        let open = |path: &Path| SpoolFolder::open(path, bytes_max);
        let folder = command.spool.as_deref().map(open).transpose();
        let folder = folder.map_err(|error| CliError::usage(format!("--spool: {error}")))?;
        Ok(Self { bytes_max, folder, is_playing: Arc::default() })
    }

    /// Hands in what earlier processes left, now and whenever nothing is played, until the worker
    /// is interrupted.
    pub(super) fn late_delivery(
        &self,
        worker: &Worker,
        interrupt: &Interrupt,
    ) -> Result<(), CliError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let (mut late_delivery, interrupt) =
            (worker.late_delivery(folder.clone()), interrupt.clone());
        let is_playing = Arc::clone(&self.is_playing);
        let handing = std::thread::Builder::new().name("hand-in".into()).spawn(move || {
            // A run that begins has the worker and its bus for itself.
            let is_idle = || !is_playing.load(Ordering::Relaxed) && !interrupt.is_set();
            while !interrupt.is_set() {
                late_delivery.all(&is_idle, &say);
                let mut waited = Duration::ZERO;
                while waited < HAND_IN_EVERY && !interrupt.is_set() {
                    std::thread::sleep(LOOK_EVERY);
                    waited += LOOK_EVERY;
                }
            }
        });
        handing.map(drop).map_err(CliError::invalid)
    }

    /// The spool of an order. Without room on the disk rows wait in memory only.
    pub(super) fn of(&self, order: &Order) -> SpoolConfig {
        self.is_playing.store(true, Ordering::Relaxed);
        let begun =
            self.folder.as_ref().map(|folder| (folder, folder.begin(&order.run, order.worker)));
        let file = begun.and_then(|(folder, begun)| match begun {
            Ok(file) => Some(file),
            Err(error) => {
                say(&format!(
                    "--spool {}: {error}; rows wait in memory only",
                    folder.path().display()
                ));
                None
            }
        });
        SpoolConfig { bytes_max: self.bytes_max, file, say: Arc::new(say) }
    }

    /// Nothing is played.
    pub(super) fn is_idle(&self) {
        self.is_playing.store(false, Ordering::Relaxed);
    }

    /// Whether rows survive the process.
    pub(super) fn is_on_disk(&self) -> bool {
        self.folder.is_some()
    }
}

/// What became of rows that were not delivered.
pub(super) fn told(undelivered: &Undelivered) -> Option<String> {
    let Undelivered { batches, kept, kept_in } = undelivered;
    match kept_in {
        // The rows were delivered, and the end was not.
        Some(path) if *batches == 0 => Some(format!(
            "how the part of this worker ended was not delivered; it is kept in {}, and a worker \
             that is started with this --spool delivers it",
            path.display()
        )),
        Some(path) => {
            let path = path.display();
            let they = if kept < batches { format!("{kept} of them") } else { "they".to_owned() };
            Some(format!(
                "{batches} batches of rows were not delivered; {they} are kept in {path}, and a \
                 worker that is started with this --spool delivers them"
            ))
        }
        None if *batches > 0 => {
            Some(format!("{batches} batches of rows were not delivered, and are lost"))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_a_full_file_holds_are_not_told_as_lost() {
        let told = |batches, kept, path: Option<&str>| {
            told(&Undelivered { batches, kept, kept_in: path.map(Into::into) }).unwrap_or_default()
        };
        let all = told(9, 9, Some("/s/0a-1.spool"));
        assert!(
            all.contains("9 batches of rows were not delivered; they are kept in /s/0a-1.spool"),
            "{all}"
        );
        let some = told(9, 4, Some("/s/0a-1.spool"));
        assert!(
            some.contains("9 batches of rows were not delivered; 4 of them are kept in /s/0a"),
            "{some}"
        );
        let end = told(0, 0, Some("/s/0a-1.spool"));
        assert!(end.contains("ended was not delivered; it is kept in /s/0a-1.spool"), "{end}");
        assert!(!end.contains("batches"), "{end}");
        assert!(told(9, 0, None).contains("are lost"));
        assert_eq!(told(0, 0, None), "");
    }
}
