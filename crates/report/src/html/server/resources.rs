//! Charts of what the server has a limit of: cores, network, memory, descriptors, disk, and what it dropped for want.

use super::super::chart::{Chart, Line, Scale};
use super::ServerCharts;
use super::levels;
use crate::server::MeasuredSeries;

/// Lines of a chart that are told apart.
pub(super) const LINES_MAX: usize = 5;
pub(super) const COLOURS: [u8; LINES_MAX] = [1, 4, 3, 2, 5];

/// A line of a chart: its name and the metrics that are added up for it.
type Part = (&'static str, u8, &'static [&'static str]);

/// All charts that have something to show.
pub(super) fn charts(scene: &ServerCharts<'_>) -> Vec<String> {
    let sums = |title, unit, scale, factor, note, parts: &[Part]| {
        chart(scene, title, unit, scale, note, parts_of(scene, factor, parts))
    };
    vec![
        levels::against_limits(scene),
        hottest_threads(scene),
        waiting(scene),
        cores(scene),
        levels::each_core(scene),
        sums(
            "Stalls (PSI)",
            "of the time some task waited",
            Scale::Percent,
            1.0,
            "",
            &[
                ("for a CPU", 1, &["host.pressure.cpu.some"]),
                ("for memory", 4, &["host.pressure.memory.some"]),
                ("for block I/O", 2, &["host.pressure.io.some"]),
            ],
        ),
        sums(
            "Held back by the quota",
            "of the quota's periods",
            Scale::Percent,
            1.0,
            "",
            &[("control group", 2, &["cgroup.throttled_periods"])],
        ),
        network(scene),
        sums(
            "Packets dropped",
            "per second",
            Scale::Plain,
            1.0,
            "",
            &[
                ("interfaces, in", 2, &["nic.rx_dropped", "nic.rx_fifo"]),
                ("interfaces, out", 4, &["nic.tx_dropped"]),
                ("queueing discipline", 5, &["qdisc.drops"]),
                ("kernel backlog", 1, &["softnet.dropped"]),
            ],
        ),
        sums(
            "UDP errors",
            "datagrams per second",
            Scale::Plain,
            1.0,
            "",
            &[
                ("receive buffer full", 2, &["udp.rcvbuf_errors"]),
                ("send buffer full", 4, &["udp.sndbuf_errors"]),
                ("no memory", 5, &["udp.mem_errors"]),
            ],
        ),
        sums(
            "TCP trouble",
            "per second",
            Scale::Plain,
            1.0,
            "",
            &[
                ("segments sent again", 4, &["tcp.segments_retransmitted"]),
                ("accept queue full", 2, &["tcp.listen_overflows"]),
                ("dropped at sockets", 5, &["tcp.backlog_drops", "tcp.receive_queue_drops"]),
            ],
        ),
        levels::socket_drops(scene),
        sums(
            "Sending by TCP",
            "connections, on the mean",
            Scale::Plain,
            1.0,
            "What neither a slow reader nor a buffer holds up waits for the path: its round trip, its losses.",
            &[
                ("had something to send", 1, &["socket.sending"]),
                ("of them, for a slow reader", 2, &["socket.peer_limited"]),
                ("of them, for the send buffer", 4, &["socket.buffer_limited"]),
            ],
        ),
        by_process(scene, "Memory", "MB resident", "process.rss", 1e-6),
        levels::memory_left(scene),
        by_process(scene, "Open file descriptors", "of a process", "process.fds", 1.0),
        by_process(scene, "Threads", "of a process", "process.threads", 1.0),
        sums(
            "Disk",
            "MB/s",
            Scale::Plain,
            1e-6,
            "",
            &[("read", 1, &["disk.read_bytes"]), ("written", 4, &["disk.write_bytes"])],
        ),
        worst(
            scene,
            "Disk requests",
            "ms, mean time of a request on the slowest disk",
            &[("read", 1, "disk.read_await"), ("write", 4, "disk.write_await")],
        ),
        by_label(scene, "Disk queue", "requests waiting or at the device, mean", "disk.queue", "device"),
        by_label(scene, "Log lines", "per second", "log.lines", "pattern"),
        by_label(scene, "Requests", "per second, by group of URIs", "access.requests", "uri_group"),
    ]
}

pub(super) fn chart(
    scene: &ServerCharts<'_>,
    title: &str,
    unit: &str,
    scale: Scale,
    note: &str,
    lines: Vec<Line>,
) -> String {
    // Zeroes are an answer where the thing was looked at; only what was never looked at has no chart.
    if lines.iter().all(|line| line.values.iter().all(Option::is_none)) {
        return String::new();
    }
    Chart { title, unit, note, scale, seconds: &scene.time.starts, lines }.render()
}

fn sum_of<'a>(
    scene: &ServerCharts<'_>,
    series: impl Iterator<Item = MeasuredSeries<'a>>,
    factor: f64,
) -> Vec<Option<f64>> {
    let mut sums = vec![None; scene.grid.count];
    series.for_each(|series| {
        for (sum, value) in sums.iter_mut().zip(series.on(scene.grid)) {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0.0) + value * factor);
            }
        }
    });
    sums
}

fn parts_of(scene: &ServerCharts<'_>, factor: f64, parts: &[Part]) -> Vec<Line> {
    parts
        .iter()
        .map(|(name, colour, metrics)| {
            // Of disks made of disks, each byte counts once.
            let of = |metric: &&str| match metric.starts_with("disk.") {
                true => scene.host.disks(metric),
                false => scene.host.metric(metric).to_vec(),
            };
            Line::solid(*name, *colour, sum_of(scene, metrics.iter().flat_map(of), factor))
        })
        .collect()
}

pub(super) fn level(scene: &ServerCharts<'_>, value: Option<f64>) -> Option<Vec<Option<f64>>> {
    value.map(|value| vec![Some(value); scene.grid.count])
}

/// The busiest threads, each against its one core.
fn hottest_threads(scene: &ServerCharts<'_>) -> String {
    let busy = scene.threads.0.iter().filter(|thread| thread.cpu_s > 0.0).take(LINES_MAX);
    let mut lines: Vec<Line> = busy
        .zip(COLOURS)
        .map(|(thread, colour)| {
            Line::solid(format!("{} ({})", thread.name, thread.tid), colour, thread.on(scene.grid))
        })
        .collect();
    if !lines.is_empty() {
        lines.extend(level(scene, Some(1.0)).map(|values| Line::dashed("one core", 6, values)));
    }
    chart(scene, "Hottest threads", "of one core", Scale::Percent, "", lines)
}

/// Time that threads were ready and had no CPU, all together and the worst.
fn waiting(scene: &ServerCharts<'_>) -> String {
    let waits = scene.host.metric("thread.run_queue_wait");
    let mut worst: Vec<Option<f64>> = vec![None; scene.grid.count];
    let mut all: Vec<Option<f64>> = vec![None; scene.grid.count];
    for wait in waits {
        for ((worst, all), value) in worst.iter_mut().zip(&mut all).zip(wait.on(scene.grid)) {
            if let Some(value) = value {
                *worst = Some(worst.map_or(value, |worst| worst.max(value)));
                *all = Some(all.unwrap_or(0.0) + value);
            }
        }
    }
    let lines = vec![Line::solid("all threads together", 4, all), Line::solid("the worst thread", 2, worst)];
    let note = "Share of the time that a thread was ready to run and another one had the CPU.";
    chart(scene, "Waiting for a CPU", "of the time", Scale::Percent, note, lines)
}

/// What the host's cores did.
fn cores(scene: &ServerCharts<'_>) -> String {
    let mut lines = parts_of(
        scene,
        1.0,
        &[
            ("user", 1, &["host.cpu.user", "host.cpu.nice"]),
            ("kernel", 4, &["host.cpu.system"]),
            ("interrupts", 3, &["host.cpu.irq", "host.cpu.softirq"]),
            ("waiting for I/O (idle)", 5, &["host.cpu.iowait"]),
            ("stolen", 2, &["host.cpu.steal"]),
        ],
    );
    let limit = scene.host.metric("host.cpu.busy").first().and_then(MeasuredSeries::limit);
    lines.extend(level(scene, limit).map(|values| Line::dashed("cores there are", 6, values)));
    let note = "Idle while a task waits for I/O is no evidence of a full disk by itself: look at the time of its requests.";
    chart(scene, "CPU of the host", "cores", Scale::Plain, note, lines)
}

/// What the busiest interface carried, what the viewers were offered, and what the line can carry.
fn network(scene: &ServerCharts<'_>) -> String {
    let window = scene.host.window;
    let total = |series: &MeasuredSeries<'_>| series.integral(window).unwrap_or(0.0);
    let Some(tx) = scene.host.metric("nic.tx_bytes").iter().max_by(|a, b| total(a).total_cmp(&total(b)))
    else {
        return String::new();
    };
    let name = tx.label("interface");
    let rx = scene.host.metric("nic.rx_bytes").iter().find(|rx| rx.label("interface") == name);
    let mbit = 8e-6;
    let mut lines = vec![
        Line::solid(format!("sent by {name}"), 1, sum_of(scene, std::iter::once(*tx), mbit)),
        Line::solid(format!("received by {name}"), 4, sum_of(scene, rx.into_iter().copied(), mbit)),
        Line::solid("received by the viewers", 3, scene.time.each(super::super::charts::received_mbit)),
        Line::dashed("offered to the viewers", 6, super::super::charts::offered_mbit(scene.time)),
    ];
    let line_rate = tx.limit().map(|bytes| bytes * mbit);
    lines.extend(level(scene, line_rate).map(|values| Line::dashed("line rate", 2, values)));
    chart(scene, "Network", "Mbit/s", Scale::Plain, "", lines)
}

/// A level of each process, with the lowest limit that is near enough to be drawn.
fn by_process(scene: &ServerCharts<'_>, title: &str, unit: &str, metric: &str, factor: f64) -> String {
    let window = scene.host.window;
    let mut list: Vec<&MeasuredSeries<'_>> = scene.host.metric(metric).iter().collect();
    let most = |series: &MeasuredSeries<'_>| series.max(window).unwrap_or(0.0);
    list.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let highest = list.first().map_or(0.0, |series| most(series));
    let mut lines: Vec<Line> = list
        .iter()
        .zip(COLOURS)
        .map(|(series, colour)| {
            let name = format!("{} ({})", series.label("process"), series.label("pid"));
            Line::solid(name, colour, sum_of(scene, std::iter::once(**series), factor))
        })
        .collect();
    // A limit far away would press the lines to the floor; it is told instead.
    let limit = list.iter().filter_map(|series| series.limit()).reduce(f64::min);
    let note = limit.map_or_else(String::new, |limit| format!("limit {:.0}", limit * factor));
    if let Some(values) =
        level(scene, limit.filter(|limit| *limit < highest * 5.0).map(|limit| limit * factor))
    {
        lines.push(Line::dashed("limit", 6, values));
    }
    chart(scene, title, unit, Scale::Plain, &note, lines)
}

/// The largest value of any series of each metric.
fn worst(scene: &ServerCharts<'_>, title: &str, unit: &str, parts: &[(&'static str, u8, &str)]) -> String {
    let lines = parts
        .iter()
        .map(|(name, colour, metric)| {
            let mut worst: Vec<Option<f64>> = vec![None; scene.grid.count];
            for series in scene.host.metric(metric) {
                for (worst, value) in worst.iter_mut().zip(series.on(scene.grid)) {
                    *worst = match (*worst, value) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        (a, b) => a.or(b),
                    };
                }
            }
            Line::solid(*name, *colour, worst)
        })
        .collect();
    chart(scene, title, unit, Scale::Plain, "", lines)
}

/// One line for each value of a label, those with most.
fn by_label(scene: &ServerCharts<'_>, title: &str, unit: &str, metric: &str, label: &str) -> String {
    let mut by_value: std::collections::BTreeMap<&str, (f64, Vec<MeasuredSeries<'_>>)> = Default::default();
    for series in scene.host.metric(metric) {
        let entry = by_value.entry(series.label(label)).or_default();
        entry.0 += series.integral(scene.host.window).unwrap_or(0.0);
        entry.1.push(*series);
    }
    let mut list: Vec<_> = by_value.into_iter().filter(|(_, (total, _))| *total > 0.0).collect();
    list.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let lines = list
        .into_iter()
        .zip(COLOURS)
        .map(|((name, (_, series)), colour)| {
            let name = if name.is_empty() { "all" } else { name };
            Line::solid(name.to_owned(), colour, sum_of(scene, series.into_iter(), 1.0))
        })
        .collect();
    chart(scene, title, unit, Scale::Plain, "", lines)
}
