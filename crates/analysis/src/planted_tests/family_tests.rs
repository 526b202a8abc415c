//! A thousand watched servers made from seeds: one limit or none that can be seen, among counters
//! that are always high, that follow the crowd and are far from any limit, or that go up and down
//! for reasons of their own. docs/measurements/simulated-answers.md has the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use throng_observation::host::Unit;

use super::explained;
use super::planted_limits::PLANTED_LIMITS;
use super::simulated_run::{FAIL, Moment, SimulatedRun, UserImpact};
use crate::bottleneck::BottleneckVerdict;
use crate::search::rng::Rng;

const SERVERS: u64 = 1_000;
/// So many of them may get a cause that is wrong and sure.
const WRONG_MAX: f64 = 0.01;

/// A counter that has nothing to do with the limit: labels of its own, and what it may come to.
struct Decoy {
    metric: &'static str,
    labels: &'static [(&'static str, &'static str)],
    unit: Unit,
    limit: Option<f64>,
    most: f64,
}

const fn decoy(
    metric: &'static str,
    labels: &'static [(&'static str, &'static str)],
    unit: Unit,
    limit: Option<f64>,
    most: f64,
) -> Decoy {
    Decoy { metric, labels, unit, limit, most }
}

const DECOYS: &[Decoy] = &[
    decoy(
        "thread.cpu",
        &[("process", "other"), ("pid", "90"), ("tid", "91"), ("thread", "poller")],
        Unit::Ratio,
        Some(1.0),
        0.99,
    ),
    decoy(
        "thread.cpu",
        &[("process", "other"), ("pid", "90"), ("tid", "92"), ("thread", "transcode")],
        Unit::Ratio,
        Some(1.0),
        0.97,
    ),
    decoy("disk.read_await", &[("device", "vdb")], Unit::Milliseconds, None, 40.0),
    decoy("disk.read_bytes", &[("device", "vdb")], Unit::BytesPerSecond, None, 80e6),
    decoy("core.softirq", &[("cpu", "3")], Unit::Ratio, None, 0.95),
    decoy("softnet.dropped", &[("cpu", "3")], Unit::PerSecond, None, 20.0),
    decoy("nic.tx_bytes", &[("interface", "eth1")], Unit::BytesPerSecond, Some(125e6), 120e6),
    decoy("qdisc.backlog_packets", &[("interface", "eth1")], Unit::Count, None, 30.0),
    decoy("qdisc.drops", &[("interface", "eth1")], Unit::PerSecond, None, 10.0),
    decoy(
        "process.fds",
        &[("process", "other"), ("pid", "90")],
        Unit::Count,
        Some(1_024.0),
        1_000.0,
    ),
    decoy("process.rss", &[("process", "other"), ("pid", "90")], Unit::Bytes, None, 4e9),
    decoy("host.pressure.cpu.some", &[], Unit::Ratio, None, 0.5),
    decoy("tcp.segments_retransmitted", &[], Unit::PerSecond, None, 5.0),
];

/// What a decoy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Course {
    Constant,
    /// With the crowd, up to a share of what it may come to.
    Follows,
    /// Up and down by itself.
    Unrelated,
}

fn value(course: Course, most: f64, level: f64, dwell_s: i64, seed: u64) -> impl Fn(Moment) -> f64 {
    move |moment: Moment| match course {
        Course::Constant => most * (0.5 + 0.5 * level),
        Course::Follows => most * 0.6 * level * moment.users / f64::from(FAIL),
        Course::Unrelated => most * Rng(seed ^ (moment.second / dwell_s).unsigned_abs()).uniform(),
    }
}

/// A server with one limit, or none that is watched, and decoys: the key of the limit.
fn server(seed: u64) -> (SimulatedRun, Option<&'static str>, Vec<String>) {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut sim = SimulatedRun::new();
    let mut of = |count: usize| (rng.uniform() * count as f64) as usize % count;
    let limit = (of(10) >= 4).then(|| PLANTED_LIMITS[of(PLANTED_LIMITS.len())]);
    sim.impact = [UserImpact::Delay, UserImpact::Loss][of(2)];
    let mut reported = Vec::new();
    for _ in 0..1 + of(5) {
        let decoy = &DECOYS[of(DECOYS.len())];
        let course = [Course::Constant, Course::Follows, Course::Unrelated][of(3)];
        let (level, dwell_s) = (of(1_000) as f64 / 1e3, 3 + of(60) as i64);
        sim.put(
            decoy.metric,
            decoy.labels,
            decoy.unit,
            decoy.limit,
            value(course, decoy.most, level, dwell_s, seed),
        );
        reported.push(format!(
            "{course:?} {} {}",
            decoy.metric,
            decoy.labels.last().map_or("", |label| label.1)
        ));
    }
    if let Some((_, plant)) = limit {
        // Loss is found by its own rule, together with any limit that loses nothing.
        sim.impact = UserImpact::Delay;
        plant(&mut sim);
    } else if sim.impact == UserImpact::Loss {
        // Lost between the server and the users is seen at once; a loss that the server makes
        // itself is not.
        let sent = |m: Moment| if m.over { 0.9 * m.users } else { m.users };
        let eth0 = [("interface", "eth0")];
        sim.put("nic.tx_packets", &eth0, Unit::PerSecond, None, move |m| 120.0 * sent(m));
        sim.put("nic.tx_bytes", &eth0, Unit::BytesPerSecond, Some(125e6), move |m| 125e3 * sent(m));
    }
    (sim, limit.map(|(key, _)| key), reported)
}

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/measurements is made with it")]
fn of_a_thousand_servers_hardly_any_gets_a_cause_that_is_wrong_and_sure() {
    let mut wrong = String::new();
    // Right and sure, suspected only, nothing said, wrong and sure: with a limit that is watched,
    // and without.
    let mut table: BTreeMap<bool, [u32; 4]> = BTreeMap::new();
    for seed in 0..SERVERS {
        let (mut sim, limit, decoys) = server(seed);
        let found = explained(&mut sim).bottleneck;
        let is_sure = matches!(
            found.verdict,
            BottleneckVerdict::Bottleneck | BottleneckVerdict::GeneratorLimited
        );
        let is_named = found.finding.as_deref() == limit;
        let column = match (is_sure, is_named) {
            (true, true) => 0,
            (true, false) => 3,
            (false, _) if found.finding.is_some() => 1,
            (false, _) => 2,
        };
        table.entry(limit.is_some()).or_default()[column] += 1;
        if column == 3 {
            let limit = limit.unwrap_or("none");
            let _ = writeln!(
                wrong,
                "seed {seed}, {limit}: {:?} ({:?}), with {decoys:?}",
                found.finding, found.score
            );
        }
    }
    for (is_watched, [right, suspected, nothing, wrong]) in &table {
        println!("| {is_watched} | {right} | {suspected} | {nothing} | {wrong} |");
    }
    println!("{wrong}");
    let count = wrong.lines().count() as f64;
    assert!(count <= WRONG_MAX * SERVERS as f64, "{count} of {SERVERS}:\n{wrong}");
    // A rule that names nothing would never be wrong.
    assert!(table[&true][0] * 10 > table[&true].iter().sum::<u32>() * 8, "{table:?}");
}
