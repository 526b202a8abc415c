//! What servers repeat of what they were told.

use std::sync::mpsc;

use throng_net::Waker;
use throng_observation::run::{CohortId, ParticipantId};
use throng_observation::{
    Failure, FailureReason, HttpRequestCounters, Observation, RequestOutcome,
};

use super::*;
use crate::requests::RequestKind;

/// A collector of a run with one participant, and its rows.
fn collector(secrets: &[&str]) -> (Collector, mpsc::Receiver<Row>) {
    let join = Join {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        place: 0,
        at: RunTime(0),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let (rows, written) = mpsc::sync_channel(1 << 12);
    let config = CollectorConfig {
        addresses: Arc::default(),
        clock: RunClock { start: Instant::now() },
        ends_at: RunTime(60_000_000),
        cohorts: 1,
        control: Arc::new(Control::new(Vec::<Arc<Waker>>::new(), 1)),
        plan: [join].into(),
        worst: 5,
        guards: Guards::default(),
        bad_if: BadIf::default(),
        secrets: secrets.iter().map(|secret| Secret::new(*secret)).collect(),
        live: Arc::default(),
        rows,
    };
    (Collector::new(config), written)
}

#[test]
fn what_servers_repeat_of_the_secrets_of_a_run_is_not_told() {
    let said = "401: no hunter2, nor abc";
    let rows_of = |secrets: &[&str]| {
        let (mut collector, written) = collector(secrets);
        let at = collector.config.clock.instant(RunTime(1_000));
        collector.take(DriverEvent::Started { id: 0, at });
        let observation = Observation::ProtocolAnomaly { place: "janus", detail: said.into() };
        collector.take(DriverEvent::Observed { id: 0, at, observation });
        let failure = Failure::new(FailureReason::HttpStatus(401), said);
        collector.ended(0, at, &Outcome::Failed(failure));
        let live = format!("{:?}", collector.snapshot);
        drop(collector);
        (format!("{:?}", written.iter().collect::<Vec<Row>>()), live)
    };
    let (rows, _) = rows_of(&[]);
    assert!(rows.matches(said).count() >= 3, "an anomaly, a failure, its event: {rows}");
    // What is short is a part of many words.
    let (rows, live) = rows_of(&["hunter2", "abc"]);
    assert!(rows.matches("401: no …, nor abc").count() >= 3, "{rows}");
    assert!(!rows.contains("hunter2") && !live.contains("hunter2"), "{rows} {live}");
}

/// A server redirects to places that have the tokens of its viewers.
#[test]
fn requests_of_paths_with_secrets_are_counted_and_show_none() {
    let (mut collector, written) = collector(&["hunter2", "hunter3"]);
    for path in ["/hunter2/x", "/hunter3/x", "/y"] {
        let (mut requests, now) = (RequestTable::default(), Instant::now());
        let (method, outcome) = (http::Method::GET, RequestOutcome::Status(200));
        let kind = RequestKind { method: &method, outcome, version: 1 };
        let counters = HttpRequestCounters { requests: 1, ..HttpRequestCounters::default() };
        requests.add(("a", path), kind, (counters, now, now));
        collector.take(DriverEvent::Requests(requests));
    }
    collector.write_requests();
    drop(collector);
    let counted = written.iter().filter_map(|row| match row {
        Row::HttpRequests(row) => Some((row.key.path, row.counters.requests)),
        _ => None,
    });
    let mut counted: Vec<_> = counted.collect();
    counted.sort();
    assert_eq!(counted, [("/y".to_owned(), 1), ("/…/x".to_owned(), 2)]);
}
