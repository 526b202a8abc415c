//! What a cell changes of the scenario: its files, overrides, crowd, and the times of its hold.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_scenario::matrix::{Cell, CellConfig, Measure, SearchKeys, Template};
use throng_scenario::{Arrival as _, Override, Scenario};

use super::{MatrixPlan, NOT_WATCHED};
use crate::console::CliError;
use crate::{find, scenario, watchers};

/// From the last join until the hold is judged: connected users are judged at once, and have 3 s to
/// begin (docs/find.md).
const SETTLE: Duration = Duration::from_secs(3);
/// Arrivals that last longer are no part of a cell.
const GATHERS_MAX: &str = "50m";

/// The times of a cell's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldTimes {
    /// When the hold begins, seconds after the first join.
    pub(crate) from_s: u64,
    /// When it ends, and the run with it.
    pub(crate) until_s: u64,
}

impl MatrixPlan {
    /// The configuration files of a cell: where each is to be, and its text.
    pub(crate) fn files(&self, config: &CellConfig) -> Result<Vec<(PathBuf, String)>, CliError> {
        let known: BTreeSet<String> =
            config.variables.iter().map(|(name, _)| name.clone()).collect();
        let value = |name: &str| {
            let found = config.variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let file = |file: &throng_scenario::matrix::ServerFile<String>| {
            let template = self.base.join(&file.template);
            let wrong = |error: &dyn std::fmt::Display| {
                CliError::usage(format!("{}: {error}", template.display()))
            };
            let text = std::fs::read_to_string(&template).map_err(|error| wrong(&error))?;
            let read = Template::of_file(&text, &known)
                .map_err(|error| CliError::usage(format!("{}:\n{error}", template.display())))?;
            Ok((self.base.join(&file.path), read.render(&value)))
        };
        config.server.files.iter().map(file).collect()
    }

    /// The scenario's overrides in a cell, as `PATH=VALUE`, and the times of the hold. The scenario
    /// is read with them, so that what is wrong is an error.
    pub(crate) fn overrides(
        &self,
        config: &CellConfig,
    ) -> Result<(Vec<String>, Option<HoldTimes>), CliError> {
        let (mut sets, mut parsed) = self.crowd(config, self.held())?;
        let Measure::Hold(hold) = self.matrix.measure else {
            self.scenario_with(&parsed)?;
            return Ok((sets, None));
        };
        let times = self.hold_times(&parsed, hold)?;
        sets.push(format!("run.duration=\"{}s\"", times.until_s));
        sets.push(format!("run.warm_up=\"{}s\"", times.from_s));
        parsed.extend(scenario::parse_sets(sets.get(sets.len() - 2..).unwrap_or_default())?);
        self.scenario_with(&parsed)?;
        Ok((sets, Some(times)))
    }

    /// The scenario with these overrides.
    pub(super) fn scenario_with(&self, overrides: &[Override]) -> Result<Scenario, CliError> {
        let read = if self.is_stored { scenario::read_stored } else { scenario::read };
        read(&self.scenario, overrides)
    }

    /// Overrides, read. A variable that is not there any more is no error of a report.
    pub(super) fn parsed(&self, sets: &[String]) -> Result<Vec<Override>, CliError> {
        if !self.is_stored {
            return scenario::parse_sets(sets);
        }
        let each =
            sets.iter().filter_map(|set| scenario::parse_sets(std::slice::from_ref(set)).ok());
        Ok(each.flatten().collect())
    }

    /// The overrides of a cell without the times of its hold, as `PATH=VALUE` and read; the crowd
    /// has `users`, if that is given.
    pub(super) fn crowd(
        &self,
        config: &CellConfig,
        users: Option<u32>,
    ) -> Result<(Vec<String>, Vec<Override>), CliError> {
        let of_all_cells = self.matrix.set.len();
        let set = |(path, value): &(String, String)| format!("{path}={value}");
        let again = &self.options.again;
        let mut sets = again.scenario.clone();
        sets.extend(config.set.iter().take(of_all_cells).map(set));
        sets.extend(again.set.iter().cloned());
        sets.extend(config.set.iter().skip(of_all_cells).map(set));
        sets.extend(self.options.set.iter().cloned());
        let mut parsed = self.parsed(&sets)?;
        let allow = &self.options.allow_target;
        if !allow.is_empty() {
            let list: Vec<String> = allow.iter().map(|cidr| format!("\"{cidr}\"")).collect();
            parsed.push(Override::flag_toml(
                "--allow-target",
                "target.allow",
                &format!("[{}]", list.join(", ")),
            ));
        }
        if let Some(users) = users {
            let size = find::of_load(&self.scenario_with(&parsed)?, users);
            parsed.extend(scenario::parse_sets(std::slice::from_ref(&size))?);
            sets.push(size);
        }
        Ok((sets, parsed))
    }

    /// When the crowd of the scenario with these overrides is held.
    fn hold_times(&self, parsed: &[Override], hold: Duration) -> Result<HoldTimes, CliError> {
        let long = Override::flag("hold", "run.duration", GATHERS_MAX);
        let overrides: Vec<Override> = parsed.iter().cloned().chain([long]).collect();
        let scenario = self.scenario_with(&overrides)?;
        let from_s = (gathers(&scenario) + SETTLE).as_secs_f64().ceil() as u64;
        Ok(HoldTimes { from_s, until_s: from_s + hold.as_secs_f64().ceil() as u64 })
    }

    /// How long a run takes that holds the crowd of a cell, `users` or that of the scenario.
    pub(crate) fn hold_takes(&self, cell: &Cell, hold: Duration, users: Option<u32>) -> Duration {
        let config = self.config(cell, Path::new("/dir"));
        let parsed = self.crowd(&config, users).map(|(_, parsed)| parsed);
        let times = parsed.and_then(|parsed| self.hold_times(&parsed, hold));
        let server = &config.server;
        let is_watched = server.command.is_some() && server.watch.as_deref() != Some(NOT_WATCHED);
        let baseline = if is_watched { watchers::BASELINE } else { Duration::ZERO };
        Duration::from_secs(times.map_or(0, |times| times.until_s)) + baseline
    }

    /// The scenario of a cell; `None` if it cannot be read.
    pub(crate) fn scenario_of(&self, config: &CellConfig) -> Option<Scenario> {
        let (_, parsed) = self.crowd(config, None).ok()?;
        self.scenario_with(&parsed).ok()
    }

    /// The largest crowd that a search of the baseline tries.
    pub(crate) fn ceiling(&self, search: &SearchKeys) -> Option<u32> {
        let config = self.config(self.cells.first()?, Path::new("/dir"));
        Some(find::ceiling(search.ceiling, &self.scenario_of(&config)?))
    }

    /// The most users of a held crowd.
    pub(crate) fn users_max(&self, cell: &Cell, search: &SearchKeys) -> u32 {
        let scenario = self.scenario_of(&self.config(cell, Path::new("/dir")));
        let allowed = scenario.and_then(|scenario| find::users_allowed(&scenario));
        let most = |users: Option<u32>| users.unwrap_or(u32::MAX);
        most(search.ceiling).min(most(allowed))
    }
}

/// When the last participant joins for the first time.
fn gathers(scenario: &Scenario) -> Duration {
    let rooms = scenario.target.rooms;
    let last = scenario.crowd.iter().filter_map(|cohort| {
        let last = cohort.arrival.offsets(cohort.size.saturating_mul(rooms)).last()?;
        Some(cohort.starts_at.saturating_add(last))
    });
    last.max().unwrap_or_default()
}
