//! Situations that look like another limit than theirs: each is made, and the answer has to tell it
//! from the one that it looks like.

use std::collections::BTreeMap;

use throng_observation::host::{HostInfo, Unit};
use throng_observation::run::{CohortId, ParticipantId, ParticipantRow, RunData, SentRow};
use throng_observation::{
    Clause, Failure, FailureReason, Goal, HoldOutcome, MediaKind, Outcome, Phase, RunTime,
    SentCounters,
};

use super::planted_limits::{full, go_on_one_core, hot_worker};
use super::simulated_run::{SimulatedRun, UserImpact};
use super::{check, explained, plant_of};
use crate::bottleneck::{Bottleneck, BottleneckVerdict, explain};

/// A crowd of 30; each fails with the next of `failures` in turn, in a search or a plain run; the
/// host is busy with something else meanwhile.
pub(super) fn nobody(
    failures: &[(FailureReason, &str)],
    is_search: bool,
    is_watched: bool,
) -> RunData {
    let mut sim = SimulatedRun::new();
    (sim.is_search, sim.is_watched) = (is_search, is_watched);
    sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |_| 1.98);
    let mut run = sim.run();
    run.holds.truncate(1);
    run.holds.iter_mut().for_each(|hold| hold.passed = [HoldOutcome::No; 3]);
    run.series.clear();
    run.crowd.iter_mut().for_each(|row| (row.connected, row.playing) = (0, 0));
    for row in &mut run.experience {
        row.bad = row.users;
        row.clauses = [0; Clause::ALL.len()];
        row.clauses[Clause::NotConnected as usize] = row.users;
    }
    let one = |id: u32| {
        let at = RunTime(i64::from(id) * 100_000);
        let failed = failures.get(id as usize % failures.len().max(1));
        ParticipantRow {
            participant: ParticipantId(id),
            cohort: Default::default(),
            intended_at: at,
            reached: BTreeMap::from([(Phase::Started, at)]),
            ended_at: failed.map(|_| RunTime(at.0 + 1_000)),
            outcome: failed
                .map(|(reason, detail)| Outcome::Failed(Failure::new(reason.clone(), *detail))),
            local_address: None,
        }
    };
    run.participants = (0..30).map(one).collect();
    run
}

pub(super) fn cause(run: &RunData) -> Bottleneck {
    explain(run, Goal::Acceptable).bottleneck
}

#[test]
fn when_none_could_connect_the_cause_is_the_failure() {
    let refused = [(FailureReason::Tcp, "127.0.0.1:7080 refused the connection")];
    for (is_search, is_watched) in [(true, true), (false, true), (true, false), (false, false)] {
        let found = cause(&nobody(&refused, is_search, is_watched));
        assert_eq!(
            found.title,
            "No participant could connect: 127.0.0.1:7080 refused the connection (30 of 30)",
            "{found:#?}"
        );
        assert_eq!(
            (found.verdict, found.finding.as_deref()),
            (BottleneckVerdict::Bottleneck, Some("never_connected"))
        );
        assert!(
            found.other_findings.is_empty()
                && found.change.is_some_and(|change| change.contains("ss -ltn"))
        );
        assert!(found.evidence.len() >= 3, "{:?}", found.evidence);
    }
}

/// A stream that is not there yet when its viewers come: the publisher of the run is connected all
/// the time.
#[test]
fn a_publisher_of_the_run_is_no_user_that_is_served() {
    let missing =
        [(FailureReason::NoSuchRoom, "OvenMediaEngine refused: code 404, Cannot create offer")];
    for is_watched in [true, false] {
        let mut run = nobody(&missing, false, is_watched);
        let source = CohortId(7);
        let mut crowd = run.crowd.clone();
        let mut experience = run.experience.clone();
        crowd.iter_mut().for_each(|row| {
            (row.cohort, row.started, row.connected, row.playing) = (source, 1, 1, 1);
        });
        experience.iter_mut().for_each(|row| {
            (row.cohort, row.users, row.bad) = (source, 1, 0);
            row.clauses = [0; Clause::ALL.len()];
        });
        run.sent.extend(crowd.iter().map(|row| SentRow {
            second: row.second,
            cohort: source,
            kind: MediaKind::Video,
            tracks: 1,
            counters: SentCounters::default(),
        }));
        run.crowd.extend(crowd);
        run.experience.extend(experience);
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("never_connected"), "{found:#?}");
        assert!(found.title.contains("Cannot create offer (30 of 30)"), "{}", found.title);
    }
}

/// A server that dies after it has let them in, or sends what cannot be played: they were
/// connected, if only for a moment.
#[test]
fn none_that_connected_is_said_not_to_have() {
    let lost = [(FailureReason::SignallingClosed, "the server closed the connection")];
    for is_watched in [true, false] {
        let mut run = nobody(&lost, false, is_watched);
        for row in run.participants.iter_mut().take(3) {
            row.reached.insert(Phase::Playing, row.intended_at);
        }
        run.participants[0].reached.insert(Phase::FirstPacket, RunTime(500));
        let found = cause(&run);
        assert_eq!(
            (found.verdict, found.finding.as_deref()),
            (BottleneckVerdict::Bottleneck, Some("never_served")),
            "{found:#?}"
        );
        assert!(found.title.contains("3 connected and 1 received media"), "{}", found.title);
        assert!(
            found.title.contains("the server closed the connection (30 of 30)"),
            "{}",
            found.title
        );
    }
}

/// A server that accepts connections and never answers was reached: nothing in between drops.
#[test]
fn who_was_let_in_and_waits_does_not_wait_for_a_firewall() {
    for (phase, said, unsaid) in [
        (Phase::Connected, "does not answer", "firewall"),
        (Phase::Secured, "does not answer", "firewall"),
        // Signalling is TCP: what drops UDP lets it through.
        (Phase::Described, "answered the first requests", "firewall"),
        (Phase::Negotiated, "a firewall that drops it", "does not answer"),
        (Phase::IceConnected, "UDP packets of 1,200 bytes", "does not answer"),
    ] {
        let mut run = nobody(&[], false, true);
        run.participants[0].reached.insert(phase, RunTime(500));
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("never_connected"), "{found:#?}");
        let furthest = format!("none got beyond {}", phase.key());
        assert!(found.title.contains(&furthest), "{}", found.title);
        let change = found.change.unwrap_or_default();
        assert!(change.contains(said) && !change.contains(unsaid), "{phase:?}: {change}");
    }
}

#[test]
fn where_reasons_differ_all_are_said_and_where_there_is_none_that_too() {
    let tls = (FailureReason::Tls, "certificate expired");
    let ice = (FailureReason::Ice, "no pair");
    let found = cause(&nobody(&[tls.clone(), tls.clone(), ice], true, true));
    assert_eq!(
        found.title,
        "No participant could connect: certificate expired (20 of 30, the others 10 ice)"
    );
    let found = cause(&nobody(&[], false, true));
    assert_eq!(found.finding.as_deref(), Some("never_connected"), "{found:#?}");
    assert!(
        found.title.starts_with("No participant was connected when the run ended: 30 waited"),
        "{}",
        found.title
    );
    assert!(found.change.is_some_and(|change| change.contains("firewall")));
    // Participants for which the generator had no resources say nothing about the server.
    let found = cause(&nobody(&[(FailureReason::Generator, "no descriptor")], true, true));
    assert_eq!(found.verdict, BottleneckVerdict::GeneratorLimited, "{found:#?}");
}

#[test]
fn a_ceiling_refuses_only_if_a_participant_was_refused() {
    let refuses = |sim: &mut SimulatedRun| {
        let found = explained(sim).bottleneck;
        let said = [found.finding.clone().unwrap_or_default(), found.title.clone()].join(" ");
        (said.contains("refuses more"), found)
    };
    let mut sim = SimulatedRun::new();
    plant_of("configured_ceiling")(&mut sim);
    let (is_said, found) = refuses(&mut sim);
    assert!(
        is_said && found.evidence[0].fail == Some(1.0) && found.evidence[0].baseline == Some(0.0),
        "{found:#?}"
    );
    // Visits that end, or joins that are still waiting: none was refused.
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::NotServed;
    let (is_said, found) = refuses(&mut sim);
    assert!(!is_said && found.verdict == BottleneckVerdict::Unattributed, "{found:#?}");
    // A participant failed, and not by an answer of the server.
    let mut run = sim.run();
    let at = RunTime(found.first_bad_s.unwrap() * 1_000_000);
    run.participants.extend((0..4).map(|id| ParticipantRow {
        participant: ParticipantId(900 + id),
        cohort: Default::default(),
        intended_at: at,
        reached: BTreeMap::new(),
        ended_at: Some(at),
        outcome: Some(Outcome::Failed(Failure::new(FailureReason::Ice, "no pair"))),
        local_address: None,
    }));
    let found = cause(&run);
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::Suspect, Some("configured_ceiling")),
        "{found:#?}"
    );
    assert!(found.title.contains("the server refused none"), "{}", found.title);
}

/// Loss that the server's own card did not see leave: it drops before it sends, and sends again
/// what is asked for.
#[test]
fn packets_that_were_never_sent_are_not_lost_on_the_way() {
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::Loss;
    sim.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, Some(125e6), |m| {
        // Other traffic, whose share becomes smaller as the media grows.
        20e3 + 125e3 * m.users * if m.over { 0.9 } else { 1.0 }
    });
    let mut run = sim.run();
    let found = cause(&run);
    assert_eq!(
        (found.verdict, &found.finding),
        (BottleneckVerdict::Unattributed, &None),
        "{found:#?}"
    );
    assert!(
        found.ruled_out.iter().any(|said| said.contains("they were not sent")),
        "{:?}",
        found.ruled_out
    );
    // Retransmissions fill the gaps: what comes late was missing all the same.
    for row in &mut run.series {
        let lost = std::mem::take(&mut row.counters.packets_lost);
        row.counters.packets_recovered += lost.unsigned_abs();
    }
    assert_eq!(cause(&run).finding, None);
}

/// On loopback the card counts both directions: our own packets grow with the loss, because we ask
/// for what is missing.
#[test]
fn our_own_requests_on_loopback_are_no_packets_of_the_server() {
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::Loss;
    sim.without("nic.tx_bytes");
    // As much as before for each user: a tenth less of the server's, and a tenth more of ours.
    sim.put("nic.tx_bytes", &[("interface", "lo")], Unit::BytesPerSecond, None, |m| {
        1.02 * 125e3 * m.users
    });
    let mut run = sim.run();
    let received: BTreeMap<i64, u64> =
        run.series.iter().map(|row| (row.second, row.counters.wire_bytes)).collect();
    for row in &mut run.generator {
        let is_lossy = run
            .series
            .iter()
            .any(|other| other.second == row.second && other.counters.packets_lost > 0);
        let sent = if is_lossy { 0.12 / 0.9 } else { 0.02 };
        row.sent_bytes = (received.get(&row.second).copied().unwrap_or(0) as f64 * sent) as u64;
    }
    assert_eq!(cause(&run).finding, None, "{:#?}", cause(&run));
}

#[test]
fn go_on_one_core_is_one_answer_however_its_work_wanders() {
    for offset in 0..3 {
        check("runtime_parallelism", |sim| {
            plant_of("runtime_parallelism")(sim);
            sim.facts.insert("sfu.environment.GOMAXPROCS".into(), "1".into());
            // Another start of the search meets other threads at work.
            sim.without("thread.cpu");
            for (tid, turn) in [(11, 0), (12, 1), (13, 2)] {
                let cpu = move |m: super::simulated_run::Moment| {
                    if ((m.second + 7 * offset) / 11) % 3 == turn {
                        0.97 * full(m)
                    } else {
                        0.02 * full(m)
                    }
                };
                sim.thread("sfu", "sfu", tid, cpu, |_| 0.01);
            }
        });
    }
    let mut sim = SimulatedRun::new();
    plant_of("runtime_parallelism")(&mut sim);
    sim.facts.insert("sfu.environment.GOMAXPROCS".into(), "1".into());
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.title, "sfu is limited to one core: GOMAXPROCS is 1");
    assert!(found.change.is_some_and(|change| change.starts_with("GOMAXPROCS")));
    // Without a known runtime the finding is that the work moves between threads.
    check("runtime_parallelism", go_on_one_core);
}

#[test]
fn a_thread_of_go_that_keeps_its_work_is_a_thread() {
    check("one_thread_full", |sim| {
        sim.facts.insert("sfu.runtime".into(), "go".into());
        sim.without("thread.cpu").without("thread.run_queue_wait");
        sim.thread("sfu", "sfu", 11, full, |_| 0.01);
        sim.thread("sfu", "sfu", 12, |m| 0.3 * full(m), |_| 0.01);
        sim.process("sfu", |m| 1.3 * full(m));
    });
}

#[test]
fn workers_that_are_all_full_are_named_together() {
    for pack in [true, false] {
        let mut sim = SimulatedRun::new();
        sim.without("thread.cpu").without("thread.run_queue_wait");
        if !pack {
            sim.facts.clear();
        }
        // Whichever is a little busier in a second is chance.
        sim.thread("media", "worker-0", 11, |m| 0.98 * full(m), |_| 0.01);
        sim.thread("media", "worker-1", 12, |m| 0.98 * full(m), |_| 0.01);
        sim.process("media", |m| 1.96 * full(m));
        let found = explained(&mut sim).bottleneck;
        assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{found:#?}");
        assert!(found.title.starts_with("All 2 threads"), "{}", found.title);
    }
}

#[test]
fn goroutines_that_share_cores_are_not_uneven() {
    let mut sim = SimulatedRun::new();
    go_on_one_core(&mut sim);
    sim.thread("sfu", "sfu", 14, |m| 0.6 * full(m), |_| 0.01);
    sim.process("sfu", |m| 1.6 * full(m));
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, &found.finding),
        (BottleneckVerdict::Unattributed, &None),
        "{found:#?}"
    );
}

#[test]
fn moments_in_which_a_thread_is_full_are_named_last() {
    let mut sim = SimulatedRun::new();
    plant_of("cpu_bursts")(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert!(found.change.is_some_and(|change| change.contains("key frames")), "{:?}", found.title);
    let share = &found.evidence[0];
    assert!(
        share.fail.is_some_and(|fail| (0.15..0.25).contains(&fail)) && share.pass == Some(0.0),
        "{share:?}"
    );
    check("line_rate", |sim| {
        plant_of("cpu_bursts")(sim);
        plant_of("line_rate")(sim);
    });
}

/// In Go the bursts are those of the program, whichever of its threads has them.
#[test]
fn moments_in_which_a_go_program_is_full_are_the_programs() {
    let mut sim = SimulatedRun::new();
    sim.facts.insert("sfu.runtime".into(), "go".into());
    sim.facts.insert("sfu.environment.GOMAXPROCS".into(), "1".into());
    sim.without("thread.cpu").without("thread.run_queue_wait");
    for (tid, turn) in [(11, 0), (12, 1), (13, 2)] {
        sim.bursty_thread("sfu", "sfu", tid, move |m| {
            let has_work = (m.second / 5) % 3 == turn;
            match (m.over, m.tenth) {
                _ if !has_work => 0.0,
                (true, 0 | 1) => 0.99,
                (false, 0) => 0.015 * m.users,
                _ => 0.008 * m.users,
            }
        });
    }
    sim.process("sfu", |m| 0.01 * m.users);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("cpu_bursts"), "{found:#?}");
    assert!(
        found.title.starts_with("The 3 threads sfu of sfu are saturated together"),
        "{}",
        found.title
    );
    assert!(found.change.is_some_and(|change| change.contains("GOMAXPROCS")));
    let share = &found.evidence[0];
    assert!(share.fail.is_some_and(|fail| (0.15..0.25).contains(&fail)), "{share:?}");
}

#[test]
fn a_moment_that_lies_in_two_readings_is_one() {
    check("cpu_bursts", |sim| {
        sim.without("thread.cpu").without("thread.run_queue_wait");
        sim.bursty_thread("media", "worker-0", 11, |m| match (m.over, m.tenth) {
            (true, 3) => 0.70,
            (true, 4) => 0.66,
            _ => 0.008 * m.users,
        });
        sim.process("media", |m| 0.01 * m.users);
    });
}

#[test]
fn joins_that_wait_for_each_other_are_serialised_signalling() {
    let mut sim = SimulatedRun::new();
    plant_of("signalling_serialised")(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert!(
        found
            .title
            .starts_with("Signalling is serialised: joins are answered one after the other, "),
        "{}",
        found.title
    );
    let took = &found.evidence[0];
    assert!(
        took.baseline.is_some_and(|alone| alone < 3_000.0)
            && took.fail.is_some_and(|p95| p95 > 7_800.0),
        "{took:?}"
    );
    // A thread that is full answers late, and that is the cause.
    check("one_thread_full", |sim| {
        plant_of("signalling_serialised")(sim);
        hot_worker(sim);
    });
}

#[test]
fn a_prediction_stays_within_what_was_tried() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    sim.without("host.cpu.busy");
    sim.put("process.fds", &[("process", "media"), ("pid", "7")], Unit::Count, Some(2e4), |m| {
        12.0 + m.users.round()
    });
    let next = explained(&mut sim).bottleneck.prediction.expect("descriptors end some time");
    // Four times what was tried; of a demand that noise makes a curve, four times the largest of
    // its loads.
    assert!((160.0..=4.0 * 42.0).contains(&next.users) && next.users_high.is_none(), "{next:?}");
    sim.put("process.fds", &[("process", "media"), ("pid", "7")], Unit::Count, Some(100.0), |m| {
        12.0 + m.users.round()
    });
    let next = explained(&mut sim).bottleneck.prediction.expect("descriptors end next");
    assert!((next.users - 88.0).abs() < 1.0, "{next:?}");
    assert!(
        next.users_low < next.users - 0.9
            && next.users_high.is_some_and(|high| high > next.users + 0.9),
        "{next:?}"
    );
}

#[test]
fn others_on_the_host_are_named_where_the_server_waits() {
    let mut sim = SimulatedRun::new();
    sim.put("host.cpu.user", &[], Unit::Ratio, Some(2.0), |m| 1.1 + 0.01 * m.users);
    sim.put("host.cpu.system", &[], Unit::Ratio, Some(2.0), |_| 0.2);
    sim.process("media", |m| 0.01 * m.users);
    sim.generator_cpu = 0.2;
    assert_eq!(explained(&mut sim).other_processes_cpu, None, "no process waited");
    sim.thread("media", "worker-0", 11, |m| 0.01 * m.users, |m| if m.over { 0.4 } else { 0.05 });
    let others = explained(&mut sim).other_processes_cpu.expect("compilers");
    assert!((others.cores() - 1.1).abs() < 0.1 && others.waited_ratio > 0.3, "{others:?}");
    assert!(
        others.sentence().contains("1.1 cores under the load that passed"),
        "{}",
        others.sentence()
    );
    // Watched by an agent on another host, the generator is not on that host; other processes there
    // count.
    let mut run = sim.run();
    run.host.hosts = vec![HostInfo { clock_error_us: 40, ..run.host.hosts[0].clone() }];
    let others = explain(&run, Goal::Acceptable).other_processes_cpu.expect("compilers");
    assert!((others.cores() - 1.3).abs() < 0.1, "{others:?}");
}

/// The feed of the server comes by an interface that is busier than the one to the users.
#[test]
fn a_line_that_holds_packets_back_is_named_beside_a_busier_one() {
    let mut sim = SimulatedRun::new();
    plant_of("line_rate")(&mut sim);
    let feed = [("interface", "lo")];
    sim.put("nic.tx_bytes", &feed, Unit::BytesPerSecond, None, |m| 9e6 + 5e4 * m.users);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("line_rate"), "{found:#?}");
    assert!(found.title.contains("eth0"), "{}", found.title);
}
