//! A search where even the smallest crowd is badly served, by the pattern of a source or a path.

use throng_observation::{BadIf, Goal, HoldRow, RunTime, Unloaded};

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
        let is_late = f64::from(delay_us) > bounds.delay_us_max(false);
        let bad = if is_late || self.is_refusing { f64::from(users) } else { 0.0 };
        Second {
            users,
            bad,
            bad_by_patterns: if self.is_refusing { 0.0 } else { bad },
            media: Unloaded { delay_us, ..Unloaded::default() },
            delay_ms: Some(f64::from(delay_us) / 1e3),
            ..Second::default()
        }
    }

    /// The holds of a search to its end.
    fn searched(self) -> (Search, Vec<HoldRow>) {
        let mut search = Search::new(settings());
        let mut holds: Vec<HoldRow> = Vec::new();
        let (mut users, mut complete_for) = (0_u32, 0);
        for at in 1..10_000 {
            if search.end().is_some() {
                break;
            }
            let wants = search.wants();
            complete_for = if users == wants { complete_for + 1 } else { 0 };
            users = if wants < users { wants } else { wants.min(users + 40) };
            let bounds = search.unloaded().map_or(BadIf::default(), |seen| BadIf::default().beyond(seen));
            let second = Second {
                at: RunTime(at * 1_000_000),
                is_complete: complete_for >= 3,
                ..self.second(users, &bounds)
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
    assert_eq!((capacity.verdict, capacity.first_failing), (CapacityVerdict::Found, Some(61)), "{holds:?}");
    assert_eq!(capacity.users, Some(60));
    assert!(
        capacity.notes.iter().any(|note| note.starts_with("as it is without load")),
        "{:?}",
        capacity.notes
    );
    // A search that goes on knows it.
    let cut = holds.len() - 2;
    assert_eq!(Search::resume(settings(), &holds[..cut]).unloaded(), search.unloaded());
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
