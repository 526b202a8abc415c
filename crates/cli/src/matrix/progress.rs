//! `--serve`: what the strip of the page says, which the runs of an experiment write and whoever
//! looks reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use throng_report::html::live::{RunInProgress, ServedBy, experiment_strip};

use crate::console::{CliError, Interrupt};
use crate::http_server::Listener;
use crate::page::Page;

/// How far an experiment is; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<Mutex<Now>>);

#[derive(Debug, Default)]
struct Now {
    /// The run in progress and when it began.
    run: Option<(RunInProgress, Instant)>,
    /// What is known, in sentences.
    so_far: Vec<String>,
}

impl Progress {
    /// Serves the page of the experiment, which ends it by `interrupt`, until it is dropped.
    pub(super) fn serve(&self, port: Listener, interrupt: &Interrupt) -> Result<Page, CliError> {
        let progress = self.clone();
        let strip = Box::new(move || progress.strip());
        Page::start(port, strip, interrupt, ServedBy::Experiment)
    }

    /// A run begins before which this is known, in sentences.
    pub(super) fn begins(&self, run: RunInProgress, so_far: Vec<String>) {
        *self.now() = Now { run: Some((run, Instant::now())), so_far };
    }

    /// No run follows.
    pub(super) fn ends(&self) {
        self.now().run = None;
    }

    fn strip(&self) -> String {
        let now = self.now();
        let run = now.run.as_ref().map(|(run, began)| (run, began.elapsed().as_secs()));
        experiment_strip(run, &now.so_far)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runs_write_is_what_the_strip_says() {
        let progress = Progress::default();
        let reader = progress.clone();
        assert_eq!(reader.strip(), "");
        let run = RunInProgress { place: Some((2, 8)), label: "two".into(), folder: "c".into() };
        progress.begins(run, vec!["two: none of 4 pairs counts yet".into()]);
        let strip = reader.strip();
        assert!(strip.contains("run 2 of 8") && strip.contains("none of 4"), "{strip}");
        progress.ends();
        let strip = reader.strip();
        assert!(!strip.contains("run 2 of 8") && strip.contains("none of 4"), "{strip}");
    }
}
