//! Whole runs against servers on loopback, with a participant made for the test: the engine without
//! a protocol.

mod downloads;
mod echo;
mod guards;
mod hostile_live;
mod play;
mod players;
mod rings;
mod ways;

use std::time::Duration;

use echo::{EchoTask, Panics, http_server, silent_server, tls_server, udp_echo, ws_server};
use play::{play, reason, times};
use throng_observation::run::Ending;
use throng_observation::{FailureReason, Outcome, Phase, RunTime};

#[test]
fn participants_join_on_schedule_receive_and_leave_in_order() {
    let server = udp_echo();
    let seen = play(vec![EchoTask::Datagrams(server); 10], 50, 2500, |_| {});
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
    assert_eq!(
        (last.intended, last.started, last.left, last.failed, last.connected),
        (10, 10, 10, 0, 0)
    );
    assert!(
        seen.crowd.iter().any(|row| row.playing == 10 && row.connected == 10),
        "{:?}",
        seen.crowd
    );
    assert!(seen.received > 500, "{} datagrams", seen.received);
}

#[test]
fn a_join_that_hangs_delays_no_other_and_is_reported_at_the_end() {
    let (silent, server) = (silent_server(), udp_echo());
    let mut asks = vec![EchoTask::Datagrams(server); 6];
    asks[1] = EchoTask::WebSocket(format!("ws://{silent}/"));
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
        (EchoTask::WebSocket(format!("ws://{refused}/")), Some(FailureReason::Tcp)),
        (EchoTask::WebSocket(format!("ws://{http}/missing")), Some(FailureReason::HttpStatus(404))),
        (EchoTask::WebSocket(format!("ws://{silent}/")), Some(FailureReason::SignallingTimeout)),
        (EchoTask::WebSocket(format!("wss://{tls}/")), Some(FailureReason::Tls)),
        (EchoTask::WebSocket("ws://no.such.name.invalid/".into()), Some(FailureReason::Dns)),
        (EchoTask::WebSocket("ws://192.0.2.1/".into()), Some(FailureReason::NotAllowed)),
        (EchoTask::Fetch(format!("http://{http}/missing")), Some(FailureReason::HttpStatus(404))),
        (EchoTask::Fetch(format!("http://{http}/long")), Some(FailureReason::Protocol)),
        (EchoTask::Fetch(format!("http://{refused}/")), Some(FailureReason::Tcp)),
        (EchoTask::Fetch(format!("http://{silent}/")), Some(FailureReason::SignallingTimeout)),
        (EchoTask::Fetch("http://192.0.2.1/".into()), Some(FailureReason::NotAllowed)),
        (EchoTask::Datagrams("192.0.2.1:9".parse().unwrap()), Some(FailureReason::NotAllowed)),
        (EchoTask::Fetch(format!("http://{http}/")), None),
        (EchoTask::WebSocket(format!("ws://{ws}/")), None),
    ];
    let asks = cases.iter().map(|(ask, _)| ask.clone()).collect();
    let seen = play(asks, 1, 3000, |config| config.body_bytes_max = 1000);
    for (who, (ask, expect)) in (0..).zip(&cases) {
        assert_eq!(
            reason(&seen, who),
            expect.as_ref(),
            "{ask:?}: {:?}",
            seen.participants[&who].outcome
        );
    }
    let failed = cases.iter().filter(|(_, expect)| expect.is_some()).count();
    assert_eq!(times(&seen, "failed") as usize, failed);
}

#[test]
fn several_threads_share_a_crowd() {
    let server = udp_echo();
    let seen =
        play(vec![EchoTask::Datagrams(server); 40], 10, 2500, |config| config.threads = Some(2));
    assert!(seen.participants.values().all(|row| row.outcome == Some(Outcome::Completed)));
    assert_eq!(seen.participants.len(), 40);
    assert!(
        seen.crowd.iter().any(|row| row.playing == 40 && row.connected == 40),
        "{:?}",
        seen.crowd
    );
    for thread in [Some(0), Some(1)] {
        let sent: u64 =
            seen.health.iter().filter(|row| row.thread == thread).map(|row| row.sent_bytes).sum();
        // 20 participants, 100 datagrams of 4 + 28 bytes a second, for two seconds.
        assert!(sent > 20 * 100 * 32, "thread {thread:?} sent {sent} bytes");
    }
}

#[test]
fn a_participant_leaves_at_its_time_and_the_others_stay() {
    let seen = play(vec![EchoTask::Datagrams(udp_echo()); 4], 0, 2200, |config| {
        config.joins[1].leave_at = Some(RunTime(500_000));
        config.joins[2].leave_at = Some(RunTime(1_500_000));
    });
    for (who, left_ms) in [(0, 2200.0), (1, 500.0), (2, 1500.0), (3, 2200.0)] {
        let row = &seen.participants[&who];
        assert_eq!(row.outcome, Some(Outcome::Completed), "{who}");
        let late_ms = row.ended_at.unwrap().as_millis_f64() - left_ms;
        assert!((0.0..300.0).contains(&late_ms), "{who} left {late_ms} ms late");
    }
    let left: Vec<_> = seen.crowd.iter().map(|row| (row.second, row.left, row.connected)).collect();
    assert_eq!(left[..3], [(0, 1, 3), (1, 2, 2), (2, 4, 0)]);
}

#[test]
fn a_participant_that_played_and_gets_no_leave_response_has_completed() {
    let seen = play(vec![EchoTask::Mute(udp_echo()); 2], 1, 600, |_| {});
    for row in seen.participants.values() {
        assert_eq!(row.outcome, Some(Outcome::Completed));
    }
    assert_eq!((times(&seen, "leave_unanswered"), times(&seen, "failed")), (2, 0));
}

#[test]
fn one_that_panics_ends_alone_and_says_where() {
    let server = udp_echo();
    for place in [Panics::Handling, Panics::Polling] {
        let mut asks = vec![EchoTask::Datagrams(server); 10];
        asks[4] = EchoTask::Panic(server, 30, place);
        let seen = play(asks, 10, 2500, |config| config.threads = Some(1));
        assert_eq!((seen.end.ending, &seen.end.why), (Ending::Complete, &None));
        for (who, row) in &seen.participants {
            assert_eq!(
                row.outcome == Some(Outcome::Completed),
                *who != 4,
                "{who}: {:?}",
                row.outcome
            );
        }
        let Some(Outcome::Failed(failure)) = &seen.participants[&4].outcome else {
            panic!("it went on")
        };
        assert_eq!(failure.reason, FailureReason::InternalError);
        for words in ["a defect in throng", "tests/run/echo.rs:", "packet 30 was one too many"] {
            assert!(failure.detail.contains(words), "{}", failure.detail);
        }
        assert_eq!(times(&seen, "failed"), 1, "{:?}", seen.events);
        // The nine others continue to play.
        let last = seen.crowd.iter().rfind(|row| row.second == 1).unwrap();
        assert_eq!((last.playing, last.connected, last.failed), (9, 9, 1), "{:?}", seen.crowd);
    }
}

#[test]
fn one_that_cannot_be_made_for_a_panic_fails_alone() {
    let joins = (0..4)
        .map(|n| throng_engine::Join {
            participant: throng_observation::run::ParticipantId(n),
            cohort: throng_observation::run::CohortId(0),
            place: n,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        })
        .collect();
    let reach: throng_engine::Reach = std::sync::Arc::new(|_, to| to.ip().is_loopback());
    let config = throng_engine::RunConfig::new(joins, RunTime(700_000), reach);
    let server = udp_echo();
    let factory =
        move |join: &throng_engine::Join| -> Box<dyn throng_protocol::participant::Participant> {
            assert!(join.participant.0 != 2, "there is no participant number two");
            Box::new(echo::Echo::new(EchoTask::Datagrams(server)))
        };
    let (rows, written) = std::sync::mpsc::sync_channel(10_000);
    let end = throng_engine::run(config, std::sync::Arc::new(factory), rows).unwrap().wait();
    assert_eq!(end.ending, Ending::Complete);
    let mut outcomes = std::collections::BTreeMap::new();
    for row in written {
        if let throng_observation::run::Row::Participant(row) = row {
            outcomes.insert(row.participant.0, row.failure().cloned());
        }
    }
    let failed = Some(FailureReason::InternalError);
    assert_eq!(outcomes.into_values().collect::<Vec<_>>(), [None, None, failed, None]);
}
