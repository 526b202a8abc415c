//! Control of a run: changes of the crowd, and its early end.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use throng_net::Waker;
use throng_observation::run::Ending;
use throng_observation::{RunTime, Unloaded};

use crate::crowd::Crowd;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Complete, interrupted or aborted.
    pub ending: Ending,
    /// The reason, if it ended early.
    pub why: Option<String>,
    /// When the last participant had ended.
    pub ended_at: RunTime,
    /// Seconds in which the generator was the limit.
    pub limited_seconds: u32,
}

/// An early end of a run.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) ending: Ending,
    pub(crate) why: String,
    pub(crate) at: Instant,
}

/// State of the run that all threads share.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: OnceLock<Stop>,
    unloaded: OnceLock<Unloaded>,
    pub(crate) crowd: Crowd,
    wakers: Vec<Arc<Waker>>,
}

impl Control {
    pub(crate) fn new(wakers: Vec<Arc<Waker>>, planned: u32) -> Self {
        Self { crowd: Crowd::new(planned, wakers.len()), wakers, ..Self::default() }
    }

    /// Wakes a thread, for which there is a new crowd command.
    pub(crate) fn wake(&self, thread: usize) {
        if let Some(waker) = self.wakers.get(thread) {
            waker.wake();
        }
    }

    /// Ends the run early; only the first call has an effect.
    pub(crate) fn stop(&self, ending: Ending, why: &str) {
        let stop = Stop { ending, why: why.to_owned(), at: Instant::now() };
        if self.stop.set(stop).is_ok() {
            self.wakers.iter().for_each(|waker| waker.wake());
        }
    }

    /// Users are judged beyond what they see without load; only the first call has an effect.
    pub(crate) fn judge_beyond(&self, unloaded: Unloaded) {
        // A search learns it once.
        let _ = self.unloaded.set(unloaded);
    }

    /// What users see without load, beyond which they are judged.
    pub(crate) fn unloaded(&self) -> Option<&Unloaded> {
        self.unloaded.get()
    }

    /// The early end, if there was one.
    pub(crate) fn stopped(&self) -> Option<&Stop> {
        self.stop.get()
    }
}
