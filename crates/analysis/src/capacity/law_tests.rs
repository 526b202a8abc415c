//! Whatever a search went through, no sentence about it contradicts a line of what it held.

use std::time::Duration;

use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose, RunTime};

use super::*;
use crate::search::rng::Rng;
use crate::search::{Schedule, Search, Second, Settings};

/// A server with a capacity that wanders, strikes at any load, users with trouble of their own, and
/// a generator that is disturbed: each of them in some of the searches.
struct World {
    rng: Rng,
    capacity: f64,
    wander: f64,
    strike: f64,
    own: f64,
    disturbed: f64,
    struck_for: u32,
    disturbed_for: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9) ^ 0x1a3);
        let mut some = |most: f64| if rng.uniform() < 0.5 { 0.0 } else { most * rng.uniform() };
        let (wander, strike, own, disturbed) = (some(0.2), some(0.05), some(0.01), some(0.05));
        let capacity = 0.5 * (rng.uniform() * 1_200_f64.ln()).exp();
        Self { rng, capacity, wander, strike, own, disturbed, struck_for: 0, disturbed_for: 0 }
    }

    fn second(&mut self, at: i64, users: u32, is_complete: bool) -> Second {
        let capacity = self.capacity * (1.0 + self.wander * self.rng.normal() / 3.0);
        let lasts = |left: &mut u32, chance: f64, rng: &mut Rng| {
            *left = if rng.uniform() < chance {
                1 + (rng.uniform() * 4.0) as u32
            } else {
                left.saturating_sub(1)
            };
            *left > 0
        };
        let is_struck = lasts(&mut self.struck_for, self.strike, &mut self.rng);
        let is_limited = lasts(&mut self.disturbed_for, self.disturbed, &mut self.rng);
        let own = (0..users).filter(|_| self.rng.uniform() < self.own).count();
        let is_bad = is_struck || is_limited || f64::from(users) > capacity;
        Second {
            at: RunTime(at * 1_000_000),
            users,
            bad: if is_bad {
                f64::from(users) * (0.1 + 0.9 * self.rng.uniform())
            } else {
                own as f64
            },
            delay_ms: Some(5.0),
            is_limited,
            is_complete,
            ..Second::default()
        }
    }
}

/// The holds of a search that was cut off after `seconds`.
fn held(seed: u64, seconds: i64) -> Vec<HoldRow> {
    let mut world = World::new(seed);
    let schedule =
        Schedule::of_budget(Duration::from_secs([60, 180, 300, 1_300][(seed % 4) as usize]));
    let settings =
        Settings { goal: Goal::Acceptable, start: 5, floor: 1, step: 1, ceiling: 400, schedule };
    let mut search = Search::new(settings);
    let mut holds: Vec<HoldRow> = Vec::new();
    let (mut users, mut at, mut complete_for) = (0_u32, 0, 0);
    while search.end().is_none() && at < seconds {
        at += 1;
        let wants = search.wants();
        complete_for = if users == wants { complete_for + 1 } else { 0 };
        users = if wants < users { wants } else { wants.min(users + 40) };
        let second = world.second(at, users, complete_for >= 3);
        for row in search.second(&second) {
            match holds.iter_mut().find(|hold| hold.number == row.number) {
                Some(hold) => *hold = row,
                None => holds.push(row),
            }
        }
    }
    holds
}

/// The loads of holds that came to `passed`, as a person reads them in the list; a soak has a
/// sentence of its own.
fn came_to(holds: &[HoldRow], goal: Goal, passed: HoldOutcome) -> Vec<u32> {
    let judged = holds.iter().filter(|hold| hold.until.is_some() && hold.purpose != Purpose::Soak);
    judged.filter(|hold| hold.passed(goal) == passed).map(|hold| hold.users).collect()
}

fn check_line(said: &str, loads: &GoalLoads, holds: &[HoldRow], goal: Goal) {
    let context = format!("{} of {loads:?}: {said}\n{holds:#?}", goal.key());
    if loads.is_by_collapse {
        assert!(!said.contains("passed") && !said.contains("failed"), "{context}");
        return;
    }
    let (passed, failed) =
        (came_to(holds, goal, HoldOutcome::Yes), came_to(holds, goal, HoldOutcome::No));
    assert!(!said.contains("none failed") || failed.is_empty(), "{context}");
    assert!(!said.contains("none passed") || passed.is_empty(), "{context}");
    assert!(loads.passing.is_none_or(|load| passed.contains(&load)), "{context}");
    assert!(loads.failing.is_none_or(|load| failed.contains(&load)), "{context}");
    assert!(loads.passing.zip(loads.failing).is_none_or(|(low, high)| low < high), "{context}");
    // Whatever failed or passed on the other side of the limit is in the line.
    let is_stated = |load: &u32| said.contains(&format!("{load}"));
    let below = failed.iter().filter(|load| loads.failing.is_none_or(|failing| **load < failing));
    assert!(below.clone().all(is_stated), "{context}");
    let above = passed.iter().filter(|load| loads.passing.is_none_or(|passing| **load > passing));
    assert!(above.clone().all(is_stated), "{context}");
}

#[test]
fn no_sentence_contradicts_what_was_held() {
    let mut conclusions = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..600_u64 {
        let cut_off = [60, 150, 400, 1_500][(seed / 4 % 4) as usize];
        let holds = held(seed, cut_off);
        let Some(capacity) = Capacity::of(&holds, Goal::Acceptable) else { continue };
        *conclusions.entry(capacity.verdict.key()).or_default() += 1;
        let said = [capacity.statement("viewers")]
            .iter()
            .chain(&capacity.caveats)
            .cloned()
            .collect::<Vec<_>>()
            .join("; ");
        let context = format!("seed {seed}: {said}\n{holds:#?}");
        // The answer and the line of its goal are one.
        let own = &capacity.goals[capacity.goal as usize];
        assert_eq!(
            (own.passing, own.failing),
            (capacity.users, capacity.first_failing),
            "{context}"
        );
        for (goal, loads) in Goal::ALL.into_iter().zip(&capacity.goals) {
            if let Some(line) = loads.statement(|load| load.to_string()) {
                check_line(&line, loads, &holds, goal);
            }
        }
        let failed = came_to(&holds, capacity.goal, HoldOutcome::No);
        let passed = came_to(&holds, capacity.goal, HoldOutcome::Yes);
        assert!(!said.contains("no load that was tried failed") || failed.is_empty(), "{context}");
        assert!(!said.starts_with("not one") || passed.is_empty(), "{context}");
        // A failing load that failed once is never stated without the word.
        let failing = capacity.first_failing;
        let times = failed.iter().filter(|load| Some(**load) == failing).count();
        assert!(failing.is_none() || times >= 2 || said.contains("unconfirmed"), "{context}");
        assert!(!said.contains("unconfirmed") || failing.is_some(), "{context}");
        // No load fails by seconds in which the generator was the limit.
        for hold in holds.iter().filter(|hold| hold.passed(capacity.goal) == HoldOutcome::No) {
            let judged_well = hold.seconds - hold.limited_seconds;
            assert!(hold.bad_seconds[capacity.goal as usize] <= judged_well, "{context}");
        }
    }
    // Each kind of answer was among them.
    for kind in ["found", "at_least", "never_passes", "undecidable", "invalid"] {
        assert!(conclusions.get(kind).is_some_and(|count| *count >= 3), "{kind}: {conclusions:?}");
    }
}
