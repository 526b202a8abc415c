//! The one thing that travels back: stop.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use throng_observation::run::Ending;

/// Wakes a worker out of its wait.
#[derive(Debug)]
pub(crate) struct Waker {
    event: OwnedFd,
}

impl Waker {
    pub(crate) fn new() -> std::io::Result<Self> {
        use rustix::event::EventfdFlags;
        Ok(Self { event: rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)? })
    }

    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }

    pub(crate) fn wake(&self) {
        // Full means that the worker has 2^64 - 2 reasons to wake already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    pub(crate) fn rest(&self) {
        let _ = rustix::io::read(&self.event, &mut [0u8; 8]);
    }
}

const RUNNING: u8 = 0;
const INTERRUPTED: u8 = 1;
const ABORTED: u8 = 2;

/// Whether the run may go on, as all threads see it.
#[derive(Debug, Default)]
pub(crate) struct Control {
    state: AtomicU8,
    why: OnceLock<String>,
    wakers: Vec<Arc<Waker>>,
}

impl Control {
    pub(crate) fn new(wakers: Vec<Arc<Waker>>) -> Self {
        Self { wakers, ..Self::default() }
    }

    /// Ends the run early; the first call counts.
    pub(crate) fn stop(&self, ending: Ending, why: &str) {
        let state = if ending == Ending::Aborted { ABORTED } else { INTERRUPTED };
        if self.state.compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let _ = self.why.set(why.to_owned());
            self.wakers.iter().for_each(|waker| waker.wake());
        }
    }

    /// How the run was ended early, if it was.
    pub(crate) fn stopped(&self) -> Option<Ending> {
        match self.state.load(Ordering::Acquire) {
            RUNNING => None,
            ABORTED => Some(Ending::Aborted),
            _ => Some(Ending::Interrupted),
        }
    }

    pub(crate) fn why(&self) -> Option<String> {
        self.why.get().cloned()
    }
}
