//! The figures of watched hosts, from the rows of their watchers, by labels that are bounded. A
//! rate is read several times between two scrapes: its values are summed over time, so that each
//! counts. Of the others the last value is shown.

mod exposed;
mod places;
mod series;

use std::collections::BTreeMap;

use throng_observation::host::{
    HostEvent, HostEventKind, HostId, HostNames, HostRow, HostSample, HostSeries, SeriesId,
    catalogue,
};
use throng_observation::{RunTime, untrusted};

use super::bounded::Bounded;
use super::exposition::Labels;
use places::Places;
use series::{Key, Series};

/// The labels of a host's series that are exposed, in this order: without numbers of processes and
/// threads, of which there are ever new ones.
const LABELS: [&str; 9] =
    ["process", "thread", "cpu", "device", "interface", "qdisc", "port", "protocol", "cgroup"];

/// Series that are kept. The end of a series may be lost, so above this the longest silent ones of
/// processes are dropped.
const SERIES_MAX: usize = 65_536;
/// Names of processes of which the ended ones are counted.
const ENDED_MAX: usize = 20;

/// What is known of all hosts.
#[derive(Debug)]
pub(super) struct HostFigures {
    names: HostNames,
    /// When the last value of each was read.
    now: BTreeMap<HostId, RunTime>,
    series: BTreeMap<SeriesId, Series>,
    /// The sums of rates over time, also of series that have ended.
    sums: BTreeMap<Key, f64>,
    places: Places,
    ended: BTreeMap<(HostId, String), u32>,
    ended_names: Bounded,
    marks: BTreeMap<HostId, u32>,
}

impl Default for HostFigures {
    fn default() -> Self {
        Self {
            names: HostNames::default(),
            now: BTreeMap::new(),
            series: BTreeMap::new(),
            sums: BTreeMap::new(),
            places: Places::default(),
            ended: BTreeMap::new(),
            ended_names: Bounded::to(ENDED_MAX),
            marks: BTreeMap::new(),
        }
    }
}

impl HostFigures {
    pub(super) fn take(&mut self, row: &HostRow) {
        match row {
            HostRow::Info(info) => {
                self.names.learn(info.host, &untrusted::name(&info.name));
                self.marks.entry(info.host).or_default();
            }
            HostRow::Series(series) => self.begin(series),
            HostRow::Sample(sample) if sample.value.is_nan() => self.end(sample.series),
            HostRow::Sample(sample) => self.sample(sample),
            HostRow::Event(event) => self.event(event),
            HostRow::Profile(_) => {}
        }
    }

    fn begin(&mut self, announced: &HostSeries) {
        // Metrics of logs and endpoints have names and labels of others.
        let Some(metric) = catalogue::find(&announced.metric) else { return };
        // One that was announced before has another limit now.
        if !self.series.contains_key(&announced.id) {
            let label = |name: &'static str| {
                let value = announced.labels.get(name)?;
                Some((name, untrusted::name(value).into_owned()))
            };
            let labels = LABELS.into_iter().filter_map(label).collect();
            let (labels, gone) = self.places.enter(announced.host, labels);
            gone.iter().for_each(|gone| self.forget(announced.host, gone));
            let key = (announced.host, labels, metric.name);
            if metric.is_rate() {
                self.sums.entry(key.clone()).or_insert(0.0);
            }
            let is_of_process = announced.labels.contains_key("pid");
            self.series.insert(announced.id, Series::new(key, metric, is_of_process));
        }
        if let Some(series) = self.series.get_mut(&announced.id) {
            series.limit = announced.limit.filter(|limit| *limit > 0.0 && limit.is_finite());
        }
        if self.series.len() > SERIES_MAX {
            self.drop_silent();
        }
    }

    fn sample(&mut self, sample: &HostSample) {
        let Some(series) = self.series.get_mut(&sample.series) else { return };
        let grown = series.take(sample.at, sample.value);
        if let Some(sum) = self.sums.get_mut(&series.key) {
            *sum += grown;
        }
        let now = self.now.entry(series.key.0).or_insert(sample.at);
        *now = sample.at.max(*now);
    }

    fn event(&mut self, event: &HostEvent) {
        if event.kind == HostEventKind::Mark {
            let count = self.marks.entry(event.host).or_default();
            *count = count.saturating_add(1);
        }
        let (Some(process), HostEventKind::ProcessFound | HostEventKind::ProcessEnded) =
            (&event.process, event.kind)
        else {
            return;
        };
        let name = untrusted::name(&process.name).into_owned();
        let count = self.ended.entry((event.host, self.ended_names.label(name))).or_default();
        let has_ended = event.kind == HostEventKind::ProcessEnded;
        *count = count.saturating_add(u32::from(has_ended));
    }

    fn end(&mut self, id: SeriesId) {
        if let Some(series) = self.series.remove(&id) {
            let (host, labels, _) = &series.key;
            self.places.leave(*host, labels);
        }
    }

    /// Drops the sums of series that have ended and whose labels began with `gone`.
    fn forget(&mut self, host: HostId, gone: &Labels) {
        let from = (host, gone.clone(), "");
        let sums = self.sums.range(from..).map(|(key, _)| key);
        let of_it = sums.take_while(|(of, labels, _)| *of == host && labels.starts_with(gone));
        let keys: Vec<Key> = of_it.cloned().collect();
        for key in &keys {
            self.sums.remove(key);
        }
    }

    fn drop_silent(&mut self) {
        let of_processes = self.series.iter().filter(|(_, series)| series.is_of_process);
        let mut spoke: Vec<_> = of_processes.map(|(id, series)| (series.at, *id)).collect();
        spoke.sort_unstable();
        for (_, id) in spoke.into_iter().take(SERIES_MAX / 4) {
            self.end(id);
        }
        // A machine has no such number of parts: these were invented.
        while self.series.len() > SERIES_MAX
            && let Some(last) = self.series.last_key_value().map(|(id, _)| *id)
        {
            self.end(last);
        }
    }
}
