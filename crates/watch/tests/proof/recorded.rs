//! Watches for a while and records the rows for queries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use throng_observation::host::{
    HostEvent, HostEventKind, HostId, HostInfo, HostRow, HostSeries, SeriesId,
};
use throng_watch::{LocalHost, LocalWatch, RowReceiver, RowSender, Target, WatchConfig};

/// Recorded rows.
#[derive(Debug, Default)]
pub(crate) struct RecordedRows {
    series: BTreeMap<SeriesId, HostSeries>,
    samples: BTreeMap<SeriesId, Vec<(f64, f64)>>,
    pub(crate) events: Vec<HostEvent>,
    pub(crate) info: Option<HostInfo>,
}

/// A watcher and its rows.
pub(crate) struct Watched {
    pub(crate) watching: LocalWatch,
    rows: RowReceiver,
    pub(crate) zero: Instant,
}

/// Watches `targets` from now on.
pub(crate) fn watch(targets: Vec<Target>) -> Watched {
    watch_as(WatchConfig { targets, ..WatchConfig::default() }).0
}

/// Starts watching; also returns a sender for further rows to the same queue.
pub(crate) fn watch_as(config: WatchConfig) -> (Watched, RowSender) {
    let (sender, rows) = throng_watch::rows(65_536);
    let zero = Instant::now();
    let watching = LocalHost::open(config).unwrap().begin(HostId(0), zero, sender.clone()).unwrap();
    (Watched { watching, rows, zero }, sender)
}

impl Watched {
    /// Records until `is_enough`, at most `within`; fails otherwise.
    pub(crate) fn until(
        &self,
        seen: &mut RecordedRows,
        within: Duration,
        what: &str,
        is_enough: impl Fn(&RecordedRows) -> bool,
    ) {
        let until = Instant::now() + within;
        while !is_enough(seen) {
            match self.rows.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(row) => seen.take(row),
                Err(_) => panic!("{what} was not seen within {within:?}; {seen:#?}"),
            }
        }
    }

    /// Ends the watching and returns all rows.
    pub(crate) fn end(self, mut seen: RecordedRows) -> RecordedRows {
        self.watching.stop();
        self.rows.try_iter().for_each(|row| seen.take(row));
        seen
    }
}

impl RecordedRows {
    pub(crate) fn take(&mut self, row: HostRow) {
        match row {
            HostRow::Series(series) => drop(self.series.insert(series.id, series)),
            HostRow::Sample(sample) => {
                assert!(
                    self.series.contains_key(&sample.series),
                    "a sample came before its series"
                );
                self.samples
                    .entry(sample.series)
                    .or_default()
                    .push((sample.at.as_secs_f64(), sample.value));
            }
            HostRow::Event(event) => self.events.push(event),
            HostRow::Info(info) => self.info = Some(info),
            HostRow::Profile(_) => {}
        }
    }

    /// The series of the metric whose labels include all of these.
    pub(crate) fn find<'a>(
        &'a self,
        metric: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a HostSeries> {
        self.series.values().filter(move |series| {
            let has =
                |(name, value): &(&str, &str)| series.labels.get(*name).is_some_and(|v| v == value);
            series.metric == metric && labels.iter().all(has)
        })
    }

    /// Their samples, seconds and values.
    pub(crate) fn samples(&self, metric: &str, labels: &[(&str, &str)]) -> Vec<(f64, f64)> {
        let of = |series: &HostSeries| self.samples.get(&series.id).cloned().unwrap_or_default();
        self.find(metric, labels).flat_map(of).collect()
    }

    /// When the last sample of any series was taken, seconds.
    pub(crate) fn last_at(&self) -> f64 {
        self.samples.values().flatten().map(|(at, _)| *at).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The largest of their values.
    pub(crate) fn max(&self, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.samples(metric, labels)
            .into_iter()
            .map(|(_, value)| value)
            .filter(|v| !v.is_nan())
            .reduce(f64::max)
    }

    /// The integral of a rate from `from` to its last sample, where each sample is the mean since
    /// the one before.
    pub(crate) fn sum(&self, metric: &str, labels: &[(&str, &str)], from: f64) -> f64 {
        let one = |series: &HostSeries| {
            let samples = self.samples.get(&series.id).map(Vec::as_slice).unwrap_or_default();
            let pairs = samples.windows(2).filter(|pair| pair[0].0 >= from && !pair[1].1.is_nan());
            pairs.map(|pair| (pair[1].0 - pair[0].0) * pair[1].1).sum::<f64>()
        };
        self.find(metric, labels).map(one).sum()
    }

    /// Whether there is an event of this kind whose detail contains this word.
    pub(crate) fn said(&self, kind: HostEventKind, word: &str) -> bool {
        self.events.iter().any(|event| event.kind == kind && event.detail.contains(word))
    }
}
