//! A search where even the smallest crowd is badly served, by the pattern of a source or a path.

use throng_observation::{BadIf, Clause, Goal, HoldRow, RunTime, Unloaded};

use super::*;
use crate::capacity::{Capacity, CapacityVerdict};

/// A source that sends in bursts, so that frames are late without load, and a server that delays
/// them more above its capacity.
#[derive(Clone, Copy)]
struct Bursty {
    capacity: u32,
    /// What the server adds above its capacity, microseconds.
    grows_us: u32,
    /// Its users are bad by their connections as well.
    is_refusing: bool,
}

const BURST_US: u32 = 290_000;

impl Bursty {
    /// The second, as those who play the crowd judge it by `bounds`.
    fn second(self, users: u32, bounds: &BadIf) -> Second {
        let delay_us = BURST_US + if users > self.capacity { self.grows_us } else { 0 };
        let second = late(users, delay_us, bounds);
        if self.is_refusing {
            Second { bad: f64::from(users), bad_by_patterns: 0.0, ..second }
        } else {
            second
        }
    }

    fn searched(self) -> (Search, Vec<HoldRow>) {
        searched(|users, bounds| self.second(users, bounds))
    }
}

/// A second in which nothing is amiss but the delay of each user's media.
fn late(users: u32, delay_us: u32, bounds: &BadIf) -> Second {
    let are_late = if f64::from(delay_us) > bounds.delay_us_max(false) { users } else { 0 };
    let mut clauses = [0; Clause::ALL.len()];
    clauses[Clause::Delay as usize] = u64::from(are_late);
    Second {
        users,
        bad: f64::from(are_late),
        bad_by_patterns: f64::from(are_late),
        clauses,
        media: Unloaded { delay_us, ..Unloaded::default() },
        delay_ms: Some(f64::from(delay_us) / 1e3),
        ..Second::default()
    }
}

/// A second of a path that loses a tenth of everybody's packets, in which video is frozen for this
/// share of the time.
fn lossy(users: u32, frozen_ppm: u32, bounds: &BadIf) -> Second {
    let media = Unloaded { loss_ppm: 100_000, frozen_ppm, ..Unloaded::default() };
    let mut clauses = [0; Clause::ALL.len()];
    let mut is_bad = false;
    for (clause, ppm, bound) in [
        (Clause::Loss, media.loss_ppm, bounds.loss_ratio_max),
        (Clause::Freeze, frozen_ppm, bounds.freeze_ratio_max),
    ] {
        let is_broken = f64::from(ppm) / 1e6 > bound;
        clauses[clause as usize] = if is_broken { u64::from(users) } else { 0 };
        is_bad |= is_broken;
    }
    let are_bad = if is_bad { f64::from(users) } else { 0.0 };
    let (bad, bad_by_patterns) = (are_bad, are_bad);
    let delay_ms = Some(5.0);
    Second { users, bad, bad_by_patterns, clauses, media, delay_ms, ..Second::default() }
}

/// A search to its end, whose users see what `second` says by the bounds that it is given.
fn searched(second: impl FnMut(u32, &BadIf) -> Second) -> (Search, Vec<HoldRow>) {
    searched_while_leaving_takes(0, second)
}

/// The same where the seconds of a crowd that is to be smaller are those of the larger one for
/// `leave_s` more.
fn searched_while_leaving_takes(
    leave_s: u32,
    mut second: impl FnMut(u32, &BadIf) -> Second,
) -> (Search, Vec<HoldRow>) {
    let mut search = Search::new(settings());
    let mut holds: Vec<HoldRow> = Vec::new();
    let (mut users, mut complete_for, mut leaving_for) = (0_u32, 0, 0);
    for at in 1..10_000 {
        if search.end().is_some() {
            break;
        }
        let wants = search.wants();
        complete_for = if users == wants { complete_for + 1 } else { 0 };
        leaving_for = if wants < users { leaving_for + 1 } else { 0 };
        users = if leaving_for == 0 {
            wants.min(users + 40)
        } else if leaving_for > leave_s {
            wants
        } else {
            users
        };
        let bounds =
            search.unloaded().map_or(BadIf::default(), |seen| BadIf::default().beyond(seen));
        let second = Second {
            at: RunTime(at * 1_000_000),
            is_complete: complete_for >= 3,
            ..second(users, &bounds)
        };
        for row in search.second(&second) {
            match holds.iter_mut().find(|hold| hold.number == row.number) {
                Some(hold) => *hold = row,
                None => holds.push(row),
            }
        }
    }
    (search, holds)
}

fn settings() -> Settings {
    let schedule = Schedule::of_budget(std::time::Duration::from_secs(300));
    Settings { goal: Goal::Acceptable, start: 10, floor: 1, step: 1, ceiling: 400, schedule }
}

#[test]
fn what_is_bad_without_load_fails_no_load_and_what_grows_beyond_it_does() {
    let (search, holds) = Bursty { capacity: 60, grows_us: 900_000, is_refusing: false }.searched();
    assert_eq!(search.end(), Some(&End::Found));
    assert_eq!(search.unloaded().map(|seen| seen.delay_us), Some(BURST_US));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!(
        (capacity.verdict, capacity.first_failing),
        (CapacityVerdict::Found, Some(61)),
        "{holds:?}"
    );
    assert_eq!(capacity.users, Some(60));
    assert!(
        capacity.notes.iter().any(|note| note.starts_with("at the smallest crowd already")),
        "{:?}",
        capacity.notes
    );
    // A search that goes on knows it.
    let cut = holds.len() - 2;
    assert_eq!(Search::resume(settings(), &holds[..cut]).unloaded(), search.unloaded());
    // So does one that was cut off in the first hold after it was found: what was held before by
    // other bounds does not end it.
    let begun = holds.iter().position(|hold| hold.unloaded.is_some()).unwrap();
    let mut cut = holds[..=begun].to_vec();
    cut[begun] = HoldRow { until: None, ..cut[begun].clone() };
    let resumed = Search::resume(settings(), &cut);
    assert_eq!((resumed.end(), resumed.unloaded()), (None, search.unloaded()));
    assert_eq!(resumed.wants(), settings().start);
}

#[test]
fn freezes_of_a_lossy_path_fail_no_load_and_those_that_grow_with_the_load_do() {
    let mut seconds = 0;
    let mut now_and_then = || {
        seconds += 1;
        if seconds % 6 == 0 { 300_000 } else { 0 }
    };
    let (search, holds) = searched(|users, bounds| lossy(users, now_and_then(), bounds));
    assert_eq!(search.end(), Some(&End::Ceiling), "{holds:?}");
    assert_eq!(search.unloaded().map(|seen| seen.loss_ppm), Some(100_000));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!((capacity.verdict, capacity.users), (CapacityVerdict::AtLeast, Some(400)));
    assert!(
        capacity.notes.iter().any(|note| {
            note.starts_with("at the smallest crowd already") && note.contains("packets lost")
        }),
        "{:?}",
        capacity.notes
    );

    let (search, holds) = searched(|users, bounds| {
        let frozen_ppm = if users > 60 { 900_000 } else { now_and_then() };
        lossy(users, frozen_ppm, bounds)
    });
    assert_eq!(search.end(), Some(&End::Found), "{holds:?}");
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!((capacity.users, capacity.first_failing), (Some(60), Some(61)), "{holds:?}");
}

#[test]
fn a_backlog_that_a_larger_crowd_left_behind_is_no_pattern_of_the_path() {
    let mut is_behind = false;
    let (search, holds) = searched(|users, bounds| {
        // It works it off only while nobody is there.
        is_behind = users > 5 || (is_behind && users > 0);
        late(users, if is_behind { BURST_US } else { 5_000 }, bounds)
    });
    assert_eq!(search.unloaded(), None, "{holds:?}");
    let is_served =
        |hold: &HoldRow| hold.users == 1 && hold.passed(Goal::Acceptable) == HoldOutcome::Yes;
    assert!(holds.iter().any(is_served), "{holds:?}");
}

#[test]
fn a_rest_counts_from_when_the_crowd_is_gone() {
    // The server works its backlog off in four seconds without anybody; leaving takes as long.
    let (mut is_behind, mut alone_s) = (false, 0);
    let (search, holds) = searched_while_leaving_takes(4, |users, bounds| {
        alone_s = if users == 0 { alone_s + 1 } else { 0 };
        is_behind = users > 5 || (is_behind && alone_s < 4);
        late(users, if is_behind { BURST_US } else { 5_000 }, bounds)
    });
    assert_eq!(search.unloaded(), None, "{holds:?}");
    let is_served =
        |hold: &HoldRow| hold.users == 1 && hold.passed(Goal::Acceptable) == HoldOutcome::Yes;
    assert!(holds.iter().any(is_served), "{holds:?}");
}

#[test]
fn a_crowd_that_takes_long_to_leave_is_no_limit_of_the_generator() {
    let rest = |is_limited: bool| {
        let mut search = Search::new(settings());
        search.now = Now::Resting(Pause::new(0, &settings().schedule));
        for at in 0..900 {
            let (users, is_complete) = if at < 600 { (10, false) } else { (0, true) };
            let at = RunTime(at * 1_000_000);
            search.second(&Second { at, users, is_complete, is_limited, ..Second::default() });
            if at < RunTime(600_000_000) {
                assert_eq!(search.end(), None, "they are leaving");
            }
            if !matches!(search.now, Now::Resting(_)) {
                break;
            }
        }
        search
    };
    assert!(matches!(rest(false).now, Now::Holding(_)), "the smallest crowd is held again");
    assert_eq!(rest(true).end(), Some(&End::GeneratorLimited));
}

#[test]
fn a_delay_that_grows_while_the_smallest_crowd_is_held_is_the_server() {
    let mut delay_us = 200_000;
    let (search, _) = searched(|users, bounds| {
        delay_us = if users == 0 { 200_000 } else { delay_us + 20_000 };
        late(users, delay_us, bounds)
    });
    assert_eq!((search.end(), search.unloaded()), (Some(&End::NeverPasses), None));
}

#[test]
fn a_server_that_adds_nothing_is_not_called_too_small() {
    let (search, holds) = Bursty { capacity: 60, grows_us: 0, is_refusing: false }.searched();
    assert_eq!(search.end(), Some(&End::Ceiling));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!((capacity.verdict, capacity.users), (CapacityVerdict::AtLeast, Some(400)));
}

#[test]
fn users_who_are_bad_by_anything_else_are_no_pattern() {
    let (search, holds) = Bursty { capacity: 60, grows_us: 0, is_refusing: true }.searched();
    assert_eq!((search.end(), search.unloaded()), (Some(&End::NeverPasses), None));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!(capacity.verdict, CapacityVerdict::NeverPasses);
}
