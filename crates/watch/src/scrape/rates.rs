//! Converts counters to rates: the growth between two scrapes over the time between them, across
//! server restarts.

use std::collections::{BTreeMap, HashMap};

use throng_observation::RunTime;
use throng_observation::host::Unit;

use super::openmetrics::{Kind, Sample};
use crate::reading::{Reading, SeriesValue};

/// Maximum number of series of one endpoint.
pub const SERIES_MAX: usize = 2_000;
/// A series ends after this many scrapes without it.
const MISSING_MAX: u32 = 3;

type Key = (String, BTreeMap<String, String>);

/// The series of an endpoint at the last scrape.
#[derive(Debug, Default)]
pub struct Rates {
    counters: HashMap<Key, LastValue>,
    round: u32,
    over_limit: u64,
    resets: u64,
}

#[derive(Clone, Copy, Debug)]
struct LastValue {
    value: f64,
    at: RunTime,
    round: u32,
    unit: Unit,
}

impl Rates {
    /// Starts a scrape.
    pub fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The rate of a counter since the last scrape; `None` at the first.
    ///
    /// A counter that went back was reset by a restart of the server (or a part of it): its value
    /// is the least it grew by.
    pub fn counter(
        &mut self,
        at: RunTime,
        metric: &str,
        labels: &BTreeMap<String, String>,
        value: f64,
    ) -> Option<f64> {
        let (last, new) = self.replace(at, metric, labels, value, Unit::PerSecond)?;
        let seconds = new.millis_since(last.at) / 1e3;
        if seconds <= 0.0 {
            return None;
        }
        let grown = if value < last.value {
            self.resets += 1;
            value
        } else {
            value - last.value
        };
        Some(grown / seconds)
    }

    fn replace(
        &mut self,
        at: RunTime,
        metric: &str,
        labels: &BTreeMap<String, String>,
        value: f64,
        unit: Unit,
    ) -> Option<(LastValue, RunTime)> {
        let now = LastValue { value, at, round: self.round, unit };
        let key = (metric.to_owned(), labels.clone());
        let is_full = self.counters.len() >= SERIES_MAX;
        match self.counters.get_mut(&key) {
            Some(last_value) => Some((std::mem::replace(last_value, now), at)),
            None if is_full => {
                self.over_limit += 1;
                None
            }
            None => {
                self.counters.insert(key, now);
                None
            }
        }
    }

    /// Converts the samples of an answer: counters become rates, gauges stay as they are.
    pub fn values(&mut self, at: RunTime, endpoint: &str, samples: &[Sample<'_>]) -> Vec<Reading> {
        let mut readings = Vec::with_capacity(samples.len());
        for sample in samples {
            // A label of the server named `endpoint` is renamed, as Prometheus does.
            let name_of = |name: &str| {
                if name == "endpoint" { "exported_endpoint".into() } else { name.to_owned() }
            };
            let own = sample.labels.iter().map(|(name, value)| (name_of(name), value.to_string()));
            let mut labels: BTreeMap<String, String> = own.collect();
            labels.insert("endpoint".to_owned(), endpoint.to_owned());
            let (unit, value) = match sample.kind {
                Kind::Counter => {
                    let unit = unit_of_rate(sample.name);
                    let Some(rate) = self.counter(at, sample.name, &labels, sample.value) else {
                        continue;
                    };
                    (unit, rate)
                }
                Kind::Gauge => {
                    let (unit, value) = gauge(sample.name, sample.value);
                    let key = (sample.name.to_owned(), labels.clone());
                    if self.counters.len() >= SERIES_MAX && !self.counters.contains_key(&key) {
                        self.over_limit += 1;
                        continue;
                    }
                    self.counters.insert(key, LastValue { value, at, round: self.round, unit });
                    (unit, value)
                }
            };
            readings.push(Reading::Value(SeriesValue {
                metric: sample.name.to_owned(),
                unit,
                labels,
                value,
            }));
        }
        readings
    }

    /// Ends a scrape: ends the series that have been missing for a while.
    pub fn end(&mut self) -> Vec<Reading> {
        let mut over = Vec::new();
        let round = self.round;
        self.counters.retain(|key, last_value| {
            let stays = round.wrapping_sub(last_value.round) < MISSING_MAX;
            if !stays {
                over.push(Reading::Value(SeriesValue {
                    metric: key.0.clone(),
                    unit: last_value.unit,
                    labels: key.1.clone(),
                    value: f64::NAN,
                }));
            }
            stays
        });
        over
    }

    /// Number of values dropped because of [`SERIES_MAX`] since the last call.
    pub fn take_over_limit(&mut self) -> u64 {
        std::mem::take(&mut self.over_limit)
    }
}

/// How names of counters of bytes end, without the suffix of their type.
const BYTES: [&str; 3] = ["_bytes", "_bytes_sent", "_bytes_received"];

/// The unit of a counter's rate, from the unit suffix of its name: seconds a second are a ratio.
fn unit_of_rate(name: &str) -> Unit {
    let name = name.strip_suffix("_total").or_else(|| name.strip_suffix("_sum")).unwrap_or(name);
    match name {
        name if BYTES.iter().any(|end| name.ends_with(end)) => Unit::BytesPerSecond,
        name if name.ends_with("_seconds") => Unit::Ratio,
        _ => Unit::PerSecond,
    }
}

/// Unit and value of a gauge. Durations become milliseconds; timestamps (`…_time_seconds`) stay as
/// they are.
fn gauge(name: &str, value: f64) -> (Unit, f64) {
    let is_moment =
        ["_time_seconds", "_timestamp_seconds", "_created"].iter().any(|end| name.ends_with(end));
    match name {
        _ if is_moment => (Unit::Count, value),
        name if name.ends_with("_bytes") => (Unit::Bytes, value),
        name if name.ends_with("_ratio") => (Unit::Ratio, value),
        name if name.ends_with("_seconds") => (Unit::Milliseconds, value * 1e3),
        name if name.ends_with("_ms") || name.ends_with("_milliseconds") => {
            (Unit::Milliseconds, value)
        }
        _ => (Unit::Count, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::parse;

    fn second(second: i64) -> RunTime {
        RunTime(second * 1_000_000)
    }

    fn values(rates: &mut Rates, at: i64, text: &str) -> Vec<(String, Unit, f64)> {
        rates.begin();
        let read = parse(text, |_| true);
        let mut readings = rates.values(second(at), "e", &read.samples);
        readings.extend(rates.end());
        let value = |readings: Reading| match readings {
            Reading::Value(value) => Some((value.metric, value.unit, value.value)),
            Reading::Event(..) => None,
        };
        readings.into_iter().filter_map(value).collect()
    }

    #[test]
    fn a_counter_is_a_rate_over_the_time_between_readings() {
        let mut rates = Rates::default();
        assert!(values(&mut rates, 0, "x_total 100").is_empty());
        assert_eq!(
            values(&mut rates, 5, "x_total 150"),
            [("x_total".into(), Unit::PerSecond, 10.0)]
        );
        assert_eq!(
            values(&mut rates, 7, "x_total 150"),
            [("x_total".into(), Unit::PerSecond, 0.0)]
        );
        assert!(values(&mut rates, 7, "x_total 160").is_empty(), "no time has passed");
    }

    #[test]
    fn a_reset_counter_grew_by_its_value() {
        let mut rates = Rates::default();
        values(&mut rates, 0, "x_total 1000");
        assert_eq!(values(&mut rates, 2, "x_total 30")[0].2, 15.0);
        assert_eq!(rates.resets, 1);
    }

    #[test]
    fn units_follow_the_names() {
        let mut rates = Rates::default();
        let text = |n: f64| {
            format!(
                "process_cpu_seconds_total {n}\nsent_bytes_total {n}\nlag_seconds 0.05\nrss_bytes 7\nstart_time_seconds 1e9\nd_ms 3\nload_ratio 0.5\n"
            )
        };
        values(&mut rates, 0, &text(0.0));
        let got = values(&mut rates, 2, &text(1.0));
        let of = |name: &str| {
            got.iter().find(|(metric, ..)| metric == name).map(|(_, unit, value)| (*unit, *value))
        };
        assert_eq!(of("process_cpu_seconds_total"), Some((Unit::Ratio, 0.5)));
        assert_eq!(of("sent_bytes_total"), Some((Unit::BytesPerSecond, 0.5)));
        assert_eq!(of("lag_seconds"), Some((Unit::Milliseconds, 50.0)));
        assert_eq!(of("rss_bytes"), Some((Unit::Bytes, 7.0)));
        assert_eq!(of("start_time_seconds"), Some((Unit::Count, 1e9)));
        assert_eq!(of("d_ms"), Some((Unit::Milliseconds, 3.0)));
        assert_eq!(of("load_ratio"), Some((Unit::Ratio, 0.5)));
    }

    #[test]
    fn a_missing_series_ends_and_is_removed() {
        let mut rates = Rates::default();
        values(&mut rates, 0, "x{room=\"a\"} 1");
        for at in 1..i64::from(MISSING_MAX) {
            assert!(values(&mut rates, at, "").is_empty());
        }
        let got = values(&mut rates, 9, "");
        assert!(got.len() == 1 && got[0].2.is_nan());
        assert!(rates.counters.is_empty());
    }

    #[test]
    fn a_label_called_like_ours_does_not_make_two_series_one() {
        let mut rates = Rates::default();
        let text = |a, b| format!("x_total{{endpoint=\"a\"}} {a}\nx_total{{endpoint=\"b\"}} {b}\n");
        values(&mut rates, 0, &text(0, 100));
        let got: Vec<_> =
            values(&mut rates, 1, &text(1, 102)).into_iter().map(|(.., rate)| rate).collect();
        assert_eq!(got, [1.0, 2.0]);
    }

    #[test]
    fn a_flood_of_series_is_bounded_and_counted() {
        let mut rates = Rates::default();
        let text: String = (0..SERIES_MAX + 7).map(|n| format!("x{{id=\"{n}\"}} 1\n")).collect();
        assert_eq!(values(&mut rates, 0, &text).len(), SERIES_MAX);
        assert_eq!((rates.take_over_limit(), rates.take_over_limit()), (7, 0));
    }
}
