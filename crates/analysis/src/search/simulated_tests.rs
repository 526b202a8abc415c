//! The search against servers whose limit is known.

use throng_observation::{Goal, HoldRow, RunTime};

use super::rng::Rng;
use super::*;
use crate::capacity::{Capacity, CapacityVerdict};

/// A server with a capacity, noise around it, and a queue.
struct Server {
    capacity: f64,
    noise: f64,
    /// Its capacity falls to this share for two seconds, each second with this chance.
    dips: Option<(f64, f64)>,
    /// Above this many users the generator is past its own limits.
    generator: f64,
    /// Seconds in which it is past them whatever it does.
    disturbed: std::ops::Range<i64>,
    /// Once overloaded, it serves well again only below this share of its capacity.
    stuck_below: Option<f64>,
    rng: Rng,
    drift: f64,
    dip_left: u32,
    is_stuck: bool,
    queue: f64,
}

impl Server {
    fn new(capacity: f64, noise: f64, seed: u64) -> Self {
        Self {
            capacity,
            noise,
            dips: None,
            generator: f64::INFINITY,
            disturbed: 0..0,
            stuck_below: None,
            rng: Rng(seed),
            drift: 0.0,
            dip_left: 0,
            is_stuck: false,
            queue: 0.0,
        }
    }

    fn second(&mut self, users: u32) -> (u32, f64) {
        self.drift = 0.7 * self.drift + self.noise * self.rng.normal();
        let mut capacity = self.capacity * (1.0 + self.drift);
        if let Some((share, chance)) = self.dips {
            if self.dip_left == 0 && self.rng.uniform() < chance {
                self.dip_left = 2;
            }
            if self.dip_left > 0 {
                self.dip_left -= 1;
                capacity *= share;
            }
        }
        let load = f64::from(users);
        if let Some(share) = self.stuck_below {
            self.is_stuck = load > capacity || (self.is_stuck && load > share * capacity);
            if self.is_stuck {
                return (users, 500.0);
            }
        }
        self.queue = (self.queue + (load - capacity) / capacity).clamp(0.0, 0.5);
        if self.queue > 0.15 {
            (users, 150.0 + self.queue * 1e3)
        } else {
            (0, 5.0 + self.queue * 1e3)
        }
    }
}

/// Runs a search to its end; joins come at 40 a second.
fn search(settings: Settings, server: &mut Server) -> (Search, Vec<HoldRow>, i64) {
    let mut search = Search::new(settings);
    let mut holds: Vec<HoldRow> = Vec::new();
    let (mut users, mut at) = (0_u32, 0_i64);
    let mut complete_for = 0;
    while search.end().is_none() {
        at += 1;
        assert!(at < 40_000, "the search does not end: {:?}", search.progress());
        let wants = search.wants();
        complete_for = if users == wants { complete_for + 1 } else { 0 };
        users = if wants < users { wants } else { wants.min(users + 40) };
        let (bad, delay_ms) = server.second(users);
        let second = Second {
            at: RunTime(at * 1_000_000),
            users,
            bad: f64::from(bad),
            delay_ms: Some(delay_ms),
            is_limited: f64::from(users) > server.generator || server.disturbed.contains(&at),
            is_complete: complete_for >= 3,
            ..Second::default()
        };
        for row in search.second(&second) {
            match holds.iter_mut().find(|hold| hold.number == row.number) {
                Some(hold) => *hold = row,
                None => holds.push(row),
            }
        }
    }
    (search, holds, at)
}

fn settings(schedule: Schedule) -> Settings {
    Settings { goal: Goal::Acceptable, start: 20, floor: 1, step: 1, ceiling: 5_000, schedule }
}

fn budget(minutes: u64) -> Schedule {
    Schedule::of_budget(std::time::Duration::from_secs(minutes * 60))
}

fn found(capacity: f64, noise: f64, seed: u64, schedule: Schedule) -> (Capacity, i64) {
    let (_, holds, seconds) = search(settings(schedule), &mut Server::new(capacity, noise, seed));
    (Capacity::of(&holds, Goal::Acceptable).unwrap(), seconds)
}

#[test]
fn a_quiet_servers_limit_is_found_within_the_width_that_was_asked_for() {
    for (seed, limit) in [(1, 7.5), (2, 25.5), (3, 131.0), (4, 1000.0), (5, 2750.0)] {
        let (capacity, seconds) = found(limit, 0.0, seed, budget(10));
        let users = f64::from(capacity.users.unwrap());
        assert_eq!(capacity.verdict, CapacityVerdict::Found);
        assert!(users <= limit * 1.005 && users > limit * 0.96 - 1.0, "{users} of {limit}");
        assert!(f64::from(capacity.first_failing.unwrap()) > limit);
        // The largest crowd takes more than a minute to gather, each time.
        assert!(seconds < 700, "{limit}: {seconds} s");
    }
}

#[test]
fn a_load_is_the_limit_only_after_it_was_held_again() {
    for (seed, limit) in [(1, 7.5), (2, 25.5), (3, 131.0)] {
        let (_, holds, _) = search(settings(budget(10)), &mut Server::new(limit, 0.0, seed));
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        let of_it = holds.iter().filter(|hold| Some(hold.users) == capacity.first_failing);
        let purposes: Vec<Purpose> = of_it.map(|hold| hold.purpose).collect();
        assert!(purposes.len() >= 2 && purposes.contains(&Purpose::Confirm), "{purposes:?}");
    }
}

#[test]
fn whole_rooms_are_tried_where_whole_rooms_come_and_go() {
    for (seed, limit) in [(1, 12.0), (2, 64.0), (3, 137.0), (4, 155.0)] {
        let rooms =
            Settings { start: 10, floor: 10, step: 10, ceiling: 2_000, ..settings(budget(10)) };
        let (_, holds, _) = search(rooms, &mut Server::new(limit, 0.0, seed));
        assert!(holds.iter().all(|hold| hold.users % 10 == 0), "{holds:?}");
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        let whole = (limit / 10.0).floor() as u32 * 10;
        assert_eq!(
            (capacity.users, capacity.first_failing),
            (Some(whole), Some(whole + 10)),
            "{limit}"
        );
        assert!(capacity.notes.is_empty(), "{:?}", capacity.notes);
    }
}

/// Standard deviation of the answer, as a share, over servers that differ in their noise only.
fn spread(schedule: Schedule) -> f64 {
    let errors: Vec<f64> = (0..40)
        .map(|seed| f64::from(found(1000.0, 0.01, seed, schedule).0.users.unwrap()) / 1000.0)
        .collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / errors.len() as f64).sqrt()
}

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/find.md is made with it")]
fn noise_has_less_spread_the_longer_a_search_looks() {
    let paces = [
        ("5 min", budget(5)),
        ("10 min", budget(10)),
        ("20 min", budget(20)),
        ("full", Schedule::default()),
    ];
    let spreads: Vec<f64> = paces
        .iter()
        .map(|(name, schedule)| {
            let spread = spread(*schedule);
            println!(
                "| {name} | {} s, {} times | {:.1} % |",
                schedule.hold_s,
                schedule.repeats,
                spread * 100.0
            );
            spread
        })
        .collect();
    assert!(spreads[0] < 0.05 && spreads[3] < 0.015 && spreads[3] < spreads[0], "{spreads:?}");
}

#[test]
fn a_server_that_never_serves_well_and_one_that_always_does_are_reported() {
    let (search_, holds, seconds) = search(settings(budget(10)), &mut Server::new(0.5, 0.0, 1));
    assert_eq!(search_.end(), Some(&End::NeverPasses));
    assert_eq!(
        Capacity::of(&holds, Goal::Acceptable).unwrap().verdict,
        CapacityVerdict::NeverPasses
    );
    assert!(seconds < 400, "{seconds}");
    let small = Settings { ceiling: 100, ..settings(budget(10)) };
    let (search_, holds, _) = search(small, &mut Server::new(1e6, 0.0, 1));
    assert_eq!(search_.end(), Some(&End::Ceiling));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!((capacity.verdict, capacity.users), (CapacityVerdict::AtLeast, Some(100)));
}

#[test]
fn a_generator_past_its_limits_ends_the_search_without_a_verdict_on_the_server() {
    let mut server = Server { generator: 300.0, ..Server::new(1000.0, 0.0, 1) };
    let (search_, holds, _) = search(settings(budget(10)), &mut server);
    assert_eq!(search_.end(), Some(&End::GeneratorLimited));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!(capacity.verdict, CapacityVerdict::Invalid);
    assert!(capacity.users.unwrap() <= 300);
}

#[test]
fn a_generator_that_is_disturbed_for_a_while_holds_the_load_again() {
    for begins in [3, 40, 130, 250] {
        let mut server = Server { disturbed: begins..begins + 20, ..Server::new(95.0, 0.0, 4) };
        let (search_, holds, _) = search(settings(budget(10)), &mut server);
        assert_eq!(search_.end(), Some(&End::Found), "from {begins}");
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert!((92..=95).contains(&capacity.users.unwrap()), "from {begins}: {capacity:?}");
        assert_eq!(capacity.verdict, CapacityVerdict::Found);
    }
    // All that was tried passed in the end: that is no limit of the generator.
    let small = Settings { ceiling: 100, ..settings(budget(10)) };
    let (search_, holds, _) =
        search(small, &mut Server { disturbed: 10..60, ..Server::new(1e6, 0.0, 1) });
    assert_eq!(search_.end(), Some(&End::Ceiling));
    assert!(holds.iter().any(|hold| hold.limited_seconds > 0), "{holds:?}");
    assert_eq!(Capacity::of(&holds, Goal::Acceptable).unwrap().verdict, CapacityVerdict::AtLeast);
    let (search_, holds, seconds) =
        search(small, &mut Server { disturbed: 10..9_999, ..Server::new(1e6, 0.0, 1) });
    assert_eq!(search_.end(), Some(&End::GeneratorLimited));
    assert_eq!(Capacity::of(&holds, Goal::Acceptable).unwrap().verdict, CapacityVerdict::Invalid);
    assert!(seconds < 120, "{seconds} s to give up");
}

#[test]
fn bad_service_while_the_generator_is_limited_says_nothing_about_the_server() {
    let mut server = Server { generator: 90.0, ..Server::new(95.0, 0.0, 4) };
    let (search_, holds, _) = search(settings(budget(5)), &mut server);
    assert_eq!(search_.end(), Some(&End::GeneratorLimited));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!(
        (capacity.verdict, capacity.first_failing),
        (CapacityVerdict::Invalid, None),
        "{capacity:?}"
    );
}

#[test]
fn a_servers_limit_is_found_below_what_the_generator_cannot_offer() {
    let mut server = Server { generator: 100.0, ..Server::new(75.0, 0.0, 4) };
    // Its first step beyond the server's limit is one beyond the generator's.
    let wide = Settings { start: 70, ..settings(budget(5)) };
    let (search_, holds, _) = search(wide, &mut server);
    assert_eq!(search_.end(), Some(&End::Found));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert!((72..=75).contains(&capacity.users.unwrap()), "{capacity:?}");
}

#[test]
fn a_host_whose_seconds_are_bad_at_any_load_is_undecidable() {
    for seed in 0..10 {
        let mut server = Server { dips: Some((0.0, 0.08)), ..Server::new(1000.0, 0.0, seed) };
        let (_, holds, _) = search(settings(budget(10)), &mut server);
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_ne!(capacity.verdict, CapacityVerdict::AtLeast, "seed {seed}");
        let is_wrong = capacity.verdict == CapacityVerdict::Found && capacity.users.unwrap() > 1000;
        assert!(!is_wrong, "seed {seed}: {capacity:?}");
    }
}

#[test]
fn a_stuck_server_gets_a_smaller_crowd_until_it_recovers_and_that_is_reported() {
    let mut server = Server { stuck_below: Some(0.3), ..Server::new(200.0, 0.0, 1) };
    let (search_, holds, _) = search(settings(budget(10)), &mut server);
    assert_eq!(search_.end(), Some(&End::Found));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert!((190..=200).contains(&capacity.users.unwrap()), "{capacity:?}");
    assert!(capacity.recovery_ms.unwrap() > 20_000, "{capacity:?}");
}

#[test]
fn a_server_that_stays_down_ends_the_search_and_what_was_found_stands() {
    let mut server = Server { stuck_below: Some(0.0), ..Server::new(200.0, 0.0, 1) };
    let (search_, holds, _) = search(settings(budget(10)), &mut server);
    assert_eq!(search_.end(), Some(&End::NoRecovery));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!(capacity.verdict, CapacityVerdict::Found);
    assert!(
        capacity.notes.iter().any(|note| note.contains("even the smallest crowd had bad service")),
        "{capacity:?}"
    );
}

#[test]
fn a_search_that_was_cut_off_resumes_where_it_was() {
    let schedule = budget(10);
    let (_, holds, _) = search(settings(schedule), &mut Server::new(500.0, 0.0, 1));
    for kept in 0..holds.len() {
        let mut resumed = Search::resume(settings(schedule), &holds[..kept]);
        let next = &holds[kept];
        assert_eq!(resumed.wants(), next.users, "after {kept} holds");
        assert_eq!(resumed.progress().purpose, Some(next.purpose));
        assert_eq!(
            resumed.second(&Second::default()).first().map(|row| row.number),
            Some(next.number)
        );
    }
}

#[test]
fn repeats_begin_near_by_and_each_comes_to_its_own_bracket() {
    let schedule = Schedule { repeats: 3, soak_s: 30, ..budget(10) };
    let (search_, holds, _) = search(settings(schedule), &mut Server::new(300.0, 0.005, 9));
    assert_eq!(search_.end(), Some(&End::Found));
    let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
    assert_eq!(capacity.runs.len(), 3, "{capacity:?}");
    assert_eq!(holds.last().unwrap().purpose, throng_observation::Purpose::Soak);
    assert!(capacity.statement("viewers").contains("3 runs"), "{}", capacity.statement("viewers"));
}
