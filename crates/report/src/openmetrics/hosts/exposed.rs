//! The families of watched hosts, as they are exposed.

use std::collections::BTreeMap;

use throng_observation::host::HostId;
use throng_observation::host::catalogue::{self, Together};

use super::HostFigures;
use super::series::Series;
use crate::openmetrics::bounded::OTHER;
use crate::openmetrics::declared;
use crate::openmetrics::exposition::{Exposition, Labels, Value};
use crate::openmetrics::family::Family;
use crate::openmetrics::shown::{Shown, add};

impl HostFigures {
    pub(in crate::openmetrics) fn add_to(&self, out: &mut Exposition) {
        let mut sums: BTreeMap<&str, Shown> = BTreeMap::new();
        for ((host, labels, metric), sum) in &self.sums {
            sums.entry(*metric).or_default().insert(self.labels(*host, labels), *sum);
        }
        let mut by_metric: BTreeMap<&str, Vec<&Series>> = BTreeMap::new();
        for series in self.series.values() {
            by_metric.entry(series.metric.name).or_default().push(series);
        }
        let mut families = Vec::new();
        let mut limits = Shown::new();
        for metric in catalogue::ALL {
            let all = by_metric.get(metric.name).map_or(&[][..], Vec::as_slice);
            let sums = sums.remove(metric.name).unwrap_or_default();
            let shown = if metric.is_rate() { sums } else { self.levels(all) };
            self.add_limits(all, &mut limits);
            if metric.name == catalogue::THREAD_CPU.name {
                families.extend(self.threads(all));
            }
            let (family, scale) = Family::of_host(metric);
            families.push((family, scale, shown));
        }
        families.push((Family::of(&declared::HOST_LIMIT_USED), 1.0, limits));
        families.push((Family::of(&declared::HOST_ENDED), 1.0, self.ended()));
        families.push((Family::of(&declared::HOST_MARKS), 1.0, self.marks()));
        // Where not all have room, those of the machine as a whole come before those of its parts.
        families.sort_by_key(|(_, _, series)| series.len());
        for (family, scale, series) in families {
            let scaled = |(labels, value)| (labels, Value::Number(value * scale));
            out.add(family, series.into_iter().map(scaled));
        }
    }

    fn labels(&self, host: HostId, labels: &Labels) -> Labels {
        let host = ("host", self.names.name(host));
        std::iter::once(host).chain(labels.iter().cloned()).collect()
    }

    fn labels_of(&self, series: &Series) -> Labels {
        let (host, labels, _) = &series.key;
        self.labels(*host, labels)
    }

    /// The last values of a metric that is no rate.
    fn levels(&self, all: &[&Series]) -> Shown {
        let mut shown = Shown::new();
        for series in all {
            let Some(value) = series.value() else { continue };
            add(series.metric.together, &mut shown, self.labels_of(series), value);
        }
        shown
    }

    /// The value or, of a rate, what it was of late.
    fn recent(&self, series: &Series) -> Option<f64> {
        series.recent(self.now.get(&series.key.0).copied().unwrap_or(series.at))
    }

    fn add_limits(&self, all: &[&Series], limits: &mut Shown) {
        for series in all {
            let Some((limit, value)) = series.limit.zip(self.recent(series)) else { continue };
            let mut labels = self.labels_of(series);
            labels.insert(1, ("metric", series.metric.name.to_owned()));
            add(Together::Largest, limits, labels, value / limit);
        }
    }

    /// The busiest thread of the processes of a name, and how many of theirs are summed as others.
    fn threads(&self, threads: &[&Series]) -> [(Family, f64, Shown); 2] {
        let (mut hottest, mut others) = (Shown::new(), Shown::new());
        for series in threads {
            let Some(value) = self.recent(series) else { continue };
            let mut labels = self.labels_of(series);
            let is_other = labels.contains(&("thread", OTHER.to_owned()));
            labels.retain(|(name, _)| *name != "thread");
            let count = f64::from(u8::from(is_other));
            add(Together::Sum, &mut others, labels.clone(), count);
            add(Together::Largest, &mut hottest, labels, value);
        }
        [
            (Family::of(&declared::HOST_HOTTEST), 1.0, hottest),
            (Family::of(&declared::HOST_OTHER_THREADS), 1.0, others),
        ]
    }

    fn marks(&self) -> Shown {
        let label = |host| vec![("host", self.names.name(host))];
        self.marks.iter().map(|(host, count)| (label(*host), f64::from(*count))).collect()
    }

    fn ended(&self) -> Shown {
        let labels = |host, process: &String| {
            vec![("host", self.names.name(host)), ("process", process.clone())]
        };
        let ended = self.ended.iter();
        ended.map(|((host, name), count)| (labels(*host, name), f64::from(*count))).collect()
    }
}
