use throng_observation::run::{CohortId, CrowdRow, GeneratorRow, ParticipantId};
use throng_observation::{
    ExperienceRow, Failure, FailureReason, IceState, Outcome, Phase, SecondClosed,
};

use super::intake::STAGED_MAX;
use super::*;
use crate::rows_tests::Numbers;

pub(super) const LIMITS: MergeLimits =
    MergeLimits { cohorts: 2, second_max: 1_000, participants: 10_000 };

pub(super) fn names(workers: usize) -> Vec<WorkerName> {
    (0..workers).map(|worker| WorkerName(format!("host{worker}"))).collect()
}

/// A merge of some workers, and what it has written.
struct Fleet {
    merger: Merger,
    out: Vec<Row>,
}

impl Fleet {
    fn of(workers: usize) -> Self {
        Self { merger: Merger::new(&names(workers), LIMITS), out: Vec::new() }
    }

    fn take(&mut self, worker: u16, row: Row) -> Taken {
        self.merger.take(WorkerId(worker), row, &mut self.out)
    }

    /// A worker plays a second with so many people who are connected.
    fn second(&mut self, worker: u16, second: i64, people: u32) -> Taken {
        self.take(worker, crowd(second, people));
        self.close(worker, second)
    }

    fn close(&mut self, worker: u16, second: i64) -> Taken {
        self.take(worker, closed(second))
    }

    fn sealed(&self) -> Vec<(i64, bool)> {
        let sealed = self.out.iter().filter_map(|row| match row {
            Row::SecondClosed(closed) => Some((closed.second, closed.is_generator_limited)),
            _ => None,
        });
        sealed.collect()
    }

    fn crowds(&self) -> Vec<CrowdRow> {
        self.out
            .iter()
            .filter_map(|row| if let Row::Crowd(row) = row { Some(*row) } else { None })
            .collect()
    }

    fn counts(&self, worker: u16) -> Counts {
        self.merger.counts(WorkerId(worker))
    }
}

fn closed(second: i64) -> Row {
    let row = ExperienceRow { second, users: 1, ..ExperienceRow::default() };
    Row::SecondClosed(SecondClosed { second, experience: vec![row], is_generator_limited: false })
}

fn crowd(second: i64, people: u32) -> Row {
    let mut row = CrowdRow {
        second,
        started: people,
        connected: people,
        playing: people,
        ..CrowdRow::default()
    };
    row.ice[CrowdRow::ice_index(IceState::Connected)] = people;
    Row::Crowd(row)
}

fn participant(id: u32, outcome: Option<Outcome>) -> Row {
    Row::Participant(Box::new(Numbers(0).participant(id, outcome)))
}

#[test]
fn a_second_is_sealed_when_every_worker_has_passed_it() {
    let mut fleet = Fleet::of(3);
    for second in 0..3 {
        fleet.second(0, second, 5);
    }
    fleet.second(1, 0, 5);
    assert!(fleet.out.is_empty() && fleet.merger.awaited().eq([WorkerId(2)]));
    fleet.second(2, 0, 5);
    assert_eq!(fleet.sealed(), [(0, false)]);
    fleet.merger.finished(WorkerId(2), [], &mut fleet.out);
    fleet.second(1, 1, 5);
    fleet.second(1, 2, 5);
    assert_eq!(fleet.sealed(), [(0, false), (1, false), (2, false)]);
    let connected: Vec<_> = fleet.crowds().iter().map(|row| (row.started, row.connected)).collect();
    assert_eq!(connected, [(15, 15), (15, 10), (15, 10)], "who left remains counted as started");
}

#[test]
fn who_failed_on_a_worker_that_has_finished_is_a_bad_user_until_its_planned_leave() {
    let mut fleet = Fleet::of(2);
    let failed = || Some(Outcome::Failed(Failure::new(FailureReason::Ice, "no pair")));
    for (id, outcome) in
        [(1, failed()), (3, failed()), (5, Some(Outcome::Completed)), (7, failed())]
    {
        assert_eq!(fleet.take(1, participant(id, outcome)), Taken::Yes);
    }
    (0..2).for_each(|second| assert_eq!(fleet.close(1, second), Taken::Yes));
    // Neither the one that left nor another worker's remains; the last should have been served to
    // the end.
    let joins = [(1, Some(2_500_000)), (3, Some(4_000_000)), (5, None), (7, None), (2, None)];
    let joins = joins.map(|(id, leave_at)| PlannedJoin {
        participant: ParticipantId(id),
        cohort: CohortId(0),
        intended_at: RunTime(0),
        leave_at: leave_at.map(RunTime),
    });
    fleet.merger.finished(WorkerId(1), joins, &mut fleet.out);
    (0..6).for_each(|second| assert_eq!(fleet.close(0, second), Taken::Yes));
    let users = |row: &Row| match row {
        Row::SecondClosed(closed) => {
            closed.experience.iter().map(|row| (row.users, row.bad)).collect()
        }
        _ => Vec::new(),
    };
    let users: Vec<(u32, u32)> = fleet.out.iter().flat_map(users).collect();
    assert_eq!(
        users,
        [(2, 0), (2, 0), (3, 2), (3, 2), (2, 1), (2, 1)],
        "its own seconds are as it closed them"
    );
}

#[test]
fn rows_of_a_closed_second_are_late_and_counted() {
    let mut fleet = Fleet::of(2);
    fleet.second(0, 0, 5);
    assert_eq!(fleet.take(0, crowd(0, 5)), Taken::Late);
    assert_eq!(fleet.close(0, 0), Taken::Late);
    assert_eq!(fleet.take(0, crowd(1, 5)), Taken::Yes);
    assert_eq!(fleet.counts(0), Counts { late_rows: 2, ..Counts::default() });
    fleet.merger.finished(WorkerId(0), [], &mut fleet.out);
    assert_eq!(fleet.close(0, 1), Taken::Late);
    assert_eq!(fleet.counts(0), Counts { late_rows: 3, unclosed_rows: 1, ..Counts::default() });
}

#[test]
fn seconds_that_a_worker_left_out_are_marked_and_have_no_gap() {
    let mut fleet = Fleet::of(2);
    (0..5).for_each(|second| assert_eq!(fleet.second(0, second, 1), Taken::Yes));
    fleet.second(1, 0, 10);
    fleet.second(1, 3, 20);
    assert_eq!(fleet.sealed(), [(0, false), (1, true), (2, true), (3, false)]);
    assert_eq!(
        fleet.crowds().iter().map(|row| row.connected).collect::<Vec<_>>(),
        [11, 11, 11, 21]
    );
    assert_eq!(fleet.counts(1).missing_seconds, 2);
}

#[test]
fn participants_of_a_lost_worker_are_lost_by_the_generator_and_nobody_failed() {
    let mut fleet = Fleet::of(2);
    for second in 0..6 {
        fleet.second(0, second, 3);
    }
    for row in
        [participant(1, None), participant(3, None), participant(3, Some(Outcome::Completed))]
    {
        assert_eq!(fleet.take(1, row), Taken::Yes);
    }
    fleet.second(1, 0, 4);
    fleet.second(1, 1, 4);
    fleet.take(1, crowd(2, 4));
    fleet.out.clear();
    let joins = [(1, 0), (3, 0), (5, 3_900_000), (7, 4_100_000)].map(|(id, at)| PlannedJoin {
        participant: ParticipantId(id),
        cohort: CohortId(1),
        intended_at: RunTime(at),
        leave_at: None,
    });
    fleet.merger.lost(WorkerId(1), RunTime(4_000_000), joins, &mut fleet.out);
    let lost: Vec<_> = fleet
        .out
        .iter()
        .filter_map(|row| if let Row::Participant(row) = row { Some(row.clone()) } else { None })
        .collect();
    assert_eq!(lost.iter().map(|row| row.participant.0).collect::<Vec<_>>(), [1, 5]);
    let Row::Participant(known) = participant(1, None) else { panic!() };
    assert_eq!(lost[0].reached, known.reached, "what was known of it remains");
    assert!(known.reached.contains_key(&Phase::FirstFrame));
    for row in &lost {
        assert!(row.was_censored() && row.failure().is_none());
        assert_eq!(row.ended_at, Some(RunTime(4_000_000)));
        let Some(Outcome::Failed(failure)) = &row.outcome else { panic!("{row:?}") };
        assert!(failure.reason == FailureReason::WorkerLost && failure.reason.is_ours());
        assert!(failure.detail.starts_with("host1 was lost at 4.0 s"), "{}", failure.detail);
    }
    assert!(fleet.out.iter().any(|row| matches!(row, Row::Event(event)
        if event.kind == WORKER_LOST_EVENT && event.count == 2 && event.detail.starts_with("host1 was lost"))));
    // Until it was known to be lost the load was not what it should have been.
    assert_eq!(fleet.sealed(), [(2, true), (3, true), (4, true), (5, false)]);
    let last = fleet.crowds()[3];
    assert_eq!((last.started, last.connected, last.playing, last.failed), (7, 3, 3, 0));
    assert_eq!(last.ice[CrowdRow::ice_index(IceState::Closed)], 4);
    assert_eq!(
        fleet.counts(1),
        Counts { unclosed_rows: 1, missing_seconds: 3, ..Counts::default() }
    );
    assert_eq!(fleet.take(1, participant(1, Some(Outcome::Completed))), Taken::Late);
    assert_eq!(
        fleet.take(0, participant(5, None)),
        Taken::Yes,
        "another worker may play them again"
    );
}

#[test]
fn requests_are_the_sums_of_each_workers_last_row() {
    let mut fleet = Fleet::of(2);
    let mut numbers = Numbers(1);
    let mut row = |requests| Row::HttpRequests(Box::new(numbers.requests(2, requests)));
    let rows = [(0, row(3)), (1, row(10)), (0, row(5))];
    rows.into_iter().for_each(|(worker, row)| assert_eq!(fleet.take(worker, row), Taken::Yes));
    let sums = |fleet: &mut Fleet| -> Vec<u64> {
        let rows = std::mem::take(&mut fleet.out);
        rows.iter()
            .filter_map(|row| {
                if let Row::HttpRequests(row) = row { Some(row.counters.requests) } else { None }
            })
            .collect()
    };
    assert!(fleet.out.is_empty());
    (0..2).for_each(|worker| assert_eq!(fleet.close(worker, 0), Taken::Yes));
    assert_eq!(sums(&mut fleet), [15]);
    (0..2).for_each(|worker| assert_eq!(fleet.close(worker, 1), Taken::Yes));
    assert_eq!(sums(&mut fleet), Vec::<u64>::new(), "unchanged");
    fleet.take(1, row(11));
    (0..2).for_each(|worker| fleet.merger.finished(WorkerId(worker), [], &mut fleet.out));
    assert_eq!(sums(&mut fleet), [16]);
}

#[test]
fn events_and_health_name_their_worker() {
    let mut fleet = Fleet::of(2);
    let event = EventRow {
        at: RunTime(1),
        participant: None,
        kind: "generator_limited".into(),
        count: 1,
        detail: "CPU".into(),
    };
    fleet.take(1, Row::Event(event));
    assert!(matches!(&fleet.out[..], [Row::Event(event)] if event.detail == "host1: CPU"));
    for worker in [1, 0] {
        fleet.take(
            worker,
            Row::Generator(GeneratorRow { second: 0, worker: 77, ..GeneratorRow::default() }),
        );
        fleet.close(worker, 0);
    }
    let workers: Vec<_> = fleet
        .out
        .iter()
        .filter_map(|row| if let Row::Generator(row) = row { Some(row.worker) } else { None })
        .collect();
    assert_eq!(workers, [0, 1]);
}

#[test]
fn a_second_that_a_worker_ended_early_is_no_trial() {
    let mut fleet = Fleet::of(2);
    fleet.close(0, 0);
    fleet.take(1, Row::SecondClosed(SecondClosed::default()));
    assert!(
        matches!(fleet.out.last(), Some(Row::SecondClosed(closed)) if closed.experience.is_empty())
    );
}

#[test]
fn rows_that_cannot_be_are_refused_and_counted_for_their_worker() {
    let mut fleet = Fleet::of(2);
    assert_eq!(fleet.take(9, closed(0)), Taken::Refused(Refusal::UnknownWorker));
    let wrong_cohort = Row::Crowd(CrowdRow { cohort: CohortId(2), ..CrowdRow::default() });
    for row in [
        wrong_cohort,
        crowd(-1, 1),
        crowd(1_001, 1),
        closed(i64::MAX),
        closed(-1),
        participant(10_000, None),
    ] {
        assert_eq!(fleet.take(0, row), Taken::Refused(Refusal::OutOfRun));
    }
    assert_eq!(fleet.take(0, Row::Hold(Box::default())), Taken::Refused(Refusal::NotAWorkers));
    fleet.take(1, participant(4, None));
    assert_eq!(fleet.take(0, participant(4, None)), Taken::Refused(Refusal::NotItsParticipant));
    assert_eq!(fleet.counts(0).refused_rows, 8);
    for _ in 0..STAGED_MAX {
        assert_eq!(fleet.take(0, crowd(0, 1)), Taken::Yes);
    }
    assert_eq!(fleet.take(0, crowd(0, 1)), Taken::Refused(Refusal::TooMany));
    assert_eq!(fleet.counts(1), Counts::default());
}
