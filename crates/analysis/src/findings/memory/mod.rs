//! Memory is exhausted: the kernel reclaims it by force, or kills a process.

use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::MeasuredSeries;
use throng_observation::units::{bytes, percent};

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, NoFinding, ended, ruled_out};
use crate::context::{Context, Reading};
use crate::demand::{Resource, memory_limit};

mod killed;

pub(super) const KEY: &str = "memory";
/// Share of the time in which all tasks were stalled on memory: the time of a frame in each second.
const STALL_MIN: f64 = 0.02;
/// Least share of the limit at which memory is a candidate.
const USED_MIN: f64 = 0.9;

/// Use of memory, and signs of a shortage, in the three windows.
struct Memory {
    /// Resident memory of all watched processes, the most.
    rss: Reading,
    /// The smaller of the control group's and the host's memory.
    limit: Option<f64>,
    /// Share of the host's memory in use.
    host: Reading,
    /// Processes killed.
    kills: Reading,
    /// Share of the time in which all tasks were stalled on memory.
    stall: Reading,
    /// Log lines "out of memory".
    refused: Reading,
}

impl Memory {
    fn of(context: &Context<'_>) -> Self {
        let rss = context.host.metric(metric::PROCESS_RSS.name);
        let most = |window| rss.iter().filter_map(|series| series.max(window)).reduce(|a, b| a + b);
        let available = context.sum(&metric::HOST_MEMORY_AVAILABLE);
        let total = context
            .host
            .metric(metric::HOST_MEMORY_AVAILABLE.name)
            .first()
            .and_then(MeasuredSeries::limit);
        let in_use = |total: f64| available.map(|left| 1.0 - left / total.max(1.0));
        let stalls = [&metric::HOST_PRESSURE_MEMORY_FULL, &metric::CGROUP_PRESSURE_MEMORY_FULL];
        Self {
            rss: Reading { fail: most(context.onset), ..context.reading(most) },
            limit: memory_limit(context.host),
            host: total.map_or_else(Reading::default, in_use),
            kills: kills(context),
            stall: Reading::worst(stalls.map(|metric| context.sum(metric))),
            refused: context.log_lines(&["out_of_memory"]),
        }
    }

    /// The share of the limit and the share of the host's memory in use: the higher of the two.
    fn in_use(&self) -> Reading {
        let of_limit =
            self.limit.map_or_else(Reading::default, |limit| self.rss.map(|rss| rss / limit));
        if of_limit.fail() >= self.host.fail() { of_limit } else { self.host }
    }

    fn is_short(&self) -> bool {
        self.kills.fail() > 0.0 || self.refused.begins() || self.stall.fail() >= STALL_MIN
    }
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let memory = Memory::of(context);
    if let Some(killed) = ended::killed_for_memory(context) {
        return Ok(killed::candidate(context, &killed, memory.rss));
    }
    if !context.is_seen(&metric::PROCESS_RSS) && !context.is_seen(&metric::HOST_MEMORY_AVAILABLE) {
        return Err(NoFinding::NotMonitored("memory"));
    }
    let Memory { rss, limit, kills, stall, refused, .. } = memory;
    let (in_use, is_short) = (memory.in_use(), memory.is_short());
    if !is_short && in_use.fail() < USED_MIN {
        let of = limit.map_or_else(String::new, |limit| format!(" of {}", bytes(limit)));
        return ruled_out(format!(
            "Memory: {}{of}, {} of the host in use",
            bytes(rss.fail()),
            percent(memory.host.fail())
        ));
    }
    let crossed = context
        .crossed_metric(&metric::PROCESS_RSS, USED_MIN * limit.unwrap_or(f64::INFINITY))
        .or(context.crossed_metric(&metric::HOST_PRESSURE_MEMORY_FULL, STALL_MIN))
        .or(context.crossed_metric(&metric::CGROUP_MEMORY_OOM_KILLS, 1e-6))
        .or(context.crossed_metric(&metric::HOST_MEMORY_OOM_KILLS, 1e-6));
    let limit_hits = context.rate(&metric::CGROUP_MEMORY_LIMIT_HITS);
    let process = context
        .host
        .metric(metric::PROCESS_RSS.name)
        .first()
        .map_or("", |rss| rss.label("process"));
    Ok(Candidate {
        used: used_up(in_use.fail()),
        // A group whose page cache fills its limit has enough memory: only stalls and kills show a
        // shortage.
        queue: stall.growth(0.002).or(Some(if is_short { 1.0 } else { 0.0 })),
        refuses: kills.begins() || refused.begins(),
        demand: context.demand_of(Resource::Memory, process).cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::PROCESS_RSS),
        evidence: vec![
            Evidence::bytes("process.rss, all watched processes, the most", rss)
                .limit(limit)
                .crossed(crossed),
            Evidence::ratio("memory pressure, all tasks stalled", stall).decides_if(is_short),
            Evidence::per_second("cgroup.memory.limit_hits", limit_hits),
            Evidence::count("processes killed for lack of memory", kills)
                .of_events()
                .decides_if(is_short),
            Evidence::count("log lines \"out of memory\"", refused)
                .of_events()
                .decides_if(is_short),
            Evidence::ratio("memory in use, share of the limit", in_use).decides_if(!is_short),
        ],
        change: "Use more memory (the host's, or memory.max of the control group), or less of it \
                 for each user (buffers, queues, caches); check for a leak: does it grow while \
                 the crowd does not?"
            .into(),
        eases: |demand, _| demand.resource == Resource::Memory,
        at_most: if is_short { 100.0 } else { super::score::CAP_COMPANY },
        ..Candidate::new(KEY, "Memory is exhausted", "memory")
    })
}

/// Processes killed for lack of memory: those of the server's control group, or those of the host
/// where it counts more.
fn kills(context: &Context<'_>) -> Reading {
    [&metric::CGROUP_MEMORY_OOM_KILLS, &metric::HOST_MEMORY_OOM_KILLS]
        .map(|metric| context.events(context.host.metric(metric.name)))
        .into_iter()
        .max_by(|a, b| a.fail.unwrap_or(-1.0).total_cmp(&b.fail.unwrap_or(-1.0)))
        .unwrap_or_default()
}
