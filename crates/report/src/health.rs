//! Whether the generator was the limit. Such a run says nothing about the server, so it is invalid,
//! not failed.
//!
//! The limits, and which of them may be exceeded briefly, are [`throng_observation::limits`].

use std::collections::{BTreeMap, BTreeSet};

use throng_analysis::capacity::CapacityVerdict;
use throng_observation::limits::{
    HOST_DROPS_EVENT, Limit, MEMORY_EVENT, STANDSTILL_MS_MIN, SUSPENDED_EVENT, is_sustained,
};
use throng_observation::run::{GeneratorRow, RECEIVE_RING_EVENT, RECEIVE_SOCKETS_EVENT, RunData};
use throng_observation::{FailureReason, Outcome, units};

use crate::summary::{Generator, Summary};
use crate::workers;

/// The first seconds of a run, left out: threads start, sockets are opened, caches are cold.
pub(crate) const START_S: i64 = 1;

/// Judges the generator.
pub(crate) fn examine(run: &RunData, participant_seconds: u64, connected_max: u64) -> Generator {
    let threads = || run.generator.iter().filter(|row| row.thread.is_some());
    let process = || run.generator.iter().filter(|row| row.thread.is_none());
    let sum = |field: fn(&GeneratorRow) -> u64| run.generator.iter().map(field).sum::<u64>();
    let cpu_us: u64 = if process().next().is_some() {
        process().map(|row| row.cpu_us).sum()
    } else {
        threads().map(|row| row.cpu_us).sum()
    };
    let rss_bytes_max = rss_bytes_max(run);
    let without_rings = rss_bytes_without_rings(run);
    let ring_bytes_max = ring_bytes_max(run);
    let worst = |rows: &mut dyn Iterator<Item = f64>| rows.max_by(f64::total_cmp);
    let mut health = Generator {
        cpu_ms_per_participant_s: (participant_seconds > 0 && cpu_us > 0)
            .then(|| cpu_us as f64 / 1e3 / participant_seconds as f64),
        rss_bytes_per_participant: without_rings
            .filter(|_| connected_max > 0)
            .map(|bytes| bytes as f64 / connected_max as f64),
        rss_bytes_max,
        threads: threads().map(|row| (row.worker, row.thread)).collect::<BTreeSet<_>>().len()
            as u64,
        thread_cpu_ratio_max: worst(&mut threads().map(cpu_ratio)),
        lag_ms_p99_max: worst(&mut run.generator.iter().map(lag_ms)),
        // Workers count their own sockets; the process row may repeat their sum.
        socket_drops: threads()
            .map(|row| row.socket_drops)
            .sum::<u64>()
            .max(process().map(|r| r.socket_drops).sum()),
        ring_datagrams: threads().map(|row| row.ring_datagrams).sum(),
        ring_bytes_max,
        receive: receive_ways(run),
        send_drops: threads()
            .map(|row| row.send_drops)
            .sum::<u64>()
            .max(process().map(|r| r.send_drops).sum()),
        observations_dropped: sum(|row| row.observations_dropped),
        rows_lost: run.rows_lost,
        steal_ratio_max: worst(&mut process().map(|row| row.steal_ratio)),
        workers: workers::workers(run),
        ..Generator::default()
    };
    health.reasons = reasons(run, &health);
    health.limited = !health.reasons.is_empty();
    health
}

/// What the threads told of the way in which they receive datagrams, each sentence once.
fn receive_ways(run: &RunData) -> Vec<String> {
    let is_of_it = |kind: &str| [RECEIVE_RING_EVENT, RECEIVE_SOCKETS_EVENT].contains(&kind);
    let told = run.events.iter().filter(|event| is_of_it(&event.kind));
    let mut ways: Vec<String> = Vec::new();
    for event in told {
        let way = event.detail.split_once(": ").filter(|(who, _)| who.starts_with("thread "));
        let way = way.map_or(event.detail.as_str(), |(_, way)| way);
        if !ways.iter().any(|known| known == way) {
            ways.push(way.to_owned());
        }
    }
    ways
}

/// The part of a run in which the generator was the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    None,
    /// Seconds that a search left out: no load was judged by them.
    LeftOut,
    /// All of it: nothing is known about the server.
    All,
}

/// The effect of the generator's limits on the answer: a plain run beyond them is invalid as a
/// whole, and so is a search in which no load stayed within them.
pub(crate) fn share(summary: &Summary) -> Share {
    let limited = summary.generator.limited;
    let is_all = match &summary.capacity {
        Some(capacity) => capacity.verdict == CapacityVerdict::Invalid.key(),
        None => limited,
    };
    match (is_all, limited) {
        (true, _) => Share::All,
        (false, true) => Share::LeftOut,
        (false, false) => Share::None,
    }
}

/// CPU of a thread's second as a share of one core.
pub(crate) fn cpu_ratio(row: &GeneratorRow) -> f64 {
    row.cpu_us as f64 / 1e6
}

/// A second's 99th percentile of lateness, milliseconds.
pub(crate) fn lag_ms(row: &GeneratorRow) -> f64 {
    row.lag_p99_us as f64 / 1e3
}

/// The limits that were passed in the wanted seconds, however often: why loads of a search were not
/// judged. The reasons of a run are about all its seconds, of which these may be few.
pub(crate) fn limits_in(run: &RunData, is_wanted: impl Fn(i64) -> bool) -> Vec<String> {
    let generator = run.generator.iter().filter(|row| is_wanted(row.second)).cloned().collect();
    let events = run.events.iter().filter(|event| is_wanted(event.at.second())).cloned().collect();
    let part = RunData { info: run.info.clone(), generator, events, ..RunData::default() };
    let any = |_: usize, _: f64| true;
    let mut passed = limits(&part, &examine(&part, 0, 0), any);
    passed.extend(host_drops(&part, any));
    passed
}

/// Each limit that was passed, with the worst figure, where the seconds past it, of all, are
/// enough.
fn limits(
    run: &RunData,
    health: &Generator,
    is_enough: impl Fn(usize, f64) -> bool,
) -> Vec<String> {
    let passed = |limit: Limit| {
        if limit.is_allowed_when_brief() {
            let (worst, worker, bad, all) =
                seconds_past(run, limit).filter(|(.., bad, all)| is_enough(*bad, *all as f64))?;
            let whose = workers::named(run, worker);
            Some(format!("{whose}{} ({bad} of {all} s over the limit)", sustained(limit, worst)))
        } else {
            let (count, what) = counted(limit, health)?;
            (count > 0).then(|| format!("{count} {what}"))
        }
    };
    Limit::ALL.into_iter().filter_map(passed).collect()
}

fn reasons(run: &RunData, health: &Generator) -> Vec<String> {
    let mut reasons = limits(run, health, is_sustained);
    reasons.extend(host_drops(run, is_sustained));
    let ends = |kind: &str| [MEMORY_EVENT, SUSPENDED_EVENT].contains(&kind);
    reasons.extend(
        run.events.iter().filter(|event| ends(&event.kind)).map(|event| event.detail.to_string()),
    );
    let failed = run
        .participants
        .iter()
        .filter(|row| row.failure() == Some(&FailureReason::Generator))
        .count();
    if failed > 0 {
        reasons.push(format!(
            "{} failed because the generator lacked descriptors, ports or memory",
            units::count(failed as u64, "participants")
        ));
    }
    reasons.extend(defects(run));
    reasons.extend(workers::losses(run));
    reasons
}

fn sustained(limit: Limit, worst: f64) -> String {
    let max = limit.max();
    match limit {
        Limit::Lag if worst >= STANDSTILL_MS_MIN as f64 => format!(
            "the generator, or a thread of it, did not run for up to {:.1} s: it was stopped, or \
             its machine was busy",
            worst / 1e3
        ),
        Limit::Lag => {
            format!(
                "an engine thread's loop ran up to {worst:.0} ms late (p99), more than {max:.0} ms"
            )
        }
        Limit::Steal => {
            format!(
                "CPU steal (time taken by the hypervisor) was up to {:.1} %, more than {:.0} %",
                worst * 1e2,
                max * 1e2
            )
        }
        _ => format!(
            "an engine thread used up to {:.0} % of its core, more than {:.0} %",
            worst * 1e2,
            max * 1e2
        ),
    }
}

fn counted(limit: Limit, health: &Generator) -> Option<(u64, &'static str)> {
    match limit {
        Limit::ReceiveDrops => Some((
            health.socket_drops,
            "datagrams were dropped by the generator, at its full receive buffers or rings",
        )),
        Limit::SendDrops => Some((
            health.send_drops,
            "datagrams were not sent because the generator's kernel had no buffers",
        )),
        Limit::ObservationDrops => Some((
            health.observations_dropped,
            "observations were dropped by the generator's collector",
        )),
        Limit::ThreadCpu | Limit::Lag | Limit::Steal => None,
    }
}

/// The number of participants that panicked, and the first panic.
fn defects(run: &RunData) -> Option<String> {
    let broken = run.participants.iter().filter_map(|row| match &row.outcome {
        Some(Outcome::Failed(failure)) if failure.reason == FailureReason::InternalError => {
            Some(failure.detail.as_str())
        }
        _ => None,
    });
    let (count, first) =
        broken.fold((0_u64, None), |(count, first), detail| (count + 1, first.or(Some(detail))));
    let people = units::count(count, "participants");
    first.map(|detail| format!("{people} ended by a defect of the generator: {detail}"))
}

/// Each such event is a second in which the host dropped frames; `None` unless they are enough, of
/// all seconds.
fn host_drops(run: &RunData, is_enough: impl Fn(usize, f64) -> bool) -> Option<String> {
    let mut all: Vec<i64> =
        run.generator.iter().map(|row| row.second).filter(|s| *s >= START_S).collect();
    all.sort_unstable();
    all.dedup();
    let events = || run.events.iter().filter(|event| event.kind == HOST_DROPS_EVENT);
    let bad: usize = events().map(|event| event.count as usize).sum();
    (bad > 0 && is_enough(bad, all.len() as f64)).then(|| {
        let first = events().map(|event| event.detail.as_str()).next().unwrap_or_default();
        format!("{first} ({bad} of {} s over the limit)", all.len())
    })
}

/// The largest resident memory: of a fleet, the sum over its workers.
fn rss_bytes_max(run: &RunData) -> Option<u64> {
    let mut of_workers: BTreeMap<u16, u64> = BTreeMap::new();
    for row in &run.generator {
        let most = of_workers.entry(row.worker).or_default();
        *most = row.rss_bytes.max(*most);
    }
    Some(of_workers.values().sum()).filter(|bytes| *bytes > 0)
}

/// The same without receive rings, of the second in which that is largest. A thread without a row
/// of a second has the ring of the one before.
fn rss_bytes_without_rings(run: &RunData) -> Option<u64> {
    /// Resident memory, and threads with the memory of their rings.
    type Second = (u64, Vec<(u16, u64)>);
    let mut seconds: BTreeMap<(u16, i64), Second> = BTreeMap::new();
    for row in &run.generator {
        let (all, rings) = seconds.entry((row.worker, row.second)).or_default();
        *all = row.rss_bytes.max(*all);
        rings.extend(row.thread.map(|thread| (thread, row.ring_bytes)));
    }
    let mut rings: BTreeMap<(u16, u16), u64> = BTreeMap::new();
    let mut of_workers: BTreeMap<u16, u64> = BTreeMap::new();
    for ((worker, _), (all, of_second)) in seconds {
        rings.extend(of_second.into_iter().map(|(thread, bytes)| ((worker, thread), bytes)));
        let of_rings: u64 =
            rings.range((worker, 0)..=(worker, u16::MAX)).map(|(_, bytes)| bytes).sum();
        let most = of_workers.entry(worker).or_default();
        *most = all.saturating_sub(of_rings).max(*most);
    }
    Some(of_workers.values().sum()).filter(|bytes| *bytes > 0)
}

/// The largest memory of receive rings: the sum over all threads of all workers.
fn ring_bytes_max(run: &RunData) -> u64 {
    let mut of_threads: BTreeMap<(u16, Option<u16>), u64> = BTreeMap::new();
    for row in run.generator.iter().filter(|row| row.thread.is_some()) {
        let most = of_threads.entry((row.worker, row.thread)).or_default();
        *most = row.ring_bytes.max(*most);
    }
    of_threads.values().sum()
}

/// The worst figure and its worker, the seconds past `limit` and all seconds; `None` if no second
/// is past it.
fn seconds_past(run: &RunData, limit: Limit) -> Option<(f64, u16, usize, usize)> {
    let mut worst_by_second: BTreeMap<i64, (f64, u16)> = BTreeMap::new();
    for row in run.generator.iter().filter(|row| row.second >= START_S) {
        if let Some(figure) = limit.figure(row) {
            let worst = worst_by_second.entry(row.second).or_insert((0.0, row.worker));
            if figure > worst.0 {
                *worst = (figure, row.worker);
            }
        }
    }
    let bad: Vec<(f64, u16)> =
        worst_by_second.values().copied().filter(|(figure, _)| *figure > limit.max()).collect();
    let (worst, worker) = bad.iter().copied().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some((worst, worker, bad.len(), worst_by_second.len()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::run::{ABORT_EVENT, Ending, EventRow};
    use throng_observation::{Failure, RunTime};

    use super::*;
    use crate::summary::RunOutcome;

    fn run(rows: impl IntoIterator<Item = GeneratorRow>) -> RunData {
        RunData { generator: rows.into_iter().collect(), ..RunData::default() }
    }

    fn thread(second: i64, cpu_us: u64, lag_p99_us: u64) -> GeneratorRow {
        GeneratorRow { second, thread: Some(0), cpu_us, lag_p99_us, ..GeneratorRow::default() }
    }

    fn event(second: i64, kind: &str, detail: &str) -> EventRow {
        let at = RunTime(second * 1_000_000);
        EventRow { at, participant: None, kind: kind.into(), count: 1, detail: detail.into() }
    }

    #[test]
    fn five_percent_of_slow_seconds_are_allowed_and_more_are_not() {
        let with_bad = |bad: i64| {
            run((0..61)
                .map(|s| thread(s, if (1..=bad).contains(&s) { 900_000 } else { 300_000 }, 100)))
        };
        assert!(!examine(&with_bad(3), 1, 1).limited);
        let limited = examine(&with_bad(4), 1, 1);
        assert!(limited.limited && limited.reasons[0].contains("90 %"), "{limited:?}");
    }

    #[test]
    fn the_limits_of_a_few_seconds_are_named_though_the_run_as_a_whole_kept_them() {
        let run =
            run((0..200).map(|s| thread(s, 1, if (5..8).contains(&s) { 32_000 } else { 100 })));
        assert!(examine(&run, 1, 1).reasons.is_empty(), "3 of 200 s");
        assert_eq!(
            limits_in(&run, |second| (4..12).contains(&second)),
            [
                "an engine thread's loop ran up to 32 ms late (p99), more than 20 ms (3 of 8 s over the limit)"
            ]
        );
        assert_eq!(limits_in(&run, |second| second > 50), [""; 0]);
        let mut dropping = run;
        let detail = "this host had no room for 9 of 99 frames";
        dropping.events.push(event(60, HOST_DROPS_EVENT, detail));
        assert_eq!(
            limits_in(&dropping, |second| (58..66).contains(&second)),
            [format!("{detail} (1 of 8 s over the limit)")]
        );
    }

    #[test]
    fn a_late_loop_limits_and_the_start_is_left_out() {
        assert!(examine(&run((0..20).map(|s| thread(s, 1, 21_000))), 1, 1).limited);
        assert!(
            !examine(
                &run((0..20).map(|s| thread(s, 1, if s == 0 { 90_000 } else { 9_000 }))),
                1,
                1
            )
            .limited
        );
    }

    #[test]
    fn seconds_in_which_the_generator_did_not_run_invalidate_as_any_in_which_it_was_late() {
        let stood = |late: &'static [i64]| {
            let second = |s: i64| {
                let ms = late.get(usize::try_from(s - 3).unwrap_or(usize::MAX)).copied();
                thread(s, 1, ms.map_or(100, |ms| ms as u64 * 1000))
            };
            examine(&run((0..10).map(second)), 1, 1)
        };
        assert!(!stood(&[900, 100]).limited, "one short disturbance");
        let health = stood(&[3_000, 2_400, 1_400, 400]);
        assert_eq!(
            health.reasons,
            [
                "the generator, or a thread of it, did not run for up to 3.0 s: it was stopped, or its machine was busy (4 of 9 s over the limit)"
            ]
        );
    }

    #[test]
    fn a_run_whose_machine_slept_is_invalid() {
        let mut run = crate::example::healthy(10, 30);
        let detail = "the generator's machine was suspended for 3.0 s, in which servers went on";
        run.events.push(event(5, SUSPENDED_EVENT, detail));
        let summary = crate::summarise(&run, &[], Duration::ZERO);
        assert_eq!(summary.outcome, RunOutcome::Invalid);
        assert!(summary.headline.contains(detail), "{}", summary.headline);
    }

    #[test]
    fn a_single_own_drop_is_too_many() {
        for row in [
            GeneratorRow { socket_drops: 1, ..thread(5, 0, 0) },
            GeneratorRow { send_drops: 1, ..thread(5, 0, 0) },
            GeneratorRow { observations_dropped: 1, ..thread(5, 0, 0) },
        ] {
            assert!(examine(&run([row]), 1, 1).limited);
        }
    }

    #[test]
    fn a_run_that_a_guard_ended_for_want_of_memory_is_invalid_and_no_fault_of_the_target() {
        let detail = "the generator uses 83 % of the machine's memory";
        for (kind, expect) in
            [(MEMORY_EVENT, RunOutcome::Invalid), (ABORT_EVENT, RunOutcome::Error)]
        {
            let mut run = crate::example::healthy(10, 30);
            run.ending = Ending::Aborted;
            run.events.push(event(5, kind, detail));
            let summary = crate::summarise(&run, &[], Duration::ZERO);
            assert_eq!(summary.outcome, expect, "{kind}");
            assert!(summary.headline.contains(detail), "{}", summary.headline);
        }
    }

    #[test]
    fn a_defect_of_the_generator_says_nothing_about_the_server() {
        let mut run = crate::example::healthy(10, 30);
        let defect = Failure::new(
            FailureReason::InternalError,
            "a defect in throng, at rtp.rs:7: no message",
        );
        run.participants[3].outcome = Some(Outcome::Failed(defect));
        let summary = crate::summarise(&run, &[], Duration::ZERO);
        assert_eq!(summary.outcome, RunOutcome::Invalid);
        assert!(
            summary.headline.contains("1 participant ended by a defect of the generator"),
            "{}",
            summary.headline
        );
        assert!(summary.headline.contains("at rtp.rs:7"), "{}", summary.headline);
    }

    #[test]
    fn frames_that_the_host_threw_away_count_when_it_did_so_for_a_while() {
        for (bad, limited) in [(3, false), (4, true)] {
            let mut run = run((0..61).map(|s| thread(s, 1, 1)));
            let detail = "this host had no room for 9 of 99 frames";
            run.events.extend((0..bad).map(|second| event(second + 10, HOST_DROPS_EVENT, detail)));
            let health = examine(&run, 1, 1);
            assert_eq!(health.limited, limited, "{bad} s: {:?}", health.reasons);
            assert!(
                !limited || health.reasons[0] == format!("{detail} (4 of 60 s over the limit)")
            );
        }
    }

    #[test]
    fn cost_is_counted_by_connected_participant_seconds() {
        let process =
            GeneratorRow { cpu_us: 50_000, rss_bytes: 1_000_000, ..GeneratorRow::default() };
        let health = examine(&run([process]), 100, 10);
        assert_eq!(health.cpu_ms_per_participant_s, Some(0.5));
        assert_eq!(health.rss_bytes_per_participant, Some(100_000.0));
    }
}
