//! Rows as figures: the latest of each series, its mean and its peak.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use throng_observation::host::{HostEvent, HostEventKind, HostInfo, HostRow, HostSeries, SeriesId, Unit};
use throng_observation::units::{bytes, percent};

/// Happenings that are kept.
const EVENTS_MAX: usize = 100;
/// Points of a history.
const HISTORY_MAX: usize = 300;

/// Everything seen so far.
#[derive(Debug, Default)]
pub(super) struct Figures {
    series: BTreeMap<SeriesId, Figure>,
    pub(super) events: VecDeque<HostEvent>,
    pub(super) info: Option<HostInfo>,
    /// Cores busy, a point a sample.
    pub(super) busy: VecDeque<f64>,
}

/// One series.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) of: HostSeries,
    pub(super) now: f64,
    pub(super) max: f64,
    /// Integral over time, and over which time; the value holds until the next.
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
                    at_s: 0.0,
                });
                entry.of = series.clone();
            }
            HostRow::Sample(sample) => {
                let Some(figure) = self.series.get_mut(&sample.series) else { return };
                let at_s = sample.at.as_secs_f64();
                // A rate is the mean since the reading before, so it belongs to the time before its sample.
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
            }
            HostRow::Profile(_) => {}
        }
    }

    /// The series of a metric.
    pub(super) fn of<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Figure> {
        self.series.values().filter(move |figure| figure.of.metric == metric)
    }

    /// The one series of a metric without labels.
    pub(super) fn one<'a>(&'a self, metric: &'a str) -> Option<&'a Figure> {
        self.of(metric).next()
    }

    /// Threads that ran, those that take most at the moment first.
    pub(super) fn threads(&self) -> Vec<&Figure> {
        let mut threads: Vec<_> = self.of("thread.cpu").filter(|figure| !figure.now.is_nan()).collect();
        threads.sort_by(|a, b| b.now.total_cmp(&a.now));
        threads
    }

    /// How long a thread waits for a CPU, as a share of the time.
    pub(super) fn wait_of(&self, thread: &Figure) -> f64 {
        let is_its = |figure: &&Figure| figure.label("tid") == thread.label("tid");
        self.of("thread.run_queue_wait").find(is_its).map_or(0.0, |figure| figure.now)
    }

    /// Errors that were counted: metric, labels, how many in a second at the worst.
    pub(super) fn errors(&self) -> Vec<(String, f64)> {
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
        let worst = |name: &'static str| {
            self.of(name).filter(|figure| figure.max > 0.0).map(move |figure| {
                let labels: Vec<_> =
                    figure.of.labels.iter().map(|(name, value)| format!("{name} {value}")).collect();
                (format!("{name} {}", labels.join(", ")).trim_end().to_owned(), figure.max)
            })
        };
        ERRORS.into_iter().flat_map(worst).collect()
    }

    /// Levels near what cannot be passed: what, level, limit.
    pub(super) fn near_limits(&self) -> Vec<String> {
        const LEVELS: [&str; 6] = [
            "process.fds",
            "udp.memory",
            "tcp.memory",
            "conntrack.entries",
            "tcp.ephemeral_ports",
            "cgroup.memory",
        ];
        let near = |name: &'static str| {
            self.of(name).filter_map(move |figure| {
                let limit = figure.of.limit.filter(|limit| figure.max > limit * 0.8)?;
                let who = figure.of.labels.get("process").or_else(|| figure.of.labels.get("cgroup"));
                Some(format!("{name} {}: {:.0} of {limit:.0}", who.map_or("", String::as_str), figure.max))
            })
        };
        LEVELS.into_iter().flat_map(near).collect()
    }

    /// What was seen, for the end.
    pub(super) fn table(&self, lasted: Duration, rows_dropped: u64) -> String {
        let end_s = lasted.as_secs_f64();
        let mut text = format!("Watched for {end_s:.0} s\n");
        if let Some(busy) = self.one("host.cpu.busy") {
            let cores = busy.of.limit.unwrap_or(0.0);
            text += &format!(
                "  host         {:.2} of {cores:.0} cores busy, at most {:.2}\n",
                busy.mean(end_s),
                busy.max
            );
        }
        for process in self.of("process.cpu") {
            let pid = process.label("pid");
            let its = |metric: &'static str| self.of(metric).find(move |figure| figure.label("pid") == pid);
            text += &format!(
                "  {:<12} PID {pid}: {:.3} cores, at most {:.3}; {:.0} threads, {}, {:.0} descriptors\n",
                process.label("process"),
                process.mean(end_s),
                process.max,
                its("process.threads").map_or(0.0, |figure| figure.max),
                bytes(its("process.rss").map_or(0.0, |figure| figure.max)),
                its("process.fds").map_or(0.0, |figure| figure.max),
            );
        }
        let mut threads: Vec<_> = self.of("thread.cpu").collect();
        threads.sort_by(|a, b| b.mean(end_s).total_cmp(&a.mean(end_s)));
        if !threads.is_empty() {
            text += "  thread                 tid       mean       max\n";
        }
        for thread in threads.iter().take(15) {
            let name = thread.label("thread");
            let (mean, max) = (percent(thread.mean(end_s)), percent(thread.max));
            text += &format!("    {name:<16} {:>9} {mean:>10} {max:>9}\n", thread.label("tid"));
        }
        for (what, worst) in self.errors() {
            text += &format!("  errors       {what}: at most {worst:.1}\n");
        }
        for near in self.near_limits() {
            text += &format!("  near limit   {near}\n");
        }
        for event in self.events.iter().filter(|event| event.kind == HostEventKind::CannotSee) {
            text += &format!("  not seen     {}\n", event.detail);
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
}
