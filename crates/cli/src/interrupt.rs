//! Ctrl-C, SIGTERM and SIGHUP: the first asks the run to end in an orderly way, the second ends the
//! process and all that it started.

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
        use tokio::signal::unix::{Signal, SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        // A handler would undo what `nohup` did.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut hang_up =
            if ignores_hang_up(&status) { None } else { Some(signal(SignalKind::hangup())?) };
        loop {
            let hung_up = async {
                match hang_up.as_mut().map(Signal::recv) {
                    Some(came) => came.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hung_up => {}
            }
            if self.0.swap(true, Relaxed) {
                // The second signal does not wait; the run folder stays unfinished, and nothing is
                // dropped.
                live::give_back_for_good();
                throng_process::end_all();
                std::process::exit(Exit::Interrupted as i32);
            }
        }
    }
}

/// Whether SIGHUP, the first of the signals, is ignored by a process with this
/// `/proc/PID/status` (proc_pid_status(5)).
fn ignores_hang_up(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hang_up_that_nohup_ignores_stays_ignored() {
        for (status, expect) in [
            ("Name:\tthrong\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000000\n", true),
            ("SigIgn:\t0000000000001001\n", true),
            ("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n", false),
            ("SigIgn:\t\n", false),
            ("", false),
        ] {
            assert_eq!(ignores_hang_up(status), expect, "{status}");
        }
    }
}
