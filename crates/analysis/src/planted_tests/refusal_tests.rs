//! What is no maximum of users: a limit of each address, a source that stopped, a stream that
//! nobody publishes.

use throng_observation::host::Unit;
use throng_observation::run::{CrowdRow, ParticipantId, ParticipantRow, RunData};
use throng_observation::{ChatRow, Clause, Failure, FailureReason, Outcome, Phase, RunTime};

use super::explained;
use super::look_alike_tests::{cause, nobody};
use super::simulated_run::{Moment, SimulatedRun, UserImpact};
use crate::bottleneck::BottleneckVerdict;

/// HTTP 429 (RFC 6585): the rule of a proxy or a framework for each address, met by a crowd behind
/// one.
#[test]
fn a_rate_for_each_address_is_no_maximum_of_the_server() {
    let said = "POST http://10.0.0.1/whep/s: 429 Too Many Requests, Retry-After: 30";
    let plant = |sim: &mut SimulatedRun| {
        sim.impact = UserImpact::NotServed;
        sim.refusals = Some(Failure::new(FailureReason::HttpStatus(429), said));
    };
    for is_watched in [true, false] {
        let mut sim = SimulatedRun::new();
        plant(&mut sim);
        sim.is_watched = is_watched;
        let found = explained(&mut sim).bottleneck;
        assert_eq!(
            (found.verdict, found.finding.as_deref()),
            (BottleneckVerdict::Bottleneck, Some("address_limit")),
            "{found:#?}"
        );
        assert!(found.other_findings.is_empty(), "{found:#?}");
        let change = found.change.unwrap_or_default();
        for word in ["--source-ip", "Retry-After: 30"] {
            assert!(change.contains(word), "{change}");
        }
        assert!(
            !change.contains("licence") && !found.title.contains("maximum"),
            "{}: {change}",
            found.title
        );
    }
    // A server that is full says so by another status, and it is not the address then.
    let mut sim = SimulatedRun::new();
    plant(&mut sim);
    sim.refusals = Some(Failure::new(FailureReason::HttpStatus(503), "503 Service Unavailable"));
    assert_eq!(explained(&mut sim).bottleneck.finding.as_deref(), Some("configured_ceiling"));
    // Where none could connect, the same is said of all of them.
    let found = cause(&nobody(&[(FailureReason::HttpStatus(429), said)], true, true));
    assert_eq!(found.finding.as_deref(), Some("never_connected"), "{found:#?}");
    assert!(found.change.is_some_and(|change| change.contains("--source-ip")));
}

/// From the first second of the failing load on nobody has media; `reached` is how far those came
/// that fail then.
pub(super) fn without_media(
    sim: &mut SimulatedRun,
    reached: &[Phase],
    failure: &(FailureReason, &str),
) -> RunData {
    sim.is_search = false;
    let mut run = sim.run();
    let silent: Vec<i64> =
        run.experience.iter().filter(|row| row.bad > 0).map(|row| row.second).collect();
    let first = silent[0];
    for row in run.experience.iter_mut().filter(|row| row.bad > 0) {
        (row.bad, row.clauses) = (row.users, [0; Clause::ALL.len()]);
        row.clauses[Clause::NoMedia as usize] = row.users;
    }
    for row in run.crowd.iter_mut().filter(|row| row.second > first && silent.contains(&row.second))
    {
        row.playing = 0;
    }
    run.series.retain(|row| !silent.contains(&row.second));
    let at = RunTime((first + 5) * 1_000_000);
    run.participants.extend((0..10).map(|id| ParticipantRow {
        participant: ParticipantId(id),
        cohort: Default::default(),
        intended_at: RunTime(0),
        reached: reached.iter().map(|phase| (*phase, RunTime(1_000))).collect(),
        ended_at: Some(at),
        outcome: Some(Outcome::Failed(Failure::new(failure.0.clone(), failure.1))),
        local_address: None,
    }));
    run
}

/// The encoder was killed, or the ingest stopped for ten seconds.
#[test]
fn when_all_lose_their_media_at_once_the_source_stopped_and_no_maximum_is_met() {
    let reached = [Phase::DtlsConnected, Phase::FirstPacket, Phase::FirstFrame];
    let lost = || (FailureReason::MediaLost, "no media for 10 s");
    // What comes in: from a source that stops with the media, or one that goes on while the server
    // hangs; the acknowledgements of the viewers, which end with the media; on the loopback
    // interface the media themselves.
    let of_source: fn(Moment) -> f64 = |m| if m.over { 5e3 } else { 400e3 + 2e3 * m.users };
    let goes_on: fn(Moment) -> f64 = |m| if m.over { 400e3 } else { 400e3 + 2e3 * m.users };
    let of_viewers: fn(Moment) -> f64 = |m| if m.over { 0.0 } else { 10e3 * m.users };
    for (received, verdict) in [
        (None, BottleneckVerdict::Suspect),
        (Some(("eth0", of_source)), BottleneckVerdict::Bottleneck),
        (Some(("eth0", goes_on)), BottleneckVerdict::Suspect),
        (Some(("eth0", of_viewers)), BottleneckVerdict::Suspect),
        (Some(("lo", of_source)), BottleneckVerdict::Suspect),
    ] {
        let mut sim = SimulatedRun::new();
        if let Some((interface, bytes)) = received {
            let labels = [("interface", interface)];
            sim.put("nic.rx_bytes", &labels, Unit::BytesPerSecond, None, bytes);
        }
        let found = cause(&without_media(&mut sim, &reached, &lost()));
        assert_eq!(
            (found.verdict, found.finding.as_deref()),
            (verdict, Some("source_stopped")),
            "{found:#?}"
        );
        let is_proven = found.title.starts_with("The source stopped: all 42 viewers");
        assert_eq!(is_proven, verdict == BottleneckVerdict::Bottleneck, "{}", found.title);
        let is_open = found.title.starts_with("42 users lost their media in one second, for ")
            && found.title.ends_with(" s: the source, the server or the path");
        assert!(is_proven || is_open, "{}", found.title);
        assert!(found.other_findings.is_empty(), "{found:#?}");
    }
    // Unwatched, the crowd alone shows it.
    let mut sim = SimulatedRun::new();
    sim.is_watched = false;
    let found = cause(&without_media(&mut sim, &reached, &lost()));
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::Suspect, Some("source_stopped")),
        "{found:#?}"
    );
}

/// Some lose their media while others play: no join failed, and no maximum is met by who was there.
#[test]
fn who_loses_media_while_others_play_met_no_maximum() {
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::NotServed;
    let mut run = sim.run();
    let at = RunTime(run.experience.iter().find(|row| row.bad > 0).unwrap().second * 1_000_000);
    let reached = [Phase::DtlsConnected, Phase::FirstPacket, Phase::FirstFrame];
    run.participants.extend((0..10).map(|id| ParticipantRow {
        participant: ParticipantId(id),
        cohort: Default::default(),
        intended_at: RunTime(0),
        reached: reached.iter().map(|phase| (*phase, RunTime(1_000))).collect(),
        ended_at: Some(at),
        outcome: Some(Outcome::Failed(Failure::new(FailureReason::MediaLost, "no media"))),
        local_address: None,
    }));
    let found = cause(&run);
    let others = found.other_findings.iter().map(|other| other.finding.as_str());
    let mut keys = found.finding.as_deref().into_iter().chain(others);
    assert!(keys.all(|key| key != "configured_ceiling"), "{found:#?}");
    assert!(!found.title.contains("users are served"), "{}", found.title);
}

/// Players drain their buffers one after the other; a demo has a single viewer.
#[test]
fn a_gap_of_the_source_is_no_limit_of_the_configuration() {
    let gap = |change: fn(&mut CrowdRow, Option<i64>)| {
        let mut sim = SimulatedRun::new();
        sim.is_watched = false;
        let mut run = without_media(&mut sim, &[], &(FailureReason::MediaLost, "no media"));
        run.participants.clear();
        let has_next_none = |pair: &[CrowdRow]| pair[0].playing > 0 && pair[1].playing == 0;
        let last: Vec<i64> = run
            .crowd
            .windows(2)
            .filter(|pair| has_next_none(pair))
            .map(|pair| pair[0].second)
            .collect();
        for row in &mut run.crowd {
            let until_last =
                last.iter().map(|last| row.second - last).find(|s| (-1..=0).contains(s));
            change(row, until_last);
        }
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("source_stopped"), "{found:#?}");
        assert!(!found.change.unwrap_or_default().contains("configuration"), "{}", found.title);
        found.title
    };
    let title = gap(|row, after| {
        row.playing = match after {
            Some(-1) => row.playing / 2,
            Some(_) => 1,
            None => row.playing,
        };
    });
    assert!(title.contains(" users lost their media within 3 s, for "), "{title}");
    let title = gap(|row, _| {
        (row.playing, row.connected) = (row.playing.min(1), row.connected.min(1));
    });
    assert!(title.starts_with("The only user lost its media for "), "{title}");
}

/// Who is in a chat has no media to lose, and no source that could stop.
#[test]
fn chatters_that_drop_out_of_their_room_lose_no_media() {
    let mut sim = SimulatedRun::new();
    sim.is_watched = false;
    let mut run = without_media(&mut sim, &[], &(FailureReason::MediaLost, "no media"));
    run.participants.clear();
    run.series.clear();
    let row = |row: &CrowdRow| ChatRow {
        second: row.second,
        cohort: row.cohort,
        members: row.connected,
        joined: row.playing,
        ..ChatRow::default()
    };
    run.chat = run.crowd.iter().map(row).collect();
    let found = cause(&run);
    assert_eq!(found.finding.as_deref(), Some("source_stopped"), "{found:#?}");
    assert!(found.title.contains(" chatters dropped out of the room within 1 s, "), "{found:#?}");
    assert!(!found.title.contains("media"), "{}", found.title);
    assert!(found.change.is_some_and(|change| change.starts_with("Look at the chat server's log")));
}

/// A stream that nobody publishes: viewers connect, and none is served.
#[test]
fn where_none_is_served_there_is_no_maximum() {
    let mut sim = SimulatedRun::new();
    let no_media = (FailureReason::NoMedia, "no media for 10 s");
    let mut run = without_media(&mut sim, &[Phase::DtlsConnected], &no_media);
    run.crowd.iter_mut().for_each(|row| row.playing = 0);
    let found = cause(&run);
    assert_ne!(found.finding.as_deref(), Some("configured_ceiling"), "{found:#?}");
    assert!(!found.title.contains("users are served"), "{}", found.title);
    // Where none stays connected until the end of a second, that is the finding.
    run.crowd.iter_mut().for_each(|row| row.connected = 0);
    let found = cause(&run);
    assert_eq!(found.finding.as_deref(), Some("never_served"), "{found:#?}");
    assert!(
        found.title.starts_with("No participant was served for a whole second"),
        "{}",
        found.title
    );
}

/// Ten users whose room does not exist, among others that the server is silent to.
#[test]
fn what_does_not_exist_is_no_maximum_and_a_few_of_them_do_not_decide() {
    let found = |missing: usize, silent: usize| {
        let mut sim = SimulatedRun::new();
        sim.impact = UserImpact::NotServed;
        let mut run = sim.run();
        let at = RunTime(run.experience.iter().find(|row| row.bad > 0).unwrap().second * 1_000_000);
        let failures = std::iter::repeat_n(FailureReason::NoSuchRoom, missing)
            .chain(std::iter::repeat_n(FailureReason::SignallingTimeout, silent));
        run.participants.extend((0..).zip(failures).map(|(id, reason)| ParticipantRow {
            participant: ParticipantId(id),
            cohort: Default::default(),
            intended_at: at,
            reached: Default::default(),
            ended_at: Some(at),
            outcome: Some(Outcome::Failed(Failure::new(reason, "no answer"))),
            local_address: None,
        }));
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("configured_ceiling"), "{found:#?}");
        (found.title, found.change.unwrap_or_default())
    };
    let (title, change) = found(10, 2);
    assert!(title.ends_with("because the server does not have what they ask for"), "{title}");
    assert!(change.contains("does it exist") && !change.contains("maximum"), "{change}");
    let (title, change) = found(2, 10);
    assert!(title.ends_with("though the server refused none"), "{title}");
    assert!(change.contains("a maximum of about"), "{change}");
}

/// A limit that a crowd of several addresses meets with all of them is perhaps one of each user, or
/// of all.
#[test]
fn a_429_to_several_addresses_may_be_of_all() {
    let found = |addresses: u32| {
        let mut sim = SimulatedRun::new();
        sim.impact = UserImpact::NotServed;
        let mut run = sim.run();
        let at = RunTime(run.experience.iter().find(|row| row.bad > 0).unwrap().second * 1_000_000);
        run.participants.extend((0..8).map(|id| ParticipantRow {
            participant: ParticipantId(id),
            cohort: Default::default(),
            intended_at: at,
            reached: Default::default(),
            ended_at: Some(at),
            outcome: Some(Outcome::Failed(Failure::new(FailureReason::HttpStatus(429), "429"))),
            local_address: Some(format!("10.0.0.{}:5000", 1 + id % addresses)),
        }));
        cause(&run)
    };
    let of_one = found(1);
    assert_eq!(
        (of_one.verdict, of_one.finding.as_deref()),
        (BottleneckVerdict::Bottleneck, Some("address_limit")),
        "{of_one:#?}"
    );
    let of_two = found(2);
    assert_eq!(
        (of_two.verdict, of_two.finding.as_deref()),
        (BottleneckVerdict::Suspect, Some("address_limit")),
        "{of_two:#?}"
    );
    assert!(of_two.title.contains("per address, per user or in total"), "{}", of_two.title);
}
