//! Converts readings of logs and endpoints to rows: assigns series ids, omits repeated values, and
//! bounds the number of series.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::host::{
    HostEvent, HostEventKind, HostId, HostRow, HostSample, HostSeries, SeriesId, Unit,
};

use crate::cpu_accounting::{ChargeGuard, Purpose};
use crate::rows::{RowSender, run_time};

/// A reading of a log or an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// A value of a series.
    Value(SeriesValue),
    /// An event.
    Event(HostEventKind, String),
}

impl Reading {
    /// A value of a series with labels.
    pub fn value(
        metric: impl Into<String>,
        unit: Unit,
        labels: &[(&str, &str)],
        value: f64,
    ) -> Self {
        let labels =
            labels.iter().map(|(name, label)| ((*name).to_owned(), (*label).to_owned())).collect();
        Self::Value(SeriesValue { metric: metric.into(), unit, labels, value })
    }

    /// An event for something that cannot be read: what, why, and how to fix it.
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::Event(HostEventKind::Unreadable, detail.into())
    }
}

/// A value of a series at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesValue {
    /// Name of the metric.
    pub metric: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Labels of the series.
    pub labels: BTreeMap<String, String>,
    /// The value in that unit; NaN ends the series.
    pub value: f64,
}

/// Returns the run's time. It must be monotonic.
pub type Clock = Arc<dyn Fn() -> RunTime + Send + Sync>;

/// The clock of a run whose first intended join is at `zero`.
#[must_use]
pub fn clock_from(zero: Instant) -> Clock {
    Arc::new(move || run_time(zero, Instant::now()))
}

/// Maximum number of series of one reader in a run, so that a server's labels have a bounded cost.
/// Values of further series count as dropped rows.
pub(crate) const SERIES_MAX: usize = 4_000;

/// An unchanged value is written again after this long, to show that it is still being read.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

/// Writes one reader's readings to the run's queue.
#[derive(Debug)]
pub struct ReadingWriter {
    host: HostId,
    rows: RowSender,
    series: HashMap<(String, BTreeMap<String, String>), Known>,
    reported_too_many: bool,
}

#[derive(Debug)]
struct Known {
    id: SeriesId,
    announced: bool,
    last: Option<(RunTime, f64)>,
}

impl ReadingWriter {
    /// A writer for a reader on `host`.
    #[must_use]
    pub fn new(host: HostId, rows: RowSender) -> Self {
        Self { host, rows, series: HashMap::new(), reported_too_many: false }
    }

    /// Charges the calling thread's CPU time to the host until the guard is dropped.
    pub(crate) fn charge(&self) -> Option<ChargeGuard> {
        self.rows.charge(self.host, Purpose::Reading)
    }

    /// Writes readings taken at one moment.
    pub fn write(&mut self, at: RunTime, readings: impl IntoIterator<Item = Reading>) {
        for reading in readings {
            match reading {
                Reading::Value(value) => self.value(at, value),
                Reading::Event(kind, detail) => {
                    self.rows.send(HostRow::Event(HostEvent::new(self.host, at, kind, detail)));
                }
            }
        }
    }

    /// Ends every series with NaN.
    pub fn end(&mut self, at: RunTime) {
        for known in self.series.values_mut() {
            if known.announced && known.last.is_some_and(|(_, value)| !value.is_nan()) {
                let (series, value) = (known.id, f64::NAN);
                self.rows.send(HostRow::Sample(HostSample { series, at, value }));
            }
            // The receiver may drop an ended series: if it continues, it is announced again.
            (known.last, known.announced) = (None, false);
        }
    }

    fn value(&mut self, at: RunTime, value: SeriesValue) {
        let SeriesValue { metric, unit, labels, value } = value;
        let key = (metric, labels);
        if !self.series.contains_key(&key) {
            if value.is_nan() {
                return;
            }
            if self.series.len() >= SERIES_MAX {
                self.rows.count_dropped(1);
                self.report_too_many(at);
                return;
            }
            let id = self.rows.new_series();
            self.series.insert(key.clone(), Known { id, announced: false, last: None });
        }
        let Some(known) = self.series.get_mut(&key) else { return };
        let is_fresh =
            known.last.is_some_and(|(since, last)| repeats(last, value) && fresh(since, at));
        if is_fresh || (value.is_nan() && !known.announced) {
            return;
        }
        // A sample needs its announced series; without it, retry at the next moment.
        let (id, (metric, labels)) = (known.id, key);
        known.announced = known.announced || {
            let series = HostSeries { id, host: self.host, metric, unit, labels, limit: None };
            self.rows.send(HostRow::Series(series))
        };
        if known.announced && self.rows.send(HostRow::Sample(HostSample { series: id, at, value }))
        {
            // As in `end`: the receiver may drop a series that has ended.
            (known.last, known.announced) = (Some((at, value)), !value.is_nan());
        }
    }

    fn report_too_many(&mut self, at: RunTime) {
        if !std::mem::replace(&mut self.reported_too_many, true) {
            let detail = format!(
                "more than {SERIES_MAX} series from one reader: the rest is dropped; allow fewer \
                 metrics or deny those with many labels"
            );
            let kind = HostEventKind::Unreadable;
            self.rows.send(HostRow::Event(HostEvent::new(self.host, at, kind, detail)));
        }
    }
}

fn repeats(last: f64, value: f64) -> bool {
    last == value || (last.is_nan() && value.is_nan())
}

fn fresh(since: RunTime, at: RunTime) -> bool {
    at.millis_since(since) < REPEAT_AFTER.as_millis() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{RowReceiver, rows};

    fn writer(room: usize) -> (ReadingWriter, RowReceiver, RowSender) {
        let (sender, receiver) = rows(room);
        let _ = sender.new_series();
        (ReadingWriter::new(HostId(1), sender.clone()), receiver, sender)
    }

    fn second(second: i64) -> RunTime {
        RunTime(second * 1_000_000)
    }

    fn value(value: f64) -> Reading {
        Reading::value("log.lines", Unit::PerSecond, &[("pattern", "any")], value)
    }

    fn samples(receiver: &RowReceiver) -> Vec<f64> {
        receiver
            .try_iter()
            .filter_map(|row| if let HostRow::Sample(s) = row { Some(s.value) } else { None })
            .collect()
    }

    #[test]
    fn a_series_comes_once_and_before_its_first_sample() {
        let (mut rows, receiver, _) = writer(10);
        rows.write(second(0), [value(1.0), value(2.0)]);
        let got: Vec<_> = receiver.try_iter().collect();
        assert!(
            matches!(&got[0], HostRow::Series(series) if series.id == SeriesId(1) && series.metric == "log.lines")
        );
        assert!(
            matches!(got[1], HostRow::Sample(sample) if sample.series == SeriesId(1) && sample.value == 1.0)
        );
        assert_eq!(got.len(), 3);
    }

    #[test]
    fn before_the_first_join_time_is_negative() {
        let clock = clock_from(Instant::now() + Duration::from_secs(100));
        assert!((-101_000_000..-90_000_000).contains(&clock().as_micros()));
    }

    #[test]
    fn repeated_values_are_omitted_for_a_minute() {
        let (mut rows, receiver, _) = writer(10);
        for at in 0..=60 {
            rows.write(second(at), [value(5.0)]);
        }
        assert_eq!(samples(&receiver), [5.0, 5.0]);
    }

    #[test]
    fn a_series_that_found_no_room_is_announced_later() {
        let (mut rows, receiver, sender) = writer(1);
        rows.write(second(0), [value(1.0)]);
        assert_eq!(sender.dropped(), 1, "the sample found no room");
        assert!(matches!(receiver.try_recv(), Ok(HostRow::Series(_))));
        rows.write(second(1), [value(1.0)]);
        assert_eq!(samples(&receiver), [1.0]);
        let (mut rows, receiver, sender) = writer(1);
        sender.send(HostRow::Sample(HostSample { series: SeriesId(0), at: second(0), value: 0.0 }));
        rows.write(second(0), [value(1.0)]);
        receiver.try_recv().unwrap();
        rows.write(second(1), [value(1.0)]);
        assert!(matches!(receiver.try_recv(), Ok(HostRow::Series(_))));
    }

    #[test]
    fn the_end_of_a_reader_ends_its_series_once() {
        let (mut rows, receiver, _) = writer(10);
        rows.write(second(0), [value(1.0)]);
        rows.end(second(1));
        rows.end(second(2));
        let values = samples(&receiver);
        assert_eq!(values.len(), 2);
        assert!(values[1].is_nan());
        rows.write(second(3), [value(1.0)]);
        let again: Vec<_> = receiver.try_iter().collect();
        assert!(
            matches!(&again[0], HostRow::Series(series) if series.id == SeriesId(1)),
            "{again:?}"
        );
        assert_eq!(again.len(), 2);
    }

    #[test]
    fn a_series_that_ends_and_goes_on_is_announced_again() {
        let (mut rows, receiver, _) = writer(10);
        rows.write(second(0), [value(1.0)]);
        rows.write(second(1), [value(f64::NAN)]);
        rows.write(second(2), [value(f64::NAN)]);
        rows.write(second(3), [value(1.0)]);
        let got: Vec<_> = receiver.try_iter().collect();
        let announced = got.iter().filter(|row| matches!(row, HostRow::Series(_))).count();
        assert_eq!((announced, got.len()), (2, 5), "{got:?}");
    }

    #[test]
    fn more_series_than_the_limit_are_counted_and_reported_once() {
        let (mut rows, receiver, sender) = writer(3 * SERIES_MAX);
        for index in 0..SERIES_MAX + 5 {
            let labels = [("room", index.to_string())];
            let labels: Vec<_> =
                labels.iter().map(|(name, label)| (*name, label.as_str())).collect();
            rows.write(second(0), [Reading::value("x", Unit::Count, &labels, 1.0)]);
        }
        assert_eq!(sender.dropped(), 5);
        let events = receiver.try_iter().filter(|row| matches!(row, HostRow::Event(_))).count();
        assert_eq!(events, 1);
    }
}
