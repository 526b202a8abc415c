//! The sampling thread and its control handle.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use throng_observation::host::{Frame, Profile, Stack};

use super::options::Cost;
use crate::cpu_accounting::clock;

/// State shared with the sampling thread.
#[derive(Debug)]
pub(super) struct Shared {
    is_over: AtomicBool,
    is_wanted: AtomicBool,
    follow: Mutex<Vec<u32>>,
    wake: OwnedFd,
}

impl Shared {
    /// Whether sampling is to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Whether the profile is wanted, rather than discarded.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }

    /// Processes to track that were added since the last call.
    pub(super) fn to_follow(&self) -> Vec<u32> {
        std::mem::take(&mut self.follow.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Readable once sampling is to end.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Control handle of the sampling thread.
#[derive(Debug)]
pub(super) struct Control {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<(Profile, Cost)>>,
}

impl Control {
    /// Runs `sampler` on a thread.
    pub(super) fn spawn(
        sampler: impl FnOnce(&Shared) -> (Profile, Cost) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            is_over: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            follow: Mutex::new(Vec::new()),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let theirs = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("profiler".into()).spawn(move || sampler(&theirs))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn follow(&self, pid: u32) {
        self.shared.follow.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
    }

    pub(super) fn stop(mut self) -> (Profile, Cost) {
        self.shared.is_wanted.store(true, Ordering::Release);
        let ended = self.end();
        ended.unwrap_or_else(|| {
            let limits = vec!["the profiler failed: this is a fault of throng".to_owned()];
            (Profile { limits, ..Profile::default() }, Cost::default())
        })
    }

    fn end(&mut self) -> Option<(Profile, Cost)> {
        self.shared.is_over.store(true, Ordering::Release);
        // If this fails, the thread still polls the flag.
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        self.thread.take()?.join().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.end();
    }
}

/// The clock of the kernel's sample timestamps.
pub(super) fn monotonic() -> Duration {
    clock(rustix::time::ClockId::Monotonic)
}

/// Assigns indices to frames in the order of their first use.
#[derive(Default)]
pub(super) struct FrameTable(HashMap<Frame, u32>);

impl FrameTable {
    pub(super) fn index(&mut self, frame: Frame) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(frame).or_insert(next)
    }

    /// The frames by index.
    pub(super) fn into_frames(self) -> Vec<Frame> {
        let mut frames: Vec<_> = self.0.into_iter().map(|(frame, index)| (index, frame)).collect();
        frames.sort_unstable_by_key(|(index, _)| *index);
        frames.into_iter().map(|(_, frame)| frame).collect()
    }
}

/// Sorts stacks by count, most frequent first.
pub(super) fn sort_by_count(stacks: &mut [Stack]) {
    stacks.sort_unstable_by(|a, b| {
        b.count.cmp(&a.count).then_with(|| (a.tid, &a.frames).cmp(&(b.tid, &b.frames)))
    });
}
