use super::*;

fn crowd(fixed: u32) -> Crowd {
    of(LoadShape::Cohort { fixed: vec![(CohortId(1), fixed)], varying: CohortId(0) })
}

fn of(shape: LoadShape) -> Crowd {
    Crowd::new(CrowdConfig {
        shape,
        joins_per_s: 10.0,
        source_ips: Vec::new(),
        patience: Duration::from_secs(3),
        varying_from: RunTime(0),
    })
}

fn failed(who: u32) -> Failed {
    Failed { all: [ParticipantId(who)].into(), by_generator: [ParticipantId(who)].into() }
}

fn present(crowd: &Crowd) -> Vec<u32> {
    crowd.slots.iter().flatten().map(|participant| participant.0).collect()
}

/// Adjusts the crowd; returns the added participants with their cohorts, and the removed ones.
fn aim(crowd: &mut Crowd, wants: u32, at_ms: i64, next: &mut u32) -> (Vec<(u16, i64)>, Vec<u32>) {
    let (mut called, mut dismissed) = (Vec::new(), Vec::new());
    crowd.adjust(wants, RunTime(at_ms * 1000), |step| match step {
        CrowdAction::Call { cohort, at, .. } => {
            called.push((cohort.0, at.0 / 1000));
            *next += 1;
            Some(ParticipantId(*next - 1))
        }
        CrowdAction::Dismiss(participant) => {
            dismissed.push(participant.0);
            None
        }
    });
    crowd.confirmed(RunTime(at_ms * 1000));
    (called, dismissed)
}

#[test]
fn the_fixed_cohorts_come_first_and_joins_keep_their_rate() {
    let (mut crowd, mut next) = (crowd(1), 0);
    let (called, _) = aim(&mut crowd, 4, 0, &mut next);
    assert_eq!(called, [(1, 0)]);
    let (called, _) = aim(&mut crowd, 4, 250, &mut next);
    assert_eq!(called, [(0, 100), (0, 200)]);
    assert!(!crowd.was_complete(RunTime(100_000_000)));
    aim(&mut crowd, 4, 300, &mut next);
    assert!(!crowd.was_complete(RunTime(4_200_000)) && crowd.was_complete(RunTime(4_300_000)));
}

#[test]
fn viewers_wait_for_the_stream_of_the_cohort_that_publishes_and_come_at_their_rate() {
    let (mut crowd, mut next) = (crowd(1), 0);
    crowd.config.varying_from = RunTime(10_000_000);
    let (called, _) = aim(&mut crowd, 4, 0, &mut next);
    assert_eq!(called, [(1, 0)]);
    assert!(aim(&mut crowd, 4, 9_900, &mut next).0.is_empty());
    assert!(!crowd.was_complete(RunTime(9_900_000)));
    let (called, _) = aim(&mut crowd, 4, 10_150, &mut next);
    assert_eq!(called, [(0, 10_000), (0, 10_100)]);
    assert_eq!(aim(&mut crowd, 4, 10_200, &mut next).0, [(0, 10_200)]);
}

#[test]
fn a_load_counts_from_when_its_last_change_is_confirmed() {
    let (mut crowd, mut next) = (crowd(0), 0);
    let mut ask = |crowd: &mut Crowd, wants: u32, at_s: i64| {
        crowd.adjust(wants, RunTime(at_s * 1_000_000), |_| {
            next += 1;
            Some(ParticipantId(next))
        });
    };
    let at = |s: i64| RunTime(s * 1_000_000);
    ask(&mut crowd, 1, 0);
    assert!(!crowd.was_complete(at(60)));
    crowd.confirmed(at(5));
    // The join has its time from then on.
    assert!(!crowd.was_complete(RunTime(8_900_000)) && crowd.was_complete(at(9)));
    ask(&mut crowd, 1, 10);
    assert!(crowd.was_complete(at(10)), "nothing has changed");
    ask(&mut crowd, 2, 20);
    ask(&mut crowd, 1, 30);
    assert!(!crowd.was_complete(at(60)));
    // Whoever leaves needs no time, but who was called before has not joined either.
    crowd.confirmed(at(31));
    assert!(!crowd.was_complete(RunTime(34_900_000)) && crowd.was_complete(at(35)));
    ask(&mut crowd, 0, 40);
    crowd.confirmed(at(41));
    assert!(crowd.was_complete(at(42)));
}

#[test]
fn a_load_counts_anew_from_when_it_is_judged_by_other_bounds() {
    let (mut crowd, mut next) = (crowd(0), 0);
    aim(&mut crowd, 1, 0, &mut next);
    let at = |s: i64| RunTime(s * 1_000_000);
    assert!(crowd.was_complete(at(20)));
    crowd.judged_anew();
    assert!(!crowd.was_complete(at(20)));
    crowd.confirmed(RunTime(20_100_000));
    // The second in which they came to apply is judged by either.
    assert!(!crowd.was_complete(at(21)) && crowd.was_complete(RunTime(21_100_000)));
}

#[test]
fn the_newest_leave_first_and_the_failed_before_all() {
    let (mut crowd, mut next) = (crowd(0), 0);
    aim(&mut crowd, 5, 0, &mut next);
    aim(&mut crowd, 5, 1000, &mut next);
    assert_eq!(present(&crowd).len(), 5);
    crowd.note_failed(failed(1));
    assert!(crowd.has_failed_by_generator());
    let (_, dismissed) = aim(&mut crowd, 3, 1000, &mut next);
    assert_eq!(dismissed, [1, 4]);
    assert!(!crowd.has_failed_by_generator(), "under another load it is forgotten");
    assert_eq!(present(&crowd), [0, 2, 3]);
    // An unchanged size adds no participant.
    assert_eq!(aim(&mut crowd, 3, 2000, &mut next), (vec![], vec![]));
}

#[test]
fn a_join_gets_the_least_free_number_of_its_cohort() {
    let (mut crowd, mut next) = (crowd(1), 0);
    let mut numbers = |crowd: &mut Crowd, wants: u32, at_ms: i64| {
        let mut called = Vec::new();
        crowd.adjust(wants, RunTime(at_ms * 1000), |step| {
            let CrowdAction::Call { cohort, place, .. } = step else { return None };
            called.push((cohort.0, place));
            next += 1;
            Some(ParticipantId(next - 1))
        });
        called
    };
    numbers(&mut crowd, 5, 0);
    assert_eq!(numbers(&mut crowd, 5, 1_000), [(0, 0), (0, 1), (0, 2), (0, 3)]);
    let all = [ParticipantId(0), ParticipantId(2)].into();
    crowd.note_failed(Failed { all, ..Failed::default() });
    numbers(&mut crowd, 6, 1_000);
    assert_eq!(numbers(&mut crowd, 6, 2_000), [(0, 1), (0, 4)]);
}

#[test]
fn a_larger_crowd_replaces_failed_participants() {
    let (mut crowd, mut next) = (crowd(0), 0);
    aim(&mut crowd, 2, 0, &mut next);
    aim(&mut crowd, 2, 1000, &mut next);
    crowd.note_failed(failed(0));
    let (called, dismissed) = aim(&mut crowd, 3, 5000, &mut next);
    assert_eq!((called.len(), dismissed), (1, vec![0]));
    aim(&mut crowd, 3, 5100, &mut next);
    assert_eq!(present(&crowd), [1, 2, 3]);
}

#[test]
fn a_load_that_begins_anew_has_others_in_the_place_of_those_that_failed() {
    let (mut crowd, mut next) = (crowd(0), 0);
    aim(&mut crowd, 1, 0, &mut next);
    crowd.note_failed(failed(0));
    assert_eq!(aim(&mut crowd, 1, 1000, &mut next), (vec![], vec![]));
    crowd.begin_anew();
    assert_eq!(aim(&mut crowd, 1, 2000, &mut next), (vec![(0, 2000)], vec![0]));
    assert_eq!(present(&crowd), [1]);
    // It has its time to join.
    assert!(!crowd.was_complete(RunTime(5_900_000)) && crowd.was_complete(RunTime(6_000_000)));
}

#[test]
fn another_value_is_another_crowd() {
    let two = |cohort| vec![(CohortId(cohort), 1), (CohortId(cohort + 1), 2)];
    let (mut crowd, mut next) = (of(LoadShape::Values(vec![two(0), two(2)])), 0);
    let (called, dismissed) = aim(&mut crowd, 1, 0, &mut next);
    assert_eq!((called, dismissed), (vec![(0, 0)], vec![]));
    let (called, _) = aim(&mut crowd, 1, 200, &mut next);
    assert_eq!(called, [(1, 100), (1, 200)]);
    assert!(crowd.was_complete(RunTime(4_200_000)));
    // Participants of the first value that have not joined yet are not added once the second
    // value begins.
    let (called, dismissed) = aim(&mut crowd, 2, 5000, &mut next);
    assert_eq!((called, dismissed), (vec![(2, 5000)], vec![0, 1, 2]));
    let (called, dismissed) = aim(&mut crowd, 1, 5100, &mut next);
    assert_eq!((called, dismissed), (vec![(0, 5100)], vec![3]));
    assert!(!crowd.was_complete(RunTime(8_100_000)));
}

#[test]
fn rooms_fill_one_after_the_other_and_a_failure_is_replaced_in_the_same_room() {
    let room = |number: u16| vec![(CohortId(2 * number), 1), (CohortId(2 * number + 1), 2)];
    let (mut crowd, mut next) = (of(LoadShape::Rooms((0..3).map(room).collect())), 0);
    let (called, _) = aim(&mut crowd, 6, 10_000, &mut next);
    assert_eq!(called.iter().map(|(cohort, _)| *cohort).collect::<Vec<_>>(), [0]);
    let (called, _) = aim(&mut crowd, 6, 20_000, &mut next);
    assert_eq!(called.iter().map(|(cohort, _)| *cohort).collect::<Vec<_>>(), [1, 1, 2, 3, 3]);
    crowd.note_failed(failed(3));
    aim(&mut crowd, 9, 30_000, &mut next);
    let (called, dismissed) = aim(&mut crowd, 9, 40_000, &mut next);
    assert_eq!((called.len(), dismissed.len()), (3, 0));
    assert_eq!(present(&crowd), [0, 1, 2, 6, 4, 5, 7, 8, 9]);
    let (called, dismissed) = aim(&mut crowd, 3, 50_000, &mut next);
    assert_eq!((called.len(), dismissed), (0, vec![9, 8, 7, 5, 4, 6]));
}
