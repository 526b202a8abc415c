//! The largest load of a search and how long it takes, as those who start searches ask too.

use std::time::Duration;

use throng_scenario::{Cohort, ROOMS_MAX, Scenario};

use super::crowd::sizes;

/// A search is ended after this many times its budget.
const OVERTIME: f64 = 2.0;
/// A search takes at least this long, whatever its budget (docs/find.md).
pub(crate) const BUDGET_MIN: Duration = Duration::from_secs(60);
/// The largest crowd without --ceiling and without a cap on users.
const CEILING: u32 = 2_000;
/// The value of `--vary` for the number of rooms.
pub(super) const ROOMS: &str = "target.rooms";

/// When a search with this budget is stopped, finished or not.
pub(crate) fn stops_after(budget: Duration) -> Duration {
    budget.max(BUDGET_MIN).mul_f64(OVERTIME)
}

/// The largest crowd that may be tried; `asked`: by `--ceiling`.
pub(super) fn users_max(asked: Option<u32>, scenario: &Scenario) -> u32 {
    let capped = users_allowed(scenario).map(|users| users.min(CEILING));
    asked.or(capped).unwrap_or(CEILING)
}

/// The largest load of a search without `--vary`, users: whole rooms where there are several.
pub(crate) fn ceiling(asked: Option<u32>, scenario: &Scenario) -> u32 {
    let most = users_max(asked, scenario);
    if scenario.target.rooms <= 1 {
        return most;
    }
    let of_room = scenario.users() / u64::from(scenario.target.rooms);
    let each = u32::try_from(of_room).unwrap_or(u32::MAX).max(1);
    (most / each).min(ROOMS_MAX) * each
}

/// The override, `PATH=VALUE`, with which the crowd of a scenario is the load of so many users in a
/// search without `--vary`.
pub(crate) fn of_load(scenario: &Scenario, users: u32) -> String {
    if scenario.target.rooms > 1 {
        let of_room = scenario.users() / u64::from(scenario.target.rooms);
        return format!("{ROOMS}={}", u64::from(users).div_ceil(of_room.max(1)).max(1));
    }
    let varying = largest(&scenario.crowd);
    let fixed: u32 = sizes(&scenario.crowd, Some(varying)).iter().map(|(_, size)| size).sum();
    format!("{}={}", size_path(scenario, varying), users.saturating_sub(fixed).max(1))
}

/// The most users that the caps of a scenario allow; `None` without one. Browsers count as users.
pub(crate) fn users_allowed(scenario: &Scenario) -> Option<u32> {
    let browsers = scenario.canary.as_ref().map_or(0, |canary| u32::from(canary.browsers));
    scenario.caps.users.map(|users| users.saturating_sub(browsers))
}

/// The path of the size of a cohort.
pub(super) fn size_path(scenario: &Scenario, cohort: usize) -> String {
    if scenario.crowd.len() == 1 { "crowd.size".into() } else { format!("crowd.{cohort}.size") }
}

/// The index of the largest cohort.
pub(super) fn largest(cohorts: &[Cohort]) -> usize {
    let largest = cohorts.iter().enumerate().rev().max_by_key(|(_, cohort)| cohort.size);
    largest.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_load_is_the_ceiling_or_the_caps_in_whole_rooms() {
        let head = "[target]\nurl = \"whep+http://127.0.0.1/room-{room}/{n}\"\n";
        let of = |text: &str, asked: Option<u32>| {
            let text = format!("{head}{text}");
            let scenario = Scenario::parse_with(&text, &[]).unwrap_or_else(|e| panic!("{e}"));
            ceiling(asked, &scenario)
        };
        let one = "[crowd]\nsize = 5\n";
        assert_eq!((of(one, None), of(one, Some(80))), (CEILING, 80));
        let capped = "[crowd]\nsize = 5\n[caps]\nusers = 300\n";
        assert_eq!((of(capped, None), of(capped, Some(80))), (300, 80));
        let rooms = "rooms = 2\n[crowd]\nsize = 30\n";
        assert_eq!((of(rooms, None), of(rooms, Some(100))), (1_980, 90));
    }

    #[test]
    fn a_search_is_stopped_after_twice_its_budget_and_never_before_two_minutes() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(stops_after(minutes(5)), minutes(10));
        assert_eq!(stops_after(Duration::from_secs(10)), minutes(2));
    }

    /// A crowd that a search tried is the same crowd when it is held.
    #[test]
    fn a_load_is_a_size_of_the_largest_cohort_or_a_number_of_rooms() {
        let head = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n";
        let of = |text: &str, users: u32| {
            let scenario = Scenario::parse_with(text, &[]).unwrap_or_else(|e| panic!("{e}"));
            of_load(&scenario, users)
        };
        assert_eq!(of(&format!("{head}[crowd]\nsize = 5\n"), 26), "crowd.size=26");
        let two = format!(
            "{head}[[crowd]]\nname = \"host\"\nsize = 2\n[[crowd]]\nname = \"guest\"\nsize = 5\n"
        );
        assert_eq!(of(&two, 26), "crowd.1.size=24");
        assert_eq!(of(&two, 1), "crowd.1.size=1");
        let rooms = "[target]\nurl = \"whep+http://127.0.0.1/room-{room}/{n}\"\nrooms = 2\n[crowd]\nsize = 4\n";
        assert_eq!(
            (of(rooms, 12), of(rooms, 13)),
            ("target.rooms=3".into(), "target.rooms=4".into())
        );
    }
}
