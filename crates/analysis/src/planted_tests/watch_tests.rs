//! Several watches of one machine, or of several: what is told once.

use throng_observation::Goal;
use throng_observation::host::{HostEvent, HostId, HostInfo, HostSample, HostSeries, SeriesId};
use throng_observation::run::RunData;

use super::look_alike_tests::cause;
use super::plant_of;
use super::planted_limits::full;
use super::simulated_run::SimulatedRun;
use crate::bottleneck::{BottleneckVerdict, explain};
use crate::demand::{Demand, Resource};

/// The same machine watched by as many watches as `count`, as four `--watch` of four processes do
/// it.
fn watched_by(run: &mut RunData, count: u8) {
    let (hosts, series) = (run.host.hosts.clone(), run.host.series.clone());
    let (samples, events) = (run.host.samples.clone(), run.host.events.clone());
    let step = u32::try_from(series.len()).unwrap();
    for watch in 1..count {
        let (host, shift) = (HostId(watch), u32::from(watch) * step);
        let name = format!("media-{watch}");
        run.host.hosts.extend(hosts.iter().map(|info| HostInfo {
            host,
            name: name.clone(),
            ..info.clone()
        }));
        run.host.series.extend(series.iter().map(|one| HostSeries {
            host,
            id: SeriesId(one.id.0 + shift),
            ..one.clone()
        }));
        run.host.samples.extend(
            samples.iter().map(|one| HostSample { series: SeriesId(one.series.0 + shift), ..*one }),
        );
        run.host.events.extend(events.iter().map(|one| HostEvent { host, ..one.clone() }));
    }
}

#[test]
fn one_refusal_is_told_once() {
    for has_boot_id in [true, false] {
        let mut sim = SimulatedRun::new();
        plant_of("configured_ceiling")(&mut sim);
        if has_boot_id {
            sim.facts.insert("boot_id".into(), "5f0c".into());
        }
        let mut run = sim.run();
        let alone = cause(&run);
        watched_by(&mut run, 4);
        let found = cause(&run);
        assert_eq!(
            (found.verdict, found.finding.as_deref(), &found.title),
            (BottleneckVerdict::Bottleneck, Some("configured_ceiling"), &alone.title),
            "{found:#?}"
        );
        assert!(found.other_findings.is_empty(), "{found:#?}");
    }
}

#[test]
fn what_is_of_the_machine_is_told_once_however_many_watch_it() {
    let mut sim = SimulatedRun::new();
    plant_of("cpu_full")(&mut sim);
    sim.facts.insert("boot_id".into(), "5f0c".into());
    let mut run = sim.run();
    watched_by(&mut run, 4);
    let explained = explain(&run, Goal::Acceptable);
    let found = &explained.bottleneck;
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::Bottleneck, Some("cpu_full")),
        "{found:#?}"
    );
    let of_host = |demand: &&Demand| demand.resource == Resource::HostCpu;
    assert_eq!(explained.demand.iter().filter(of_host).count(), 1, "{:#?}", explained.demand);
    let hosts = found.ruled_out.iter().filter(|said| said.starts_with("CPU steal")).count();
    assert!(hosts <= 1, "{:?}", found.ruled_out);
    // Machines that are two have two limits, and the sentence is said once.
    for (number, info) in run.host.hosts.iter_mut().enumerate() {
        info.facts.insert("boot_id".into(), format!("boot {}", number % 2));
    }
    let found = cause(&run);
    assert_eq!(found.verdict, BottleneckVerdict::CoBottleneck, "{found:#?}");
    assert_eq!(
        (found.other_findings.len(), found.title.matches("All 8 cores").count()),
        (1, 1),
        "{found:#?}"
    );
}

/// Two instances of one server on one machine, each watched by a watch of its own.
#[test]
fn two_instances_that_are_full_are_two() {
    let others = |is_another: bool| {
        let mut sim = SimulatedRun::new();
        plant_of("file_descriptors")(&mut sim);
        sim.facts.insert("boot_id".into(), "5f0c".into());
        let mut run = sim.run();
        watched_by(&mut run, 2);
        for series in run.host.series.iter_mut().filter(|one| is_another && one.host == HostId(1)) {
            series.labels.entry("pid".into()).and_modify(|pid| *pid = "8".into());
        }
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("file_descriptors"), "{found:#?}");
        found.other_findings.iter().filter(|other| other.finding == "file_descriptors").count()
    };
    assert_eq!((others(false), others(true)), (0, 1));
}

/// In two containers two processes of one name may have one PID.
#[test]
fn processes_of_one_number_that_use_other_amounts_are_two() {
    let taker = |times: f64| {
        let mut sim = SimulatedRun::new();
        plant_of("cpu_full")(&mut sim);
        sim.facts.insert("boot_id".into(), "5f0c".into());
        sim.process("media", |m| 3.0 * full(m));
        let mut run = sim.run();
        watched_by(&mut run, 2);
        let is_it = |one: &&HostSeries| one.host == HostId(1) && one.metric == "process.cpu";
        let its = run.host.series.iter().find(is_it).map(|one| one.id);
        let samples = run.host.samples.iter_mut().filter(|sample| Some(sample.series) == its);
        samples.for_each(|sample| sample.value *= times);
        cause(&run).title
    };
    let (one, two) = (taker(1.0), taker(1.5));
    assert!(one.starts_with("All 8 cores") && one.ends_with("by other processes"), "{one}");
    assert!(two.starts_with("All 8 cores") && two.ends_with("by the server itself"), "{two}");
}
