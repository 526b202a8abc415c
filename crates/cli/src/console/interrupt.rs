//! Ctrl-C, SIGTERM and SIGHUP: the first asks the run to end in an orderly way, the second ends the
//! process and all that it started. A hang-up is never the second, nor the first of two; neither is
//! what a throng asks one of that it started ([`BY_PARENT`]), nor what its page asks: whoever is at
//! the terminal has asked nothing yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::exit::Exit;
use super::{screen, writer};

/// The signal by which a throng asks one that it started to end in an orderly way.
///
/// It has a group of its own, so that Ctrl-C reaches it in this way alone. systemd, though, sends
/// SIGTERM to all processes of a service: with what comes from its parent that is one request. A
/// hang-up would be so too, but `nohup` makes all that is started deaf to it.
pub(crate) const BY_PARENT: &str = "SIGUSR1";

/// What asks to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// Ctrl-C or SIGTERM.
    Signal,
    /// SIGHUP or [`BY_PARENT`]: it may come beside others for one reason. A page: it is another's.
    Beside,
}

/// Nobody asked to end.
const NOBODY: u8 = 0;
/// All that asked was [`Request::Beside`]: a signal after it is the first.
///
/// The end of one terminal comes as several signals: a shell sends SIGHUP to its jobs and the
/// kernel one to the foreground group; systemd sends SIGTERM and SIGHUP to a scope, and which of
/// two that wait is read first is by chance.
const BESIDE: u8 = 1;
/// A signal or a key asked.
const ASKED: u8 = 2;

/// Whether the command was asked to end: one of the three above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicU8>);

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
        writer::end_is_asked();
        self.0.store(ASKED, Relaxed);
    }

    /// As another process would, so that a signal after it is the first; whether nobody had asked.
    pub(crate) fn set_beside(&self) -> bool {
        writer::end_is_asked();
        self.0.compare_exchange(NOBODY, BESIDE, Relaxed, Relaxed).is_ok()
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed) != NOBODY
    }

    /// Notes a signal; whether the process ends at once.
    fn heard(&self, request: Request) -> bool {
        writer::end_is_asked();
        match request {
            Request::Beside => {
                self.set_beside();
                false
            }
            Request::Signal => self.0.swap(ASKED, Relaxed) == ASKED,
        }
    }

    async fn watch(self) -> std::io::Result<()> {
        use tokio::signal::unix::{Signal, SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut by_parent = signal(SignalKind::user_defined1())?;
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
            let request = tokio::select! {
                _ = interrupt.recv() => Request::Signal,
                _ = terminate.recv() => Request::Signal,
                _ = by_parent.recv() => Request::Beside,
                _ = hung_up => Request::Beside,
            };
            if self.heard(request) {
                // The second signal does not wait; the run folder stays unfinished, and nothing is
                // dropped.
                screen::give_back_for_good();
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

    fn request(signal: &str) -> Request {
        if signal == "INT" || signal == "TERM" { Request::Signal } else { Request::Beside }
    }

    #[test]
    fn the_end_of_a_terminal_or_service_is_one_signal_in_whatever_order_it_comes() {
        for (signals, expect) in [
            (&["HUP", "HUP"][..], false),
            (&["TERM", "HUP"], false),
            (&["HUP", "TERM"], false),
            (&["HUP", "TERM", "HUP"], false),
            (&["TERM", "USR1"], false),
            (&["USR1", "TERM"], false),
            (&["USR1", "TERM", "HUP"], false),
            (&["TERM", "USR1", "TERM"], true),
            (&["USR1", "TERM", "TERM"], true),
            (&["TERM"], false),
            (&["INT", "INT"], true),
            (&["TERM", "HUP", "TERM"], true),
            (&["HUP", "TERM", "TERM"], true),
        ] {
            let interrupt = Interrupt::default();
            let ends = signals.iter().any(|signal| interrupt.heard(request(signal)));
            assert_eq!(ends, expect, "{signals:?}");
            assert!(interrupt.is_set());
        }
        // A key of the live view asks too.
        let interrupt = Interrupt::default();
        interrupt.set();
        assert!(writer::is_end_asked(), "a terminal that hangs holds nobody");
        assert!(!interrupt.heard(Request::Beside));
        assert!(interrupt.heard(Request::Signal));
    }

    #[test]
    fn one_signal_after_what_a_page_asked_is_the_first() {
        let interrupt = Interrupt::default();
        assert!(interrupt.set_beside() && interrupt.is_set());
        assert!(!interrupt.set_beside(), "it is said once");
        assert!(!interrupt.heard(Request::Signal) && interrupt.heard(Request::Signal));
    }

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
