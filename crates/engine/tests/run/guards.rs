//! What ends a run, what it may not reach, and the rows about both.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use throng_engine::consent::{ConsentError, fetch_file};
use throng_engine::{
    Consent, ConsentCheck, ConsentEnd, ConsentLost, Join, RunConfig, TlsOptions, run,
};
use throng_observation::RunTime;
use throng_observation::limits::MEMORY_EVENT;
use throng_observation::run::{CohortId, Ending, ParticipantId, Row};

use crate::echo::{Echo, EchoTask, consent_server, udp_echo};
use crate::play::{play, times};

#[test]
fn a_datagram_to_an_address_that_is_not_allowed_is_refused_and_reported() {
    let seen =
        play(vec![EchoTask::Astray(udp_echo(), "192.0.2.1:9".parse().unwrap())], 1, 300, |_| {});
    for kind in ["refused_send", "refused_ice_candidate"] {
        let reported = |event: &throng_observation::run::EventRow| {
            event.kind == kind && event.detail.contains("192.0.2.1:9")
        };
        assert!(seen.events.iter().any(reported), "{kind}: {:?}", seen.events);
    }
    // Beyond a thousand they are counted in one row.
    assert_eq!(times(&seen, "refused_send"), crate::echo::ASTRAY);
    assert!(seen.events.iter().filter(|event| event.kind == "refused_send").count() <= 1001);
}

#[test]
fn a_datagram_without_a_route_is_reported_and_is_no_limit_of_the_generator() {
    // No route leads from loopback elsewhere, though the guard allows it.
    let asks = vec![EchoTask::Astray(udp_echo(), "192.0.2.1:9".parse().unwrap())];
    let seen = play(asks, 1, 1300, |config| config.reach = Arc::new(|_, _| true));
    assert_eq!(times(&seen, "unreachable_send"), crate::echo::ASTRAY);
    assert!(
        seen.events
            .iter()
            .any(|event| event.detail.contains("no route for a datagram to 192.0.2.1:9"))
    );
    assert!(
        !seen.health.is_empty() && seen.health.iter().all(|row| row.send_drops == 0),
        "{:?}",
        seen.health
    );
    assert_eq!(seen.participants[&0].failure(), None);
}

#[test]
fn stopping_offers_no_more_joins_and_counts_only_those_that_were_due() {
    let joins = (0..100)
        .map(|n| Join {
            participant: ParticipantId(n),
            cohort: CohortId(0),
            place: n,
            at: RunTime(i64::from(n) * 100_000),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        })
        .collect();
    let config = RunConfig::new(joins, RunTime(60_000_000), Arc::new(|_, _| true));
    let server = udp_echo();
    let factory = move |_: &Join| -> Box<dyn throng_protocol::participant::Participant> {
        Box::new(Echo::new(EchoTask::Datagrams(server)))
    };
    let (rows, written) = mpsc::sync_channel(10_000);
    let handle = run(config, Arc::new(factory), rows).unwrap();
    while handle.now() < RunTime(650_000) {
        std::thread::yield_now();
    }
    handle.stop();
    let stopped_at = handle.now();
    let end = handle.wait();
    assert_eq!(end.ending, Ending::Interrupted);
    assert!(end.ended_at.millis_since(stopped_at) < 1000.0, "{end:?}");
    let (mut ended, mut intended, mut events) = (BTreeMap::new(), 0, Vec::new());
    for row in written {
        match row {
            Row::Participant(row) => drop(ended.insert(row.participant.0, row.outcome)),
            Row::Crowd(row) => intended = row.intended,
            Row::Event(row) => events.push(row),
            _ => {}
        }
    }
    assert!((5..10).contains(&ended.len()), "{ended:?}");
    assert_eq!(intended as usize, ended.len(), "a join that was not offered was not intended");
    assert!(
        events.iter().any(|event| event.kind == "stop")
            && events.iter().all(|e| e.kind != "failed"),
        "{events:?}"
    );
}

#[test]
fn consent_that_is_lost_ends_the_run_within_a_second_and_says_how() {
    let seen = play(vec![EchoTask::Datagrams(udp_echo()); 3], 1, 20_000, |config| {
        let lost = || ConsentLost::new(ConsentEnd::Unanswered, "the proof is gone");
        let check: ConsentCheck = Arc::new(move || Err(lost()));
        let slow: ConsentCheck = Arc::new(|| {
            std::thread::sleep(Duration::from_secs(3));
            Ok(())
        });
        config.consents = vec![
            Consent { check: slow, interval: Duration::ZERO },
            Consent { check, interval: Duration::from_millis(300) },
        ];
    });
    assert_eq!(seen.end.ending, Ending::Aborted);
    assert_eq!(times(&seen, "abort"), 1);
    assert_eq!(seen.end.why.as_deref(), Some("no answer about the consent: the proof is gone"));
    assert!(seen.end.ended_at < RunTime(1_500_000));
}

#[test]
fn a_consent_file_is_fetched_and_its_withdrawal_ends_the_run_within_a_second_of_the_look() {
    let there = Arc::new(AtomicBool::new(true));
    let server = consent_server(Arc::clone(&there));
    let authority = server.to_string();
    let fetch = move || fetch_file(false, &authority, server.ip(), &TlsOptions::default());
    assert_eq!(fetch().unwrap(), "proof = 1\n");
    let withdrawn_at = Arc::new(std::sync::OnceLock::new());
    let (withdraw, set_at) = (Arc::clone(&there), Arc::clone(&withdrawn_at));
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(900));
        withdraw.store(false, Ordering::SeqCst);
        let _ = set_at.set(Instant::now());
    });
    let check = fetch.clone();
    let seen = play(vec![EchoTask::Datagrams(udp_echo()); 3], 1, 20_000, |config| {
        let lost = |error: ConsentError| ConsentLost::new(error.end(), error.to_string());
        let check: ConsentCheck = Arc::new(move || check().map(drop).map_err(lost));
        config.consents = vec![Consent { check, interval: Duration::from_millis(250) }];
    });
    let since = withdrawn_at.get().unwrap().elapsed();
    assert!(
        since < Duration::from_millis(250 + 200 + 1000),
        "ended {since:?} after the file was gone"
    );
    assert_eq!((seen.end.ending, times(&seen, "abort")), (Ending::Aborted, 1));
    let why = seen.end.why.unwrap();
    assert!(why.starts_with("consent withdrawn: ") && why.contains("404"), "{why}");
    assert!(matches!(fetch(), Err(ConsentError::Status { status: 404, .. })));
}

#[test]
fn a_consent_file_comes_only_from_the_requested_address_of_its_name() {
    let server = consent_server(Arc::new(AtomicBool::new(true)));
    let port = server.port();
    let fetch = |host: &str, address: &str| {
        fetch_file(
            false,
            &format!("{host}:{port}"),
            address.parse().unwrap(),
            &TlsOptions::default(),
        )
    };
    // A name that no resolver knows: the caller gives its address.
    assert_eq!(fetch("media.invalid", "127.0.0.1").unwrap(), "proof = 1\n");
    let elsewhere = fetch("localhost", "127.0.0.77");
    assert!(
        matches!(&elsewhere, Err(ConsentError::Fetch { place, .. }) if place.ends_with(" at 127.0.0.77"))
    );
    // An address instead of the name does not redirect the request either.
    assert!(fetch("127.0.0.1", "127.0.0.77").is_err());
}

#[test]
fn a_generator_without_memory_ends_the_run_and_says_that_it_was_the_limit() {
    let seen = play(vec![EchoTask::Datagrams(udp_echo()); 2], 1, 20_000, |config| {
        config.guards.memory_ratio_max = 0.0;
    });
    assert_eq!((seen.end.ending, times(&seen, "abort")), (Ending::Aborted, 1));
    let reported: Vec<_> = seen.events.iter().filter(|event| event.kind == MEMORY_EVENT).collect();
    assert!(reported.len() == 1 && reported[0].detail.contains(" memory"), "{:?}", seen.events);
    assert!(seen.end.ended_at < RunTime(8_000_000), "{:?}", seen.end.ended_at);
}

#[test]
fn a_rate_above_what_is_allowed_ends_the_run() {
    let seen = play(vec![EchoTask::Datagrams(udp_echo()); 4], 1, 20_000, |config| {
        config.guards.mbit_per_s_max = Some(0.05); // each makes 2 × 100 datagrams of 32 bytes a second
    });
    assert_eq!((seen.end.ending, times(&seen, "abort")), (Ending::Aborted, 1));
    assert!(seen.end.why.unwrap().contains("more than the 0.05 Mbit/s allowed, for 3 s"));
    assert!(seen.end.ended_at < RunTime(8_000_000), "{:?}", seen.end.ended_at);
    assert!(seen.participants.values().all(|row| row.failure().is_none()));
}
