//! A watched host in the summary: the figures that name what was full.

use std::collections::BTreeMap;

use throng_observation::host::HostEventKind;
use throng_observation::run::RunData;

use super::{Accounts, Host, Knowledge, MeasuredSeries, Thread, Threads, hosts};
use crate::summary::{HottestThread, NetworkInterface, WatchedHost, WatchedProcess};

/// Every watched host of the run.
pub(crate) fn summarise(run: &RunData) -> Vec<WatchedHost> {
    hosts(run).iter().map(server).collect()
}

/// Longer lists are for the page and the tables.
const PROCESSES_MAX: usize = 20;
const NOT_SEEN_MAX: usize = 20;

fn server(host: &Host<'_>) -> WatchedHost {
    let knowledge = Knowledge::of(host.info);
    let threads = Threads::of(host);
    let processes = processes(host);
    let processes_s: f64 = processes.iter().map(|process| process.cpu_s).sum();
    let rounded = |metric| host.total(metric).map(|total| total.round() as u64);
    let (watcher_cpu_us, watcher_rss_bytes) =
        host.info.map_or((0, 0), |info| (info.watcher_cpu_us, info.watcher_rss_bytes));
    let busy = host.metric("host.cpu.busy").first();
    // What is read each 100 ms peaks higher than what all else is told by: the second.
    let second_max = |metric| {
        host.metric(metric).iter().filter_map(|series| series.max_of_seconds(host.window)).reduce(f64::max)
    };
    WatchedHost {
        name: host.name(),
        cpus: busy.and_then(MeasuredSeries::limit),
        cpu_p50: busy.and_then(|busy| busy.quantile(host.window, 0.5)),
        cpu_max: busy.and_then(|busy| busy.max_of_seconds(host.window)),
        threads: threads.0.len() as u64,
        threads_cpu_ratio: (processes_s > 0.0).then(|| threads.cpu_s() / processes_s),
        hottest_thread: threads.hottest().map(|thread| hottest(thread, &knowledge)),
        rss_bytes_max: host.max("process.rss"),
        processes,
        network: interfaces(host),
        nic_drops: drops(host),
        udp_receive_buffer_errors: rounded("udp.rcvbuf_errors"),
        udp_send_buffer_errors: rounded("udp.sndbuf_errors"),
        tcp_segments_retransmitted: rounded("tcp.segments_retransmitted"),
        tcp_listen_overflows: rounded("tcp.listen_overflows"),
        open_fds_max: host.max("process.fds"),
        open_fds_limit: host.metric("process.fds").iter().filter_map(MeasuredSeries::limit).reduce(f64::min),
        disk_await_ms_max: [host.max("disk.read_await"), host.max("disk.write_await")]
            .into_iter()
            .flatten()
            .reduce(f64::max),
        iowait_max: second_max("host.cpu.iowait"),
        steal_max: second_max("host.cpu.steal"),
        throttled_ratio_max: host.max("cgroup.throttled_periods"),
        pressure_cpu_max: host.max("host.pressure.cpu.some"),
        pressure_memory_max: host.max("host.pressure.memory.some"),
        pressure_io_max: host.max("host.pressure.io.some"),
        log_lines: log_lines(host),
        unaccounted_tx_ratio: Accounts::of(host).and_then(|accounts| accounts.unexplained_ratio),
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
            .take(NOT_SEEN_MAX)
            .collect(),
    }
}

fn processes(host: &Host<'_>) -> Vec<WatchedProcess> {
    let rss: BTreeMap<&str, &MeasuredSeries<'_>> =
        host.metric("process.rss").iter().map(|series| (series.label("pid"), series)).collect();
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
    let mut processes: Vec<_> = host.metric("process.cpu").iter().filter_map(process).collect();
    processes.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
    processes.truncate(PROCESSES_MAX);
    processes
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
        help: known.map(throng_observation::pack::ThreadMeaning::help).filter(|help| !help.is_empty()),
    }
}

/// The interfaces that carried anything, the busiest first.
fn interfaces(host: &Host<'_>) -> Vec<NetworkInterface> {
    // Interfaces of different network namespaces may bear one name.
    let place = |series: &MeasuredSeries<'_>| {
        (series.label("netns").to_owned(), series.label("interface").to_owned())
    };
    let rx: BTreeMap<_, &MeasuredSeries<'_>> =
        host.metric("nic.rx_bytes").iter().map(|series| (place(series), series)).collect();
    let mut all: Vec<(f64, NetworkInterface)> = host
        .metric("nic.tx_bytes")
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

/// Packets that the host dropped on their way in or out, wherever; `None` where nothing counts them.
fn drops(host: &Host<'_>) -> Option<u64> {
    ["nic.rx_dropped", "nic.tx_dropped", "nic.rx_fifo", "qdisc.drops", "softnet.dropped"]
        .into_iter()
        .filter_map(|metric| host.total(metric))
        .reduce(|a, b| a + b)
        .map(|total| total.round() as u64)
}

fn log_lines(host: &Host<'_>) -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    for series in host.metric("log.lines") {
        let count = series.integral(host.window).unwrap_or(0.0).round() as u64;
        if count > 0 {
            let sum: &mut u64 = lines.entry(series.label("pattern").to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    lines
}
