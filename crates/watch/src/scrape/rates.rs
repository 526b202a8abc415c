//! Converts the samples of an endpoint to its series: counters become their growth between two
//! scrapes over the time between them, across server restarts; sessions are added up.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use throng_observation::RunTime;
use throng_observation::host::Unit;

use super::openmetrics::{Kind, Sample};
use super::series::{LastValue, Series};
use crate::reading::{Reading, SeriesValue};

/// Maximum number of series of one endpoint, after its sessions were added up.
pub const SERIES_MAX: usize = 2_000;
/// Maximum number of counters of which the last value is kept, one for each session of a series.
/// They take up to 8 MB.
pub(super) const COUNTERS_MAX: usize = 100_000;

type Key = (String, BTreeMap<String, String>);

/// The series of an endpoint at the last scrape.
#[derive(Debug, Default)]
pub struct Rates {
    series: BTreeMap<Key, Series>,
    round: u32,
    answer_is_cut: bool,
    counters: usize,
    over_limit: u64,
    partial: usize,
}

impl Rates {
    /// Starts a scrape.
    pub fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Adds the samples of an answer. Those that differ only in `dropped` labels are added up;
    /// counters as the rates since the last scrape, which the first does not have.
    pub fn add(&mut self, at: RunTime, endpoint: &str, samples: &[Sample<'_>], dropped: &[String]) {
        for sample in samples {
            let key = (sample.name.to_owned(), labels_without(dropped, sample, endpoint));
            let is_full = self.series.len() >= SERIES_MAX;
            let series = match self.series.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(_) if is_full => {
                    self.over_limit += 1;
                    continue;
                }
                Entry::Vacant(new) => new.insert(Series::default()),
            };
            let session = session_of(sample, dropped);
            match sample.kind {
                Kind::Counter => {
                    let now = LastValue { value: sample.value, at, round: self.round };
                    let is_room = self.counters < COUNTERS_MAX;
                    series.see(self.round, session, unit_of_rate(sample.name));
                    if series.count(session.unwrap_or_default(), now, is_room) {
                        self.counters += 1;
                    }
                }
                Kind::Gauge => {
                    let (unit, value) = gauge(sample.name, sample.value);
                    series.see(self.round, session, unit);
                    series.level(value);
                }
            }
        }
    }

    /// Notes that samples of this scrape's answer were not read.
    pub fn cut_answer(&mut self) {
        self.answer_is_cut = true;
    }

    /// Ends a scrape: the values of the series. Those that have been missing for a while end, and
    /// so do sums that lack sessions, until they are whole again.
    pub fn end(&mut self) -> Vec<Reading> {
        let round = self.round;
        let answer_is_cut = std::mem::take(&mut self.answer_is_cut);
        let mut readings = Vec::with_capacity(self.series.len());
        let (mut counters, mut partial) = (0, 0);
        self.series.retain(|(metric, labels), series| {
            if answer_is_cut {
                series.cut(round);
            }
            if let Some(value) = series.end(round) {
                readings.push(Reading::Value(SeriesValue {
                    metric: metric.clone(),
                    unit: series.unit,
                    labels: labels.clone(),
                    value,
                }));
            }
            counters += series.counters();
            partial += usize::from(series.is_partial(round));
            !series.is_over(round)
        });
        (self.counters, self.partial) = (counters, partial);
        readings
    }

    /// Number of values dropped because of [`SERIES_MAX`] since the last call.
    pub fn take_over_limit(&mut self) -> u64 {
        std::mem::take(&mut self.over_limit)
    }

    /// Number of series that lack sessions at the last scrape, and are left out.
    #[must_use]
    pub fn partial(&self) -> usize {
        self.partial
    }
}

fn is_in(dropped: &[String], label: &str) -> bool {
    dropped.iter().any(|name| name == label)
}

/// The labels of the series to which a sample belongs.
fn labels_without(
    dropped: &[String],
    sample: &Sample<'_>,
    endpoint: &str,
) -> BTreeMap<String, String> {
    // A label of the server named `endpoint` is renamed, as Prometheus does.
    let name_of = |name: &str| {
        if name == "endpoint" { "exported_endpoint".into() } else { name.to_owned() }
    };
    let kept = sample.labels.iter().filter(|(name, _)| !is_in(dropped, name));
    let mut labels: BTreeMap<String, String> =
        kept.map(|(name, value)| (name_of(name), value.to_string())).collect();
    labels.insert("endpoint".to_owned(), endpoint.to_owned());
    labels
}

/// Which session of its series a sample is of: a hash of its `dropped` labels, as these are many
/// and long. `None` if it has none of them.
fn session_of(sample: &Sample<'_>, dropped: &[String]) -> Option<u64> {
    let mut own: Vec<_> = sample.labels.iter().filter(|(name, _)| is_in(dropped, name)).collect();
    if own.is_empty() {
        return None;
    }
    own.sort_unstable();
    let mut hasher = DefaultHasher::new();
    own.hash(&mut hasher);
    Some(hasher.finish())
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
    use super::super::series::MISSING_MAX;
    use super::*;
    use crate::scrape::parse;

    fn second(second: i64) -> RunTime {
        RunTime(second * 1_000_000)
    }

    fn values(rates: &mut Rates, at: i64, text: &str) -> Vec<(String, Unit, f64)> {
        values_without(&[], rates, at, text)
    }

    /// Without the label `id`.
    fn sums(rates: &mut Rates, at: i64, text: &str) -> Vec<f64> {
        let values = values_without(&["id".to_owned()], rates, at, text);
        values.into_iter().map(|(.., value)| value).collect()
    }

    fn values_without(
        dropped: &[String],
        rates: &mut Rates,
        at: i64,
        text: &str,
    ) -> Vec<(String, Unit, f64)> {
        rates.begin();
        rates.add(second(at), "e", &parse(text, |_| true).samples, dropped);
        let value = |reading: Reading| match reading {
            Reading::Value(value) => Some((value.metric, value.unit, value.value)),
            Reading::Event(..) => None,
        };
        rates.end().into_iter().filter_map(value).collect()
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
        assert!(rates.series.is_empty());
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

    #[test]
    fn sessions_are_added_up_and_end_with_the_last() {
        let mut rates = Rates::default();
        let of = |sessions: &[(&str, u32)]| -> String {
            let line =
                |(id, n): &(&str, u32)| format!("x_total{{id=\"{id}\"}} {n}\ny{{id=\"{id}\"}} 2\n");
            sessions.iter().map(line).collect()
        };
        assert_eq!(sums(&mut rates, 0, &of(&[("a", 100), ("b", 50)])), [4.0]);
        assert_eq!(sums(&mut rates, 1, &of(&[("a", 107), ("b", 60)])), [17.0, 4.0]);
        assert_eq!(sums(&mut rates, 2, &of(&[("b", 70)])), [10.0, 2.0], "no counter went back");
        let is_new = of(&[("c", 999), ("b", 80)]);
        assert_eq!(sums(&mut rates, 3, &is_new), [10.0, 4.0], "a new session has no rate");
        for at in 4..=5 {
            assert!(sums(&mut rates, at, "").is_empty());
        }
        let ended = sums(&mut rates, 6, "");
        assert!(ended.len() == 2 && ended.iter().all(|value| value.is_nan()), "{ended:?}");
        assert_eq!(rates.counters, 0);
    }

    #[test]
    fn the_order_of_labels_makes_no_other_session() {
        let mut rates = Rates::default();
        let dropped = ["id".to_owned(), "user".to_owned()];
        values_without(&dropped, &mut rates, 0, "x_total{id=\"a\",user=\"u\"} 1");
        let got = values_without(&dropped, &mut rates, 1, "x_total{user=\"u\",id=\"a\"} 3");
        assert_eq!(got, [("x_total".into(), Unit::PerSecond, 2.0)]);
    }

    #[test]
    fn nothing_is_added_up_that_no_pack_asks_for() {
        let mut rates = Rates::default();
        let got = values(&mut rates, 0, "x{id=\"a\"} 2\nx{id=\"b\"} 3\ny 4\ny 4\n");
        let got: Vec<f64> = got.into_iter().map(|(.., value)| value).collect();
        assert_eq!(got, [2.0, 3.0, 4.0], "what is said twice is there once");
        assert_eq!(sums(&mut Rates::default(), 0, "y 4\ny 4\n"), [4.0]);
    }

    #[test]
    fn a_sum_that_lacks_a_session_is_left_out_until_it_is_whole() {
        let mut rates = Rates { counters: COUNTERS_MAX - 2, ..Rates::default() };
        let text = |n: u32| {
            let line = |id| format!("x_total{{id=\"{id}\"}} {n}\ny{{id=\"{id}\"}} 1\n");
            ["a", "b", "c"].map(line).concat()
        };
        let is_left_out = |got: &[f64]| got.len() == 2 && got[0].is_nan() && got[1] == 3.0;
        let got = sums(&mut rates, 0, &text(0));
        assert!(is_left_out(&got), "there is no room for c: {got:?}");
        assert_eq!((rates.partial(), rates.counters), (1, 2));
        let got = sums(&mut rates, 1, &text(10));
        assert!(is_left_out(&got), "c has no rate yet: {got:?}");
        assert_eq!(sums(&mut rates, 2, &text(20)), [30.0, 3.0]);
        assert_eq!((rates.partial(), rates.counters), (0, 3));
    }
}
