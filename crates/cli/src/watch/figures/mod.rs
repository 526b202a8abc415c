//! The figures of a watched host: current value, mean and maximum of each series.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use throng_observation::host::{
    HostEvent, HostEventKind, HostInfo, HostRow, HostSeries, SeriesId, Unit,
};
use throng_observation::units::{bytes, percent};
use throng_observation::untrusted;
use throng_report::columns::{Align, aligned};

mod ended;
use ended::Ended;

/// Events that are kept.
const EVENTS_MAX: usize = 100;
/// Points of the history of busy cores.
const HISTORY_MAX: usize = 300;
/// Live series that are kept. The end of a series may be lost, so above this the longest silent are
/// dropped.
const SERIES_MAX: usize = 65_536;

/// Series that count errors.
const ERRORS: [&str; 14] = [
    "udp.rcvbuf_errors",
    "udp.sndbuf_errors",
    "udp.mem_errors",
    "socket.drops",
    "softnet.dropped",
    "nic.rx_dropped",
    "nic.tx_dropped",
    "nic.rx_fifo",
    "qdisc.drops",
    "tcp.listen_overflows",
    "tcp.segments_retransmitted",
    "conntrack.drops",
    "cgroup.throttled_periods",
    "host.memory.oom_kills",
];

/// Series that have a hard limit.
const LEVELS: [&str; 6] = [
    "process.fds",
    "udp.memory",
    "tcp.memory",
    "conntrack.entries",
    "tcp.ephemeral_ports",
    "cgroup.memory",
];

/// All series and events so far.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Live series.
    series: BTreeMap<SeriesId, Figure>,
    ended: Ended,
    pub(super) events: VecDeque<HostEvent>,
    pub(super) info: Option<HostInfo>,
    /// Cores busy, a point a sample.
    pub(super) busy: VecDeque<f64>,
    /// Time of the latest sample, seconds.
    latest_s: f64,
}

/// A series with its statistics.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) of: HostSeries,
    pub(super) now: f64,
    pub(super) max: f64,
    /// Integral over time; a value holds until the next sample.
    sum: f64,
    began_s: Option<f64>,
    at_s: f64,
}

impl Figure {
    /// Its mean over time until `end_s`.
    pub(super) fn mean(&self, end_s: f64) -> f64 {
        let Some(began_s) = self.began_s else { return 0.0 };
        let rest = if self.now.is_nan() { 0.0 } else { self.now * (end_s - self.at_s).max(0.0) };
        (self.sum + rest) / (end_s - began_s).max(1e-3)
    }

    pub(super) fn label(&self, name: &str) -> &str {
        self.of.labels.get(name).map_or("", String::as_str)
    }

    /// A label, escaped: programs choose the names of their threads.
    pub(super) fn shown(&self, name: &str) -> Cow<'_, str> {
        untrusted::name(self.label(name))
    }
}

impl Figures {
    pub(super) fn take(&mut self, row: &HostRow) {
        match row {
            HostRow::Info(info) => self.info = Some(info.clone()),
            HostRow::Event(event) => {
                if self.events.len() >= EVENTS_MAX {
                    self.events.pop_front();
                }
                self.events.push_back(event.clone());
            }
            HostRow::Series(series) => {
                let entry = self.series.entry(series.id).or_insert_with(|| Figure {
                    of: series.clone(),
                    now: f64::NAN,
                    max: f64::NAN,
                    sum: 0.0,
                    began_s: None,
                    at_s: self.latest_s, // it has not been silent yet
                });
                entry.of = series.clone();
                if self.series.len() > SERIES_MAX {
                    self.drop_silent();
                }
            }
            HostRow::Sample(sample) => {
                let Some(figure) = self.series.get_mut(&sample.series) else { return };
                let at_s = sample.at.as_secs_f64();
                self.latest_s = self.latest_s.max(at_s);
                // A rate is the mean since the previous reading, so it belongs to the time before
                // its sample.
                let is_rate = !matches!(figure.of.unit, Unit::Count | Unit::Bytes);
                let over = if is_rate { sample.value } else { figure.now };
                if figure.began_s.is_some() && !over.is_nan() {
                    figure.sum += over * (at_s - figure.at_s).max(0.0);
                }
                figure.began_s.get_or_insert(at_s);
                (figure.now, figure.at_s) = (sample.value, at_s);
                figure.max = figure.max.max(sample.value);
                if figure.of.metric == "host.cpu.busy" {
                    if self.busy.len() >= HISTORY_MAX {
                        self.busy.pop_front();
                    }
                    self.busy.push_back(sample.value);
                }
                // NaN ends a series.
                if sample.value.is_nan()
                    && let Some(figure) = self.series.remove(&sample.series)
                {
                    self.ended.take(figure);
                }
            }
            HostRow::Profile(_) => {}
        }
    }

    /// Drops the quarter of the series whose last sample is oldest.
    fn drop_silent(&mut self) {
        let mut spoke: Vec<_> = self.series.iter().map(|(id, figure)| (figure.at_s, *id)).collect();
        spoke.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        for (_, id) in spoke.into_iter().take(SERIES_MAX / 4) {
            self.series.remove(&id);
        }
    }

    /// The series of a metric, live and ended.
    fn ever<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Figure> {
        self.of(metric).chain(self.ended.of(metric))
    }

    /// The live series of a metric.
    pub(super) fn of<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Figure> {
        self.series.values().filter(move |figure| figure.of.metric == metric)
    }

    /// The only live series of a metric without labels.
    pub(super) fn one<'a>(&'a self, metric: &'a str) -> Option<&'a Figure> {
        self.of(metric).next()
    }

    /// Live threads, the busiest first.
    pub(super) fn threads(&self) -> Vec<&Figure> {
        let mut threads: Vec<_> =
            self.of("thread.cpu").filter(|figure| !figure.now.is_nan()).collect();
        threads.sort_by(|a, b| b.now.total_cmp(&a.now));
        threads
    }

    /// The share of its time that a thread waits for a CPU.
    pub(super) fn wait_of(&self, thread: &Figure) -> f64 {
        let is_its = |figure: &&Figure| figure.label("tid") == thread.label("tid");
        self.of("thread.run_queue_wait").find(is_its).map_or(0.0, |figure| figure.now)
    }

    /// Counted errors: metric with labels, and the maximum in a second.
    pub(super) fn errors(&self) -> Vec<(String, f64)> {
        let worst = |name: &'static str| {
            self.ever(name).filter(|figure| figure.max > 0.0).map(move |figure| {
                let labels: Vec<_> = figure
                    .of
                    .labels
                    .iter()
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect();
                let what = format!("{name} {}", labels.join(", "));
                (untrusted::line(what.trim_end()).into_owned(), figure.max)
            })
        };
        ERRORS.into_iter().flat_map(worst).collect()
    }

    /// Series above 80 % of their limit: name, value, limit.
    pub(super) fn near_limits(&self) -> Vec<String> {
        let near = |name: &'static str| {
            self.ever(name).filter_map(move |figure| {
                let limit = figure.of.limit.filter(|limit| figure.max > limit * 0.8)?;
                let who =
                    figure.of.labels.get("process").or_else(|| figure.of.labels.get("cgroup"));
                let who = untrusted::name(who.map_or("", String::as_str));
                Some(format!("{name} {who}: {:.0} of {limit:.0}", figure.max))
            })
        };
        LEVELS.into_iter().flat_map(near).collect()
    }

    /// The table at the end of watching.
    pub(super) fn table(&self, lasted: Duration, rows_dropped: u64) -> String {
        let end_s = lasted.as_secs_f64();
        let mut text = format!("Watched for {end_s:.0} s\n");
        if let Some(busy) = self.ever("host.cpu.busy").next() {
            let cores = busy.of.limit.unwrap_or(0.0);
            text += &format!(
                "  host         {:.2} of {cores:.0} cores busy, at most {:.2}\n",
                busy.mean(end_s),
                busy.max
            );
        }
        for process in self.ever("process.cpu") {
            let pid = process.label("pid");
            let its = |metric: &'static str| {
                self.ever(metric).find(move |figure| figure.label("pid") == pid)
            };
            text += &format!(
                "  {:<12} PID {}: {:.3} cores, at most {:.3}; {:.0} threads, {}, {:.0} \
                 descriptors\n",
                process.shown("process"),
                process.shown("pid"),
                process.mean(end_s),
                process.max,
                its("process.threads").map_or(0.0, |figure| figure.max),
                bytes(its("process.rss").map_or(0.0, |figure| figure.max)),
                its("process.fds").map_or(0.0, |figure| figure.max),
            );
        }
        let mut threads: Vec<_> = self.ever("thread.cpu").collect();
        threads.sort_by(|a, b| b.mean(end_s).total_cmp(&a.mean(end_s)));
        if !threads.is_empty() {
            let mut rows = vec![["thread", "tid", "mean", "max"].map(str::to_owned).to_vec()];
            rows.extend(threads.iter().take(15).map(|thread| {
                let (name, tid) = (thread.shown("thread"), thread.shown("tid"));
                let (mean, max) = (percent(thread.mean(end_s)), percent(thread.max));
                vec![name.into_owned(), tid.into_owned(), mean, max]
            }));
            for line in aligned(&rows, &[Align::Left, Align::Right]).lines() {
                text += &format!("  {line}\n");
            }
        }
        for (what, worst) in self.errors() {
            text += &format!("  errors       {what}: at most {worst:.1}\n");
        }
        for near in self.near_limits() {
            text += &format!("  near limit   {near}\n");
        }
        for event in self.events.iter().filter(|event| event.kind == HostEventKind::Unreadable) {
            text += &format!("  not seen     {}\n", untrusted::line(&event.detail));
        }
        if let Some(info) = &self.info {
            let cpu = info.watcher_cpu_us as f64 / 1e6 / end_s.max(1e-3);
            text += &format!(
                "  the watcher  {:.2} % of a core, {} at most, {rows_dropped} rows lost\n",
                cpu * 100.0,
                bytes(info.watcher_rss_bytes as f64)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::RunTime;
    use throng_observation::host::HostSample;

    fn series(id: u32, metric: &str, unit: Unit, limit: Option<f64>) -> HostRow {
        let labels = [("process", "janus"), ("thread", "hloop 1"), ("pid", "7"), ("tid", "8")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        HostRow::Series(HostSeries {
            id: SeriesId(id),
            metric: metric.into(),
            unit,
            labels,
            limit,
            ..HostSeries::default()
        })
    }

    fn sample(id: u32, second: i64, value: f64) -> HostRow {
        HostRow::Sample(HostSample { series: SeriesId(id), at: RunTime(second * 1_000_000), value })
    }

    #[test]
    fn a_mean_is_over_time_and_a_level_near_its_limit_is_named() {
        let mut figures = Figures::default();
        let rows = [
            series(1, "thread.cpu", Unit::Ratio, None),
            sample(1, 0, 0.1),
            sample(1, 1, 0.5),
            sample(1, 4, 0.1),
            series(2, "process.fds", Unit::Count, Some(100.0)),
            sample(2, 0, 90.0),
            series(3, "udp.rcvbuf_errors", Unit::PerSecond, None),
            sample(3, 1, 12.0),
        ];
        rows.iter().for_each(|row| figures.take(row));
        let thread = figures.threads()[0];
        assert!((thread.mean(4.0) - 0.2).abs() < 1e-9, "{}", thread.mean(4.0));
        let table = figures.table(Duration::from_secs(4), 0);
        for words in ["hloop 1", "20.0", "process.fds janus: 90 of 100", "udp.rcvbuf_errors"] {
            assert!(table.contains(words), "{words} is not in\n{table}");
        }
    }

    #[test]
    fn short_lived_threads_cost_bounded_memory_and_busy_ones_are_reported_at_the_end() {
        let mut figures = Figures::default();
        let mut take = |row| figures.take(&row);
        for id in 0..20_000 {
            take(series(
                id,
                ["thread.cpu", "thread.run_queue_wait", "process.io"][id as usize % 3],
                Unit::Ratio,
                None,
            ));
            let busy = if id == 9 { 0.9 } else { 0.01 };
            [(0, 0.0), (1, busy), (2, f64::NAN)]
                .into_iter()
                .for_each(|(at, value)| take(sample(id, at, value)));
        }
        assert!(figures.series.is_empty(), "{}", figures.series.len());
        assert_eq!(figures.ended.of("thread.cpu").count(), ended::ENDED_MAX);
        let table = figures.table(Duration::from_secs(4), 0);
        assert!(table.contains("90.0"), "the busiest of all is not in\n{table}");
        assert!(figures.threads().is_empty(), "none of them runs at the moment");
    }

    #[test]
    fn a_process_that_ended_is_reported_whole_or_not_at_all() {
        let mut figures = Figures::default();
        for pid in 0..500_u32 {
            let metrics = ["process.threads", "process.cpu", "process.fds", "process.rss"];
            for (id, metric) in (pid * 4..).zip(metrics) {
                let HostRow::Series(mut row) = series(id, metric, Unit::Count, None) else {
                    panic!()
                };
                row.labels.insert("pid".into(), format!("{pid}"));
                figures.take(&HostRow::Series(row));
                let value = if pid == 3 { 9.0 } else { 2.0 };
                for (at, value) in [(0, value), (1, value), (2, f64::NAN)] {
                    figures.take(&sample(id, at, value));
                }
            }
        }
        let table = figures.table(Duration::from_secs(4), 0);
        let lines: Vec<_> = table.lines().filter(|line| line.contains(" PID ")).collect();
        assert_eq!(lines.len(), ended::ENDED_MAX, "{table}");
        assert!(lines.iter().any(|line| line.contains("PID 3:")), "it worked most:\n{table}");
        assert!(lines.iter().all(|line| !line.contains("; 0 threads")), "{table}");
    }

    #[test]
    fn series_whose_end_was_lost_do_not_grow_without_bound() {
        let mut figures = Figures::default();
        for id in 0..u32::try_from(SERIES_MAX + 10).unwrap() {
            figures.take(&series(id, "thread.cpu", Unit::Ratio, None));
            figures.take(&sample(id, i64::from(id), 0.1));
        }
        assert!(figures.series.len() <= SERIES_MAX);
        assert!(
            figures.series.contains_key(&SeriesId(u32::try_from(SERIES_MAX).unwrap())),
            "a series that still sends"
        );
    }
}
