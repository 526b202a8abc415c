//! Forwards rows of watchers to the store, and keeps the current figures of their hosts.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use throng_observation::run::Row;
use throng_watch::RowReceiver;

use crate::live_hosts::LiveHosts;

/// The thread that forwards rows.
pub(super) struct RowForwarder {
    hosts: Arc<Mutex<LiveHosts>>,
    thread: JoinHandle<()>,
}

impl RowForwarder {
    /// Starts the thread; it ends when the last sender of rows is dropped.
    pub(super) fn start(received: RowReceiver, run_rows: SyncSender<Row>) -> std::io::Result<Self> {
        let hosts = Arc::new(Mutex::new(LiveHosts::default()));
        let its_hosts = Arc::clone(&hosts);
        let thread = std::thread::Builder::new().name("watch-rows".into()).spawn(move || {
            for row in received {
                let more = its_hosts.lock().unwrap_or_else(PoisonError::into_inner).take(&row);
                // A slow store blocks this thread. Then the queue before it fills, and surplus rows
                // are counted.
                for row in std::iter::once(row).chain(more) {
                    if run_rows.send(Row::Host(row)).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(Self { hosts, thread })
    }

    /// The current figures of the hosts.
    pub(super) fn hosts(&self) -> MutexGuard<'_, LiveHosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the last row.
    pub(super) fn end(self) {
        let _ = self.thread.join();
    }
}
