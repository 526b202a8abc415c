//! Charts of limited resources of the server: cores, network, memory, descriptors, disk; and of
//! drops.

use throng_observation::host::catalogue::{self as metric, Metric};

use super::super::chart::{Line, Scale};
use super::charts::{COLOURS, LINES_MAX, ServerCharts};
use super::levels;
use crate::server::MeasuredSeries;

/// A line of a chart: its name, its colour, and the metrics that are added up for it.
type Part = (&'static str, u8, &'static [Metric]);

/// A chart whose lines are sums of metrics.
struct Sums {
    title: &'static str,
    unit: &'static str,
    scale: Scale,
    factor: f64,
    note: &'static str,
    parts: &'static [Part],
}

/// A plain number a second.
const PER_SECOND: Sums =
    Sums { title: "", unit: "per second", scale: Scale::Plain, factor: 1.0, note: "", parts: &[] };

const STALLS: Sums = Sums {
    title: "Stalls (PSI)",
    unit: "of the time some task waited",
    scale: Scale::Percent,
    parts: &[
        ("for a CPU", 1, &[metric::HOST_PRESSURE_CPU_SOME]),
        ("for memory", 4, &[metric::HOST_PRESSURE_MEMORY_SOME]),
        ("for block I/O", 2, &[metric::HOST_PRESSURE_IO_SOME]),
    ],
    ..PER_SECOND
};

const THROTTLED: Sums = Sums {
    title: "Throttled by the quota",
    unit: "of the quota's periods",
    scale: Scale::Percent,
    parts: &[("control group", 2, &[metric::CGROUP_THROTTLED_PERIODS])],
    ..PER_SECOND
};

const PACKETS_DROPPED: Sums = Sums {
    title: "Packets dropped",
    parts: &[
        ("interfaces, in", 2, &[metric::NIC_RX_DROPPED, metric::NIC_RX_FIFO]),
        ("interfaces, out", 4, &[metric::NIC_TX_DROPPED]),
        ("queueing discipline", 5, &[metric::QDISC_DROPS]),
        ("kernel backlog", 1, &[metric::SOFTNET_DROPPED]),
    ],
    ..PER_SECOND
};

const UDP_ERRORS: Sums = Sums {
    title: "UDP errors",
    unit: "datagrams per second",
    parts: &[
        ("receive buffer full", 2, &[metric::UDP_RCVBUF_ERRORS]),
        ("send buffer full", 4, &[metric::UDP_SNDBUF_ERRORS]),
        ("no memory", 5, &[metric::UDP_MEM_ERRORS]),
    ],
    ..PER_SECOND
};

const TCP_TROUBLE: Sums = Sums {
    title: "TCP trouble",
    parts: &[
        ("segments sent again", 4, &[metric::TCP_SEGMENTS_RETRANSMITTED]),
        ("accept queue full", 2, &[metric::TCP_LISTEN_OVERFLOWS]),
        ("dropped at sockets", 5, &[metric::TCP_BACKLOG_DROPS, metric::TCP_RECEIVE_QUEUE_DROPS]),
    ],
    ..PER_SECOND
};

const TCP_SENDING: Sums = Sums {
    title: "Sending by TCP",
    unit: "connections, on the mean",
    note: "Connections limited neither by a slow reader nor by a buffer wait for the path: round \
           trip and losses.",
    parts: &[
        ("had something to send", 1, &[metric::SOCKET_SENDING]),
        ("of them, for a slow reader", 2, &[metric::SOCKET_PEER_LIMITED]),
        ("of them, for the send buffer", 4, &[metric::SOCKET_BUFFER_LIMITED]),
    ],
    ..PER_SECOND
};

const DISK: Sums = Sums {
    title: "Disk",
    unit: "MB/s",
    factor: 1e-6,
    parts: &[("read", 1, &[metric::DISK_READ_BYTES]), ("written", 4, &[metric::DISK_WRITE_BYTES])],
    ..PER_SECOND
};

/// The parts of the CPU time of a host.
const CPU: &[Part] = &[
    ("user", 1, &[metric::HOST_CPU_USER, metric::HOST_CPU_NICE]),
    ("kernel", 4, &[metric::HOST_CPU_SYSTEM]),
    ("interrupts", 3, &[metric::HOST_CPU_IRQ, metric::HOST_CPU_SOFTIRQ]),
    ("waiting for I/O (idle)", 5, &[metric::HOST_CPU_IOWAIT]),
    ("steal", 2, &[metric::HOST_CPU_STEAL]),
];

/// The slowest disk's time of a request.
const DISK_REQUESTS: [(&str, u8, Metric); 2] =
    [("read", 1, metric::DISK_READ_AWAIT), ("write", 4, metric::DISK_WRITE_AWAIT)];

/// All charts that have something to show.
pub(super) fn render(charts: &ServerCharts<'_>) -> String {
    let queue = "requests waiting or at the device, mean";
    [
        levels::against_limits(charts),
        hottest_threads(charts),
        waiting(charts),
        cores(charts),
        levels::each_core(charts),
        sums(charts, &STALLS),
        sums(charts, &THROTTLED),
        network(charts),
        sums(charts, &PACKETS_DROPPED),
        sums(charts, &UDP_ERRORS),
        sums(charts, &TCP_TROUBLE),
        levels::socket_drops(charts),
        sums(charts, &TCP_SENDING),
        by_process(charts, "Memory", "MB resident", metric::PROCESS_RSS, 1e-6),
        levels::memory_left(charts),
        by_process(charts, "Open file descriptors", "of a process", metric::PROCESS_FDS, 1.0),
        by_process(charts, "Threads", "of a process", metric::PROCESS_THREADS, 1.0),
        sums(charts, &DISK),
        worst(
            charts,
            "Disk requests",
            "ms, mean time of a request on the slowest disk",
            DISK_REQUESTS,
        ),
        by_label(charts, "Disk queue", queue, metric::DISK_QUEUE, "device"),
        by_label(charts, "Log lines", "per second", metric::LOG_LINES, "pattern"),
        by_label(
            charts,
            "Requests",
            "per second, by group of URIs",
            metric::ACCESS_REQUESTS,
            "uri_group",
        ),
    ]
    .concat()
}

fn sums(charts: &ServerCharts<'_>, sums: &Sums) -> String {
    let lines = parts(charts, sums.factor, sums.parts);
    charts.chart(sums.title, sums.unit, sums.scale, sums.note, lines)
}

fn parts(charts: &ServerCharts<'_>, factor: f64, parts: &[Part]) -> Vec<Line> {
    parts
        .iter()
        .map(|(name, colour, metrics)| {
            // A disk made of other disks (RAID, LVM) counts each byte once.
            let of = |metric: &Metric| match metric.name.starts_with("disk.") {
                true => charts.host.disks(metric),
                false => charts.host.metric(metric).to_vec(),
            };
            Line::solid(*name, *colour, charts.sum(metrics.iter().flat_map(of), factor))
        })
        .collect()
}

/// The busiest threads, each against its one core.
fn hottest_threads(charts: &ServerCharts<'_>) -> String {
    let busy = charts.threads.0.iter().filter(|thread| thread.cpu_s > 0.0).take(LINES_MAX);
    let mut lines: Vec<Line> = busy
        .zip(COLOURS)
        .map(|(thread, colour)| {
            Line::solid(format!("{} ({})", thread.name, thread.tid), colour, thread.on(charts.grid))
        })
        .collect();
    if !lines.is_empty() {
        lines.extend(charts.level(Some(1.0)).map(|values| Line::dashed("one core", 6, values)));
    }
    charts.chart("Hottest threads", "of one core", Scale::Percent, "", lines)
}

/// Time in which threads were runnable and had no CPU: all together, and the worst.
fn waiting(charts: &ServerCharts<'_>) -> String {
    let waits = || charts.host.metric(metric::THREAD_RUN_QUEUE_WAIT).iter().copied();
    let lines = vec![
        Line::solid("all threads together", 4, charts.sum(waits(), 1.0)),
        Line::solid("the worst thread", 2, charts.fold(waits(), 1.0, f64::max)),
    ];
    let note = "Share of the time in which a thread was runnable and had no CPU.";
    charts.chart("Waiting for a CPU", "of the time", Scale::Percent, note, lines)
}

/// CPU time of the host by use.
fn cores(charts: &ServerCharts<'_>) -> String {
    let mut lines = parts(charts, 1.0, CPU);
    let limit = charts.host.metric(metric::HOST_CPU_BUSY).first().and_then(MeasuredSeries::limit);
    lines.extend(charts.level(limit).map(|values| Line::dashed("all cores", 6, values)));
    let note = "Idle while a task waits for I/O is no evidence of a full disk by itself: look at \
                the time of its requests.";
    charts.chart("CPU of the host", "cores", Scale::Plain, note, lines)
}

/// The rate of the busiest interface, the rate offered to the viewers, and the line rate.
fn network(charts: &ServerCharts<'_>) -> String {
    let window = charts.host.window;
    let total = |series: &MeasuredSeries<'_>| series.integral(window).unwrap_or(0.0);
    let interfaces = charts.host.metric(metric::NIC_TX_BYTES).iter();
    let Some(tx) = interfaces.max_by(|a, b| total(a).total_cmp(&total(b))) else {
        return String::new();
    };
    let name = tx.label("interface");
    let rx =
        charts.host.metric(metric::NIC_RX_BYTES).iter().find(|rx| rx.label("interface") == name);
    let mbit = 8e-6;
    let mut lines = vec![
        Line::solid(format!("sent by {name}"), 1, charts.sum([*tx], mbit)),
        Line::solid(format!("received by {name}"), 4, charts.sum(rx.copied(), mbit)),
        Line::solid(
            "received by the viewers",
            3,
            charts.time.each(super::super::charts::received_mbit),
        ),
        Line::dashed("offered to the viewers", 6, super::super::charts::offered_mbit(charts.time)),
    ];
    let line_rate = tx.limit().map(|bytes| bytes * mbit);
    lines.extend(charts.level(line_rate).map(|values| Line::dashed("line rate", 2, values)));
    charts.chart("Network", "Mbit/s", Scale::Plain, "", lines)
}

/// A level of each process, with the lowest limit that is near enough to be drawn.
fn by_process(
    charts: &ServerCharts<'_>,
    title: &str,
    unit: &str,
    metric: Metric,
    factor: f64,
) -> String {
    let mut list: Vec<&MeasuredSeries<'_>> = charts.host.metric(metric).iter().collect();
    let most = |series: &MeasuredSeries<'_>| series.max(charts.host.window).unwrap_or(0.0);
    list.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let highest = list.first().map_or(0.0, |series| most(series));
    let mut lines: Vec<Line> = list
        .iter()
        .zip(COLOURS)
        .map(|(series, colour)| {
            let name = format!("{} ({})", series.label("process"), series.label("pid"));
            Line::solid(name, colour, charts.sum([**series], factor))
        })
        .collect();
    // A limit far above the lines would flatten them; the note gives it.
    let limit = list.iter().filter_map(|series| series.limit()).reduce(f64::min);
    let note = limit.map_or_else(String::new, |limit| format!("limit {:.0}", limit * factor));
    let near = limit.filter(|limit| *limit < highest * 5.0).map(|limit| limit * factor);
    lines.extend(charts.level(near).map(|values| Line::dashed("limit", 6, values)));
    charts.chart(title, unit, Scale::Plain, &note, lines)
}

/// The largest value of any series of each metric.
fn worst(
    charts: &ServerCharts<'_>,
    title: &str,
    unit: &str,
    parts: [(&'static str, u8, Metric); 2],
) -> String {
    let line = |(name, colour, metric): (&'static str, u8, Metric)| {
        let series = charts.host.metric(metric).iter().copied();
        Line::solid(name, colour, charts.fold(series, 1.0, f64::max))
    };
    charts.chart(title, unit, Scale::Plain, "", parts.map(line).into())
}

/// One line for each value of a label, those with most.
fn by_label(
    charts: &ServerCharts<'_>,
    title: &str,
    unit: &str,
    metric: impl AsRef<str>,
    label: &str,
) -> String {
    let mut by_value: std::collections::BTreeMap<&str, (f64, Vec<MeasuredSeries<'_>>)> =
        Default::default();
    for series in charts.host.metric(metric) {
        let entry = by_value.entry(series.label(label)).or_default();
        entry.0 += series.integral(charts.host.window).unwrap_or(0.0);
        entry.1.push(*series);
    }
    let mut list: Vec<_> = by_value.into_iter().filter(|(_, (total, _))| *total > 0.0).collect();
    list.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let lines = list
        .into_iter()
        .zip(COLOURS)
        .map(|((name, (_, series)), colour)| {
            let name = if name.is_empty() { "all" } else { name };
            Line::solid(name.to_owned(), colour, charts.sum(series, 1.0))
        })
        .collect();
    charts.chart(title, unit, Scale::Plain, "", lines)
}
