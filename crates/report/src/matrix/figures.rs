//! The figures of one run of a cell, from its rows and its summary.

use throng_analysis::bottleneck::BottleneckVerdict;
use throng_analysis::findings::Evidence;
use throng_analysis::reasons;
use throng_analysis::windows::{SecondQuality, quality_by_second};
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{Grid, Host, MeasuredSeries, Window, hosts, mean_of_all};
use throng_observation::host::{Profile, SelfTime};
use throng_observation::run::RunData;
use throng_observation::{Goal, Received, RunTime};

use super::{CellVerdict, CpuCurves, HotFunction, RunFigures};
use crate::Summary;

/// Most points of a curve.
const POINTS_MAX: i64 = 120;
/// Functions kept of a profile.
const FUNCTIONS: usize = 5;
/// Lines of evidence kept of a finding.
const EVIDENCE: usize = 3;

/// What `run` measured between the seconds `from_s` and `until_s`: the hold. In a search the
/// figures are of its longest part under the largest load that passed.
#[must_use]
pub fn figures(run: &RunData, summary: &Summary, hold: Option<(i64, i64)>) -> RunFigures {
    let window =
        hold.map_or_else(|| passed(summary), |(from, until)| window_of(from as f64, until as f64));
    let quality = quality_by_second(run);
    let from = window.from_us.div_euclid(1_000_000);
    let until = window.until_us.div_euclid(1_000_000).max(from);
    let held: Vec<_> = quality.range(from..until).map(|(_, quality)| *quality).collect();
    let whole: SecondQuality = held.iter().copied().sum();
    let hosts = hosts(run);
    let host = hosts.first();
    let bottleneck = summary.bottleneck.clone().unwrap_or_default();
    RunFigures {
        window_s: [window.from_us as f64 / 1e6, window.until_us as f64 / 1e6],
        users: whole.users as f64 / held.len().max(1) as f64,
        served_ratio: hold.and_then(|_| whole.served_ratio()),
        reasons: match hold {
            Some(_) => reasons::of(&held, Goal::Acceptable),
            None => bottleneck.reasons,
        },
        capacity: summary.capacity.as_ref().map(|capacity| capacity.users.unwrap_or(0)),
        first_failing: summary.capacity.as_ref().and_then(|capacity| capacity.first_failing),
        capacity_verdict: summary.capacity.as_ref().map(|capacity| capacity.verdict.clone()),
        received_bps: received(run, window).unwrap_or(summary.received_bps),
        server_cpu_cores: mean_of_all(&hosts, metric::PROCESS_CPU, window),
        idle_ratio: host.and_then(|host| share(host, metric::HOST_CPU_IDLE.name, window)),
        iowait_ratio: host.and_then(|host| share(host, metric::HOST_CPU_IOWAIT.name, window)),
        disk_read_bytes_per_s: mean_of_all(&hosts, metric::PROCESS_READ_BYTES, window),
        curves: host.and_then(curves),
        hot_functions: hot(&run.host.profiles),
        verdict: verdict(bottleneck.verdict),
        finding: bottleneck.finding,
        thread: bottleneck.thread,
        setting: bottleneck.setting,
        title: bottleneck.title,
        score: bottleneck.score,
        evidence: bottleneck.evidence.iter().take(EVIDENCE).map(evidence).collect(),
    }
}

fn window_of(from_s: f64, until_s: f64) -> Window {
    let us = |seconds: f64| (seconds * 1e6).round() as i64;
    Window { from_us: us(from_s), until_us: us(until_s) }
}

/// The largest load that passed; the failing one if none did.
fn passed(summary: &Summary) -> Window {
    let bottleneck = summary.bottleneck.as_ref();
    let span = bottleneck.and_then(|found| found.pass_s.or(found.fail_s));
    span.map_or(Window { from_us: 0, until_us: 0 }, |[from, until]| window_of(from, until))
}

/// Bits per second in the window; `None` if it has no whole second.
fn received(run: &RunData, window: Window) -> Option<f64> {
    let seconds = RunTime(window.from_us).second()..(window.until_us / 1_000_000);
    (!seconds.is_empty()).then(|| Received::of_run(run).bps(seconds).unwrap_or(0.0))
}

/// A metric in cores as a share of the host's CPUs.
fn share(host: &Host<'_>, name: &str, window: Window) -> Option<f64> {
    let cpus = host.metric(metric::HOST_CPU_BUSY).first().and_then(MeasuredSeries::limit)?;
    let cores = host.metric(name).first().and_then(|series| series.mean(window))?;
    (cpus > 0.0).then(|| (cores / cpus).clamp(0.0, 1.0))
}

fn curves(host: &Host<'_>) -> Option<CpuCurves> {
    let cpus = host.metric(metric::HOST_CPU_BUSY).first().and_then(MeasuredSeries::limit)?;
    let length = host.window.until_us.div_euclid(1_000_000);
    let step = length.div_euclid(POINTS_MAX) + 1;
    let count = usize::try_from(length.div_euclid(step)).ok().filter(|count| *count > 0)?;
    let grid = Grid { first_us: 0, width_us: step * 1_000_000, count };
    let of = |name: &str| -> Vec<Option<f64>> {
        let on = host.metric(name).first().map(|series| series.on(grid)).unwrap_or_default();
        on.into_iter()
            .map(|value| value.map(|cores| thousandths((cores / cpus).clamp(0.0, 1.0))))
            .collect()
    };
    let (idle, iowait) = (of(metric::HOST_CPU_IDLE.name), of(metric::HOST_CPU_IOWAIT.name));
    let seconds = (0..count as i64).map(|point| point * step).collect();
    (!idle.is_empty()).then_some(CpuCurves { seconds, idle, iowait })
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The hottest functions of the last profile under load: at the failure if there is one.
fn hot(profiles: &[Profile]) -> Vec<HotFunction> {
    let loaded = profiles.iter().filter(|profile| profile.moment != "baseline");
    let Some(profile) = loaded.max_by_key(|profile| (profile.moment == "fail", profile.started_at))
    else {
        return Vec::new();
    };
    let time = SelfTime::of(profile);
    let function = |symbol: &throng_observation::host::SymbolTime| HotFunction {
        function: symbol.frame.symbol.clone(),
        module: symbol.frame.module.clone(),
        share: thousandths(symbol.share),
    };
    time.symbols.iter().take(FUNCTIONS).map(function).collect()
}

fn verdict(verdict: BottleneckVerdict) -> CellVerdict {
    match verdict {
        BottleneckVerdict::Bottleneck => CellVerdict::Bottleneck,
        BottleneckVerdict::CoBottleneck => CellVerdict::CoBottleneck,
        BottleneckVerdict::Suspect => CellVerdict::Suspect,
        BottleneckVerdict::Unattributed => CellVerdict::Unattributed,
        BottleneckVerdict::NotMonitored => CellVerdict::NotMonitored,
        BottleneckVerdict::GeneratorLimited => CellVerdict::Invalid,
        BottleneckVerdict::NothingFailed => CellVerdict::Served,
    }
}

/// `disk.read_await of loop0: 0.2 ms idle, 1 ms passing, 90 ms failing`.
fn evidence(line: &Evidence) -> String {
    let values = [("idle", line.baseline), ("passing", line.pass), ("failing", line.fail)];
    let known = values.into_iter().filter(|(_, value)| value.is_some());
    let words: Vec<String> =
        known.map(|(when, value)| format!("{} {when}", line.show(value))).collect();
    format!("{}: {}", line.counter, words.join(", "))
}
