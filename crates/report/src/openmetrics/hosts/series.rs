//! A series of a watcher: its last value, and of a rate what it was of late.

use throng_observation::RunTime;
use throng_observation::host::HostId;
use throng_observation::host::catalogue::Metric;

use crate::openmetrics::exposition::Labels;

/// Of what a series is: the host, the labels by which it is shown, the name of its metric.
pub(super) type Key = (HostId, Labels, &'static str);

/// In a running mean the weight of what was so long ago is 1/e, seconds.
const RECENT_S: f64 = 5.0;

/// What is known of a series.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) key: Key,
    pub(super) metric: &'static Metric,
    pub(super) limit: Option<f64>,
    pub(super) is_of_process: bool,
    /// When its last value was read; the end of time before the first one.
    pub(super) at: RunTime,
    value: Option<f64>,
    /// The running mean up to then.
    mean: f64,
}

impl Series {
    pub(super) fn new(key: Key, metric: &'static Metric, is_of_process: bool) -> Self {
        let (limit, at, value, mean) = (None, RunTime(i64::MAX), None, 0.0);
        Self { key, metric, limit, is_of_process, at, value, mean }
    }

    /// Takes a value; returns by how much the sum of a rate has grown. A value is the mean since
    /// the reading before, and one that repeats is sent once more before it changes, so that no
    /// moment is missing in the sum.
    pub(super) fn take(&mut self, at: RunTime, value: f64) -> f64 {
        let span_s = seconds(self.at, at);
        self.mean = self.value.map_or(value, |_| toward(self.mean, value, span_s));
        (self.value, self.at) = (Some(value), at);
        // A sum never falls, whatever an agent sends.
        Some(value * span_s).filter(|grown| grown.is_finite()).map_or(0.0, |grown| grown.max(0.0))
    }

    /// The last value.
    pub(super) fn value(&self) -> Option<f64> {
        self.value
    }

    /// The last value; of a rate its running mean at `now`, until when the last one held.
    pub(super) fn recent(&self, now: RunTime) -> Option<f64> {
        let of_late = |value| toward(self.mean, value, seconds(self.at, now));
        self.value.map(|value| if self.metric.is_rate() { of_late(value) } else { value })
    }
}

fn seconds(from: RunTime, to: RunTime) -> f64 {
    to.0.saturating_sub(from.0).max(0) as f64 / 1e6
}

/// A running mean after a value that held for so long.
fn toward(mean: f64, value: f64, span_s: f64) -> f64 {
    value + (mean - value) * (-span_s / RECENT_S).exp()
}
