//! A crowd whose size changes while the run goes on: who is called to join, and who is dismissed, on the way from the run's
//! handle to the thread that owns them and to the collector that counts them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::Join;

/// A change of the crowd; `who` is the place in the plan, the participant's number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CrowdCommand {
    /// Somebody joins.
    Add(u32, Join),
    /// Somebody leaves.
    Remove(u32),
}

/// Orders of one thread that it has not taken yet.
#[derive(Debug, Default)]
struct CommandQueue {
    commands: Mutex<VecDeque<CrowdCommand>>,
    /// So that a thread without commands need not lock.
    is_filled: AtomicBool,
}

/// All commands on their way.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// The number of the next who is called.
    next: AtomicU32,
    queues: Vec<CommandQueue>,
    /// For the collector. It is told before any thread is, so that it knows everybody of whom a thread reports.
    for_collector: CommandQueue,
}

impl Crowd {
    /// A crowd of `planned` participants on so many threads.
    pub(crate) fn new(planned: u32, threads: usize) -> Self {
        Self {
            next: AtomicU32::new(planned),
            queues: (0..threads.max(1)).map(|_| CommandQueue::default()).collect(),
            for_collector: CommandQueue::default(),
        }
    }

    /// Numbers a join and sends it on its way; tells its number, and which thread to wake.
    pub(crate) fn add(&self, join: impl FnOnce(u32) -> Join) -> (u32, usize) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (id, self.send(id, CrowdCommand::Add(id, join(id))))
    }

    /// Sends a dismissal on its way; tells which thread to wake.
    pub(crate) fn remove(&self, id: u32) -> usize {
        self.send(id, CrowdCommand::Remove(id))
    }

    fn send(&self, id: u32, command: CrowdCommand) -> usize {
        self.for_collector.put(command);
        let thread = id as usize % self.queues.len().max(1);
        if let Some(queue) = self.queues.get(thread) {
            queue.put(command);
        }
        thread
    }

    /// What a thread is to do now.
    pub(crate) fn take_for_thread(&self, thread: usize) -> VecDeque<CrowdCommand> {
        self.queues.get(thread).map(CommandQueue::empty).unwrap_or_default()
    }

    /// What has changed since the collector last asked.
    pub(crate) fn take_for_collector(&self) -> VecDeque<CrowdCommand> {
        self.for_collector.empty()
    }
}

impl CommandQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<CrowdCommand>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, command: CrowdCommand) {
        self.lock().push_back(command);
        self.is_filled.store(true, Ordering::Release);
    }

    fn empty(&self) -> VecDeque<CrowdCommand> {
        if !self.is_filled.swap(false, Ordering::Acquire) {
            return VecDeque::new();
        }
        std::mem::take(&mut *self.lock())
    }
}
