//! `--prometheus`: the live figures of a command, to be scraped while it runs. A thread of its own
//! renders them when they are asked for, once a second at most; rows come to them on their way to
//! the store.

mod answer;
mod host_header;
mod server;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use throng_analysis::search::Progress;
use throng_observation::host::HostRow;
use throng_observation::run::Row;
use throng_report::ObjectiveResult;
use throng_report::openmetrics::{Exposition, Metrics};
use tokio::sync::oneshot;

use crate::args::ListenAddress;
use crate::console::{CliError, say};
use answer::Answers;

/// The figures; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct LiveMetrics(Arc<Mutex<Metrics>>);

impl LiveMetrics {
    fn metrics(&self) -> MutexGuard<'_, Metrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row.
    pub(crate) fn take(&self, row: &Row) {
        self.metrics().take(row);
    }

    /// Adds a row of a watched host.
    pub(crate) fn take_host(&self, row: &HostRow) {
        self.metrics().take_host(row);
    }

    /// The objectives as they are judged now.
    pub(crate) fn set_objectives(&self, objectives: &[ObjectiveResult]) {
        self.metrics().set_objectives(objectives);
    }

    /// How far a search has come; `is_over`: it has ended.
    pub(crate) fn set_search(&self, progress: Progress, is_over: bool) {
        self.metrics().set_search(progress, is_over);
    }

    /// The name of the scenario, and the run folder.
    pub(crate) fn set_subject(&self, scenario: &str, folder: &Path) {
        let run = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
        self.metrics().set_subject(scenario, &run);
    }

    fn exposition(&self) -> Exposition {
        self.metrics().exposition()
    }
}

/// A port that is taken, whose clients wait until there are figures.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    /// The host as it was asked for.
    host: String,
}

impl Listener {
    /// Listens on an address, and says on which.
    pub(crate) fn bind(asked: &ListenAddress) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| {
            CliError::usage(format!(
                "--prometheus {asked}: {error}\n  help: choose an address of this machine and a \
                 port that nobody has; port 0 is any that is free"
            ))
        };
        let host = asked.host.clone();
        let socket = TcpListener::bind((host.as_str(), asked.port)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        say(&format!("metrics     http://{address}/metrics"));
        Ok(Self { socket, address, host })
    }

    /// Answers with these figures until the exporter is dropped.
    pub(crate) fn serve(self, metrics: Metrics) -> Result<Exporter, CliError> {
        let Self { socket, address, host } = self;
        let metrics = LiveMetrics(Arc::new(Mutex::new(metrics)));
        let answers = Answers::new(metrics.clone(), address, host);
        let (stop, stopped) = oneshot::channel();
        let thread =
            server::start(socket, Arc::new(answers), stopped).map_err(CliError::invalid)?;
        Ok(Exporter { metrics, stop: Some(stop), thread: Some(thread) })
    }
}

/// An endpoint that answers.
pub(crate) struct Exporter {
    metrics: LiveMetrics,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Its figures.
    pub(crate) fn metrics(&self) -> LiveMetrics {
        self.metrics.clone()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // The thread ends when the sender is gone.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
