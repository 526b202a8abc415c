//! Ctrl-C and SIGTERM: the first asks the run to end in an orderly way, the second ends the
//! process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::exit::Exit;
use crate::live;

/// Whether a signal asked the command to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for signals on a thread of its own.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let asked = interrupt.clone();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(asked.watch()))?;
        Ok(interrupt)
    }

    /// As a signal would.
    pub(crate) fn set(&self) {
        self.0.store(true, Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    async fn watch(self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if self.0.swap(true, Relaxed) {
                // The second signal does not wait; the run folder stays unfinished.
                live::give_back_for_good();
                std::process::exit(Exit::Interrupted as i32);
            }
        }
    }
}
