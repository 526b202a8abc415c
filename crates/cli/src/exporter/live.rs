//! The figures and traces of a command in progress, which rows go into and outlets take from.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_analysis::search::Progress;
use throng_observation::RunTime;
use throng_observation::fleet::FleetNow;
use throng_observation::host::HostRow;
use throng_observation::run::{ParticipantId, Row};
use throng_report::html::live::strip;
use throng_report::openmetrics::{Exposition, Metrics};
use throng_report::otlp::{Batch, TraceContext, Traces};
use throng_report::{ObjectiveResult, Summary};

use crate::kept::read_json;

/// The figures; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct LiveFigures {
    metrics: Arc<Mutex<Metrics>>,
    traces: Option<LiveTraces>,
}

impl LiveFigures {
    /// Figures without a row, and the traces, if anybody wants them.
    pub(crate) fn new(metrics: Metrics, traces: Option<Traces>) -> Self {
        let traces = traces.map(|traces| LiveTraces(Arc::new(Mutex::new(traces))));
        Self { metrics: Arc::new(Mutex::new(metrics)), traces }
    }

    fn metrics(&self) -> MutexGuard<'_, Metrics> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The traces, if anybody wants them.
    pub(crate) fn traces(&self) -> Option<LiveTraces> {
        self.traces.clone()
    }

    /// Adds a row.
    pub(crate) fn take(&self, row: &Row) {
        self.metrics().take(row);
        self.traces.iter().for_each(|traces| traces.traces().take(row));
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

    /// How it goes for the workers of a fleet.
    pub(crate) fn set_fleet(&self, now: FleetNow) {
        self.metrics().set_fleet(now);
    }

    /// The name of the scenario, the run folder, and the wall clock of RunTime 0, microseconds
    /// since the Unix epoch.
    pub(crate) fn set_subject(&self, scenario: &str, folder: &Path, started_at_unix_us: i64) {
        let run = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
        self.metrics().set_subject(scenario, &run);
        if let Some(traces) = &self.traces {
            traces.traces().begin(scenario, &run, started_at_unix_us);
        }
    }

    /// The run is over, and its report is in this folder.
    pub(crate) fn end(&self, folder: &Path) {
        // Without it the span of the run is without an answer.
        let summary: Option<Summary> = read_json(folder, "summary.json").ok().flatten();
        summary.iter().for_each(|summary| self.metrics().end(summary));
        self.traces.iter().for_each(|traces| traces.traces().end(summary.as_ref()));
    }

    pub(super) fn exposition(&self) -> Exposition {
        self.metrics().exposition()
    }

    /// The strip of a page: the last whole second of a run; empty of watched hosts alone.
    pub(crate) fn strip(&self) -> String {
        let metrics = self.metrics();
        metrics.glance().map_or_else(String::new, |(glance, search)| strip(&glance, search))
    }
}

/// The traces; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct LiveTraces(Arc<Mutex<Traces>>);

impl LiveTraces {
    fn traces(&self) -> MutexGuard<'_, Traces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trace of a join that begins, if it has one.
    pub(crate) fn join(
        &self,
        participant: ParticipantId,
        intended_at: RunTime,
    ) -> Option<TraceContext> {
        self.traces().join(participant, intended_at)
    }

    pub(super) fn next_batch(&self) -> Option<Batch> {
        self.traces().next_batch()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.traces().dropped()
    }
}
