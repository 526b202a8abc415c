//! The watched hosts in `summary.json`: `hosts[]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::catalogue as metric;
use throng_observation::host::{HostEventKind, HowEnded};
use throng_observation::run::RunData;

use super::{Accounts, Host, Knowledge, MeasuredSeries, Thread, Threads, errors, hosts};

/// A watched host over the run. Shares of CPU time are of one core: 1 is a whole core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedHost {
    /// Its name: the scenario's, else the host name.
    pub name: String,
    /// Online CPUs.
    pub cpus: Option<f64>,
    /// CPU of the whole host, cores: median over the run.
    pub cpu_p50: Option<f64>,
    /// The most of the same in any second.
    pub cpu_max: Option<f64>,
    /// The watched processes, by what they used; at most 20.
    pub processes: Vec<WatchedProcess>,
    /// The watched processes that ended, in order; at most 20, the last ones.
    #[serde(default)]
    pub ended: Vec<EndedProcess>,
    /// Threads seen over the run.
    pub threads: u64,
    /// CPU time of the threads together ÷ that of their processes: near 1 when no thread was
    /// missed.
    pub threads_cpu_ratio: Option<f64>,
    /// The thread that used most CPU over the run.
    pub hottest_thread: Option<HottestThread>,
    /// Largest resident memory of a process, bytes.
    pub rss_bytes_max: Option<f64>,
    /// Network interfaces that carried anything, the busiest first.
    pub network: Vec<NetworkInterface>,
    /// Packets dropped by interfaces, queueing disciplines and the kernel's backlog, over the run.
    pub nic_drops: Option<u64>,
    /// Datagrams dropped because a socket's receive buffer was full.
    pub udp_receive_buffer_errors: Option<u64>,
    /// Datagrams not sent because a socket's send buffer was full.
    pub udp_send_buffer_errors: Option<u64>,
    /// TCP segments sent again.
    pub tcp_segments_retransmitted: Option<u64>,
    /// Connections dropped because a listen queue was full.
    pub tcp_listen_overflows: Option<u64>,
    /// Most open file descriptors of a process.
    pub open_fds_max: Option<f64>,
    /// Their limit.
    pub open_fds_limit: Option<f64>,
    /// The longest mean time of disk requests, milliseconds.
    pub disk_await_ms_max: Option<f64>,
    /// Most cores idle in any second while a task waited for I/O.
    pub iowait_max: Option<f64>,
    /// Most CPU steal in any second, cores (time taken by the hypervisor).
    pub steal_max: Option<f64>,
    /// Largest share of the periods of its quota in which the control group was held back.
    pub throttled_ratio_max: Option<f64>,
    /// Largest share of time that some task waited for a CPU (PSI).
    pub pressure_cpu_max: Option<f64>,
    /// The same for memory.
    pub pressure_memory_max: Option<f64>,
    /// The same for block I/O.
    pub pressure_io_max: Option<f64>,
    /// Log lines by pattern.
    pub log_lines: BTreeMap<String, u64>,
    /// What its access logs have by group of URIs, the most bytes first; at most 20.
    #[serde(default)]
    pub traffic: Vec<UriTraffic>,
    /// Answers 5xx in its access logs by URI group and status, the most first; at most 20.
    #[serde(default)]
    pub server_errors: Vec<ServerErrors>,
    /// Share of the bytes sent by the interfaces that is in no access log.
    pub unaccounted_tx_ratio: Option<f64>,
    /// The moments that were profiled.
    pub profiles: Vec<String>,
    /// For how much of the run it was watched, seconds.
    pub watched_s: f64,
    /// CPU of the watcher itself, share of one core.
    pub watcher_cpu_ratio: Option<f64>,
    /// The watcher's peak resident memory, bytes.
    pub watcher_rss_bytes: Option<u64>,
    /// Bound of the error of its times against the run's clock, milliseconds.
    pub clock_error_ms: Option<f64>,
    /// What could not be read and why; at most 20.
    pub unreadable: Vec<String>,
}

/// The requests of one group of URIs, as access logs have them. A WebSocket counts when it closes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UriTraffic {
    /// The group of URIs, as a knowledge pack names it.
    pub uri_group: String,
    /// Bytes sent, as the log counts them.
    pub bytes: u64,
    /// Share of the bytes of all groups; `null` where there are none.
    pub ratio: Option<f64>,
    /// Answers.
    pub answers: u64,
}

/// Answers 5xx of one group of URIs with one status, refused upgrades to a WebSocket among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerErrors {
    /// The group of URIs, as a knowledge pack names it.
    pub uri_group: String,
    /// The status: `502`.
    pub status: String,
    /// Answers over the run.
    pub answers: u64,
    /// The most in a minute of the run.
    pub per_minute_max: u64,
    /// Answers of each minute of the run, from its start; the last one ends with the run.
    pub by_minute: Vec<u64>,
}

/// A watched process. CPU is in cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedProcess {
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Median over the time it lived.
    pub cpu_p50: f64,
    /// The most in any second.
    pub cpu_max: f64,
    /// Largest resident memory, bytes.
    pub rss_bytes_max: Option<f64>,
}

/// A watched process that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedProcess {
    /// When its end was noticed, seconds of the run.
    pub at_s: f64,
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// How it ended and who ended it, in words that follow "ended".
    pub how: String,
    /// Its exit code, if it exited and that is known.
    pub exit_code: Option<u8>,
    /// The signal that ended it, if one did and that is known.
    pub signal: Option<u8>,
}

/// The thread that used most CPU. A thread cannot use more than 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HottestThread {
    /// Its name.
    pub name: String,
    /// Its process.
    pub process: String,
    /// Its number.
    pub tid: u32,
    /// Median share of one core over the time it lived.
    pub cpu_p50: f64,
    /// The most in any second.
    pub cpu_max: f64,
    /// 95th percentile of the share of time that it was ready and waited for a CPU.
    pub run_queue_wait_p95: Option<f64>,
    /// Its work, by a knowledge pack.
    pub meaning: Option<String>,
    /// Which setting changes it, or what else helps.
    pub help: Option<String>,
}

/// A network interface, bits per second as it counts them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkInterface {
    /// Its name.
    pub name: String,
    /// Most sent in any second.
    pub tx_bps_max: f64,
    /// Most sent in any reading: 100 ms, where nothing made the watcher read less often.
    #[serde(default)]
    pub tx_bps_peak: Option<f64>,
    /// Mean sent.
    pub tx_bps_mean: f64,
    /// Most received in any second.
    pub rx_bps_max: f64,
    /// Mean received.
    pub rx_bps_mean: f64,
    /// Its speed, where one is known.
    pub line_rate_bps: Option<f64>,
}

/// Every watched host of the run.
pub(crate) fn summarise(run: &RunData) -> Vec<WatchedHost> {
    hosts(run).iter().map(watched_host).collect()
}

/// Longer lists are for the page and the tables.
const PROCESSES_MAX: usize = 20;
const ENDED_MAX: usize = 20;
const UNREADABLE_MAX: usize = 20;
const SERVER_ERRORS_MAX: usize = 20;
const URI_GROUPS_MAX: usize = 20;

fn watched_host(host: &Host<'_>) -> WatchedHost {
    let knowledge = Knowledge::of(host.info);
    let threads = Threads::of(host);
    let processes = processes(host);
    let processes_s: f64 = processes.iter().map(|process| process.cpu_s).sum();
    let rounded = |metric| host.total(metric).map(|total| total.round() as u64);
    let (watcher_cpu_us, watcher_rss_bytes) =
        host.info.map_or((0, 0), |info| (info.watcher_cpu_us, info.watcher_rss_bytes));
    let (busy, fds) =
        (host.metric(metric::HOST_CPU_BUSY).first(), host.metric(metric::PROCESS_FDS));
    // Readings of 100 ms peak higher than the seconds by which all other figures are given.
    let second_max = |metric| {
        host.metric(metric)
            .iter()
            .filter_map(|series| series.max_of_seconds(host.window))
            .reduce(f64::max)
    };
    let accounts = Accounts::of(host);
    WatchedHost {
        name: host.name().to_owned(),
        cpus: busy.and_then(MeasuredSeries::limit),
        cpu_p50: busy.and_then(|busy| busy.quantile(host.window, 0.5)),
        cpu_max: busy.and_then(|busy| busy.max_of_seconds(host.window)),
        threads: threads.0.len() as u64,
        threads_cpu_ratio: (processes_s > 0.0).then(|| threads.cpu_s() / processes_s),
        hottest_thread: threads.hottest().map(|thread| hottest(thread, &knowledge)),
        rss_bytes_max: host.max(metric::PROCESS_RSS),
        processes,
        ended: ended(host),
        network: interfaces(host),
        nic_drops: drops(host),
        udp_receive_buffer_errors: rounded(metric::UDP_RCVBUF_ERRORS),
        udp_send_buffer_errors: rounded(metric::UDP_SNDBUF_ERRORS),
        tcp_segments_retransmitted: rounded(metric::TCP_SEGMENTS_RETRANSMITTED),
        tcp_listen_overflows: rounded(metric::TCP_LISTEN_OVERFLOWS),
        open_fds_max: host.max(metric::PROCESS_FDS),
        open_fds_limit: fds.iter().filter_map(MeasuredSeries::limit).reduce(f64::min),
        disk_await_ms_max: [host.max(metric::DISK_READ_AWAIT), host.max(metric::DISK_WRITE_AWAIT)]
            .into_iter()
            .flatten()
            .reduce(f64::max),
        iowait_max: second_max(metric::HOST_CPU_IOWAIT),
        steal_max: second_max(metric::HOST_CPU_STEAL),
        throttled_ratio_max: host.max(metric::CGROUP_THROTTLED_PERIODS),
        pressure_cpu_max: host.max(metric::HOST_PRESSURE_CPU_SOME),
        pressure_memory_max: host.max(metric::HOST_PRESSURE_MEMORY_SOME),
        pressure_io_max: host.max(metric::HOST_PRESSURE_IO_SOME),
        log_lines: log_lines(host),
        traffic: accounts.as_ref().map(traffic).unwrap_or_default(),
        server_errors: server_errors(host),
        unaccounted_tx_ratio: accounts.and_then(|accounts| accounts.unaccounted_ratio),
        profiles: host.profiles.iter().map(|profile| profile.moment.clone()).collect(),
        watched_s: host.window.seconds(),
        watcher_cpu_ratio: (host.window.seconds() > 0.0)
            .then(|| watcher_cpu_us as f64 / 1e6 / host.window.seconds())
            .filter(|ratio| *ratio > 0.0),
        watcher_rss_bytes: (watcher_rss_bytes > 0).then_some(watcher_rss_bytes),
        clock_error_ms: host.info.map(|info| info.clock_error_us as f64 / 1e3),
        unreadable: host
            .events_of(HostEventKind::Unreadable)
            .map(|e| e.detail.clone())
            .take(UNREADABLE_MAX)
            .collect(),
    }
}

fn traffic(accounts: &Accounts) -> Vec<UriTraffic> {
    let all: f64 = accounts.groups.iter().map(|group| group.bytes).sum();
    let groups = accounts.groups.iter().take(URI_GROUPS_MAX);
    groups
        .map(|group| UriTraffic {
            uri_group: group.name.clone(),
            bytes: group.bytes.round() as u64,
            ratio: (all > 0.0).then(|| group.bytes / all),
            answers: group.requests.round() as u64,
        })
        .collect()
}

fn server_errors(host: &Host<'_>) -> Vec<ServerErrors> {
    let all = errors::of(host).into_iter().take(SERVER_ERRORS_MAX);
    all.map(|errors| ServerErrors {
        answers: errors.answers(),
        per_minute_max: errors.worst().0,
        uri_group: errors.uri_group,
        status: errors.status,
        by_minute: errors.by_minute,
    })
    .collect()
}

fn processes(host: &Host<'_>) -> Vec<WatchedProcess> {
    let rss: BTreeMap<&str, &MeasuredSeries<'_>> = host
        .metric(metric::PROCESS_RSS)
        .iter()
        .map(|series| (series.label("pid"), series))
        .collect();
    let process = |cpu: &MeasuredSeries<'_>| {
        Some(WatchedProcess {
            name: cpu.label("process").to_owned(),
            pid: cpu.label("pid").parse().unwrap_or(0),
            cpu_s: cpu.integral(host.window)?,
            cpu_p50: cpu.quantile(host.window, 0.5)?,
            cpu_max: cpu.max_of_seconds(host.window)?,
            rss_bytes_max: rss.get(cpu.label("pid")).and_then(|rss| rss.max(host.window)),
        })
    };
    let mut processes: Vec<_> =
        host.metric(metric::PROCESS_CPU).iter().filter_map(process).collect();
    processes.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
    processes.truncate(PROCESSES_MAX);
    processes
}

fn ended(host: &Host<'_>) -> Vec<EndedProcess> {
    let ended = host.lives().into_iter().filter_map(|life| {
        let (at, end) = (life.ended?, life.process.end?);
        (end.how != HowEnded::Replaced).then(|| EndedProcess {
            at_s: at.as_secs_f64(),
            name: life.process.name,
            pid: life.process.pid,
            how: end.words(),
            exit_code: end.how.exit_code(),
            signal: end.how.signal(),
        })
    });
    let mut ended: Vec<_> = ended.collect();
    ended.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    ended.split_off(ended.len().saturating_sub(ENDED_MAX))
}

fn hottest(thread: &Thread<'_>, knowledge: &Knowledge) -> HottestThread {
    let known = knowledge.thread(thread.process, thread.name);
    HottestThread {
        name: thread.name.to_owned(),
        process: thread.process.to_owned(),
        tid: thread.tid.parse().unwrap_or(0),
        cpu_p50: thread.cpu_p50,
        cpu_max: thread.cpu_max,
        run_queue_wait_p95: thread.wait_p95,
        meaning: known.map(|known| known.meaning.clone()),
        help: known
            .map(throng_observation::pack::ThreadMeaning::help)
            .filter(|help| !help.is_empty()),
    }
}

/// The interfaces that carried anything, the busiest first.
fn interfaces(host: &Host<'_>) -> Vec<NetworkInterface> {
    // Interfaces of different network namespaces may bear one name.
    let place = |series: &MeasuredSeries<'_>| {
        (series.label("netns").to_owned(), series.label("interface").to_owned())
    };
    let rx: BTreeMap<_, &MeasuredSeries<'_>> =
        host.metric(metric::NIC_RX_BYTES).iter().map(|series| (place(series), series)).collect();
    let mut all: Vec<(f64, NetworkInterface)> = host
        .metric(metric::NIC_TX_BYTES)
        .iter()
        .filter_map(|tx| {
            let rx = rx.get(&place(tx));
            let bits = |series: Option<f64>| series.unwrap_or(0.0) * 8.0;
            let total = tx.integral(host.window).unwrap_or(0.0)
                + rx.and_then(|rx| rx.integral(host.window)).unwrap_or(0.0);
            let interface = NetworkInterface {
                name: tx.label("interface").to_owned(),
                tx_bps_max: bits(tx.max_of_seconds(host.window)),
                tx_bps_peak: Some(bits(tx.max(host.window))),
                tx_bps_mean: bits(tx.mean(host.window)),
                rx_bps_max: bits(rx.and_then(|rx| rx.max_of_seconds(host.window))),
                rx_bps_mean: bits(rx.and_then(|rx| rx.mean(host.window))),
                line_rate_bps: tx.limit().map(|bytes| bytes * 8.0),
            };
            (total > 0.0).then_some((total, interface))
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().map(|(_, interface)| interface).collect()
}

/// Packets that the host dropped on their way in or out, wherever; `None` where nothing counts
/// them.
fn drops(host: &Host<'_>) -> Option<u64> {
    [
        metric::NIC_RX_DROPPED,
        metric::NIC_TX_DROPPED,
        metric::NIC_RX_FIFO,
        metric::QDISC_DROPS,
        metric::SOFTNET_DROPPED,
    ]
    .into_iter()
    .filter_map(|metric| host.total(metric))
    .reduce(|a, b| a + b)
    .map(|total| total.round() as u64)
}

fn log_lines(host: &Host<'_>) -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    for series in host.metric(metric::LOG_LINES) {
        let count = series.integral(host.window).unwrap_or(0.0).round() as u64;
        if count > 0 {
            let sum: &mut u64 = lines.entry(series.label("pattern").to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    lines
}
