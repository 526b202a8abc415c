//! The queue of rows from all watchers of a run: bounded; rows that do not fit are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvError, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::host::{HostId, HostRow, SeriesId};

use crate::cpu_accounting::{ChargeGuard, CpuAccounts, CpuUsage, Purpose};

/// The run's time of a moment; `zero` is the moment of the first intended join.
pub(crate) fn run_time(zero: Instant, moment: Instant) -> RunTime {
    match moment.checked_duration_since(zero) {
        Some(after) => RunTime::after_start(after),
        None => RunTime(-RunTime::after_start(zero.duration_since(moment)).0),
    }
}

/// The sending end of a run's queue. Clones share the counter of series ids, so all parts of all
/// watchers of a run use clones of one sender.
#[derive(Clone, Debug)]
pub struct RowSender {
    queue: Sender<HostRow>,
    shared: Arc<Shared>,
}

/// The receiving end of a run's queue.
#[derive(Debug)]
pub struct RowReceiver {
    queue: Receiver<HostRow>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    capacity: usize,
    waiting: AtomicUsize,
    next_series: AtomicU32,
    dropped: AtomicU64,
    /// Set when the receiver is dropped.
    is_closed: AtomicBool,
    accounts: Arc<CpuAccounts>,
}

/// A queue for `capacity` rows, which uses memory only for queued rows: a bounded channel of the
/// standard library allocates its whole capacity up front, which for minutes of rows exceeds
/// everything else that a watcher needs.
#[must_use]
pub fn rows(capacity: usize) -> (RowSender, RowReceiver) {
    let (sender, receiver) = mpsc::channel();
    let shared = Arc::new(Shared { capacity, ..Shared::default() });
    (
        RowSender { queue: sender, shared: Arc::clone(&shared) },
        RowReceiver { queue: receiver, shared },
    )
}

impl RowSender {
    /// A series id that is unique in the run.
    #[must_use]
    pub fn new_series(&self) -> SeriesId {
        SeriesId(self.shared.next_series.fetch_add(1, Relaxed))
    }

    /// Queues a row; never blocks. `false` means that the queue was full: the row is dropped and
    /// counted. The announcement of a series must then be sent again before its samples.
    pub fn send(&self, row: HostRow) -> bool {
        if self.shared.waiting.fetch_add(1, Relaxed) < self.shared.capacity
            && self.queue.send(row).is_ok()
        {
            return true;
        }
        self.shared.waiting.fetch_sub(1, Relaxed);
        self.shared.dropped.fetch_add(1, Relaxed);
        false
    }

    /// Number of rows dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }

    /// Adds rows that were dropped elsewhere, such as at a remote watcher.
    pub fn count_dropped(&self, rows: u64) {
        self.shared.dropped.fetch_add(rows, Relaxed);
    }

    /// Charges the calling thread's CPU time to `host` until the guard is dropped.
    pub(crate) fn charge(&self, host: HostId, purpose: Purpose) -> Option<ChargeGuard> {
        self.shared.accounts.clone().charge(host, purpose)
    }

    /// CPU time used so far by the threads that work for `host`.
    pub(crate) fn cpu_usage(&self, host: HostId) -> CpuUsage {
        self.shared.accounts.usage(host)
    }

    /// Whether the receiver is gone, so that further reading is useless.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Relaxed)
    }
}

impl RowReceiver {
    /// The next row; blocks until there is one.
    ///
    /// # Errors
    /// When the queue is empty and all senders are dropped.
    pub fn recv(&self) -> Result<HostRow, RecvError> {
        self.queue.recv().inspect(|_| self.taken())
    }

    /// The next row; blocks at most for `timeout`.
    ///
    /// # Errors
    /// When none arrived in time, or all senders are dropped.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<HostRow, RecvTimeoutError> {
        self.queue.recv_timeout(timeout).inspect(|_| self.taken())
    }

    /// The next row, if there is one.
    ///
    /// # Errors
    /// When the queue is empty.
    pub fn try_recv(&self) -> Result<HostRow, TryRecvError> {
        self.queue.try_recv().inspect(|_| self.taken())
    }

    /// The rows that are queued now.
    pub fn try_iter(&self) -> impl Iterator<Item = HostRow> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }

    fn taken(&self) {
        self.shared.waiting.fetch_sub(1, Relaxed);
    }
}

/// All rows until the last sender is dropped.
impl Iterator for RowReceiver {
    type Item = HostRow;

    fn next(&mut self) -> Option<HostRow> {
        self.recv().ok()
    }
}

impl Drop for RowReceiver {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::host::{HostEvent, HostEventKind};

    #[test]
    fn a_full_queue_loses_rows_and_counts_them() {
        let row = || {
            let (host, at, kind) = (HostId(0), RunTime(0), HostEventKind::Mark);
            HostRow::Event(HostEvent::new(host, at, kind, ""))
        };
        let (sender, receiver) = rows(1);
        let other = sender.clone();
        assert!(sender.send(row()));
        assert!(!other.send(row()));
        assert_eq!((sender.dropped(), sender.is_closed()), (1, false));
        assert_ne!(sender.new_series(), other.new_series());
        assert!(receiver.try_recv().is_ok());
        assert!(other.send(row()), "there is room again");
        drop(receiver);
        assert!(other.is_closed());
        assert!(!sender.send(row()));
    }
}
