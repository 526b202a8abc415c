//! One worker of a fleet.

use throng_observation::fleet::{WorkerInfo, WorkerNow};
use throng_observation::limits::Limit;
use throng_observation::run::GeneratorRow;

use crate::openmetrics::exposition::Labels;

/// What is known of a worker.
#[derive(Debug)]
pub(super) struct Worker {
    /// The value of its label.
    label: String,
    /// As it was before the run; `clock_end` is its clock now.
    info: WorkerInfo,
    /// The open second, and the last that is whole.
    open: Option<Used>,
    last: Option<Used>,
    /// Seconds in which it exceeded one of its limits, and the last of them.
    limited_s: u64,
    limited_at: Option<i64>,
    given_up_batches: u64,
}

/// What its generator used in a second.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    second: i64,
    cpu_us: u64,
    /// By its busiest thread, share of a core.
    hottest_ratio: f64,
}

impl Worker {
    pub(super) fn new(label: String, info: WorkerInfo) -> Self {
        Self {
            label,
            info,
            open: None,
            last: None,
            limited_s: 0,
            limited_at: None,
            given_up_batches: 0,
        }
    }

    /// How it goes for it now.
    pub(super) fn set(&mut self, now: &WorkerNow) {
        self.info.clock_end = now.clock.or(self.info.clock_end);
        // A counter, whatever the worker says.
        self.given_up_batches = self.given_up_batches.max(now.given_up_batches);
    }

    /// Takes a row of its generator.
    pub(super) fn take(&mut self, row: &GeneratorRow) {
        let is_limited = Limit::ALL.into_iter().any(|limit| limit.is_passed(row));
        if is_limited && self.limited_at.is_none_or(|second| second < row.second) {
            self.limited_s = self.limited_s.saturating_add(1);
            self.limited_at = Some(row.second);
        }
        let open = self.open.get_or_insert_default();
        if row.second > open.second {
            *open = Used { second: row.second, ..Used::default() };
        } else if row.second < open.second {
            return; // It was late.
        }
        match Limit::ThreadCpu.figure(row) {
            Some(ratio) => open.hottest_ratio = open.hottest_ratio.max(ratio),
            None => open.cpu_us = row.cpu_us,
        }
    }

    /// The open second is whole.
    pub(super) fn close(&mut self) {
        self.last = self.open.take();
    }

    pub(super) fn labels(&self) -> Labels {
        vec![("worker", self.label.clone())]
    }

    pub(super) fn clock_offset_s(&self) -> f64 {
        let offset_us =
            self.info.clock_end.map_or(self.info.clock_offset_us, |clock| clock.offset_us);
        offset_us as f64 / 1e6
    }

    pub(super) fn clock_error_s(&self) -> f64 {
        self.info.clock_end_error_us().unwrap_or(self.info.clock_bound_us) as f64 / 1e6
    }

    /// Of the cores that it may use.
    pub(super) fn cpu_ratio(&self) -> Option<f64> {
        Some(self.last?.cpu_us as f64 / 1e6 / f64::from(self.info.cores.max(1)))
    }

    pub(super) fn hottest_ratio(&self) -> Option<f64> {
        Some(self.last?.hottest_ratio)
    }

    pub(super) fn limited_s(&self) -> u64 {
        self.limited_s
    }

    pub(super) fn given_up_batches(&self) -> u64 {
        self.given_up_batches
    }
}
