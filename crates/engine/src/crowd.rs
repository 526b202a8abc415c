//! Changes of the crowd during a run: participants that are added or removed, on the way from the
//! run's handle to the thread that owns them and to the collector.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::Join;

/// A change of the crowd; `u32` is the participant's id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CrowdCommand {
    /// A participant joins.
    Add(u32, Join),
    /// A participant leaves.
    Remove(u32),
}

/// Commands that the thread has not taken yet.
#[derive(Debug, Default)]
struct CommandQueue {
    commands: Mutex<VecDeque<CrowdCommand>>,
    /// Lets a thread without commands avoid the lock.
    is_filled: AtomicBool,
}

/// Commands to all threads and to the collector.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// Id of the next added participant.
    next: AtomicU32,
    queues: Vec<CommandQueue>,
    /// For the collector, which gets a command before the thread does: it must know each
    /// participant before a thread reports it.
    for_collector: CommandQueue,
}

impl Crowd {
    /// A crowd of `planned` participants on `threads` threads.
    pub(crate) fn new(planned: u32, threads: usize) -> Self {
        Self {
            next: AtomicU32::new(planned),
            queues: (0..threads.max(1)).map(|_| CommandQueue::default()).collect(),
            for_collector: CommandQueue::default(),
        }
    }

    /// Adds a participant; returns its id and the thread to wake.
    pub(crate) fn add(&self, join: impl FnOnce(u32) -> Join) -> (u32, usize) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (id, self.send(id, CrowdCommand::Add(id, join(id))))
    }

    /// Removes a participant; returns the thread to wake.
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

    /// Takes the commands of a thread.
    pub(crate) fn take_for_thread(&self, thread: usize) -> VecDeque<CrowdCommand> {
        self.queues.get(thread).map(CommandQueue::empty).unwrap_or_default()
    }

    /// Takes the commands for the collector.
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
