//! Sources that stop, seen by the server's own counters, and servers that disconnect their viewers
//! then.

use throng_observation::host::{HowEnded, Unit};
use throng_observation::pack::PACKS_FACT;
use throng_observation::run::RunData;
use throng_observation::{FailureReason, Phase, RunTime};

use super::ended_tests::{ends_with_its_users, event, life};
use super::look_alike_tests::cause;
use super::planted_limits::hot_worker;
use super::refusal_tests::without_media;
use super::simulated_run::{Moment, SimulatedRun};
use crate::bottleneck::BottleneckVerdict;

const REACHED: [Phase; 3] = [Phase::DtlsConnected, Phase::FirstPacket, Phase::FirstFrame];

/// What MediaMTX counts of the one path that comes in, on a host that has the crowd too: its
/// packets come by the loopback interface.
fn counts(sim: &mut SimulatedRun, is_marked: bool, bytes: fn(Moment) -> f64) {
    let ingest = if is_marked { r#","ingest":["paths_inbound_*"]"# } else { "" };
    let pack = format!(
        r#"[{{"pack":"media","processes":["media"],"endpoint":[
           {{"kind":"open_metrics","url":"http://127.0.0.1:9998/","switch_on":"metrics: yes"{ingest}}}]}}]"#
    );
    sim.facts.insert(PACKS_FACT.to_owned(), pack);
    let labels = [("endpoint", "127.0.0.1:9998"), ("name", "live")];
    sim.put("paths_inbound_bytes", &labels, Unit::BytesPerSecond, None, bytes);
    sim.put("rtsp_conns", &labels[..1], Unit::Count, None, |m| m.users);
    let loopback = [("interface", "lo")];
    sim.put("nic.rx_bytes", &loopback, Unit::BytesPerSecond, None, |m| 125e3 * m.users);
}

/// What the server counts of its source, bytes a second.
type Counted = fn(Moment) -> f64;

fn stops(m: Moment) -> f64 {
    if m.over { 2e3 } else { 125e3 }
}

/// MediaMTX has no series of a path that nobody publishes.
fn vanishes(m: Moment) -> f64 {
    if m.over { f64::NAN } else { 125e3 }
}

fn goes_on(_: Moment) -> f64 {
    125e3
}

#[test]
fn what_a_server_counts_of_its_sources_shows_on_one_host_that_they_stopped() {
    use BottleneckVerdict::{Bottleneck, Suspect};
    let all: [(bool, Counted, BottleneckVerdict); 4] = [
        (true, stops, Bottleneck),
        (true, vanishes, Bottleneck),
        (true, goes_on, Suspect),
        (false, stops, Suspect),
    ];
    for (number, (is_marked, bytes, verdict)) in all.into_iter().enumerate() {
        let mut sim = SimulatedRun::new();
        counts(&mut sim, is_marked, bytes);
        let lost = (FailureReason::MediaLost, "no media for 10 s");
        let found = cause(&without_media(&mut sim, &REACHED, &lost));
        assert_eq!(
            (found.verdict, found.finding.as_deref()),
            (verdict, Some("source_stopped")),
            "{number}: {found:#?}"
        );
        let is_proven = found.title.starts_with("The source stopped: all 42 viewers");
        assert_eq!(is_proven, verdict == Bottleneck, "{number}: {}", found.title);
        let is_told = found.evidence[1].counter == "paths_inbound_bytes of live";
        assert_eq!(is_told, is_marked, "{number}: {:#?}", found.evidence);
    }
}

/// A run that ends because all 20 viewers are disconnected within 300 ms.
fn cut_off() -> RunData {
    let mut run = ends_with_its_users();
    for (id, row) in (0..).zip(&mut run.participants) {
        row.reached = REACHED.map(|phase| (phase, RunTime(1_000))).into();
        row.ended_at = row.ended_at.map(|at| RunTime(at.0 - 10_000 * id));
    }
    run
}

/// A server that ends each session after a minute, say: the last two end together.
#[test]
fn a_server_that_disconnects_one_after_the_other_has_not_lost_its_source() {
    let mut run = cut_off();
    for (id, row) in (0..).zip(&mut run.participants) {
        row.ended_at = row.ended_at.map(|at| RunTime(at.0 - 1_000_000 * id));
    }
    event(&mut run, 0, "media", 7, None);
    assert_ne!(cause(&run).finding.as_deref(), Some("source_stopped"));
}

/// What the server counts stops, and what comes in on the interface does not: the server hangs.
#[test]
fn a_server_that_no_longer_counts_what_still_comes_in_proves_nothing() {
    let mut sim = SimulatedRun::new();
    counts(&mut sim, true, stops);
    sim.put("nic.rx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, None, |_| 130e3);
    let lost = (FailureReason::MediaLost, "no media for 10 s");
    let found = cause(&without_media(&mut sim, &REACHED, &lost));
    assert_eq!(
        (found.verdict, found.evidence[1].counter.as_str()),
        (BottleneckVerdict::Suspect, "nic.rx_bytes of eth0"),
        "{found:#?}"
    );
}

#[test]
fn a_server_that_disconnects_all_at_once_and_lives_on_may_have_lost_its_source() {
    let mut run = cut_off();
    // Whether the server lives is not known.
    assert_eq!(cause(&run).verdict, BottleneckVerdict::NothingFailed);
    event(&mut run, 0, "media", 7, None);
    let found = cause(&run);
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::Suspect, Some("source_stopped")),
        "{found:#?}"
    );
    assert_eq!(
        found.title,
        "All 20 viewers were disconnected within 1 s, and the server lived on: the source, the \
         server or the path"
    );
    // One that plays on has the same source.
    (run.participants[0].ended_at, run.participants[0].outcome) = (None, None);
    assert_eq!(cause(&run).verdict, BottleneckVerdict::NothingFailed);
}

#[test]
fn a_server_that_crashes_or_is_started_again_disconnects_all_too() {
    let mut crashed = cut_off();
    life(&mut crashed, (0, 120), "media", 7, HowEnded::Signal { number: 9, core: false });
    let mut restarted = cut_off();
    life(&mut restarted, (0, 118), "media", 7, HowEnded::Exit { code: 1 });
    event(&mut restarted, 119_000, "media", 8, None);
    for run in [crashed, restarted] {
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("server_crashed"), "{found:#?}");
        assert!(found.other_findings.is_empty(), "{found:#?}");
    }
}

/// The same in the failing load of a run that goes on.
fn cut_off_under_load(sim: &mut SimulatedRun) -> RunData {
    let closed = (FailureReason::SignallingClosed, "the server closed the connection");
    let mut run = without_media(sim, &REACHED, &closed);
    let first = run.experience.iter().find(|row| row.bad > 0).unwrap().second;
    let at = RunTime(first * 1_000_000 + 900_000);
    run.participants.iter_mut().for_each(|row| row.ended_at = Some(at));
    let without = run.crowd.iter_mut().filter(|row| row.second > first && row.playing == 0);
    without.for_each(|row| row.connected = 0);
    run
}

#[test]
fn who_is_disconnected_while_nothing_comes_in_lost_the_source_and_else_a_limit_is_the_cause() {
    let mut sim = SimulatedRun::new();
    counts(&mut sim, true, vanishes);
    let found = cause(&cut_off_under_load(&mut sim));
    assert_eq!(found.verdict, BottleneckVerdict::Bottleneck, "{found:#?}");
    assert_eq!(
        found.title,
        "The source stopped: the server disconnected all 10 viewers within 1 s, and lived on"
    );
    let found = cause(&cut_off_under_load(&mut SimulatedRun::new()));
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::Suspect, Some("source_stopped")),
        "{found:#?}"
    );
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    let found = cause(&cut_off_under_load(&mut sim));
    assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{found:#?}");
}
