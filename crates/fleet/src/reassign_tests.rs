use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const S: i64 = 1_000_000;

fn visit(number: u32, at_s: i64, leave_at_s: Option<i64>) -> Visit {
    Visit {
        participant: ParticipantId(number),
        cohort: CohortId(0),
        at: RunTime(at_s * S),
        leave_at: leave_at_s.map(|at| RunTime(at * S)),
    }
}

fn deal(weights: &[u32], visits: impl IntoIterator<Item = Visit>) -> Deal {
    Deal::new(weights, &Shares::of(weights).unwrap(), visits, RunTime(100 * S), 2)
}

fn gone(number: u32, of: u16, to: &[u16], from_s: i64) -> Reassignment {
    Reassignment { number, of, to: to.to_vec(), from: RunTime(from_s * S), ended: Vec::new() }
}

fn numbers(moved: &[Dealt]) -> Vec<u32> {
    moved.iter().map(|dealt| dealt.visit.participant.0).collect()
}

#[test]
fn who_comes_later_keeps_its_number_and_who_was_there_joins_anew_one_after_the_other() {
    let mut deal = deal(&[1, 1], (0..10).map(|number| visit(number, i64::from(number) * 10, None)));
    let moved = deal.make(&gone(1, 1, &[0], 45));
    // Of 1, 3, 5, 7 and 9 the first two were there.
    assert_eq!(numbers(&moved), [11, 13, 5, 7, 9]);
    assert_eq!(
        moved.iter().map(Dealt::is_anew).collect::<Vec<_>>(),
        [true, true, false, false, false]
    );
    let at: Vec<i64> = moved.iter().map(|dealt| dealt.visit.at.0).collect();
    assert_eq!(at, [45 * S, 45 * S + S / 2, 50 * S, 70 * S, 90 * S]);
    assert!(moved.iter().all(|dealt| dealt.worker == 0));
    assert_eq!((deal.of(0).count(), deal.of(1).count()), (10, 0));
}

#[test]
fn who_had_left_or_ended_by_itself_does_not_join_anew() {
    let visits =
        [visit(0, 0, None), visit(1, 0, Some(20)), visit(2, 0, None), visit(3, 0, Some(40))];
    let visits = visits.into_iter().chain([visit(4, 0, None), visit(5, 0, None)]);
    let mut deal = deal(&[1, 1], visits);
    let moved = deal.make(&Reassignment { ended: vec![5], ..gone(1, 1, &[0], 30) });
    assert_eq!(numbers(&moved), [9]);
    assert_eq!(moved[0].visit.leave_at, Some(RunTime(40 * S)), "its leave stays the planned one");
}

#[test]
fn what_comes_twice_or_before_its_turn_changes_nothing() {
    let mut deal = deal(&[1, 1, 1], (0..6).map(|number| visit(number, 50, None)));
    assert!(deal.make(&gone(2, 1, &[0, 2], 10)).is_empty());
    assert_eq!(deal.make(&gone(1, 1, &[0, 2], 10)).len(), 2);
    assert!(deal.make(&gone(1, 1, &[0, 2], 10)).is_empty());
    assert!(deal.make(&gone(2, 0, &[], 20)).is_empty(), "nobody is left");
    assert_eq!(deal.made(), 1);
}

#[test]
fn two_workers_that_are_lost_at_once_lose_each_participant_once() {
    let mut deal = deal(&[1, 1, 1], (0..9).map(|number| visit(number, 0, None)));
    let first = deal.make(&gone(1, 0, &[1, 2], 10));
    let second = deal.make(&gone(2, 1, &[2], 10));
    assert_eq!(numbers(&first), [9, 12, 15]);
    // Those that worker 1 had just got have not joined: they keep their numbers.
    assert_eq!(numbers(&second).into_iter().filter(|number| (9..18).contains(number)).count(), 2);
    assert!(deal.visits.iter().all(|dealt| dealt.worker == 2));
}

#[test]
fn who_joins_anew_after_two_losses_still_joins_one_after_the_other() {
    let mut deal = deal(&[1, 1, 1], (0..9).map(|number| visit(number, 0, None)));
    let mut moved = deal.make(&gone(1, 0, &[1, 2], 10));
    let second = deal.make(&gone(2, 1, &[2], 10));
    moved.extend(second.into_iter().filter(|dealt| dealt.visit.participant.0 >= 18));
    let mut at: Vec<i64> = moved.iter().map(|dealt| dealt.visit.at.0 * 2 / S).collect();
    at.sort_unstable();
    assert_eq!(at, [20, 21, 22, 23, 24, 25]);
}

#[test]
fn the_rates_of_those_who_play_are_together_no_more_than_that_of_the_plan() {
    let shares = Shares::of(&[1, 2, 5]).unwrap();
    let rates = |joins_per_s: u32, players: &[u16]| {
        let deal = Deal::new(&[1, 2, 5], &shares, [], RunTime(S), joins_per_s);
        players
            .iter()
            .map(|worker| deal.rate(*worker, players))
            .map(|r| (r.joins, r.within_us))
            .collect()
    };
    let all: Vec<(usize, i64)> = rates(20, &[0, 1, 2]);
    assert_eq!(all, [(2, S), (5, S), (12, S)]);
    let two: Vec<(usize, i64)> = rates(20, &[0, 1]);
    assert_eq!(two, [(6, S), (13, S)]);
    let slow: Vec<(usize, i64)> = rates(2, &[0, 1, 2]);
    assert_eq!(slow, [(1, 4 * S), (1, 2 * S), (1, S)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn each_number_has_one_worker_and_everybody_who_should_be_there_is_played_by_one_that_is_there(
        weights in prop::collection::vec(1..9_u32, 2..6),
        stays in prop::collection::vec((0..90_i64, prop::option::of(1..60_i64)), 1..60),
        losses in prop::collection::vec((any::<prop::sample::Index>(), 0..40_i64), 1..5),
    ) {
        let mut stays = stays;
        stays.sort_unstable();
        let visits: Vec<Visit> = (0..)
            .zip(&stays)
            .map(|(number, (at, stay))| visit(number, *at, stay.map(|stay| at + stay)))
            .collect();
        let (mut ours, mut theirs) = (deal(&weights, visits.clone()), deal(&weights, visits.clone()));
        let mut left: Vec<u16> = (0..weights.len() as u16).collect();
        let mut owners: BTreeMap<u32, BTreeSet<u16>> = BTreeMap::new();
        let (mut from, mut number) = (0, 0);
        for (which, later) in losses {
            if left.len() == 1 {
                break;
            }
            let lost = left.remove(which.index(left.len()));
            (from, number) = (from + later, number + 1);
            let reassignment = gone(number, lost, &left, from);
            let moved = ours.make(&reassignment);
            theirs.make(&reassignment);
            prop_assert!(moved.is_sorted_by_key(|dealt| dealt.visit.at));
            for dealt in &moved {
                prop_assert!(left.contains(&dealt.worker) && dealt.visit.at >= RunTime(from * S));
                prop_assert!(dealt.visit.participant.0 < ours.participants_max());
                prop_assert!(dealt.visit.leave_at.is_none_or(|leave_at| leave_at > dealt.visit.at));
                if dealt.is_anew() {
                    owners.entry(dealt.visit.participant.0).or_default().insert(dealt.planned.0 as u16);
                }
            }
        }
        prop_assert_eq!(&ours.visits, &theirs.visits);
        // No number stands for two participants.
        prop_assert!(owners.values().all(|of| of.len() == 1));
        let mut numbers: Vec<u32> = ours.visits.iter().map(|dealt| dealt.visit.participant.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), visits.len());
        // Who is to come, or to stay beyond the last join anew, is with a worker that is there.
        let settled = RunTime((from + 60) * S);
        for dealt in ours.visits.iter().filter(|dealt| dealt.visit.leave_at.is_none_or(|at| at > settled)) {
            if settled < RunTime(100 * S) {
                prop_assert!(left.contains(&dealt.worker), "{:?}", dealt);
            }
        }
    }
}
