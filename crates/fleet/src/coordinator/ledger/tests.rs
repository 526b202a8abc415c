use throng_observation::run::{CohortId, CrowdRow, ParticipantId, ParticipantRow};
use throng_observation::{FailureReason, Outcome, SecondClosed};

use super::*;

pub(super) const S: Duration = Duration::from_secs(1);

/// Two workers with a participant each, from now on.
pub(super) fn ledger(now: Instant) -> Ledger {
    let join = |number| PlannedJoin {
        participant: ParticipantId(number),
        cohort: CohortId(0),
        intended_at: RunTime(0),
        leave_at: None,
    };
    let shares = Shares::of(&[1, 1]).expect("two workers");
    let limits = MergeLimits { cohorts: 1, second_max: 100, participants: 2 };
    let names = vec!["a".to_owned(), "b".to_owned()];
    Ledger::new(names, shares, vec![vec![join(0)], vec![join(1)]], limits, now)
}

pub(super) fn pulse(worker: u16) -> Pulse {
    Pulse { worker, ..Pulse::default() }
}

/// A batch with the end of a second.
pub(super) fn second(second: i64) -> Vec<u8> {
    let crowd = CrowdRow { second, playing: 1, ..CrowdRow::default() };
    let closed = SecondClosed { second, ..SecondClosed::default() };
    wire::encode(&[Row::Crowd(crowd), Row::SecondClosed(closed)], WireLimits::default())
        .expect("rows")
}

/// Lets the coordinator look each half second for `length`, while these workers are heard.
pub(super) fn look(
    ledger: &mut Ledger,
    from: Instant,
    length: Duration,
    heard: &[u16],
    out: &mut Vec<Row>,
) -> Instant {
    let mut now = from;
    while now < from + length {
        now += S / 2;
        heard.iter().for_each(|worker| ledger.pulse(&pulse(*worker), now));
        ledger.tick(now, out);
    }
    now
}

fn lost(ledger: &mut Ledger) -> Vec<u16> {
    let notices = ledger.notices().into_iter();
    notices
        .filter(|notice| matches!(notice.what, NoticeKind::Lost(_)))
        .map(|notice| notice.worker)
        .collect()
}

#[test]
fn what_is_not_known_of_a_lost_worker_is_measured() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin), Vec::new());
    [0, 1].iter().for_each(|worker| ledger.rows(*worker, 0, second(0), begin, &mut out));
    // It is heard for 2.5 s, and only its first second came.
    let now = look(&mut ledger, begin, 5 * S / 2, &[0, 1], &mut out);
    look(&mut ledger, now, 5 * S, &[0], &mut out);
    let said = out.iter().find_map(|row| match row {
        Row::Event(event) => Some(event.detail.clone()),
        _ => None,
    });
    let said = said.expect("an event");
    let gap = "1.5 s of it are not known: its last whole second ended at 1.0 s, and it was heard until 2.5 s";
    assert!(said.starts_with("b was lost") && said.ends_with(gap), "{said}");
}

#[test]
fn a_silent_worker_is_lost_and_its_participant_is_nobodys_failure() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin), Vec::new());
    [0, 1].iter().for_each(|worker| ledger.rows(*worker, 0, second(0), begin, &mut out));
    let now = look(&mut ledger, begin, 4 * S, &[0], &mut out);
    assert!(lost(&mut ledger).is_empty());
    look(&mut ledger, now, S, &[0], &mut out);
    assert_eq!(lost(&mut ledger), [1]);
    let of_b = out.iter().find_map(|row| match row {
        Row::Participant(row) if row.participant == ParticipantId(1) => row.outcome.clone(),
        _ => None,
    });
    assert!(matches!(of_b, Some(Outcome::Failed(why)) if why.reason == FailureReason::WorkerLost));
    assert_eq!(ledger.end(), None, "the other still plays");
}

#[test]
fn a_bus_that_is_down_or_a_coordinator_that_stood_still_loses_nobody() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin), Vec::new());
    ledger.bus(false, begin);
    let now = look(&mut ledger, begin, 7 * S, &[], &mut out);
    ledger.bus(true, now);
    let now = look(&mut ledger, now, S, &[0, 1], &mut out);
    // It did not look for a while, and has yet to read what came.
    ledger.tick(now + 20 * S, &mut out);
    look(&mut ledger, now + 20 * S, S, &[0, 1], &mut out);
    assert!(lost(&mut ledger).is_empty());
}

#[test]
fn a_worker_that_has_ended_is_waited_for_until_its_last_batch_is_there() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin), Vec::new());
    for worker in [0, 1] {
        let end = End { ending: Ending::Complete, batches: 2, ..End::default() };
        ledger.pulse(&Pulse { end: Some(end), ..pulse(worker) }, begin);
        ledger.rows(worker, 1, second(1), begin, &mut out);
    }
    ledger.tick(begin, &mut out);
    assert_eq!((ledger.end(), out.len()), (None, 0), "the first batch of each is missing");
    // Each twice, as after a bus that was away.
    for worker in [0, 1, 1, 0] {
        ledger.rows(worker, 0, second(0), begin, &mut out);
    }
    ledger.tick(begin, &mut out);
    let end = ledger.end().expect("all is there");
    assert_eq!((end.ending, end.why), (Ending::Complete, None));
    let playing: Vec<_> = out
        .iter()
        .filter_map(|row| match row {
            Row::Crowd(row) => Some((row.second, row.playing)),
            _ => None,
        })
        .collect();
    assert_eq!(playing, [(0, 2), (1, 2)]);
    assert_eq!([0, 1].map(|worker| ledger.missing(worker)), [None, None]);
}

#[test]
fn a_lie_costs_the_worker_that_told_it() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin), Vec::new());
    let foreign = Row::Participant(Box::new(ParticipantRow {
        participant: ParticipantId(1),
        cohort: CohortId(0),
        intended_at: RunTime(0),
        reached: std::collections::BTreeMap::new(),
        ended_at: None,
        outcome: None,
        local_address: None,
    }));
    let bytes = wire::encode(&[foreign], WireLimits::default()).expect("a row");
    ledger.rows(0, 0, bytes, begin, &mut out);
    assert_eq!(lost(&mut ledger), [0]);
    ledger.rows(1, 0, vec![9, 9, 9], begin, &mut out);
    assert_eq!(lost(&mut ledger), [1]);
    let why = ledger.end().and_then(|end| end.why).unwrap_or_default();
    assert!(why.contains("participant 1, whom it does not play"), "{why}");
}

#[test]
fn who_does_not_end_in_time_is_given_up() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin), Vec::new());
    ledger.end_by(begin + 2 * S);
    ledger.end_by(begin + 9 * S);
    look(&mut ledger, begin, 3 * S, &[0, 1], &mut out);
    assert_eq!(lost(&mut ledger), [0, 1]);
    assert_eq!(ledger.end().map(|end| end.ending), Some(Ending::Aborted));
}

/// Two workers and six participants of a minute, of whom two join each ten seconds; lost ones are
/// given to the other worker.
pub(super) fn reassigning(now: Instant) -> Ledger {
    let shares = Shares::of(&[1, 1]).expect("two workers");
    let at = |number: u32| RunTime(i64::from(number / 2) * 10_000_000);
    let join = |number| PlannedJoin {
        participant: ParticipantId(number),
        cohort: CohortId(0),
        intended_at: at(number),
        leave_at: None,
    };
    let visits = (0..6).map(|number| crate::reassign::Visit {
        participant: ParticipantId(number),
        cohort: CohortId(0),
        at: at(number),
        leave_at: None,
    });
    let deal = Deal::new(&[1, 1], &shares, visits, RunTime(60_000_000), 1);
    let limits = MergeLimits { cohorts: 1, second_max: 100, participants: deal.participants_max() };
    let joins = vec![[0, 2, 4].map(join).to_vec(), [1, 3, 5].map(join).to_vec()];
    Ledger::new(vec!["a".into(), "b".into()], shares, joins, limits, now).reassigning(deal)
}

fn participant(number: u32, outcome: Option<Outcome>) -> Vec<u8> {
    let row = ParticipantRow {
        participant: ParticipantId(number),
        cohort: CohortId(0),
        intended_at: RunTime(0),
        reached: std::collections::BTreeMap::new(),
        ended_at: outcome.as_ref().map(|_| RunTime(1)),
        outcome,
        local_address: None,
    };
    wire::encode(&[Row::Participant(Box::new(row))], WireLimits::default()).expect("a row")
}

fn lost_participants(out: &[Row]) -> Vec<u32> {
    let is_lost = |row: &ParticipantRow| matches!(&row.outcome, Some(Outcome::Failed(why)) if why.reason == FailureReason::WorkerLost);
    out.iter()
        .filter_map(|row| match row {
            Row::Participant(row) if is_lost(row) => Some(row.participant.0),
            _ => None,
        })
        .collect()
}

#[test]
fn the_participants_of_a_lost_worker_are_played_by_the_others_and_lost_once() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (reassigning(begin), Vec::new());
    [0, 1].iter().for_each(|worker| ledger.rows(*worker, 0, second(0), begin, &mut out));
    ledger.rows(1, 1, participant(1, None), begin, &mut out);
    let now = look(&mut ledger, begin, 5 * S, &[0], &mut out);
    assert_eq!(lost_participants(&out), [1], "3 and 5 are to join later");
    let [decision] = ledger.decisions().try_into().expect("one");
    let given = decision.reassignment.expect("the others play them");
    assert!(given.from > RunTime(9_000_000) && given.from < RunTime(11_000_000) && given.to == [0]);
    let what = ledger.notices().into_iter().map(|notice| notice.what).collect::<Vec<_>>();
    let NoticeKind::Reassigned { anew, planned, .. } = what[1] else { panic!("{what:?}") };
    // Participant 3 joins at 10 s, about when others may play it.
    assert_eq!(anew + planned, 3);
    // The other one tells of them by their numbers, and of no one else.
    let number = if anew == 1 { 7 } else { 9 };
    ledger.rows(0, 1, participant(number, None), now, &mut out);
    ledger.rows(0, 2, participant(5, None), now, &mut out);
    assert!(lost(&mut ledger).is_empty());
    ledger.rows(0, 3, participant(1, None), now, &mut out);
    assert_eq!(lost(&mut ledger), [0], "1 stays lost");
}

#[test]
fn who_collects_a_run_comes_to_the_same_by_the_decisions_of_its_coordinator() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (reassigning(begin), Vec::new());
    let rows = [(0, 0, second(0)), (1, 0, second(0)), (1, 1, participant(1, None))];
    rows.iter().for_each(|(worker, number, bytes)| {
        ledger.rows(*worker, *number, bytes.clone(), begin, &mut out);
    });
    look(&mut ledger, begin, 5 * S, &[0], &mut out);
    let [decision] = ledger.decisions().try_into().expect("one");

    let (mut collected, mut again) = (reassigning(begin).collecting(3 * S), Vec::new());
    rows.into_iter().for_each(|(worker, number, bytes)| {
        collected.rows(worker, number, bytes, begin, &mut again);
    });
    collected.decided(&decision, &mut again);
    assert_eq!(collected.notices().len(), 2);
    collected.decided(&decision, &mut again);
    assert!(collected.notices().is_empty(), "the bus had it twice");
    assert_eq!(lost_participants(&again), lost_participants(&out));
    // It decides nothing by itself, and waits as long as it was told.
    collected.rows(0, 1, participant(5, None), begin, &mut again);
    collected.caught_up(begin);
    let now = look(&mut collected, begin, 2 * S, &[], &mut again);
    assert_eq!(collected.lost(), [1]);
    look(&mut collected, now, 2 * S, &[], &mut again);
    assert_eq!((collected.lost(), collected.decisions().len()), (vec![0, 1], 0));
}

#[test]
fn what_a_worker_stored_as_its_end_counts_once_and_after_all_its_rows() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin).collecting(60 * S), Vec::new());
    let end = End {
        ending: Ending::Interrupted,
        why: Some("no beats".into()),
        batches: 1,
        ..End::default()
    };
    for worker in [0, 1] {
        (0..2).for_each(|_| ledger.ends(worker, &end, begin));
        ledger.tick(begin, &mut out);
        assert_eq!(ledger.end(), None);
        ledger.rows(worker, 0, second(0), begin, &mut out);
    }
    ledger.tick(begin, &mut out);
    assert_eq!(ledger.notices().len(), 2);
    let end = ledger.end().expect("both have ended");
    assert_eq!((end.ending, end.why.as_deref()), (Ending::Interrupted, Some("worker a: no beats")));
    assert!(ledger.lost().is_empty());
}

#[test]
fn who_collects_a_run_counts_no_silence_before_it_has_read_what_was_there() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin).collecting(Duration::ZERO), Vec::new());
    let end = End { batches: 1, ..End::default() };
    ledger.ends(0, &end, begin);
    // Slowly: neither is the one silent nor are the last rows of the other late.
    let now = look(&mut ledger, begin, 40 * S, &[], &mut out);
    assert!(ledger.lost().is_empty());
    ledger.rows(0, 0, second(0), now, &mut out);
    ledger.caught_up(now);
    look(&mut ledger, now, S, &[], &mut out);
    assert_eq!(ledger.lost(), [1]);
    assert!(ledger.end().is_some());
}

#[test]
fn last_rows_that_do_not_come_are_waited_for_from_when_all_was_read() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin).collecting(S), Vec::new());
    ledger.ends(0, &End { batches: 9, ..End::default() }, begin);
    let now = look(&mut ledger, begin, 40 * S, &[], &mut out);
    ledger.caught_up(now);
    let now = look(&mut ledger, now, LAST_ROWS_WITHIN - S, &[], &mut out);
    assert_eq!(ledger.lost(), [1]);
    look(&mut ledger, now, 2 * S, &[], &mut out);
    assert_eq!(ledger.lost(), [0, 1]);
}

#[test]
fn a_worker_that_is_heard_and_never_ends_does_not_keep_whoever_collects() {
    let begin = Instant::now();
    let (mut ledger, mut out) = (ledger(begin).collecting(2 * S), Vec::new());
    let now = look(&mut ledger, begin, 100 * S, &[0, 1], &mut out);
    ledger.caught_up(now);
    let now = look(&mut ledger, now, COLLECTED_WITHIN + 2 * S, &[0, 1], &mut out);
    assert!(ledger.lost().is_empty());
    look(&mut ledger, now, S, &[0, 1], &mut out);
    assert_eq!(ledger.lost(), [0, 1]);
}

#[test]
fn the_last_clock_is_kept_and_a_contradiction_is_told_once() {
    let begin = Instant::now();
    let mut ledger = ledger(begin);
    assert_eq!(ledger.clock(0), None, "nothing was heard");
    let said =
        |basis, bound_us| ClockSaid { offset_us: 7, bound_us, basis, ..ClockSaid::default() };
    let all = [
        said(ClockBasis::Contradicted, 5),
        said(ClockBasis::Exchanges, 6),
        said(ClockBasis::Contradicted, 900),
    ];
    for clock in all {
        ledger.pulse(&Pulse { clock, ..pulse(0) }, begin);
    }
    let contradicted = Notice { worker: 0, what: NoticeKind::ClockContradicted };
    assert_eq!(ledger.notices(), [contradicted]);
    assert_eq!(ledger.clock(0), Some(all[2]));
    ledger.pulse(&Pulse { clock: said(ClockBasis::Exchanges, u64::MAX), ..pulse(0) }, begin);
    assert_eq!((ledger.clock(0), ledger.clock(9)), (None, None), "no knowledge, no worker");
}
