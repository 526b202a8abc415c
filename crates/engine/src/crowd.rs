//! A crowd whose size changes while the run goes on: who is called to join, and who is dismissed, on the way from the run's
//! handle to the thread that owns them and to the collector that counts them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::Join;

/// A change of the crowd; `who` is the place in the plan, the participant's number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Somebody joins.
    Join(u32, Join),
    /// Somebody leaves.
    Dismiss(u32),
}

/// Orders of one thread that it has not taken yet.
#[derive(Debug, Default)]
struct Tray {
    orders: Mutex<VecDeque<Order>>,
    /// So that a thread without orders need not lock.
    is_filled: AtomicBool,
}

/// All orders on their way.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// The number of the next who is called.
    next: AtomicU32,
    trays: Vec<Tray>,
    /// For the collector. It is told before any thread is, so that it knows everybody of whom a thread reports.
    news: Tray,
}

impl Crowd {
    /// A crowd of `planned` participants on so many threads.
    pub(crate) fn new(planned: u32, threads: usize) -> Self {
        Self {
            next: AtomicU32::new(planned),
            trays: (0..threads.max(1)).map(|_| Tray::default()).collect(),
            news: Tray::default(),
        }
    }

    /// Numbers a join and sends it on its way; tells its number, and which thread to wake.
    pub(crate) fn call(&self, join: impl FnOnce(u32) -> Join) -> (u32, usize) {
        let who = self.next.fetch_add(1, Ordering::Relaxed);
        (who, self.send(who, Order::Join(who, join(who))))
    }

    /// Sends a dismissal on its way; tells which thread to wake.
    pub(crate) fn dismiss(&self, who: u32) -> usize {
        self.send(who, Order::Dismiss(who))
    }

    fn send(&self, who: u32, order: Order) -> usize {
        self.news.put(order);
        let thread = who as usize % self.trays.len().max(1);
        if let Some(tray) = self.trays.get(thread) {
            tray.put(order);
        }
        thread
    }

    /// What a thread is to do now.
    pub(crate) fn orders_of(&self, thread: usize) -> VecDeque<Order> {
        self.trays.get(thread).map(Tray::empty).unwrap_or_default()
    }

    /// What has changed since the collector last asked.
    pub(crate) fn news(&self) -> VecDeque<Order> {
        self.news.empty()
    }
}

impl Tray {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Order>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, order: Order) {
        self.lock().push_back(order);
        self.is_filled.store(true, Ordering::Release);
    }

    fn empty(&self) -> VecDeque<Order> {
        if !self.is_filled.swap(false, Ordering::Acquire) {
            return VecDeque::new();
        }
        std::mem::take(&mut *self.lock())
    }
}
