//! What travels back: who else is to come or go, and stop.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use throng_observation::RunTime;
use throng_observation::run::Ending;

use crate::crowd::Crowd;

/// Wakes a thread out of its wait.
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
        // Full means that the thread has 2^64 - 2 reasons to wake already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.event, &mut [0u8; 8]);
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Complete, interrupted or aborted.
    pub ending: Ending,
    /// Why, when it did not run to its end.
    pub why: Option<String>,
    /// When the last participant was gone.
    pub ended_at: RunTime,
    /// Seconds in which the generator was the limit.
    pub limited_seconds: u32,
}

/// How, why and when a run was ended early.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) ending: Ending,
    pub(crate) why: String,
    pub(crate) at: Instant,
}

/// Whether the run may go on, as all threads see it.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: OnceLock<Stop>,
    pub(crate) crowd: Crowd,
    wakers: Vec<Arc<Waker>>,
}

impl Control {
    pub(crate) fn new(wakers: Vec<Arc<Waker>>, planned: u32) -> Self {
        Self { crowd: Crowd::new(planned, wakers.len()), wakers, ..Self::default() }
    }

    /// Wakes a thread that has something new to do.
    pub(crate) fn wake(&self, thread: usize) {
        if let Some(waker) = self.wakers.get(thread) {
            waker.wake();
        }
    }

    /// Ends the run early; the first call counts.
    pub(crate) fn stop(&self, ending: Ending, why: &str) {
        let stop = Stop { ending, why: why.to_owned(), at: Instant::now() };
        if self.stop.set(stop).is_ok() {
            self.wakers.iter().for_each(|waker| waker.wake());
        }
    }

    /// How the run was ended early, if it was.
    pub(crate) fn stopped(&self) -> Option<&Stop> {
        self.stop.get()
    }
}
