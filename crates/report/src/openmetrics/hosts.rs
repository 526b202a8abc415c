//! The figures of watched hosts, from the rows of their watchers: the last value of each series of
//! the catalogue, by labels that are bounded.

use std::collections::{BTreeMap, BTreeSet};

use throng_observation::RunTime;
use throng_observation::host::catalogue::{self, Metric};
use throng_observation::host::{HostEventKind, HostId, HostRow, HostSeries, SeriesId, Unit};
use throng_observation::untrusted;

use super::bounded::{Bounded, OTHER};
use super::declared;
use super::exposition::{Exposition, Labels, Value};
use super::family::Family;

/// The labels of a host's series that are exposed, in this order: without numbers of processes and
/// threads, of which there are ever new ones.
const LABELS: [&str; 9] =
    ["process", "thread", "cpu", "device", "interface", "qdisc", "port", "protocol", "cgroup"];

/// The most values of a label below the same labels before it; the rest are one series.
fn values_max(label: &str) -> usize {
    if label == "cpu" { 16 } else { 8 }
}

/// Series that are kept. The end of a series may be lost, so above this the longest silent ones of
/// processes are dropped.
const SERIES_MAX: usize = 65_536;
/// Names of ended processes with series of their own.
const ENDED_MAX: usize = 20;

/// What is known of all hosts.
#[derive(Debug)]
pub(super) struct HostFigures {
    names: BTreeMap<HostId, String>,
    series: BTreeMap<SeriesId, Kept>,
    ended: BTreeMap<(HostId, String), u32>,
    ended_names: Bounded,
}

#[derive(Debug)]
struct Kept {
    host: HostId,
    metric: &'static Metric,
    labels: Labels,
    limit: Option<f64>,
    is_of_process: bool,
    value: Option<f64>,
    at: RunTime,
}

impl Default for HostFigures {
    fn default() -> Self {
        Self {
            names: BTreeMap::new(),
            series: BTreeMap::new(),
            ended: BTreeMap::new(),
            ended_names: Bounded::to(ENDED_MAX),
        }
    }
}

impl HostFigures {
    pub(super) fn take(&mut self, row: &HostRow) {
        match row {
            HostRow::Info(info) => {
                self.names.insert(info.host, untrusted::name(&info.name).into_owned());
            }
            HostRow::Series(series) => self.begin(series),
            HostRow::Sample(sample) if sample.value.is_nan() => {
                self.series.remove(&sample.series);
            }
            HostRow::Sample(sample) => {
                if let Some(kept) = self.series.get_mut(&sample.series) {
                    (kept.value, kept.at) = (Some(sample.value), sample.at);
                }
            }
            HostRow::Event(event) => {
                let process = event.process.as_ref();
                if let Some(process) = process.filter(|_| event.kind == HostEventKind::ProcessEnded)
                {
                    let name = untrusted::name(&process.name).into_owned();
                    let key = (event.host, self.ended_names.label(name));
                    let count = self.ended.entry(key).or_default();
                    *count = count.saturating_add(1);
                }
            }
            HostRow::Profile(_) => {}
        }
    }

    fn begin(&mut self, series: &HostSeries) {
        // Metrics of logs and endpoints have names and labels of others.
        let Some(metric) = catalogue::find(&series.metric) else { return };
        let label = |name: &'static str| {
            let value = series.labels.get(name)?;
            Some((name, untrusted::name(value).into_owned()))
        };
        let before = self.series.get(&series.id);
        let kept = Kept {
            host: series.host,
            metric,
            labels: LABELS.into_iter().filter_map(label).collect(),
            limit: series.limit.filter(|limit| *limit > 0.0 && limit.is_finite()),
            is_of_process: series.labels.contains_key("pid"),
            value: before.and_then(|kept| kept.value),
            at: before.map_or(RunTime(i64::MAX), |kept| kept.at),
        };
        self.series.insert(series.id, kept);
        if self.series.len() > SERIES_MAX {
            self.drop_silent();
        }
    }

    fn drop_silent(&mut self) {
        let of_processes = self.series.iter().filter(|(_, kept)| kept.is_of_process);
        let mut spoke: Vec<_> = of_processes.map(|(id, kept)| (kept.at, *id)).collect();
        spoke.sort_unstable();
        for (_, id) in spoke.into_iter().take(SERIES_MAX / 4) {
            self.series.remove(&id);
        }
        // A machine has no such number of parts: these were invented.
        while self.series.len() > SERIES_MAX {
            self.series.pop_last();
        }
    }

    /// The name of a host. Two watches may be of one machine, whose figures are not added.
    fn host(&self, id: HostId) -> String {
        match self.names.get(&id) {
            Some(name) if self.names.values().filter(|other| *other == name).count() == 1 => {
                name.clone()
            }
            Some(name) => format!("{name} {}", id.0),
            None => format!("host {}", id.0),
        }
    }

    pub(super) fn add_to(&self, out: &mut Exposition) {
        let mut by_metric: BTreeMap<&str, Vec<&Kept>> = BTreeMap::new();
        for kept in self.series.values().filter(|kept| kept.value.is_some()) {
            by_metric.entry(kept.metric.name).or_default().push(kept);
        }
        let mut families = Vec::new();
        let mut limits = BTreeMap::new();
        for metric in catalogue::ALL {
            let all = by_metric.get(metric.name).map_or(&[][..], Vec::as_slice);
            let (mut series, bounded) = (BTreeMap::new(), self.bounded(all));
            for (labels, kept) in &bounded {
                let Some(value) = kept.value else { continue };
                add(metric.unit, &mut series, labels.clone(), value);
                if let Some(limit) = kept.limit {
                    let mut labels = labels.clone();
                    labels.insert(1, ("metric", metric.name.to_owned()));
                    largest(&mut limits, labels, value / limit);
                }
            }
            if metric.name == catalogue::THREAD_CPU.name {
                families.extend(threads(&bounded));
            }
            let (family, scale) = Family::of_host(metric);
            families.push((family, scale, series));
        }
        families.push((Family::of(&declared::HOST_LIMIT_USED), 1.0, limits));
        families.push((Family::of(&declared::HOST_ENDED), 1.0, self.ended()));
        // Where not all have room, those of the machine as a whole come before those of its parts.
        families.sort_by_key(|(_, _, series)| series.len());
        for (family, scale, series) in families {
            let scaled = |(labels, value)| (labels, Value::Number(value * scale));
            out.add(family, series.into_iter().map(scaled));
        }
    }

    /// The labels of each series, of which those of one label beyond the first few are one.
    fn bounded<'a>(&self, all: &[&'a Kept]) -> Vec<(Labels, &'a Kept)> {
        let mut known: BTreeMap<Labels, BTreeSet<&'a str>> = BTreeMap::new();
        let mut hosts: BTreeMap<HostId, String> = BTreeMap::new();
        let labels = all.iter().map(|kept| {
            let host = hosts.entry(kept.host).or_insert_with(|| self.host(kept.host));
            let mut labels: Labels = vec![("host", host.clone())];
            for (name, value) in &kept.labels {
                let values = known.entry(labels.clone()).or_default();
                let has_room = values.len() < values_max(name);
                let is_own =
                    values.contains(value.as_str()) || has_room && values.insert(value.as_str());
                let shown = if is_own { value.as_str() } else { OTHER };
                labels.push((*name, shown.to_owned()));
            }
            (labels, *kept)
        });
        labels.collect()
    }

    fn ended(&self) -> BTreeMap<Labels, f64> {
        let labels = |host, process: &String| -> Labels {
            vec![("host", self.host(host)), ("process", process.clone())]
        };
        let ended = self.ended.iter();
        ended.map(|((host, name), count)| (labels(*host, name), f64::from(*count))).collect()
    }
}

/// The busiest thread of the processes of a name, and how many of theirs are summed as others.
fn threads(threads: &[(Labels, &Kept)]) -> [(Family, f64, BTreeMap<Labels, f64>); 2] {
    let (mut hottest, mut others) = (BTreeMap::new(), BTreeMap::new());
    for (labels, kept) in threads {
        let Some(value) = kept.value else { continue };
        let is_other = labels.iter().any(|(name, value)| *name == "thread" && value == OTHER);
        let mut of_process = labels.clone();
        of_process.retain(|(name, _)| *name != "thread");
        let count = f64::from(u8::from(is_other));
        add(Unit::Count, &mut others, of_process.clone(), count);
        largest(&mut hottest, of_process, value);
    }
    [
        (Family::of(&declared::HOST_HOTTEST), 1.0, hottest),
        (Family::of(&declared::HOST_OTHER_THREADS), 1.0, others),
    ]
}

/// Adds a value to those with the same labels; of times the longest counts.
fn add(unit: Unit, series: &mut BTreeMap<Labels, f64>, labels: Labels, value: f64) {
    match unit {
        Unit::Milliseconds => largest(series, labels, value),
        Unit::Count | Unit::PerSecond | Unit::Bytes | Unit::BytesPerSecond | Unit::Ratio => {
            *series.entry(labels).or_insert(0.0) += value;
        }
    }
}

fn largest(series: &mut BTreeMap<Labels, f64>, labels: Labels, value: f64) {
    let most = series.entry(labels).or_insert(value);
    *most = most.max(value);
}
