//! The current figures of the watched hosts, from their rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use throng_observation::host::catalogue as metric;
use throng_observation::host::{
    HostEventKind, HostId, HostInfo, HostNames, HostRow, HostSample, HostSeries, SeriesId,
};
use throng_observation::{RunTime, untrusted};

/// The figures of a watched host on the live display.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerFigures {
    pub(crate) name: String,
    /// CPU of the watched processes together, cores.
    pub(crate) cpu: Option<f64>,
    /// The thread that uses most of its core, and how much.
    pub(crate) hottest: Option<(String, f64)>,
    /// Resident memory of the watched processes together, bytes.
    pub(crate) rss_bytes: Option<f64>,
    /// The busiest interface: bits sent and received in a second.
    pub(crate) tx_bps: Option<f64>,
    pub(crate) rx_bps: Option<f64>,
    /// Packets and datagrams dropped in a second, wherever the host counts them.
    pub(crate) drops_per_s: f64,
}

/// The latest value of each series that is shown.
#[derive(Default)]
pub(crate) struct LiveHosts {
    hosts: BTreeMap<HostId, HostState>,
    of: HashMap<SeriesId, HostId>,
}

#[derive(Default)]
struct HostState {
    info: Option<HostInfo>,
    packs: Option<String>,
    values: HashMap<SeriesId, LatestValue>,
    last_row_at: Option<Instant>,
    has_found_process: bool,
    /// Processes that were found when the crowd had begun to join: jobs, most of them.
    found_later: BTreeSet<u32>,
    process_ended_at: Option<Instant>,
}

struct LatestValue {
    what: Quantity,
    name: String,
    value: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    ProcessCpu,
    ThreadCpu,
    Rss,
    Sent,
    Received,
    Drops,
}

impl LiveHosts {
    /// Updates the figures from a row; returns another row to store with it, if any.
    pub(crate) fn take(&mut self, row: &HostRow) -> Option<HostRow> {
        match row {
            HostRow::Info(info) => {
                let seen = self.host_state(info.host);
                seen.info = Some(info.clone());
                return seen.known();
            }
            HostRow::Series(series) => self.series(series),
            HostRow::Sample(sample) => self.sample(sample),
            HostRow::Event(event) => {
                // Not all events come from the watcher.
                let seen = self.hosts.entry(event.host).or_default();
                seen.has_found_process |= event.kind == HostEventKind::ProcessFound;
                let pid = event.process.as_ref().map(|process| process.pid);
                if event.kind == HostEventKind::ProcessFound && event.at >= RunTime(0) {
                    seen.found_later.extend(pid);
                }
                let is_later = pid.is_some_and(|pid| seen.found_later.contains(&pid));
                if event.kind == HostEventKind::ProcessEnded && !is_later {
                    seen.process_ended_at = Some(Instant::now());
                }
            }
            HostRow::Profile(_) => {}
        }
        None
    }

    /// Keeps the knowledge packs of a host, as JSON. Returns the host with the packs among its
    /// facts, once known.
    pub(crate) fn know(&mut self, host: HostId, packs: String) -> Option<HostRow> {
        let seen = self.hosts.entry(host).or_default();
        seen.packs = Some(packs);
        seen.known()
    }

    fn host_state(&mut self, host: HostId) -> &mut HostState {
        let seen = self.hosts.entry(host).or_default();
        seen.last_row_at = Some(Instant::now());
        seen
    }

    fn series(&mut self, series: &HostSeries) {
        self.of.insert(series.id, series.host);
        let seen = self.host_state(series.host);
        // Programs choose the names of their threads.
        let label = |name| {
            series
                .labels
                .get(name)
                .map(|text| untrusted::name(text).into_owned())
                .unwrap_or_default()
        };
        let (what, name) = match series.metric.as_str() {
            name if name == metric::PROCESS_CPU.name => (Quantity::ProcessCpu, label("process")),
            name if name == metric::THREAD_CPU.name => (Quantity::ThreadCpu, label("thread")),
            name if name == metric::PROCESS_RSS.name => (Quantity::Rss, String::new()),
            name if name == metric::NIC_TX_BYTES.name => (Quantity::Sent, String::new()),
            name if name == metric::NIC_RX_BYTES.name => (Quantity::Received, String::new()),
            name if DROPS.contains(&name) => (Quantity::Drops, String::new()),
            _ => return,
        };
        seen.values.entry(series.id).or_insert(LatestValue { what, name, value: 0.0 });
    }

    fn sample(&mut self, sample: &HostSample) {
        let Some(host) = self.of.get(&sample.series).copied() else { return };
        let seen = self.host_state(host);
        if sample.value.is_nan() {
            seen.values.remove(&sample.series);
            self.of.remove(&sample.series);
        } else if let Some(shown) = seen.values.get_mut(&sample.series) {
            shown.value = sample.value;
        }
    }

    /// The hosts in the order of the scenario.
    pub(crate) fn figures(&self) -> Vec<ServerFigures> {
        let mut names = HostNames::default();
        for info in self.hosts.values().filter_map(|state| state.info.as_ref()) {
            names.learn(info.host, &untrusted::name(&info.name));
        }
        let named = |(id, state): (&HostId, &HostState)| ServerFigures {
            name: names.name(*id),
            ..state.figures()
        };
        self.hosts.iter().map(named).collect()
    }

    /// CPU of the watched processes of a host together, cores.
    pub(crate) fn cpu(&self, host: HostId) -> Option<f64> {
        self.hosts.get(&host)?.figures().cpu
    }

    /// How long no row of a host was received; `None` if none ever was.
    pub(crate) fn silent_for(&self, host: HostId) -> Option<Duration> {
        self.hosts.get(&host)?.last_row_at.map(|at| at.elapsed())
    }

    /// Whether the host's watcher has said that it found a process: it can be profiled.
    pub(crate) fn has_found_process(&self, host: HostId) -> bool {
        self.hosts.get(&host).is_some_and(|state| state.has_found_process)
    }

    /// Whether a watcher has reported, within this time, the end of a process that was there before
    /// the crowd.
    pub(crate) fn has_seen_an_end(&self, within: Duration) -> bool {
        let mut ends = self.hosts.values().filter_map(|state| state.process_ended_at);
        ends.any(|at| at.elapsed() < within)
    }
}

/// The metrics that count drops of a host.
const DROPS: [&str; 6] = [
    metric::NIC_RX_DROPPED.name,
    metric::NIC_TX_DROPPED.name,
    metric::QDISC_DROPS.name,
    metric::SOFTNET_DROPPED.name,
    metric::UDP_RCVBUF_ERRORS.name,
    metric::UDP_SNDBUF_ERRORS.name,
];

impl HostState {
    /// The host with the knowledge of its server, once both are there.
    fn known(&self) -> Option<HostRow> {
        let (mut info, packs) = (self.info.clone()?, self.packs.clone()?);
        info.facts.insert(throng_observation::pack::PACKS_FACT.into(), packs);
        Some(HostRow::Info(info))
    }

    /// Its figures, without its name.
    fn figures(&self) -> ServerFigures {
        let of = |what| self.values.values().filter(move |shown| shown.what == what);
        let sum = |what| of(what).map(|shown| shown.value).reduce(|a, b| a + b);
        let most = |what| of(what).map(|shown| shown.value).reduce(f64::max);
        let hottest = of(Quantity::ThreadCpu).max_by(|a, b| a.value.total_cmp(&b.value));
        ServerFigures {
            name: String::new(),
            cpu: sum(Quantity::ProcessCpu),
            hottest: hottest
                .filter(|shown| shown.value > 0.0)
                .map(|shown| (shown.name.clone(), shown.value)),
            rss_bytes: sum(Quantity::Rss),
            tx_bps: most(Quantity::Sent).map(|bytes| bytes * 8.0),
            rx_bps: most(Quantity::Received).map(|bytes| bytes * 8.0),
            drops_per_s: sum(Quantity::Drops).unwrap_or(0.0),
        }
    }
}

impl ServerFigures {
    /// The figures in one line.
    pub(crate) fn line(&self) -> String {
        use throng_observation::units::{bit_rate, bytes, percent};
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let hottest = self.hottest.as_ref().map(|(name, cpu)| format!("{name} {}", percent(*cpu)));
        format!(
            "CPU {} of a core, hottest thread {}, memory {}, tx {}, rx {}, drops {:.0}/s",
            or_dash(self.cpu.map(percent)),
            or_dash(hottest),
            or_dash(self.rss_bytes.map(bytes)),
            or_dash(self.tx_bps.map(bit_rate)),
            or_dash(self.rx_bps.map(bit_rate)),
            self.drops_per_s,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::host::{HostEvent, ProcessEnd, ProcessEvent};

    fn series(id: u32, metric: &str, label: (&str, &str)) -> HostRow {
        let labels = BTreeMap::from([(label.0.to_owned(), label.1.to_owned())]);
        HostRow::Series(HostSeries {
            id: SeriesId(id),
            metric: metric.into(),
            labels,
            ..HostSeries::default()
        })
    }

    fn sample(id: u32, value: f64) -> HostRow {
        HostRow::Sample(HostSample { series: SeriesId(id), at: RunTime(0), value })
    }

    #[test]
    fn the_end_of_a_job_is_not_that_of_the_server() {
        let event = |pid, at, end: Option<ProcessEnd>| {
            let kind = if end.is_some() {
                HostEventKind::ProcessEnded
            } else {
                HostEventKind::ProcessFound
            };
            let process = ProcessEvent { target: 0, name: "media".into(), pid, end };
            let event = HostEvent::new(HostId(0), RunTime(at), kind, "");
            HostRow::Event(HostEvent { process: Some(process), ..event })
        };
        let mut now = LiveHosts::default();
        let ended = || Some(ProcessEnd::default());
        for row in
            [event(7, -4_000_000, None), event(8, 1_000_000, None), event(8, 2_000_000, ended())]
        {
            now.take(&row);
        }
        assert!(!now.has_seen_an_end(Duration::from_secs(60)), "a job");
        now.take(&event(7, 3_000_000, ended()));
        assert!(now.has_seen_an_end(Duration::from_secs(60)));
    }

    #[test]
    fn two_watches_of_one_machine_have_names_of_their_own() {
        let mut now = LiveHosts::default();
        for host in [HostId(0), HostId(1)] {
            now.take(&HostRow::Info(HostInfo { host, name: "lab".into(), ..HostInfo::default() }));
        }
        let names: Vec<String> = now.figures().into_iter().map(|server| server.name).collect();
        assert_eq!(names, ["lab 0", "lab 1"]);
    }

    #[test]
    fn the_latest_values_stand_in_one_line() {
        let mut now = LiveHosts::default();
        for row in [
            series(0, "process.cpu", ("process", "janus")),
            series(1, "thread.cpu", ("thread", "hloop 1")),
            series(2, "thread.cpu", ("thread", "hloop 2")),
            series(3, "nic.tx_bytes", ("interface", "eth0")),
            series(4, "udp.rcvbuf_errors", ("", "")),
            sample(0, 1.2),
            sample(1, 0.3),
            sample(2, 0.97),
            sample(3, 1e6),
            sample(4, 7.0),
            sample(9, 1.0),
        ] {
            assert!(now.take(&row).is_none());
        }
        let line = now.figures()[0].line();
        assert_eq!(
            line,
            "CPU 120.0 % of a core, hottest thread hloop 2 97.0 %, memory –, tx 8.00 Mbit/s, rx –, drops 7/s"
        );
        assert!(
            now.know(HostId(0), "[]".into()).is_none(),
            "nothing is known of the host itself yet"
        );
        let info_text = now.take(&HostRow::Info(HostInfo::default()));
        assert!(
            matches!(info_text, Some(HostRow::Info(info)) if info.facts.contains_key(throng_observation::pack::PACKS_FACT))
        );
        now.take(&sample(2, f64::NAN));
        assert!(
            now.figures()[0].line().contains("hloop 1 30.0 %"),
            "a thread that ended is not shown"
        );
        assert!(now.silent_for(HostId(0)).is_some() && now.silent_for(HostId(1)).is_none());
    }
}
