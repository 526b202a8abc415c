//! A search over the values of a scenario key. Each value has a crowd of its own, and one of them
//! exists at a time.

use std::time::Duration;

use throng_observation::run::CohortId;
use throng_scenario::{Arrival as _, Override, Plan, Scenario};

use super::crowd::{cohort_id, sizes};
use crate::args::Find;
use crate::console::CliError;
use crate::scenario;

/// The most values of one search; each is a crowd that has to be planned.
const VALUES_MAX: usize = 64;

/// The values of a search, and one plan with all their crowds.
pub(super) struct ValueVariation {
    /// The scenario with the last value, which is the heaviest.
    pub(super) scenario: Scenario,
    pub(super) plan: Plan,
    /// Whole cohorts, by value.
    pub(super) crowds: Vec<Vec<(CohortId, u32)>>,
    /// The values as they are printed, such as `crowd.publish.video = 360p`.
    pub(super) names: Vec<String>,
}

impl ValueVariation {
    /// Reads `--vary PATH=A,B,C`. The plan lasts for `longest` and the time in which the crowd
    /// joins.
    pub(super) fn of(command: &Find, vary: &str, longest: Duration) -> Result<Self, CliError> {
        if command.start.is_some() || command.ceiling.is_some() {
            return Err(CliError::usage(
                "--start and --ceiling limit the crowd's size; --vary PATH=A,B,C takes the values \
                 to try",
            ));
        }
        let (path, values) = listed(vary)?;
        let scenarios = values
            .iter()
            .map(|value| of_value(command, path, value, longest))
            .collect::<Result<Vec<Scenario>, CliError>>()?;
        let names =
            values.iter().map(|value| format!("{path} = {}", value.trim_matches('"'))).collect();
        let Some(scenario) = scenarios.last().cloned() else { return Err(too_few(vary)) };
        if path == "target.rooms" {
            return Err(CliError::usage(
                "the number of rooms is a size: write --vary target.rooms, and limit it with \
                 --ceiling",
            ));
        }
        if let Some(other) =
            scenarios.iter().find(|other| !differs_in_crowd_alone(other, &scenario))
        {
            let whole = if other.target == scenario.target {
                ""
            } else {
                ", with one target for all values"
            };
            return Err(CliError::usage(format!(
                "--vary {path}: only keys below [crowd] can vary within one run{whole}; \
                 run throng find once for each value, with --set {path}=…"
            )));
        }
        let mut plan = scenario.plan();
        let each = scenario.crowd.len();
        (plan.cohorts, plan.roles, plan.destinations) = (Vec::new(), Vec::new(), Vec::new());
        let mut crowds = Vec::new();
        for (place, (scenario, value)) in scenarios.iter().zip(&values).enumerate() {
            let of_value = scenario.plan();
            plan.cohorts.extend(
                of_value.cohorts.iter().map(|name| format!("{name} {}", value.trim_matches('"'))),
            );
            plan.roles.extend(of_value.roles);
            plan.destinations.extend(of_value.destinations);
            let moved = |(cohort, size): (CohortId, u32)| {
                (cohort_id(place * each + usize::from(cohort.0)), size)
            };
            crowds.push(sizes(&scenario.crowd, None).into_iter().map(moved).collect());
        }
        Ok(Self { scenario, plan, crowds, names })
    }
}

/// The scenario with one of the values, with a duration that is enough for a whole search.
fn of_value(
    command: &Find,
    path: &str,
    value: &str,
    longest: Duration,
) -> Result<Scenario, CliError> {
    let set = Override { origin: format!("--vary {path}"), ..set(path, value)? };
    let asked = scenario::of_find(command, std::slice::from_ref(&set))?;
    let gathers =
        asked.crowd.iter().filter_map(|cohort| cohort.arrival.offsets(cohort.size).last()).max();
    let longest = longest + gathers.unwrap_or_default() + Duration::from_secs(1);
    let duration = Override::flag("--budget", "run.duration", &format!("{}s", longest.as_secs()));
    Ok(scenario::of_find(command, &[set, duration])?.without_jitter())
}

fn set(path: &str, value: &str) -> Result<Override, CliError> {
    let sets = scenario::parse_sets(&[format!("{path}={value}")])?;
    sets.into_iter().next().ok_or_else(|| too_few(path))
}

/// Whether two scenarios differ only below `[crowd]`, `[stream]` and `[run]`, and have as many
/// cohorts.
fn differs_in_crowd_alone(one: &Scenario, other: &Scenario) -> bool {
    let alike = Scenario {
        crowd: other.crowd.clone(),
        stream: other.stream.clone(),
        run: other.run.clone(),
        ..one.clone()
    };
    alike == *other && one.crowd.len() == other.crowd.len()
}

/// `PATH=A,B,C`; commas within brackets, braces and quotes belong to a value.
fn listed(vary: &str) -> Result<(&str, Vec<&str>), CliError> {
    let Some((path, list)) = vary.split_once('=') else { return Err(too_few(vary)) };
    let (mut values, mut from, mut depth, mut is_quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '[' | '{' if !is_quoted => depth += 1,
            ']' | '}' if !is_quoted => depth -= 1,
            ',' if !is_quoted && depth == 0 => {
                values.push(list.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    values.push(list.get(from..).unwrap_or_default());
    let values: Vec<&str> = values.into_iter().map(str::trim).collect();
    if values.len() < 2 || values.iter().any(|value| value.is_empty()) {
        return Err(too_few(vary));
    }
    if values.len() > VALUES_MAX {
        return Err(CliError::usage(format!(
            "--vary: {} values are too many, {VALUES_MAX} at most",
            values.len()
        )));
    }
    Ok((path.trim(), values))
}

fn too_few(vary: &str) -> CliError {
    CliError::usage(format!(
        "--vary {vary}: list two values or more, the lightest first, such as --vary \
         crowd.publish.video=144p,240p,360p"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_listed_with_commas_that_may_stand_within_them() {
        let (path, values) = listed("crowd.publish.video=144p, 240p,360p").unwrap();
        assert_eq!((path, values), ("crowd.publish.video", vec!["144p", "240p", "360p"]));
        let (_, values) =
            listed(r#"crowd.publish={simulcast=["144p","240p"]},{video="a,b"}"#).unwrap();
        assert_eq!(values, [r#"{simulcast=["144p","240p"]}"#, r#"{video="a,b"}"#]);
        for wrong in ["crowd.size", "crowd.size=1", "crowd.size=1,,2", "crowd.size="] {
            assert!(listed(wrong).is_err(), "{wrong}");
        }
    }
}
