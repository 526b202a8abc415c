//! Rows of runs and hosts.

use std::collections::BTreeMap;

use throng_observation::host::{
    HostEvent, HostEventKind, HostId, HostInfo, HostRow, HostSample, HostSeries, ProcessEvent,
    SeriesId,
};
use throng_observation::run::{
    CohortId, EventRow, GeneratorRow, ParticipantId, ParticipantRow, Row, SeriesRow,
};
use throng_observation::{
    Failure, FailureReason, HoldOutcome, HoldRow, HttpRequestCounters, HttpRequestKey,
    HttpRequestRow, MediaKind, Outcome, Phase, PlaybackRow, RequestOutcome, RunTime, SecondClosed,
    TrackCounters,
};

use crate::ObjectiveResult;

pub(super) fn series(second: i64, cohort: u16, packets_original: u64) -> Row {
    let counters = TrackCounters { packets_original, ..TrackCounters::default() };
    let mut row = SeriesRow {
        second,
        cohort: CohortId(cohort),
        kind: Some(MediaKind::Video),
        tracks: 1,
        counters,
        ..SeriesRow::default()
    };
    row.relative_delay_us.record(3_000);
    Row::Series(Box::new(row))
}

pub(super) fn playback(second: i64, cohort: u16) -> Row {
    let mut row =
        PlaybackRow { second, cohort: CohortId(cohort), players: 1, ..PlaybackRow::default() };
    row.buffer_us.record(9_000_000);
    row.latency_us.record(12_000_000);
    Row::Playback(Box::new(row))
}

pub(super) fn closed(second: i64) -> Row {
    Row::SecondClosed(SecondClosed { second, ..SecondClosed::default() })
}

fn participant(id: u32, cohort: u16) -> ParticipantRow {
    ParticipantRow {
        participant: ParticipantId(id),
        cohort: CohortId(cohort),
        intended_at: RunTime(1_000_000),
        reached: BTreeMap::new(),
        ended_at: None,
        outcome: None,
        local_address: None,
    }
}

pub(super) fn joined(id: u32, us: i64) -> Row {
    let reached = BTreeMap::from([(Phase::FirstFrame, RunTime(1_000_000 + us))]);
    Row::Participant(Box::new(ParticipantRow { reached, ..participant(id, 0) }))
}

pub(super) fn failed(id: u32, cohort: u16, status: u16) -> Row {
    let failure = Failure::new(FailureReason::HttpStatus(status), "refused");
    let outcome = Some(Outcome::Failed(failure));
    Row::Participant(Box::new(ParticipantRow { outcome, ..participant(id, cohort) }))
}

pub(super) fn requests(path: &str, requests: u64) -> Row {
    let key = HttpRequestKey {
        host: "127.0.0.1".into(),
        path: path.into(),
        method: "GET".into(),
        outcome: RequestOutcome::Status(404),
        version: 1,
    };
    let counters = HttpRequestCounters { requests, ..HttpRequestCounters::default() };
    let (first_at, last_at) = (RunTime(0), RunTime(1));
    Row::HttpRequests(Box::new(HttpRequestRow { key, counters, first_at, last_at }))
}

pub(super) fn ended_hold(number: u32) -> Row {
    let until = Some(RunTime(1_000_000));
    let passed = [HoldOutcome::Yes; 3];
    Row::Hold(Box::new(HoldRow { number, until, passed, ..HoldRow::default() }))
}

pub(super) fn objective(text: &str) -> ObjectiveResult {
    ObjectiveResult {
        text: text.into(),
        measured: None,
        measured_text: String::new(),
        result: "not_measured".into(),
        met: false,
    }
}

/// The row of a process that plays the crowd.
pub(super) fn process(second: i64, worker: u16, rss_bytes: u64) -> Row {
    let other = GeneratorRow::default();
    Row::Generator(GeneratorRow { second, worker, rss_bytes, open_fds: 7, ..other })
}

pub(super) fn sample(id: u32, at_ms: i64, value: f64) -> HostRow {
    HostRow::Sample(HostSample { series: SeriesId(id), at: RunTime(at_ms * 1_000), value })
}

/// A value that was so for a second.
fn second(id: u32, value: f64) -> [HostRow; 2] {
    [0, 1_000].map(|at_ms| sample(id, at_ms, value))
}

/// Something that happened in a run.
pub(super) fn moment(kind: &str) -> Row {
    let (at, kind, detail) = (RunTime(0), kind.to_owned(), "".into());
    Row::Event(EventRow { at, participant: None, kind, count: 1, detail })
}

pub(super) fn event(kind: HostEventKind, process: &str) -> HostRow {
    let about = ProcessEvent { target: 0, name: process.into(), pid: 7, end: None };
    let event = HostEvent::new(HostId(0), RunTime(0), kind, "");
    HostRow::Event(HostEvent { process: Some(about), ..event })
}

pub(super) fn begun(id: u32, host: u8, metric: &str, labels: &[(&str, &str)]) -> HostRow {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    HostRow::Series(HostSeries {
        id: SeriesId(id),
        host: HostId(host),
        metric: metric.into(),
        labels: labels.collect(),
        limit: Some(2.0),
        ..HostSeries::default()
    })
}

/// A machine of this name: its cores are busy, and it has a hundred of everything.
pub(super) fn host(host: u8, name: &str) -> Vec<HostRow> {
    let info = HostInfo { host: HostId(host), name: name.into(), ..HostInfo::default() };
    let id = 10_000 * (u32::from(host) + 1);
    let mut rows = vec![
        HostRow::Info(info),
        begun(id, host, "host.cpu.busy", &[]),
        begun(id + 1, host, "endpoint.of_others", &[("a b", "c")]),
    ];
    rows.extend(second(id, 1.5).into_iter().chain(second(id + 1, 1.0)));
    for (id, part) in (id + 2..).zip(0..100) {
        let (metric, label) = [("core.busy", "cpu"), ("nic.rx_bytes", "interface")][part % 2];
        let value = format!("{name} {part}");
        rows.push(begun(id, host, metric, &[(label, value.as_str())]));
        rows.extend(second(id, 1.0));
    }
    rows
}

/// So many threads of a process of host 0, numbered from 1,000.
pub(super) fn threads(process: &str, count: u32) -> Vec<HostRow> {
    let thread = |n: u32| {
        let (id, thread) = (n.to_string(), format!("worker {n}"));
        let (id, thread) = (id.as_str(), thread.as_str());
        let labels = [("process", process), ("pid", id), ("tid", id), ("thread", thread)];
        let begun = begun(1_000 + n, 0, "thread.cpu", &labels);
        std::iter::once(begun).chain(second(1_000 + n, 0.25)).collect::<Vec<_>>()
    };
    (0..count).flat_map(thread).collect()
}
