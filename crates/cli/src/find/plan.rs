//! The plan of a search: the scenario at its largest, what varies and between which bounds, how
//! long each load is held.

use std::time::Duration;

use throng_analysis::search::{Estimate, Schedule, Settings};
use throng_observation::{BadIf, Goal, RunTime};
use throng_scenario::{Moment, Plan, ProfileRequest, Scenario, Watch};

use super::announced::{Announced, takes};
use super::crowd::{CrowdConfig, LoadShape};
use super::largest::stops_after;
use super::profile_triggers::{PROFILE, near_limit};
use super::variation::Variation;
use crate::args::{Find, duration};
use crate::console::{CliError, say};
use crate::media::Pages;
use crate::session;

/// What the full schedule may take.
const FULL: Duration = Duration::from_secs(75 * 60);
/// Joins a second where the scenario lets all participants join at once.
const JOINS_PER_S: f64 = 20.0;
/// The slowest rate of joins: at a lower one the crowd would take longer to gather than to judge.
const JOINS_PER_S_MIN: f64 = 1.0;
/// The longest that a stream takes to begin after its publisher has come.
const STREAM_BEGINS_MAX: Duration = Duration::from_secs(30);

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
                "no server is watched: the search will find the limit, but not its cause (--watch \
                 process=…)"
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
                    "the last value at which {users} users of {target} are served well: from \
                     {first} up to {last}"
                )
            }
            (LoadShape::Cohort { varying, .. }, _) => {
                let varying =
                    self.plan.cohorts.get(usize::from(varying.0)).map_or("", String::as_str);
                format!(
                    "the largest crowd of {target} that is served well: from {start} up to \
                     {ceiling} ({varying})"
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

/// When the first of the varying cohort may come: at its `starts_at`, if that is so soon that it
/// waits for a stream to begin. A crowd that comes in waves has none of them in a search.
fn varying_from(scenario: &Scenario, shape: &LoadShape) -> RunTime {
    let LoadShape::Cohort { varying, .. } = shape else { return RunTime(0) };
    let cohort = scenario.crowd.get(usize::from(varying.0));
    let starts_at = cohort.map_or(Duration::ZERO, |cohort| cohort.starts_at);
    if starts_at > STREAM_BEGINS_MAX { RunTime(0) } else { RunTime::after_start(starts_at) }
}

/// The mean rate at which the plan's crowd gathers.
fn joins_per_s(plan: &Plan) -> f64 {
    let gathers_s = plan.joins.last().map_or(0.0, |join| join.at.as_secs_f64());
    let rate = plan.joins.len().saturating_sub(1) as f64 / gathers_s;
    if rate.is_finite() && rate > 0.0 { rate.max(JOINS_PER_S_MIN) } else { JOINS_PER_S }
}
