//! What a search varies, and between which bounds.

use std::time::Duration;

use throng_observation::run::CohortId;
use throng_scenario::{Arrival as _, Cohort, Override, Part, Plan, ROOMS_MAX, Scenario};

use super::crowd::{LoadShape, cohort_id, sizes};
use super::largest::{ROOMS, largest, size_path, users_max};
use super::values::ValueVariation;
use crate::args::Find;
use crate::console::CliError;
use crate::scenario;

/// The crowd of the baseline without --start.
const START: u32 = 5;

/// What a search varies, and between which bounds.
pub(super) struct Variation {
    pub(super) scenario: Scenario,
    pub(super) plan: Plan,
    pub(super) shape: LoadShape,
    pub(super) values: Vec<String>,
    pub(super) start: u32,
    pub(super) floor: u32,
    pub(super) step: u32,
    pub(super) ceiling: u32,
}

impl Variation {
    pub(super) fn of(command: &Find, time: Duration) -> Result<Self, CliError> {
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
                "--vary {}: there are {} rooms, and each would grow; write --vary {ROOMS}, or \
                 --set {ROOMS}=1",
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
                "--vary {ROOMS}: {} has no rooms; Janus VideoRoom and LiveKit have, and a URL \
                 with {{room}}",
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

/// The index of the named cohort, or of the largest.
fn varying(scenario: &Scenario, name: Option<&str>) -> Result<usize, CliError> {
    let cohorts = &scenario.crowd;
    let Some(name) = name else { return Ok(largest(cohorts)) };
    cohorts.iter().position(|cohort| cohort.name == name).ok_or_else(|| {
        let names: Vec<_> = cohorts.iter().map(|cohort| cohort.name.as_str()).collect();
        CliError::usage(format!("--vary: unknown cohort `{name}`; known: {}", names.join(", ")))
    })
}
