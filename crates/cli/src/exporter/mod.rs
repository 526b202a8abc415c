//! `--prometheus`: the live figures of a command, to be scraped while it runs. They are rendered
//! when they are asked for, once a second at most; rows come to them on their way to the store.

mod answer;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_analysis::search::Progress;
use throng_observation::host::HostRow;
use throng_observation::run::Row;
use throng_report::ObjectiveResult;
use throng_report::html::live::strip;
use throng_report::openmetrics::{Exposition, Metrics};

use crate::console::CliError;
use crate::http_server::{HttpServer, Listener};
use answer::Answers;

/// The figures; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct LiveFigures(Arc<Mutex<Metrics>>);

impl LiveFigures {
    /// Figures without a row.
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self(Arc::new(Mutex::new(metrics)))
    }

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

    /// The strip of a page: the last whole second of a run; empty of watched hosts alone.
    pub(crate) fn strip(&self) -> String {
        let metrics = self.metrics();
        metrics.glance().map_or_else(String::new, |(glance, search)| strip(&glance, search))
    }
}

/// Answers scrapers with these figures until the server is dropped.
pub(crate) fn serve(port: Listener, figures: LiveFigures) -> Result<HttpServer, CliError> {
    let answers = Answers::new(figures, port.address());
    port.serve("metrics", answers)
}
