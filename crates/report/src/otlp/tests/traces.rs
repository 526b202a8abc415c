//! Traces as they are sent.

use throng_observation::host::HostEventKind;
use throng_observation::run::ParticipantId;
use throng_observation::{FailureReason, Outcome, Phase, RunTime};

use super::rows::{closed, event, failed, hold, host_event, info, participant};
use super::{parsed, resource};
use crate::otlp::{TraceContext, Traces};

/// Of a run whose scenario, folder and begin are known.
fn begun(joins_per_second_max: u32) -> Traces {
    let mut traces = Traces::new(&info(), 7, joins_per_second_max);
    traces.begin("lesson", "runs-7", 1_700_000_000_000_000);
    traces
}

/// The spans that wait, all of them taken out: their names, and the whole documents.
fn taken(traces: &mut Traces) -> (Vec<String>, Vec<serde_json::Value>) {
    let (mut names, mut documents) = (Vec::new(), Vec::new());
    while let Some(batch) = traces.next_batch() {
        let document = parsed(&batch.body(&resource()));
        let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        assert_eq!(spans.len(), batch.spans());
        names.extend(spans.iter().map(|span| span["name"].as_str().unwrap().to_owned()));
        documents.push(document);
    }
    (names, documents)
}

#[test]
fn a_failed_join_a_hold_and_the_run_are_what_the_protocol_says() {
    let mut traces = begun(10);
    let reached = [(Phase::Started, 1_002_000), (Phase::Connected, 1_005_000)];
    // Rows of a participant come again and again; each span is told once.
    traces.take(&participant(3, &reached[..1], None));
    let said = "http://me:hunter2@h/whep?token=hunter2: busy\u{1b}";
    let outcome = failed(FailureReason::HttpStatus(503), said);
    for _ in 0..2 {
        traces.take(&participant(3, &reached, outcome.clone()));
    }
    traces.take(&hold(false));
    traces.take(&hold(true));
    traces.take(&hold(true));
    traces.take(&event(RunTime(4_000_000), "abort", None));
    traces.take(&event(RunTime(4_000_000), "failed", Some(3)));
    traces.take(&host_event(HostEventKind::Mark, "20 viewers"));
    traces.take(&host_event(HostEventKind::LogLine, "password hunter2"));
    traces.take(&closed(9));
    traces.end(None);
    let (_, documents) = taken(&mut traces);
    let expect = parsed(include_str!("traces.json"));
    assert_eq!(documents, [expect], "{documents:#?}");
}

#[test]
fn a_session_has_an_error_only_if_it_failed() {
    let mut traces = begun(10);
    traces.take(&participant(0, &[], Some(Outcome::Completed)));
    traces.take(&participant(1, &[], failed(FailureReason::NotStarted, "the run ended")));
    let (names, documents) = taken(&mut traces);
    assert_eq!(names, ["session", "session"]);
    assert!(!documents[0].to_string().contains("\"status\""), "{documents:#?}");
}

#[test]
fn so_many_joins_of_a_second_are_traced_whoever_asks_first() {
    let mut traces = begun(2);
    let (now, later) = (RunTime(1_000_000), RunTime(2_000_000));
    let asked = |traces: &mut Traces, at| -> Vec<bool> {
        (0..4).map(|number| traces.join(ParticipantId(number), at).is_some()).collect()
    };
    assert_eq!(asked(&mut traces, now), [true, true, false, false]);
    assert_eq!(asked(&mut traces, now), [true, true, false, false], "the same when asked again");
    assert!(traces.join(ParticipantId(9), later).is_some(), "another second");
    (0..4).for_each(|number| traces.take(&participant(number, &[], Some(Outcome::Completed))));
    assert_eq!(taken(&mut traces).0.len(), 2);
    assert!(begun(0).join(ParticipantId(0), now).is_none());
}

#[test]
fn joins_that_are_long_over_are_forgotten_and_have_no_second_trace() {
    let (mut traces, at) = (begun(5_000), RunTime(1_000_000));
    let over = |number| participant(number, &[], Some(Outcome::Completed));
    let is_known = |traces: &mut Traces, number| traces.join(ParticipantId(number), at).is_some();
    assert!(is_known(&mut traces, 0), "it stays");
    (1..=4_096).for_each(|number| traces.take(&over(number)));
    assert!(is_known(&mut traces, 1));
    traces.take(&over(4_097));
    assert!(!is_known(&mut traces, 1) && is_known(&mut traces, 2));
    taken(&mut traces);
    [1, 2, 4_097].into_iter().for_each(|number| traces.take(&over(number)));
    assert!(traces.next_batch().is_none(), "each is told once");
    traces.take(&over(0));
    assert_eq!(taken(&mut traces).0, ["session"]);
    assert!(traces.join(ParticipantId(9_999), RunTime(2_000_000)).is_some(), "a later second");
}

#[test]
fn ids_follow_from_the_run_and_the_participant() {
    let ids = |seed, number| TraceContext::of_join(seed, ParticipantId(number)).traceparent();
    assert_eq!(ids(7, 3), "00-e9a79cb80442adf38b67184c68b8a46d-4ec0e648480409bf-01");
    assert_eq!(ids(7, 3), ids(7, 3));
    assert!(ids(7, 3) != ids(7, 4) && ids(7, 3) != ids(8, 3));
    let trace = begun(1).join(ParticipantId(3), RunTime(0));
    assert_eq!(trace, Some(TraceContext::of_join(7, ParticipantId(3))));
}

#[test]
fn more_spans_than_can_wait_leave_the_newest_and_are_counted() {
    let mut traces = Traces::new(&info(), 7, 5_000);
    let ended = |number| participant(number, &[(Phase::Started, 1_000_000)], None);
    (0..3_000).for_each(|number| traces.take(&ended(number)));
    assert!(traces.next_batch().is_none(), "nobody knows when the run began");
    assert_eq!(traces.dropped(), 3_000 - 2_048);
    traces.begin("lesson", "runs-7", 0);
    let (names, documents) = taken(&mut traces);
    assert_eq!((names.len(), documents.len()), (2_048, 4));
    let last = TraceContext::of_join(7, ParticipantId(2_999)).to_string();
    assert!(documents[3].to_string().contains(&last));
}

#[test]
fn a_run_with_ever_more_events_has_a_bounded_span() {
    let mut traces = begun(0);
    (0..1_000).for_each(|at| traces.take(&event(RunTime(at), "guard", None)));
    traces.end(None);
    let (_, documents) = taken(&mut traces);
    let span = &documents[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["events"].as_array().unwrap().len(), 128);
    assert_eq!(span["droppedEventsCount"], 1_000 - 128);
}
