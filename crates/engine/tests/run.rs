//! Whole runs against servers on loopback, with a participant made for the test: the engine's laws, without a protocol.

mod echo;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use echo::{Ask, Echo, http_server, silent_server, tls_server, udp_echo, ws_server};
use throng_engine::{Join, RunConfig, RunEnd, run};
use throng_observation::run::{CohortId, CrowdRow, Ending, EventRow, ParticipantId, ParticipantRow, Row};
use throng_observation::{FailureReason, Outcome, Phase, RunTime};

struct Seen {
    end: RunEnd,
    participants: BTreeMap<u32, ParticipantRow>,
    crowd: Vec<CrowdRow>,
    events: Vec<EventRow>,
    received: u64,
}

/// Runs one participant per entry of `asks`, `every_ms` apart, for `for_ms`.
fn play(asks: Vec<Ask>, every_ms: i64, for_ms: i64, change: impl FnOnce(&mut RunConfig)) -> Seen {
    let joins = (0..asks.len() as u32)
        .map(|n| Join {
            participant: ParticipantId(n),
            cohort: CohortId(0),
            at: RunTime(i64::from(n) * every_ms * 1000),
            leave_at: None,
            source_ip: None,
        })
        .collect();
    let mut config = RunConfig::new(joins, RunTime(for_ms * 1000), Arc::new(|ip: IpAddr| ip.is_loopback()));
    config.connect_timeout = Duration::from_millis(700);
    config.grace = Duration::from_millis(500);
    change(&mut config);
    let (rows, written) = mpsc::sync_channel(10_000);
    let casting = move |join: &Join| -> Box<dyn throng_protocol::participant::Participant> {
        Box::new(Echo::new(asks[join.participant.0 as usize].clone()))
    };
    let handle = run(config, Arc::new(casting), rows).unwrap();
    let mut seen = Seen {
        end: handle.wait(),
        participants: BTreeMap::new(),
        crowd: Vec::new(),
        events: Vec::new(),
        received: 0,
    };
    for row in written {
        match row {
            Row::Participant(row) => drop(seen.participants.insert(row.participant.0, *row)),
            Row::Crowd(row) => seen.crowd.push(row),
            Row::Event(row) => seen.events.push(row),
            Row::Series(row) => seen.received += row.counters.packets_received,
            _ => {}
        }
    }
    seen
}

fn reason(seen: &Seen, who: u32) -> Option<&FailureReason> {
    seen.participants[&who].failure()
}

#[test]
fn participants_join_on_schedule_receive_and_leave_in_order() {
    let server = udp_echo();
    let seen = play(vec![Ask::Datagrams(server); 10], 50, 2500, |_| {});
    assert_eq!(seen.end.ending, Ending::Complete);
    assert_eq!(seen.participants.len(), 10);
    for (who, row) in &seen.participants {
        assert_eq!(row.outcome, Some(Outcome::Completed), "{who}");
        let late_ms = row.ms_to(Phase::Started).unwrap();
        assert!((0.0..200.0).contains(&late_ms), "{who} began {late_ms} ms after its time");
        assert!(row.ms_to(Phase::FirstPacket).unwrap() >= late_ms);
        assert!(row.local_address.is_some());
    }
    let last = seen.crowd.last().unwrap();
    assert_eq!((last.intended, last.started, last.left, last.failed, last.connected), (10, 10, 10, 0, 0));
    assert!(seen.crowd.iter().any(|row| row.playing == 10 && row.connected == 10), "{:?}", seen.crowd);
    assert!(seen.received > 500, "{} datagrams", seen.received);
}

#[test]
fn a_join_that_hangs_delays_nobody_and_is_told_at_the_end() {
    let (silent, server) = (silent_server(), udp_echo());
    let mut asks = vec![Ask::Datagrams(server); 6];
    asks[1] = Ask::WebSocket(format!("ws://{silent}/"));
    let seen = play(asks, 20, 400, |config| config.connect_timeout = Duration::from_secs(30));
    for (who, row) in &seen.participants {
        assert!(row.ms_to(Phase::Started).unwrap() < 200.0, "{who}");
        assert_eq!(row.outcome == Some(Outcome::Completed), *who != 1, "{who}: {:?}", row.outcome);
    }
    assert_eq!(reason(&seen, 1), Some(&FailureReason::SignallingTimeout));
}

#[test]
fn every_failure_has_its_name() {
    let refused = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let (http, silent, tls, ws) = (http_server(), silent_server(), tls_server(), ws_server());
    let cases = [
        (Ask::WebSocket(format!("ws://{refused}/")), Some(FailureReason::Tcp)),
        (Ask::WebSocket(format!("ws://{http}/missing")), Some(FailureReason::HttpStatus(404))),
        (Ask::WebSocket(format!("ws://{silent}/")), Some(FailureReason::SignallingTimeout)),
        (Ask::WebSocket(format!("wss://{tls}/")), Some(FailureReason::Tls)),
        (Ask::WebSocket("ws://no.such.name.invalid/".into()), Some(FailureReason::Dns)),
        (Ask::WebSocket("ws://192.0.2.1/".into()), Some(FailureReason::NotAllowed)),
        (Ask::Fetch(format!("http://{http}/missing")), Some(FailureReason::HttpStatus(404))),
        (Ask::Fetch(format!("http://{http}/long")), Some(FailureReason::Protocol)),
        (Ask::Fetch(format!("http://{refused}/")), Some(FailureReason::Tcp)),
        (Ask::Fetch(format!("http://{silent}/")), Some(FailureReason::SignallingTimeout)),
        (Ask::Fetch("http://192.0.2.1/".into()), Some(FailureReason::NotAllowed)),
        (Ask::Datagrams("192.0.2.1:9".parse().unwrap()), Some(FailureReason::NotAllowed)),
        (Ask::Fetch(format!("http://{http}/")), None),
        (Ask::WebSocket(format!("ws://{ws}/")), None),
    ];
    let asks = cases.iter().map(|(ask, _)| ask.clone()).collect();
    let seen = play(asks, 1, 3000, |config| config.body_bytes_max = 1000);
    for (who, (ask, expect)) in (0..).zip(&cases) {
        assert_eq!(reason(&seen, who), expect.as_ref(), "{ask:?}: {:?}", seen.participants[&who].outcome);
    }
    let failed = cases.iter().filter(|(_, expect)| expect.is_some()).count();
    assert_eq!(seen.events.iter().filter(|event| event.kind == "failed").count(), failed);
}

#[test]
fn a_datagram_to_a_place_that_is_not_allowed_is_refused_and_told() {
    let seen = play(vec![Ask::Astray(udp_echo(), "192.0.2.1:9".parse().unwrap())], 1, 300, |_| {});
    assert!(
        seen.events.iter().any(|event| event.kind == "refused_send" && event.detail.contains("192.0.2.1:9"))
    );
}

#[test]
fn stopping_offers_no_more_joins_and_counts_only_those_that_were_due() {
    let joins = (0..100)
        .map(|n| Join {
            participant: ParticipantId(n),
            cohort: CohortId(0),
            at: RunTime(i64::from(n) * 100_000),
            leave_at: None,
            source_ip: None,
        })
        .collect();
    let config = RunConfig::new(joins, RunTime(60_000_000), Arc::new(|_: IpAddr| true));
    let server = udp_echo();
    let casting = move |_: &Join| -> Box<dyn throng_protocol::participant::Participant> {
        Box::new(Echo::new(Ask::Datagrams(server)))
    };
    let (rows, written) = mpsc::sync_channel(10_000);
    let handle = run(config, Arc::new(casting), rows).unwrap();
    while handle.now() < RunTime(650_000) {
        std::thread::yield_now();
    }
    handle.stop();
    let stopped_at = handle.now();
    let end = handle.wait();
    assert_eq!(end.ending, Ending::Interrupted);
    assert!(end.ended_at.millis_since(stopped_at) < 1000.0, "{end:?}");
    let mut ended = BTreeMap::new();
    for row in written {
        if let Row::Participant(row) = row {
            ended.insert(row.participant.0, row.outcome);
        }
    }
    assert!((5..20).contains(&ended.len()), "{ended:?}");
}

#[test]
fn consent_withdrawn_ends_the_run_within_a_second() {
    let seen = play(vec![Ask::Datagrams(udp_echo()); 3], 1, 20_000, |config| {
        config.consent = Some(Arc::new(|| Err("the proof is gone".into())));
        config.consent_interval = Duration::from_millis(300);
    });
    assert_eq!(seen.end.ending, Ending::Aborted);
    assert!(seen.end.why.unwrap().contains("the proof is gone"));
    assert!(seen.end.ended_at < RunTime(1_500_000));
}
