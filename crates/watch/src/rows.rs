//! The way of rows from every watcher of a run to its sink: one bounded queue; what it does not take is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvError, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

use throng_observation::host::{HostId, HostRow, SeriesId};

use crate::cpu_accounting::{ChargeGuard, CpuAccounts, CpuUsage, Purpose};

/// Puts rows into the queue of a run. Its clones share the numbers of series, so all parts of all watchers of a run
/// use clones of one.
#[derive(Clone, Debug)]
pub struct RowSender {
    queue: Sender<HostRow>,
    shared: Arc<Shared>,
}

/// The end of the queue at which rows are taken.
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
    /// Set when nobody takes rows any more.
    is_closed: AtomicBool,
    accounts: Arc<CpuAccounts>,
}

/// A queue for `capacity` rows. It takes memory for those that wait: a bounded channel of the standard library has all its
/// room laid out and written to from the start, which for minutes of rows is more than all else that a watcher needs.
#[must_use]
pub fn rows(capacity: usize) -> (RowSender, RowReceiver) {
    let (sender, receiver) = mpsc::channel();
    let shared = Arc::new(Shared { capacity, ..Shared::default() });
    (RowSender { queue: sender, shared: Arc::clone(&shared) }, RowReceiver { queue: receiver, shared })
}

impl RowSender {
    /// A number that no other series of the run has.
    #[must_use]
    pub fn new_series(&self) -> SeriesId {
        SeriesId(self.shared.next_series.fetch_add(1, Relaxed))
    }

    /// Puts a row into the queue; never waits. `false` when the queue was full: the row is lost and counted. Who sends
    /// a series must send it again then, before its samples.
    pub fn send(&self, row: HostRow) -> bool {
        if self.shared.waiting.fetch_add(1, Relaxed) < self.shared.capacity && self.queue.send(row).is_ok() {
            return true;
        }
        self.shared.waiting.fetch_sub(1, Relaxed);
        self.shared.dropped.fetch_add(1, Relaxed);
        false
    }

    /// How many rows were lost so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }

    /// Counts rows that were lost elsewhere on their way, such as at a remote watcher.
    pub fn count_dropped(&self, rows: u64) {
        self.shared.dropped.fetch_add(rows, Relaxed);
    }

    /// Puts what the calling thread takes of a CPU on the account of `host`, until the answer is dropped.
    pub(crate) fn charge(&self, host: HostId, purpose: Purpose) -> Option<ChargeGuard> {
        self.shared.accounts.clone().charge(host, purpose)
    }

    /// What the threads that work for `host` took of a CPU so far.
    pub(crate) fn spent(&self, host: HostId) -> CpuUsage {
        self.shared.accounts.spent(host)
    }

    /// Whether the receiver has gone, so that further reading is in vain.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Relaxed)
    }
}

impl RowReceiver {
    /// The next row; waits for it.
    ///
    /// # Errors
    /// When the queue is empty and all senders are gone.
    pub fn recv(&self) -> Result<HostRow, RecvError> {
        self.queue.recv().inspect(|_| self.taken())
    }

    /// The next row; waits for it no longer than `timeout`.
    ///
    /// # Errors
    /// When none came in time, or all senders are gone.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<HostRow, RecvTimeoutError> {
        self.queue.recv_timeout(timeout).inspect(|_| self.taken())
    }

    /// The next row, if one waits.
    ///
    /// # Errors
    /// When none waits.
    pub fn try_recv(&self) -> Result<HostRow, TryRecvError> {
        self.queue.try_recv().inspect(|_| self.taken())
    }

    /// The rows that wait.
    pub fn try_iter(&self) -> impl Iterator<Item = HostRow> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }

    fn taken(&self) {
        self.shared.waiting.fetch_sub(1, Relaxed);
    }
}

/// All rows until the last sender is gone.
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
    use throng_observation::RunTime;
    use throng_observation::host::{HostEvent, HostEventKind, HostId};

    #[test]
    fn a_full_queue_loses_rows_and_counts_them() {
        let row = || {
            let (host, at, kind) = (HostId(0), RunTime(0), HostEventKind::Mark);
            HostRow::Event(HostEvent { host, at, kind, detail: String::new() })
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
