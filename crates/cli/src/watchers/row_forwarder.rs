//! Forwards rows of watchers to the store, and keeps the current figures of their hosts.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_observation::host::{HostId, HostRow};
use throng_observation::run::Row;
use throng_watch::RowReceiver;

use crate::live_hosts::{LiveHosts, ServerFigures};

/// The thread that forwards rows.
pub(super) struct RowForwarder {
    now: Arc<Mutex<LiveHosts>>,
    thread: JoinHandle<()>,
}

impl RowForwarder {
    /// Starts; it ends when the last sender of rows is gone.
    pub(super) fn start(received: RowReceiver, run_rows: SyncSender<Row>) -> std::io::Result<Self> {
        let now = Arc::new(Mutex::new(LiveHosts::default()));
        let its_now = Arc::clone(&now);
        let thread = std::thread::Builder::new().name("watch-rows".into()).spawn(move || {
            for row in received {
                let more = its_now.lock().unwrap_or_else(PoisonError::into_inner).take(&row);
                // A slow store blocks this thread. Then the queue before it fills, and rows that find no room are counted.
                for row in std::iter::once(row).chain(more) {
                    if run_rows.send(Row::Host(row)).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(Self { now, thread })
    }

    /// Stores the packs of a host's server as JSON; the row with them, if the host is known already.
    pub(super) fn know(&self, host: HostId, packs: String) -> Option<HostRow> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).know(host, packs)
    }

    /// The current figures of the hosts.
    pub(super) fn figures(&self) -> Vec<ServerFigures> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).figures()
    }

    /// The time since the last row of a host; `None` before the first.
    pub(super) fn silent_for(&self, host: HostId) -> Option<Duration> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).silent_for(host)
    }

    /// Waits for the last row.
    pub(super) fn end(self) {
        let _ = self.thread.join();
    }
}
