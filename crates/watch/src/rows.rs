//! The way of rows from every watcher of a run to its sink: one bounded queue; what it does not take is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use throng_observation::host::{HostRow, SeriesId};

/// Puts rows into the queue of a run. Its clones share the numbers of series, so all parts of all watchers of a run
/// use clones of one.
#[derive(Clone, Debug)]
pub struct RowSender {
    queue: SyncSender<HostRow>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    next_series: AtomicU32,
    dropped: AtomicU64,
    /// Set when nobody takes rows any more.
    is_closed: std::sync::atomic::AtomicBool,
}

/// A queue for `capacity` rows.
#[must_use]
pub fn rows(capacity: usize) -> (RowSender, Receiver<HostRow>) {
    let (queue, receiver) = mpsc::sync_channel(capacity);
    (RowSender { queue, shared: Arc::default() }, receiver)
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
        match self.queue.try_send(row) {
            Ok(()) => return true,
            Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected(_)) => self.shared.is_closed.store(true, Relaxed),
        }
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

    /// Whether the receiver has gone, so that further reading is in vain.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Relaxed)
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
        drop(receiver);
        assert!(!sender.send(row()));
        assert!(other.is_closed());
    }
}
