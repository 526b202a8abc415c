//! The loop that sends: metrics at their pace, traces as they come, and in the end the last of
//! both. Metrics are sums so far, so that one that is lost is in the next; spans wait.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use throng_report::otlp::{Batch, Resource, TimeWindow, metrics};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::answer::Failure;
use super::collector::Collector;
use super::connection::post;
use super::signal::Signal;
use crate::console::say;
use crate::exporter::live::LiveFigures;

/// How often spans are sent if there are any.
const TRACES_EVERY: Duration = Duration::from_secs(1);
/// How often metrics are sent.
const METRICS_EVERY: Duration = Duration::from_secs(5);
/// How long the end of the command waits for the last ones.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// What is to be sent, and where it stands.
pub(super) struct Sender {
    collector: Collector,
    live: LiveFigures,
    resource: Resource,
    from_unix_ns: u64,
    metrics: Signal,
    traces: Signal,
    /// Spans that are being sent, until they are delivered or refused.
    batch: Option<Batch>,
    /// Spans that the collector did not take, of all requests.
    spans_refused: u64,
    /// Points that it did not take, of the last request alone: each tells the same sums again.
    points_refused: u64,
    has_reported: bool,
}

impl Sender {
    pub(super) fn new(collector: Collector, live: LiveFigures, resource: Resource) -> Self {
        let now = Instant::now();
        Self {
            collector,
            live,
            resource,
            from_unix_ns: unix_ns(),
            metrics: Signal::new("metrics", METRICS_EVERY, now),
            traces: Signal::new("traces", TRACES_EVERY, now),
            batch: None,
            spans_refused: 0,
            points_refused: 0,
            has_reported: false,
        }
    }

    /// Sends until the sender of `stopped` is gone, and then what is left.
    pub(super) async fn run(mut self, stopped: oneshot::Receiver<()>) {
        let is_late = self.send_within(stopped).await;
        let missing = self.missing(is_late);
        if !missing.is_empty() {
            say(&format!("otlp: {}: {}", self.collector.shown(), missing.join("; ")));
        }
    }

    /// Sends until the sender of `stopped` is gone, and then what is left; whether that took too
    /// long, and was given up.
    pub(super) async fn send_within(&mut self, stopped: oneshot::Receiver<()>) -> bool {
        let (stop, told) = oneshot::channel();
        let limit = async {
            // An error, as nothing is sent by it: its sender is gone.
            let _ = stopped.await;
            drop(stop);
            sleep(LAST_WITHIN).await;
        };
        tokio::select! {
            () = self.send_until(told) => false,
            () = limit => true,
        }
    }

    /// Sends until the sender of `stopped` is gone, and then what is left. It hears of that between
    /// requests alone: spans of one that is given up would be sent again, though they arrived.
    async fn send_until(&mut self, mut stopped: oneshot::Receiver<()>) {
        while timeout(TRACES_EVERY, &mut stopped).await.is_err() {
            if self.metrics.is_due(Instant::now()) {
                self.send_metrics().await;
            }
            if self.traces.is_due(Instant::now()) {
                self.send_traces().await;
            }
        }
        self.send_metrics().await;
        self.send_traces().await;
    }

    async fn send_metrics(&mut self) {
        let window = TimeWindow { from_unix_ns: self.from_unix_ns, at_unix_ns: unix_ns() };
        // Rows wait for the figures, and not for the text.
        let exposition = self.live.exposition();
        let form = self.collector.environment.histograms;
        let body = metrics(&self.resource, &exposition, window, form);
        match post(&self.collector, self.metrics.name, body).await {
            Ok(refused) => {
                self.points_refused = refused;
                self.metrics.delivered(Instant::now());
            }
            Err(failure) => {
                self.report_failure(&failure, self.metrics.name);
                self.metrics.failed(failure, Instant::now());
            }
        }
    }

    /// Sends all spans that wait, up to the first failure.
    async fn send_traces(&mut self) {
        let Some(traces) = self.live.traces() else { return };
        loop {
            if self.batch.is_none() {
                self.batch = traces.next_batch();
            }
            let Some(batch) = &self.batch else { return };
            let (spans, body) = (batch.spans() as u64, batch.body(&self.resource));
            match post(&self.collector, self.traces.name, body).await {
                Ok(refused) => {
                    self.spans_refused = self.spans_refused.saturating_add(refused);
                    self.batch = None;
                    self.traces.delivered(Instant::now());
                }
                Err(failure) => {
                    if !failure.may_repeat {
                        self.spans_refused = self.spans_refused.saturating_add(spans);
                        self.batch = None;
                    }
                    self.report_failure(&failure, self.traces.name);
                    self.traces.failed(failure, Instant::now());
                    return;
                }
            }
        }
    }

    /// Says the first failure; what is missing in the end is said then.
    fn report_failure(&mut self, failure: &Failure, signal: &str) {
        if !std::mem::replace(&mut self.has_reported, true) {
            say(&format!(
                "otlp: no {signal} reach {}, the run goes on: {}",
                self.collector.shown(),
                failure.why
            ));
        }
    }

    /// What did not arrive, and why, as clauses; `is_late`: the end was given up.
    pub(super) fn missing(&mut self, is_late: bool) -> Vec<String> {
        let mut missing = Vec::new();
        if let Some(traces) = self.live.traces() {
            let mut waiting = self.batch.take().map_or(0, |batch| batch.spans() as u64);
            while let Some(batch) = traces.next_batch() {
                waiting += batch.spans() as u64;
            }
            let spans = waiting.saturating_add(traces.dropped());
            missing.extend((spans > 0).then(|| format!("{spans} spans did not arrive")));
        }
        for (refused, what) in [(self.spans_refused, "spans"), (self.points_refused, "points")] {
            missing.extend((refused > 0).then(|| format!("{refused} {what} were refused")));
        }
        let why = self.metrics.why().or(self.traces.why());
        let why = why.or(is_late.then_some("no answer in time at the end"));
        missing.extend(why.map(str::to_owned));
        missing
    }
}

/// The wall clock, nanoseconds since the Unix epoch.
fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
