//! The plan of a search: the scenario at its largest, what varies and between which bounds, how
//! long each load is held.

use std::path::Path;
use std::time::Duration;

use throng_analysis::search::{Estimate, Schedule, Settings};
use throng_observation::run::CohortId;
use throng_observation::{BadIf, Goal, HoldRow, RunTime};
use throng_scenario::{
    Arrival as _, Cohort, Moment, Override, Part, Plan, ProfileRequest, ROOMS_MAX, Scenario, Watch,
};
use throng_store::RunFolder;

use super::announced::{Announced, takes};
use super::crowd::{CrowdConfig, LoadShape, cohort_id, sizes};
use super::profile_triggers::{PROFILE, near_limit};
use super::values::ValueVariation;
use crate::args::{Find, duration};
use crate::console::{CliError, say};
use crate::media::Pages;
use crate::{scenario, session};

/// A search is ended after this many times its budget.
const OVERTIME: f64 = 2.0;
/// A search takes at least this long, whatever its budget (docs/find.md).
pub(crate) const BUDGET_MIN: Duration = Duration::from_secs(60);
/// What the full schedule may take.
const FULL: Duration = Duration::from_secs(75 * 60);
/// The largest crowd without --ceiling and without a cap on users.
const CEILING: u32 = 2_000;
/// Joins a second where the scenario lets all participants join at once.
const JOINS_PER_S: f64 = 20.0;
/// The slowest rate of joins: at a lower one the crowd would take longer to gather than to judge.
const JOINS_PER_S_MIN: f64 = 1.0;
/// The crowd of the baseline without --start.
const START: u32 = 5;
/// The longest that a stream takes to begin after its publisher has come.
const STREAM_BEGINS_MAX: Duration = Duration::from_secs(30);
/// The value of `--vary` for the number of rooms.
const ROOMS: &str = "target.rooms";

/// A scenario, and how it is searched.
pub(super) struct SearchPlan {
    /// With the crowd at its largest.
    pub(super) scenario: Scenario,
    pub(super) plan: Plan,
    pub(super) settings: Settings,
    pub(super) crowd: CrowdConfig,
    /// Names of the loads, if a value varies instead of the crowd's size.
    pub(super) values: Vec<String>,
    /// When the search is stopped, finished or not.
    pub(super) deadline: RunTime,
    budget: Option<Duration>,
    leaves_stays_out: bool,
}

impl SearchPlan {
    pub(super) fn of(command: &Find) -> Result<Self, CliError> {
        let budget =
            command.budget.as_deref().map(|text| duration("--budget", text)).transpose()?;
        let time = budget.map_or(FULL, stops_after);
        let Variation { scenario, mut plan, shape, values, start, floor, step, ceiling } =
            Variation::of(command, time)?;
        let schedule = budget.map_or_else(Schedule::default, Schedule::of_budget);
        plan.watch.iter_mut().for_each(|watch| profile_moments(watch, &schedule));
        let bad_if = bad_if(&scenario);
        let crowd = CrowdConfig {
            varying_from: varying_from(&scenario, &shape),
            shape,
            joins_per_s: joins_per_s(&plan),
            source_ips: session::source_ips(&plan).into_iter().collect(),
            patience: Duration::from_secs_f64(bad_if.join_ms_max / 1e3),
        };
        Ok(Self {
            settings: Settings { goal: Goal::Acceptable, start, floor, step, ceiling, schedule },
            leaves_stays_out: scenario.crowd.iter().any(|cohort| cohort.stay.is_some()),
            scenario,
            plan,
            crowd,
            values,
            deadline: RunTime::after_start(time),
            budget,
        })
    }

    /// Warnings before it begins.
    pub(super) fn warnings(&self, pages: &Pages) -> Vec<String> {
        let mut warnings = session::warnings(&self.plan, pages);
        if self.leaves_stays_out {
            warnings.push(
                "`stay` is ignored: while a load is held, no participant joins or leaves"
                    .to_owned(),
            );
        }
        if self.plan.watch.is_empty() {
            warnings.push(
                "no server is watched: the search will find the limit, but not its cause (--watch process=…)"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Prints what will be searched, and how long that takes.
    pub(super) fn introduce(&self) {
        let Settings { start, ceiling, schedule, .. } = &self.settings;
        let (target, joins_per_s) = (self.plan.target.display(), self.crowd.joins_per_s);
        let what = match (&self.crowd.shape, self.values.first().zip(self.values.last())) {
            (LoadShape::Values(crowds), Some((first, last))) => {
                let users: u32 = crowds.last().into_iter().flatten().map(|(_, size)| size).sum();
                format!(
                    "the last value at which {users} users of {target} are served well: from {first} up to {last}"
                )
            }
            (LoadShape::Cohort { varying, .. }, _) => {
                let varying =
                    self.plan.cohorts.get(usize::from(varying.0)).map_or("", String::as_str);
                format!(
                    "the largest crowd of {target} that is served well: from {start} up to {ceiling} ({varying})"
                )
            }
            (LoadShape::Rooms(rooms), _) => {
                let (most, each) = (rooms.len(), self.settings.step);
                format!("the most rooms of {target} that are served well: up to {most} of {each}")
            }
            (LoadShape::Values(_), None) => format!("the limit of {target}"),
        };
        say(&format!(
            "searching for {what}, {joins_per_s:.0} joins/s, each load judged for {} s",
            schedule.hold_s
        ));
        say(&takes(self.estimate(), self.budget, self.deadline));
        if let Some(budget) = self.budget {
            let budget = throng_scenario::units::write_duration(budget);
            say(&format!("a budget of {budget} costs precision:"));
            schedule.costs().iter().for_each(|cost| say(&format!("  {cost}")));
        }
    }

    /// What [`Self::introduce`] says of the time that it takes.
    pub(super) fn announced(&self) -> Announced {
        let longest =
            self.estimate().map(|estimate| RunTime(i64::from(estimate.longest_s) * 1_000_000));
        Announced::new(longest, self.deadline)
    }

    /// How long it takes; `None` where values vary: how many users join and leave with each is not
    /// known.
    fn estimate(&self) -> Option<Estimate> {
        let patience_s = self.crowd.patience.as_secs_f64();
        match self.crowd.shape {
            LoadShape::Values(_) => None,
            LoadShape::Cohort { .. } | LoadShape::Rooms(_) => {
                let wait_s = self.crowd.varying_from.as_secs_f64().ceil() as u32;
                let estimate = Estimate::of(self.settings, self.crowd.joins_per_s, patience_s);
                Some(estimate.after(wait_s))
            }
        }
    }
}

/// What a search varies, and between which bounds.
struct Variation {
    scenario: Scenario,
    plan: Plan,
    shape: LoadShape,
    values: Vec<String>,
    start: u32,
    floor: u32,
    step: u32,
    ceiling: u32,
}

impl Variation {
    fn of(command: &Find, time: Duration) -> Result<Self, CliError> {
        match command.vary.as_deref() {
            Some(values) if values.contains('=') => Self::value(command, values, time),
            Some(ROOMS) => Self::rooms(command, time),
            Some(cohort) => Self::size(command, Some(cohort), time),
            None if scenario::of_find(command, &[])?.target.rooms > 1 => Self::rooms(command, time),
            None => Self::size(command, None, time),
        }
    }

    /// The size of a cohort.
    fn size(command: &Find, cohort: Option<&str>, time: Duration) -> Result<Self, CliError> {
        let asked = scenario::of_find(command, &[])?;
        let varying = varying(&asked, cohort)?;
        if asked.target.rooms > 1 {
            return Err(CliError::usage(format!(
                "--vary {}: there are {} rooms, and each would grow; write --vary {ROOMS}, or --set {ROOMS}=1",
                cohort.unwrap_or_default(),
                asked.target.rooms
            )));
        }
        let fixed: u32 = sizes(&asked.crowd, Some(varying)).iter().map(|(_, size)| size).sum();
        let is_conference = asked.target.part() == Part::Confer;
        let floor = fixed + if is_conference && fixed == 0 { 2 } else { 1 };
        let ceiling = users_max(command.ceiling, &asked);
        if ceiling < floor {
            return Err(CliError::usage(format!(
                "--ceiling {ceiling} is below {floor}, the smallest crowd of this scenario"
            )));
        }
        let size = ceiling - fixed;
        let last_join =
            asked.crowd.get(varying).and_then(|cohort| cohort.arrival.offsets(size).last());
        let path = size_path(&asked, varying);
        let scenario = at_its_largest(command, (&path, size), time, last_join)?;
        Ok(Self {
            plan: scenario.plan(),
            shape: LoadShape::Cohort {
                fixed: sizes(&scenario.crowd, Some(varying)),
                varying: cohort_id(varying),
            },
            scenario,
            values: Vec::new(),
            start: command.start.unwrap_or_else(|| START.min(ceiling)).max(floor),
            floor,
            step: 1,
            ceiling,
        })
    }

    /// How many rooms there are, each with the whole crowd of the file.
    fn rooms(command: &Find, time: Duration) -> Result<Self, CliError> {
        let asked = scenario::of_find(command, &[Override::flag_toml("--vary", ROOMS, "1")])?;
        if !asked.target.has_rooms() {
            return Err(CliError::usage(format!(
                "--vary {ROOMS}: {} has no rooms; those of Janus VideoRoom and LiveKit can vary, and those that {{room}} in \
                 the URL numbers",
                asked.target.protocol().name()
            )));
        }
        let each = u32::try_from(asked.users()).unwrap_or(u32::MAX);
        let most = (users_max(command.ceiling, &asked) / each).min(ROOMS_MAX);
        if most == 0 {
            return Err(CliError::usage(format!(
                "--ceiling is below {each}, the users of one room"
            )));
        }
        let last_join =
            |cohort: &Cohort| cohort.arrival.offsets(cohort.size.saturating_mul(most)).last();
        let last_join = asked.crowd.iter().filter_map(last_join).max();
        let scenario = at_its_largest(command, (ROOMS, most), time, last_join)?;
        let cohorts = scenario.crowd.len();
        let of_room = |room: usize| -> Vec<(CohortId, u32)> {
            let own = |(cohort, size): (CohortId, u32)| {
                (cohort_id(room * cohorts + usize::from(cohort.0)), size)
            };
            sizes(&scenario.crowd, None).into_iter().map(own).collect()
        };
        let start = command.start.unwrap_or(each).div_ceil(each).clamp(1, most) * each;
        Ok(Self {
            plan: scenario.plan(),
            shape: LoadShape::Rooms((0..most as usize).map(of_room).collect()),
            scenario,
            values: Vec::new(),
            start,
            floor: each,
            step: each,
            ceiling: most * each,
        })
    }

    /// A value of the scenario: a load is an index into the list of values.
    fn value(command: &Find, vary: &str, time: Duration) -> Result<Self, CliError> {
        let ValueVariation { scenario, plan, crowds, names } =
            ValueVariation::of(command, vary, time)?;
        let ceiling = u32::try_from(names.len()).unwrap_or(u32::MAX);
        Ok(Self {
            scenario,
            plan,
            shape: LoadShape::Values(crowds),
            values: names,
            start: 1,
            floor: 1,
            step: 1,
            ceiling,
        })
    }
}

/// The scenario with the value at `path` at its largest, as long as the search may take. It is
/// checked like any other: against its caps and its target's consent.
fn at_its_largest(
    command: &Find,
    (path, value): (&str, u32),
    time: Duration,
    last_join: Option<Duration>,
) -> Result<Scenario, CliError> {
    let longest = time.max(last_join.unwrap_or_default() + Duration::from_secs(1));
    let largest = [
        Override::flag_toml("--ceiling", path, &value.to_string()),
        Override::flag("--budget", "run.duration", &format!("{}s", longest.as_secs())),
    ];
    Ok(scenario::of_find(command, &largest)?.without_jitter())
}

/// When a search with this budget is stopped, finished or not.
pub(crate) fn stops_after(budget: Duration) -> Duration {
    budget.max(BUDGET_MIN).mul_f64(OVERTIME)
}

/// The largest crowd that may be tried; `asked`: by `--ceiling`.
fn users_max(asked: Option<u32>, scenario: &Scenario) -> u32 {
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

/// Adds the profiles of a search. The cause shows best in a comparison of two profiles: one under
/// the failing load, one under a load that passed.
fn profile_moments(watch: &mut Watch, schedule: &Schedule) {
    let wishes = [
        (Moment::Baseline, Watch::BASELINE_DURATION),
        (Moment::Full, near_limit(schedule)),
        (Moment::Fail, PROFILE),
    ];
    for (moment, duration) in wishes {
        if watch.profile.iter().all(|wish| wish.moment != moment) {
            watch.profile.push(ProfileRequest { moment, duration });
        }
    }
}

/// The bounds of a bad second, by the scenario's objectives.
pub(super) fn bad_if(scenario: &Scenario) -> BadIf {
    throng_scenario::bad_if(&scenario.objectives)
}

/// The holds of an interrupted search, at negative times: before this run.
pub(super) fn earlier(folder: &Path) -> Result<Vec<HoldRow>, CliError> {
    let run = RunFolder::outline(folder).map_err(CliError::usage)?;
    before_the_end(run.holds).ok_or_else(|| {
        CliError::usage(format!("{} holds no search that can be continued", folder.display()))
    })
}

/// The holds from which a search goes on, by times before the end of the last one; `None` if none
/// has ended.
fn before_the_end(holds: Vec<HoldRow>) -> Option<Vec<HoldRow>> {
    let end = holds.iter().filter_map(|hold| hold.until).max()?;
    let before = |at: RunTime| RunTime(at.0 - end.0);
    // One that was cut off says no more than beyond what it was to be judged.
    let is_needed = |hold: &HoldRow| hold.until.is_some() || hold.unloaded.is_some();
    let shifted = holds.into_iter().filter(is_needed).map(|hold| HoldRow {
        from: before(hold.from),
        judged_from: hold.judged_from.map(before),
        until: hold.until.map(before),
        broke_at: hold.broke_at.map(before),
        ..hold
    });
    Some(shifted.collect())
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
fn size_path(scenario: &Scenario, cohort: usize) -> String {
    if scenario.crowd.len() == 1 { "crowd.size".into() } else { format!("crowd.{cohort}.size") }
}

/// When the first of the varying cohort may come: at its `starts_at`, if that is so soon that it
/// waits for a stream to begin. A crowd that comes in waves has none of them in a search.
fn varying_from(scenario: &Scenario, shape: &LoadShape) -> RunTime {
    let LoadShape::Cohort { varying, .. } = shape else { return RunTime(0) };
    let cohort = scenario.crowd.get(usize::from(varying.0));
    let starts_at = cohort.map_or(Duration::ZERO, |cohort| cohort.starts_at);
    if starts_at > STREAM_BEGINS_MAX { RunTime(0) } else { RunTime::after_start(starts_at) }
}

/// The index of the largest cohort.
fn largest(cohorts: &[Cohort]) -> usize {
    let largest = cohorts.iter().enumerate().rev().max_by_key(|(_, cohort)| cohort.size);
    largest.map_or(0, |(index, _)| index)
}

/// The index of the named cohort, or of the largest.
fn varying(scenario: &Scenario, name: Option<&str>) -> Result<usize, CliError> {
    let cohorts = &scenario.crowd;
    let Some(name) = name else { return Ok(largest(cohorts)) };
    cohorts.iter().position(|cohort| cohort.name == name).ok_or_else(|| {
        let names: Vec<_> = cohorts.iter().map(|cohort| cohort.name.as_str()).collect();
        CliError::usage(format!("--vary: unknown cohort `{name}`; known: {}", names.join(", ")))
    })
}

/// The mean rate at which the plan's crowd gathers.
fn joins_per_s(plan: &Plan) -> f64 {
    let gathers_s = plan.joins.last().map_or(0.0, |join| join.at.as_secs_f64());
    let rate = plan.joins.len().saturating_sub(1) as f64 / gathers_s;
    if rate.is_finite() && rate > 0.0 { rate.max(JOINS_PER_S_MIN) } else { JOINS_PER_S }
}

#[cfg(test)]
mod tests {
    use throng_observation::Unloaded;

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

    #[test]
    fn a_search_goes_on_with_what_it_knew_when_it_was_cut_off() {
        let hold = |number, until_s: Option<i64>, unloaded| HoldRow {
            number,
            until: until_s.map(|s| RunTime(s * 1_000_000)),
            unloaded,
            ..HoldRow::default()
        };
        let numbers = |holds: Vec<HoldRow>| -> Vec<u32> {
            before_the_end(holds).unwrap_or_default().iter().map(|hold| hold.number).collect()
        };
        assert_eq!(before_the_end(vec![hold(0, None, None)]), None);
        assert_eq!(numbers(vec![hold(0, Some(9), None), hold(1, None, None)]), [0]);
        let pattern = Some(Unloaded { delay_us: 290_000, ..Unloaded::default() });
        let cut = vec![hold(0, Some(9), None), hold(1, None, pattern)];
        assert_eq!(numbers(cut.clone()), [0, 1]);
        assert_eq!(before_the_end(cut).unwrap()[0].until, Some(RunTime(0)));
    }
}
