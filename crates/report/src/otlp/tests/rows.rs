//! Rows of a search.

use std::collections::BTreeMap;

use throng_observation::host::{HostEvent, HostEventKind, HostId, HostRow};
use throng_observation::run::{CohortId, EventRow, ParticipantId, ParticipantRow, Row, RunInfo};
use throng_observation::{
    Failure, FailureReason, HoldOutcome, HoldRow, Outcome, Phase, Purpose, RunTime, SecondClosed,
};

pub(super) fn info() -> RunInfo {
    RunInfo {
        cohorts: vec!["viewers".into()],
        target: "whep+http://h/whep".into(),
        ..RunInfo::default()
    }
}

/// A participant that is to join at 1 s.
pub(super) fn participant(
    number: u32,
    reached_us: &[(Phase, i64)],
    outcome: Option<Outcome>,
) -> Row {
    let reached: BTreeMap<Phase, RunTime> =
        reached_us.iter().map(|(phase, us)| (*phase, RunTime(*us))).collect();
    Row::Participant(Box::new(ParticipantRow {
        participant: ParticipantId(number),
        cohort: CohortId(0),
        intended_at: RunTime(1_000_000),
        reached,
        ended_at: outcome.is_some().then_some(RunTime(1_500_000)),
        outcome,
        local_address: None,
    }))
}

pub(super) fn failed(reason: FailureReason, detail: &str) -> Option<Outcome> {
    Some(Outcome::Failed(Failure::new(reason, detail)))
}

pub(super) fn hold(has_ended: bool) -> Row {
    Row::Hold(Box::new(HoldRow {
        number: 0,
        repeat: 1,
        purpose: Purpose::Bisect,
        users: 20,
        seconds: 8,
        until: has_ended.then_some(RunTime(9_000_000)),
        passed: [HoldOutcome::No; 3],
        why: Some("bad seconds".into()),
        ..HoldRow::default()
    }))
}

pub(super) fn closed(second: i64) -> Row {
    Row::SecondClosed(SecondClosed { second, ..SecondClosed::default() })
}

pub(super) fn event(at: RunTime, kind: &str, participant: Option<u32>) -> Row {
    Row::Event(EventRow {
        at,
        participant: participant.map(ParticipantId),
        kind: kind.into(),
        count: 1,
        detail: "memory".into(),
    })
}

pub(super) fn host_event(kind: HostEventKind, detail: &str) -> Row {
    let at = RunTime(5_000_000);
    Row::Host(HostRow::Event(HostEvent::new(HostId(0), at, kind, detail)))
}
