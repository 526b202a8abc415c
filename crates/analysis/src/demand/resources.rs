//! The resources, the limit of each, and its use at each load.

use std::collections::{BTreeMap, HashMap};

use throng_observation::host::catalogue as metric;
use throng_observation::host::catalogue::Metric;
use throng_observation::host::measured::{Host, MeasuredSeries};

use super::{Resource, SATURATED_FROM, Used};
use crate::context::THROTTLED_MIN;
use crate::knowledge::{CROWD_GROUP, Knowledge};
use crate::windows::LoadWindow;

/// Most threads, groups and processes in the table.
const THREADS_MAX: usize = 3;
const GROUPS_MAX: usize = 3;
const PROCESSES_MAX: usize = 3;

/// The use of each resource of the host at each of `loads`, the smallest load first.
pub(super) fn used(host: &Host<'_>, knowledge: &Knowledge, loads: &[LoadWindow]) -> Vec<Used> {
    let mut all = threads(host, knowledge, loads);
    all.extend(processes(host, loads));
    let cpus = host.metric(metric::HOST_CPU_BUSY.name).first().and_then(MeasuredSeries::limit);
    all.push(of_sum(host, loads, &metric::HOST_CPU_BUSY, Resource::HostCpu, cpus));
    if let Some(group) =
        host.metric(metric::CGROUP_CPU.name).iter().find(|group| group.limit().is_some())
    {
        all.push(of_one(group, loads, Resource::Quota, "", "ratio"));
    } else if let Some(quota) = highest(host, &metric::CGROUP_CPU_QUOTA, loads) {
        // The CPU time of the group is counted in another hierarchy than it is limited: the watched
        // processes are used.
        let cores = loads.last().and_then(|load| quota.mean(load.window));
        all.push(of_sum(host, loads, &metric::PROCESS_CPU, Resource::Quota, cores));
    }
    if let Some(core) = highest(host, &metric::CORE_SOFTIRQ, loads) {
        let mut core = of_one(core, loads, Resource::SoftirqCore, core.label("cpu"), "ratio");
        core.limit = Some(1.0);
        all.push(core);
    }
    all.extend(network(host, loads));
    if let Some(disk) = most_grown(host, &metric::DISK_READ_BYTES, loads) {
        all.push(of_one(disk, loads, Resource::DiskRead, disk.label("device"), "B/s"));
    }
    for (metric, resource) in [
        (&metric::UDP_SOCKETS, Resource::UdpSockets),
        (&metric::TCP_ESTABLISHED, Resource::TcpConnections),
        (&metric::TCP_EPHEMERAL_PORTS, Resource::Ports),
        (&metric::CONNTRACK_ENTRIES, Resource::Conntrack),
    ] {
        let limit = host.metric(metric.name).first().and_then(MeasuredSeries::limit);
        all.push(of_sum(host, loads, metric, resource, limit));
    }
    // A resource that was never used or measured has no demand.
    all.retain(|used| used.values.iter().flatten().any(|value| *value > 0.0));
    all
}

/// At which of `loads` the server got less CPU time than it had work for: a thread ran or waited
/// for a CPU in nearly all of the time, or its group was throttled. A thread that does so at the
/// smallest load as well polls.
pub(super) fn starved(host: &Host<'_>, knowledge: &Knowledge, loads: &[LoadWindow]) -> Vec<bool> {
    let waits: HashMap<(&str, &str), &MeasuredSeries<'_>> = host
        .metric(metric::THREAD_RUN_QUEUE_WAIT.name)
        .iter()
        .map(|wait| ((wait.label("pid"), wait.label("tid")), wait))
        .collect();
    let is_full = |cpu: &MeasuredSeries<'_>, load: &LoadWindow| {
        let wait = waits.get(&(cpu.label("pid"), cpu.label("tid")));
        let waited = wait.and_then(|wait| wait.mean(load.window)).unwrap_or(0.0);
        cpu.mean(load.window).is_some_and(|used| used + waited >= SATURATED_FROM)
    };
    let threads: Vec<&MeasuredSeries<'_>> = host
        .metric(metric::THREAD_CPU.name)
        .iter()
        .filter(|cpu| knowledge.group(cpu.label("process"), cpu.label("thread")) != CROWD_GROUP)
        .filter(|cpu| !loads.first().is_some_and(|smallest| is_full(cpu, smallest)))
        .collect();
    let groups = host.metric(metric::CGROUP_THROTTLED_PERIODS.name);
    let is_throttled = |load: &LoadWindow| {
        groups
            .iter()
            .any(|group| group.mean(load.window).is_some_and(|share| share >= THROTTLED_MIN))
    };
    loads
        .iter()
        .map(|load| threads.iter().any(|cpu| is_full(cpu, load)) || is_throttled(load))
        .collect()
}

fn means(series: &MeasuredSeries<'_>, loads: &[LoadWindow]) -> Vec<Option<f64>> {
    loads.iter().map(|load| series.mean(load.window)).collect()
}

fn of_one(
    series: &MeasuredSeries<'_>,
    loads: &[LoadWindow],
    resource: Resource,
    of: &str,
    unit: &'static str,
) -> Used {
    let values = means(series, loads);
    let (of, limit) = (of.to_owned(), series.limit());
    Used { resource, of, group: None, setting: None, unit, limit, values }
}

/// All series of the metric together.
fn of_sum(
    host: &Host<'_>,
    loads: &[LoadWindow],
    metric: &Metric,
    resource: Resource,
    limit: Option<f64>,
) -> Used {
    let values = sums(host.metric(metric.name).iter(), loads);
    let (of, unit) = (String::new(), metric.unit.symbol());
    Used { resource, of, group: None, setting: None, unit, limit, values }
}

fn sums<'a>(
    series: impl Iterator<Item = &'a MeasuredSeries<'a>>,
    loads: &[LoadWindow],
) -> Vec<Option<f64>> {
    let mut sums: Vec<Option<f64>> = vec![None; loads.len()];
    for one in series {
        for (sum, load) in sums.iter_mut().zip(loads) {
            if let Some(seen) = one.integral(load.window) {
                // Over the whole load: a thread that existed for half of it used half.
                *sum = Some(sum.unwrap_or(0.0) + seen / load.window.seconds().max(1e-6));
            }
        }
    }
    sums
}

fn at_the_top(series: &MeasuredSeries<'_>, loads: &[LoadWindow]) -> f64 {
    loads.last().and_then(|load| series.mean(load.window)).unwrap_or(0.0)
}

/// The series that is highest at the largest load.
fn highest<'a, 'b>(
    host: &'b Host<'a>,
    metric: &Metric,
    loads: &[LoadWindow],
) -> Option<&'b MeasuredSeries<'a>> {
    let list = host.metric(metric.name).iter();
    list.max_by(|a, b| at_the_top(a, loads).total_cmp(&at_the_top(b, loads)))
}

/// The series that grew most from the smallest load, or none at all, to the largest.
fn most_grown<'a, 'b>(
    host: &'b Host<'a>,
    metric: &Metric,
    loads: &[LoadWindow],
) -> Option<&'b MeasuredSeries<'a>> {
    let list = host.metric(metric.name).iter();
    let at_first = |series: &MeasuredSeries<'_>| {
        let first = loads.first().filter(|_| loads.len() > 1);
        first.and_then(|load| series.mean(load.window)).unwrap_or(0.0)
    };
    let growth = |series: &MeasuredSeries<'_>| at_the_top(series, loads) - at_first(series);
    list.max_by(|a, b| growth(a).total_cmp(&growth(b)))
}

fn threads(host: &Host<'_>, knowledge: &Knowledge, loads: &[LoadWindow]) -> Vec<Used> {
    let mut list: Vec<(f64, &MeasuredSeries<'_>)> = host
        .metric(metric::THREAD_CPU.name)
        .iter()
        .map(|thread| (at_the_top(thread, loads), thread))
        .filter(|(used, _)| *used > 0.01)
        .collect();
    list.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut groups: BTreeMap<(String, &str), Vec<&MeasuredSeries<'_>>> = BTreeMap::new();
    let mut all = Vec::new();
    for (_, thread) in list {
        let (process, name) = (thread.label("process"), thread.label("thread"));
        let group = knowledge.group(process, name);
        if group == CROWD_GROUP {
            continue;
        }
        if all.len() < THREADS_MAX {
            let of = format!("{name} ({})", thread.label("tid"));
            let mut used = of_one(thread, loads, Resource::Thread, &of, "ratio");
            used.limit = Some(1.0);
            used.group = Some(group.clone());
            used.setting = knowledge.thread_setting(process, name);
            all.push(used);
        }
        groups.entry((group, process)).or_default().push(thread);
    }
    let mut groups: Vec<Used> = groups
        .into_iter()
        .filter(|(_, threads)| threads.len() > 1)
        .map(|((group, process), threads)| Used {
            resource: Resource::ThreadGroup,
            of: group.clone(),
            group: Some(group),
            // Threads of one group have one setting.
            setting: threads
                .first()
                .and_then(|one| knowledge.thread_setting(process, one.label("thread"))),
            unit: "ratio",
            limit: Some(threads.len() as f64),
            values: sums(threads.into_iter(), loads),
        })
        .collect();
    let top = |used: &Used| used.values.last().copied().flatten().unwrap_or(0.0);
    groups.sort_by(|a, b| top(b).total_cmp(&top(a)));
    groups.truncate(GROUPS_MAX);
    all.extend(groups);
    all
}

fn processes(host: &Host<'_>, loads: &[LoadWindow]) -> Vec<Used> {
    let cpus = host.metric(metric::HOST_CPU_BUSY.name).first().and_then(MeasuredSeries::limit);
    let mut list: Vec<&MeasuredSeries<'_>> = host.metric(metric::PROCESS_CPU.name).iter().collect();
    list.sort_by(|a, b| at_the_top(b, loads).total_cmp(&at_the_top(a, loads)));
    list.truncate(PROCESSES_MAX);
    let mut all = Vec::new();
    for cpu in list {
        let (name, pid) = (cpu.label("process"), cpu.label("pid"));
        let mut used = of_one(cpu, loads, Resource::ProcessCpu, name, "ratio");
        used.limit = cpus;
        all.push(used);
        let of_process = |metric: &Metric| {
            host.metric(metric.name).iter().find(|series| series.label("pid") == pid)
        };
        if let Some(fds) = of_process(&metric::PROCESS_FDS) {
            all.push(of_one(fds, loads, Resource::Descriptors, name, "count"));
        }
        if let Some(rss) = of_process(&metric::PROCESS_RSS) {
            let mut rss = of_one(rss, loads, Resource::Memory, name, "B");
            rss.limit = memory_limit(host);
            all.push(rss);
        }
    }
    all
}

/// The smaller of the control group's and the host's memory.
pub(crate) fn memory_limit(host: &Host<'_>) -> Option<f64> {
    [&metric::CGROUP_MEMORY, &metric::HOST_MEMORY_AVAILABLE]
        .into_iter()
        .flat_map(|metric| host.metric(metric.name))
        .filter_map(MeasuredSeries::limit)
        .filter(|limit| *limit > 0.0)
        .reduce(f64::min)
}

fn network(host: &Host<'_>, loads: &[LoadWindow]) -> Vec<Used> {
    let Some(sender) = most_grown(host, &metric::NIC_TX_BYTES, loads) else { return Vec::new() };
    let interface = sender.label("interface");
    [
        (&metric::NIC_TX_BYTES, Resource::NicSent),
        (&metric::NIC_TX_PACKETS, Resource::NicSentPackets),
        (&metric::NIC_RX_BYTES, Resource::NicReceived),
        (&metric::NIC_RX_PACKETS, Resource::NicReceivedPackets),
    ]
    .into_iter()
    .filter_map(|(metric, resource)| {
        let series =
            host.metric(metric.name).iter().find(|series| series.is_of_interface(sender))?;
        Some(of_one(series, loads, resource, interface, metric.unit.symbol()))
    })
    .collect()
}
