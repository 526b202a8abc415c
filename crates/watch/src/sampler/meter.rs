//! Meters: a series is announced once, then a sample is written whenever its value changes.

use std::sync::Arc;
use std::time::Instant;

use throng_observation::RunTime;
use throng_observation::host::catalogue::Metric;
use throng_observation::host::{
    HostEvent, HostEventKind, HostId, HostRow, HostSample, HostSeries, ProcessEvent, SeriesId,
};

use crate::rows::{RowSender, run_time};

/// The destination of a host's rows, and the origin of their times.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    pub(crate) rows: RowSender,
    pub(crate) host: HostId,
    pub(crate) zero: Instant,
    /// The label `netns` of every series, if there is more than one network namespace.
    pub(crate) netns: Option<Arc<str>>,
}

impl Sink {
    pub(crate) fn at(&self, moment: Instant) -> RunTime {
        run_time(self.zero, moment)
    }

    pub(crate) fn event(&self, at: Instant, kind: HostEventKind, detail: impl Into<String>) {
        let event = HostEvent::new(self.host, self.at(at), kind, detail);
        self.rows.send(HostRow::Event(event));
    }

    /// An event about a process that was found or ended.
    pub(crate) fn process_event(
        &self,
        at: Instant,
        process: ProcessEvent,
        detail: impl Into<String>,
    ) {
        let is_end = process.end.is_some();
        let kind = if is_end { HostEventKind::ProcessEnded } else { HostEventKind::ProcessFound };
        let event = HostEvent::new(self.host, self.at(at), kind, detail);
        self.rows.send(HostRow::Event(HostEvent { process: Some(process), ..event }));
    }
}

/// Metric, labels and limit of a series.
#[derive(Debug)]
pub(crate) struct SeriesSpec<'a> {
    pub(crate) metric: &'a Metric,
    pub(crate) labels: &'a [(&'a str, &'a str)],
    pub(crate) limit: Option<f64>,
}

impl<'a> SeriesSpec<'a> {
    pub(crate) fn host(metric: &'a Metric) -> Self {
        Self { metric, labels: &[], limit: None }
    }

    pub(crate) fn new(metric: &'a Metric, labels: &'a [(&'a str, &'a str)]) -> Self {
        Self { metric, labels, limit: None }
    }

    pub(crate) fn limit(self, limit: Option<f64>) -> Self {
        Self { limit, ..self }
    }
}

/// How long a rate other than zero may be repeated unwritten, microseconds: whoever sums it up over
/// time (a core that is busy all the time) sees the sum grow.
const REPEATED_US_MAX: i64 = 5_000_000;

/// One series. Repeated values are omitted, except that the last repetition is written before a
/// change, so that the time of the change is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    series: Option<SeriesId>,
    value: f64,
    limit: Option<f64>,
    written_at: RunTime,
    repeated_at: Option<RunTime>,
}

impl Meter {
    /// Writes `value`; announces the series first if it is new or its limit has changed.
    pub(crate) fn put(&mut self, sink: &Sink, at: Instant, value: f64, spec: &SeriesSpec<'_>) {
        let at = sink.at(at);
        if self.series.is_none() || self.limit != spec.limit {
            let id = self.series.unwrap_or_else(|| sink.rows.new_series());
            if !sink.rows.send(HostRow::Series(series(id, sink, spec))) {
                return; // again with the next value
            }
            let is_new = self.series.is_none();
            (self.series, self.limit) = (Some(id), spec.limit);
            if is_new {
                (self.value, self.repeated_at) = (f64::NAN, None);
            }
        }
        let Some(series) = self.series else { return };
        if value == self.value {
            let is_due = at.0.saturating_sub(self.written_at.0) >= REPEATED_US_MAX;
            if value == 0.0 || !is_due || !spec.metric.is_rate() {
                self.repeated_at = Some(at);
                return;
            }
            self.repeated_at = None;
        }
        if let Some(at) = self.repeated_at.take() {
            sink.rows.send(HostRow::Sample(HostSample { series, at, value: self.value }));
        }
        if sink.rows.send(HostRow::Sample(HostSample { series, at, value })) {
            (self.value, self.written_at) = (value, at);
        }
    }

    /// Begins the series with zero, if it has not begun: the value that follows is the mean of the
    /// time since then.
    pub(crate) fn begin_at_zero(&mut self, sink: &Sink, at: Instant, spec: &SeriesSpec<'_>) {
        if self.series.is_none() {
            self.put(sink, at, 0.0, spec);
        }
    }

    /// As [`Self::put`], but the series does not start with zero: thousands of them may never have
    /// another value.
    pub(crate) fn put_if_nonzero(
        &mut self,
        sink: &Sink,
        at: Instant,
        value: f64,
        spec: &SeriesSpec<'_>,
    ) {
        if self.series.is_some() || value > 0.0 {
            self.put(sink, at, value, spec);
        }
    }

    /// Records that the value is unchanged: as [`Self::put`] with the same value, but cheaper.
    pub(crate) fn repeat(&mut self, sink: &Sink, at: Instant) {
        if self.series.is_some() {
            self.repeated_at = Some(sink.at(at));
        }
    }

    /// Whether the series has not started, or its last value was zero.
    pub(crate) fn is_quiet(&self) -> bool {
        self.series.is_none() || self.value == 0.0
    }

    /// Ends the series with NaN.
    pub(crate) fn end(&mut self, sink: &Sink, at: Instant) {
        if let Some(series) = self.series.take() {
            if let Some(at) = self.repeated_at.take() {
                sink.rows.send(HostRow::Sample(HostSample { series, at, value: self.value }));
            }
            sink.rows.send(HostRow::Sample(HostSample {
                series,
                at: sink.at(at),
                value: f64::NAN,
            }));
        }
    }
}

fn series(id: SeriesId, sink: &Sink, spec: &SeriesSpec<'_>) -> HostSeries {
    let netns = sink.netns.iter().map(|name| ("netns", &**name));
    HostSeries {
        id,
        host: sink.host,
        metric: spec.metric.name.to_owned(),
        unit: spec.metric.unit,
        labels: spec
            .labels
            .iter()
            .copied()
            .chain(netns)
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .collect(),
        limit: spec.limit,
    }
}

/// A cumulative kernel counter, from which a rate is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter(Option<(u64, Instant)>);

impl Counter {
    /// The rate since the previous value, a second; `None` for the first value and after a reset.
    pub(crate) fn rate(&mut self, at: Instant, count: u64) -> Option<f64> {
        let before = std::mem::replace(self, Self(Some((count, at))));
        self.rate_since(before)
    }

    /// The rate since an earlier state of the counter, as in [`Self::rate`].
    pub(crate) fn rate_since(self, before: Self) -> Option<f64> {
        let ((count, at), (count_before, since)) = self.0.zip(before.0)?;
        let seconds = at.checked_duration_since(since)?.as_secs_f64();
        let grown = count.checked_sub(count_before)?;
        (seconds > 0.0).then(|| grown as f64 / seconds)
    }

    /// The growth of `count` since the previous value.
    pub(crate) fn grown(&self, count: u64) -> u64 {
        self.0.map_or(0, |(before, _)| count.saturating_sub(before))
    }

    /// Sets the previous value.
    pub(crate) fn begin(&mut self, at: Instant, count: u64) {
        self.0 = Some((count, at));
    }
}

/// A series of the rate of a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    counter: Counter,
    pub(crate) meter: Meter,
}

impl Rate {
    /// Writes the rate since the previous count; `scale` converts the count to the series' unit.
    pub(crate) fn put(
        &mut self,
        sink: &Sink,
        at: Instant,
        count: u64,
        scale: f64,
        spec: &SeriesSpec<'_>,
    ) {
        if let Some(rate) = self.counter.rate(at, count) {
            self.meter.put(sink, at, rate * scale, spec);
        }
    }

    /// Sets the previous value.
    pub(crate) fn begin(&mut self, at: Instant, count: u64) {
        self.counter.begin(at, count);
    }

    pub(crate) fn end(&mut self, sink: &Sink, at: Instant) {
        self.meter.end(sink, at);
        self.counter = Counter::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;
    use std::time::Duration;
    use throng_observation::host::catalogue;

    fn sink(capacity: usize) -> (Sink, crate::RowReceiver) {
        let (rows, receiver) = rows(capacity);
        (Sink { rows, host: HostId(3), zero: Instant::now(), netns: None }, receiver)
    }

    fn samples(receiver: &crate::RowReceiver) -> Vec<(i64, f64)> {
        let sample = |row| match row {
            HostRow::Sample(sample) => Some((sample.at.0, sample.value)),
            _ => None,
        };
        receiver.try_iter().filter_map(sample).collect()
    }

    #[test]
    fn a_noted_repetition_counts_as_written() {
        let (sink, receiver) = sink(64);
        let spec = SeriesSpec::host(&catalogue::HOST_PROCS_RUNNING);
        let mut meter = Meter::default();
        let at = |second: u64| sink.zero + Duration::from_secs(second);
        meter.repeat(&sink, at(0)); // there is no value yet
        meter.put(&sink, at(1), 0.0, &spec);
        meter.repeat(&sink, at(2));
        meter.repeat(&sink, at(8));
        meter.put(&sink, at(9), 0.5, &spec);
        assert_eq!(samples(&receiver), [(1_000_000, 0.0), (8_000_000, 0.0), (9_000_000, 0.5)]);
    }

    #[test]
    fn repetitions_are_left_out_but_the_last_before_a_change() {
        let (sink, receiver) = sink(64);
        let spec = SeriesSpec::host(&catalogue::HOST_PROCS_RUNNING);
        let mut meter = Meter::default();
        for (second, value) in [(0, 1.0), (1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)] {
            meter.put(&sink, sink.zero + Duration::from_secs(second), value, &spec);
        }
        meter.end(&sink, sink.zero + Duration::from_secs(5));
        let samples = samples(&receiver);
        let times: Vec<_> = samples.iter().map(|(at, _)| at / 1_000_000).collect();
        assert_eq!(times, [0, 2, 3, 4, 5]);
        assert!(samples[4].1.is_nan());
    }

    #[test]
    fn a_rate_that_stays_the_same_is_written_now_and_then_unless_it_is_zero() {
        let (sink, receiver) = sink(64);
        let spec = SeriesSpec::host(&catalogue::HOST_CPU_BUSY);
        let mut meter = Meter::default();
        for (second, value) in [(0, 0.0), (20, 0.0), (21, 4.0), (25, 4.0), (26, 4.0), (27, 4.0)] {
            meter.put(&sink, sink.zero + Duration::from_secs(second), value, &spec);
        }
        meter.put(&sink, sink.zero + Duration::from_secs(28), 0.5, &spec);
        let seconds = |(at, value): (i64, f64)| (at / 1_000_000, value);
        let samples: Vec<_> = samples(&receiver).into_iter().map(seconds).collect();
        let expect = [(0, 0.0), (20, 0.0), (21, 4.0), (26, 4.0), (27, 4.0), (28, 0.5)];
        assert_eq!(samples, expect);
    }

    #[test]
    fn a_series_that_begins_with_an_event_says_since_when_it_is_counted() {
        let (sink, receiver) = sink(64);
        let spec = SeriesSpec::host(&catalogue::SOCKET_DROPS);
        let mut rate = Rate::default();
        let at = |second: u64| sink.zero + Duration::from_secs(second);
        rate.begin(at(1), 0);
        for (second, count) in [(3, 10), (4, 10)] {
            rate.meter.begin_at_zero(&sink, at(1), &spec);
            rate.put(&sink, at(second), count, 1.0, &spec);
        }
        assert_eq!(samples(&receiver), [(1_000_000, 0.0), (3_000_000, 5.0), (4_000_000, 0.0)]);
    }

    #[test]
    fn a_series_that_was_not_taken_is_announced_again_before_its_samples() {
        let (sink, receiver) = sink(1);
        let spec = SeriesSpec::host(&catalogue::HOST_PROCS_RUNNING);
        let mut meter = Meter::default();
        sink.event(sink.zero, HostEventKind::Mark, "fills the queue");
        meter.put(&sink, sink.zero, 1.0, &spec);
        assert!(matches!(receiver.try_recv(), Ok(HostRow::Event(_))));
        meter.put(&sink, sink.zero, 2.0, &spec);
        assert!(
            matches!(receiver.try_recv(), Ok(HostRow::Series(series)) if series.host == HostId(3))
        );
        meter.put(&sink, sink.zero, 3.0, &spec);
        assert_eq!(samples(&receiver), [(0, 3.0)]);
    }

    #[test]
    fn a_counter_that_began_anew_gives_no_rate() {
        let zero = Instant::now();
        let mut counter = Counter::default();
        let rates: Vec<_> = [10, 30, 5, 7]
            .into_iter()
            .zip(1..)
            .map(|(count, second)| counter.rate(zero + Duration::from_secs(second), count))
            .collect();
        assert_eq!(rates, [None, Some(20.0), None, Some(2.0)]);
    }

    #[test]
    fn a_value_that_stays_zero_has_no_series() {
        let (sink, receiver) = sink(8);
        let spec = SeriesSpec::host(&catalogue::THREAD_CPU);
        let mut meter = Meter::default();
        meter.put_if_nonzero(&sink, sink.zero, 0.0, &spec);
        assert!(receiver.try_recv().is_err());
        meter.put_if_nonzero(&sink, sink.zero, 0.5, &spec);
        meter.put_if_nonzero(&sink, sink.zero, 0.0, &spec);
        assert_eq!(samples(&receiver).len(), 2);
    }
}
