//! The search for the largest crowd with good service: each second it is given the service quality
//! and answers with the size that the crowd should have.
//!
//! `next` decides the order of the loads, `loads` is the model of all holds.
//!
//! After a load that failed the crowd shrinks until service is good again, so that no load is
//! judged by the damage of the one before. After a hold that the generator limited it shrinks until
//! the generator keeps up again.

use throng_observation::{Clause, Goal, HoldOutcome, HoldRow, Purpose, RunTime, Unloaded};

mod schedule;
pub use schedule::Schedule;

mod trial;

pub(crate) mod loads;
use loads::Loads;

pub(crate) mod dependence_test;

mod next;
pub(crate) use next::criterion;
use next::{Known, Next};

mod holding;
pub(crate) use holding::LIMITED_FELT_S;
use holding::{HoldProgress, Holding};

mod estimate;
pub use estimate::Estimate;

mod pause;
use pause::{Pause, PauseProgress};

mod progress;
pub use progress::{Progress, SearchPhase};

mod recovery;
pub(crate) use recovery::NEVER as NEVER_BACK;
use recovery::{Recovery, RecoveryProgress};

#[cfg(test)]
mod family_tests;
#[cfg(test)]
mod pattern_tests;
#[cfg(test)]
pub(crate) mod rng;
#[cfg(test)]
mod simulated_tests;

/// The settings of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The goal whose limit is searched; the limits of the others follow from the same holds.
    pub goal: Goal,
    /// The crowd of the baseline.
    pub start: u32,
    /// The smallest crowd: 1, or 2 if participants need each other.
    pub floor: u32,
    /// Loads are multiples of this: 1, or the size of a room if whole rooms come and go.
    pub step: u32,
    /// The largest crowd that may be tried.
    pub ceiling: u32,
    /// The duration of each step.
    pub schedule: Schedule,
}

impl Settings {
    /// The load nearest to `users`, and never below the smallest.
    fn nearest(&self, users: f64) -> u32 {
        let step = self.step.max(1);
        ((users / f64::from(step)).round() as u32).saturating_mul(step).max(self.floor)
    }
}

/// The service quality of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// The end of the second.
    pub at: RunTime,
    /// Participants that should have been served.
    pub users: u32,
    /// Participants with a bad second, each weighted by the share of the participants that it
    /// received badly.
    pub bad: f64,
    /// Of them, those that were bad only in what a path or a source may do to media without load.
    pub bad_by_patterns: f64,
    /// Participants with a bad second by [`Clause`], in the order of [`Clause::ALL`].
    pub clauses: [u64; Clause::ALL.len()],
    /// The worst that received tracks were.
    pub media: Unloaded,
    /// Median of the relative delay of frames, milliseconds; shows when queues have settled.
    pub delay_ms: Option<f64>,
    /// Whether the generator was past its own limits.
    pub is_limited: bool,
    /// Whether the crowd has the size that the search wants, and the time to join is over for all
    /// of them.
    pub is_complete: bool,
}

/// The end of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The limit lies between a load that passed and one that failed, both held long enough.
    Found,
    /// The largest allowed crowd had good service.
    Ceiling,
    /// The generator was the limit repeatedly: nothing is known of the server above the loads that
    /// passed.
    GeneratorLimited,
    /// Even the smallest crowd had bad service.
    NeverPasses,
    /// Seconds were bad at any load: this host is too noisy for a decision.
    TooNoisy,
    /// After a load that failed the server did not recover.
    NoRecovery,
    /// A crowd below the limit had good service, but not for long.
    NotSustained,
}

/// A search.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// Holds that have ended.
    holds: Vec<HoldRow>,
    /// The current repeat, from 1.
    repeat: u32,
    next_number: u32,
    /// Consecutive holds that the generator limited.
    limited_holds: u32,
    /// The generator limited some load repeatedly: the search continues below it.
    is_below_generator: bool,
    /// Names of the loads from 1, if loads are values of the scenario.
    values: Vec<String>,
    /// What users see without load, beyond which they are judged.
    unloaded: Option<Unloaded>,
    /// The media of the last hold of the smallest crowd, if it was bad by patterns.
    pattern: Option<Unloaded>,
    /// Whether the smallest crowd was held after a rest: what a larger one left behind is gone.
    has_rested: bool,
    now: Now,
}

#[derive(Clone, Debug)]
enum Now {
    Holding(Box<Holding>),
    Recovering(Recovery, HoldRow),
    Pausing(Pause),
    /// Nobody is there, so that nothing of a larger crowd is left when the smallest is held again.
    Resting(Pause),
    Over(End, Option<HoldRow>),
}

fn value(values: &[String], load: u32) -> Option<String> {
    values.get(usize::try_from(load.checked_sub(1)?).ok()?).cloned()
}

impl Search {
    /// A search from the beginning. Loads are kept within `floor` and `ceiling`.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::resume(settings, &[])
    }

    /// Continues a search with the same settings that was cut off after `holds`.
    #[must_use]
    pub fn resume(mut settings: Settings, holds: &[HoldRow]) -> Self {
        settings.step = settings.step.max(1);
        settings.floor = settings.floor.max(settings.step);
        settings.ceiling = settings.ceiling.max(settings.floor);
        settings.start = settings.start.clamp(settings.floor, settings.ceiling);
        // A search that had just begun anew has no hold yet that ended so.
        let unloaded = holds.iter().max_by_key(|hold| hold.number).and_then(|last| last.unloaded);
        let is_alike = |hold: &&HoldRow| hold.until.is_some() && hold.unloaded == unloaded;
        let mut search = Self {
            settings,
            holds: holds.iter().filter(is_alike).cloned().collect(),
            unloaded,
            pattern: None,
            has_rested: false,
            repeat: holds.iter().map(|hold| hold.repeat).max().unwrap_or(1).max(1),
            next_number: holds.iter().map(|hold| hold.number + 1).max().unwrap_or(0),
            limited_holds: 0,
            is_below_generator: false,
            values: Vec::new(),
            now: Now::Over(End::TooNoisy, None),
        };
        let at = holds.iter().filter_map(|hold| hold.until).max().unwrap_or_default();
        search.decide(at);
        search
    }

    /// Names the loads from 1 on: they are values of the scenario, ordered by the load that they
    /// cause.
    #[must_use]
    pub fn named(mut self, values: Vec<String>) -> Self {
        if let Now::Holding(holding) = &mut self.now {
            holding.row.value = value(&values, holding.row.users);
        }
        self.values = values;
        self
    }

    /// The size that the crowd should have now.
    #[must_use]
    pub fn wants(&self) -> u32 {
        match &self.now {
            Now::Holding(holding) => holding.row.users,
            Now::Recovering(recovery, _) => recovery.users,
            Now::Pausing(pause) | Now::Resting(pause) => pause.users,
            Now::Over(..) => 0,
        }
    }

    /// What users see without load, if that is bad by itself: from now on they are to be judged
    /// beyond it.
    #[must_use]
    pub fn unloaded(&self) -> Option<&Unloaded> {
        self.unloaded.as_ref()
    }

    /// The end of the search, once it is over.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        match &self.now {
            Now::Over(end, _) => Some(end),
            _ => None,
        }
    }

    /// Adds a second; returns the rows that have changed, to be stored.
    pub fn second(&mut self, second: &Second) -> Vec<HoldRow> {
        match &mut self.now {
            Now::Holding(holding) => {
                let progress = holding.second(second);
                let row = holding.row.clone();
                let has_calmed_down = holding.has_calmed_down();
                let pattern =
                    if progress == HoldProgress::Ended { holding.pattern() } else { None };
                match progress {
                    HoldProgress::Continues => {}
                    HoldProgress::Ended => {
                        if row.users == self.settings.floor {
                            self.pattern = pattern;
                        }
                        self.ended(row.clone(), has_calmed_down, second.at);
                    }
                    HoldProgress::GeneratorLimited => self.pause(),
                }
                vec![row]
            }
            Now::Recovering(recovery, row) => {
                let mut row = row.clone();
                match recovery.second(second) {
                    RecoveryProgress::NotYet => return Vec::new(),
                    RecoveryProgress::After(ms) => {
                        row.recovery_ms = Some(ms);
                        if let Some(hold) = self.holds.last_mut() {
                            hold.recovery_ms = Some(ms);
                        }
                        self.decide(second.at);
                    }
                    RecoveryProgress::Never => {
                        row.why = Some(recovery::NEVER.to_owned());
                        self.now = Now::Over(End::NoRecovery, None);
                    }
                }
                vec![row]
            }
            Now::Pausing(pause) => {
                match pause.second(!second.is_limited) {
                    PauseProgress::NotYet => {}
                    PauseProgress::Over => self.decide(second.at),
                    PauseProgress::Never => self.now = Now::Over(End::GeneratorLimited, None),
                }
                Vec::new()
            }
            Now::Resting(rest) => {
                // Seconds close after their end, and leaving takes a while: until the crowd is gone
                // they are those of the load before.
                let is_gone = second.is_complete && second.users < self.settings.floor;
                if !is_gone {
                    return Vec::new();
                }
                match rest.second(!second.is_limited) {
                    PauseProgress::NotYet => {}
                    PauseProgress::Over => {
                        let Settings { floor, schedule, .. } = self.settings;
                        self.hold(Purpose::Retest, floor, schedule.hold_s, second.at);
                    }
                    PauseProgress::Never => self.now = Now::Over(End::GeneratorLimited, None),
                }
                Vec::new()
            }
            Now::Over(_, row) => row.take().into_iter().collect(),
        }
    }

    /// The current state.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let (purpose, judged_s, is_settling) = match &self.now {
            Now::Holding(holding) => (
                Some(holding.row.purpose),
                (holding.row.seconds, holding.whole_s()),
                holding.is_settling(),
            ),
            _ => (None, (0, 0), false),
        };
        let loads = self.known().loads();
        let of_repeat = |repeat| {
            let holds = &self.holds;
            Known { settings: &self.settings, holds, repeat }.loads().bracket()
        };
        Progress {
            purpose,
            users: self.wants(),
            judged_s,
            is_settling,
            passing: loads.passing().map(|load| load.users),
            failing: loads.failing().map(|load| load.users),
            repeat: (self.repeat, self.settings.schedule.repeats.max(1)),
            found: (1..self.repeat).filter_map(of_repeat).collect(),
            values: self.values.clone(),
            end: self.end().cloned(),
        }
    }

    fn known(&self) -> Known<'_> {
        Known { settings: &self.settings, holds: &self.holds, repeat: self.repeat }
    }

    /// The loads of this repeat.
    fn loads(&self) -> Loads {
        self.known().loads()
    }

    fn hold(&mut self, purpose: Purpose, users: u32, whole_s: u32, at: RunTime) {
        let row = HoldRow {
            number: self.next_number,
            repeat: self.repeat,
            purpose,
            users,
            step: self.settings.step,
            value: value(&self.values, users),
            from: at,
            unloaded: self.unloaded,
            ..HoldRow::default()
        };
        self.next_number += 1;
        self.now = Now::Holding(Box::new(Holding::new(row, self.settings, whole_s)));
    }

    /// The generator was the limit: holds the same load again once it keeps up, up to
    /// [`pause::TRIES`] times.
    fn pause(&mut self) {
        self.limited_holds += 1;
        if self.limited_holds > pause::TRIES && !self.look_below() {
            self.now = Now::Over(End::GeneratorLimited, None);
            return;
        }
        let half = self.loads().passing().map_or(0, |load| load.users / 2);
        self.now = Now::Pausing(Pause::new(
            self.settings.nearest(f64::from(half)),
            &self.settings.schedule,
        ));
    }

    /// The server's limit may lie below the load that the generator cannot offer: from now on no
    /// load is tried above the middle between that load and the passing one. False if there is
    /// nothing between.
    fn look_below(&mut self) -> bool {
        let (limited, step) = (self.wants(), self.settings.step);
        let Some(passing) = self.loads().passing() else { return false };
        let apart = limited.saturating_sub(passing.users);
        if apart < 2 * step
            || f64::from(apart) <= self.settings.schedule.width_ratio * f64::from(limited)
        {
            return false;
        }
        let middle = self.settings.nearest((f64::from(passing.users) * f64::from(limited)).sqrt());
        self.settings.ceiling = middle.clamp(passing.users + step, limited - step);
        (self.is_below_generator, self.limited_holds) = (true, pause::TRIES);
        true
    }

    /// A hold has come to its end.
    fn ended(&mut self, row: HoldRow, has_calmed_down: bool, at: RunTime) {
        self.limited_holds = if self.is_below_generator { pause::TRIES } else { 0 };
        self.holds.push(row.clone());
        let has_failed = row.passed(self.settings.goal) == HoldOutcome::No && !has_calmed_down;
        let is_last = row.purpose == Purpose::Soak;
        match self.loads().passing().filter(|_| has_failed && !is_last) {
            Some(passing) => {
                let calm = self.settings.nearest(f64::from(passing.users / 2));
                self.now = Now::Recovering(Recovery::new(calm, self.settings, at), row);
            }
            None => self.decide(at),
        }
    }

    /// The pattern by which the smallest crowd is badly served, if it may be one without load: no
    /// load has passed, and none was left out already.
    fn pattern_without_load(&self) -> Option<Unloaded> {
        let has_passed = |hold: &HoldRow| hold.passed(self.settings.goal) == HoldOutcome::Yes;
        // Values of the scenario are no crowds: the smallest is not without load.
        let is_first = self.unloaded.is_none() && self.values.is_empty();
        self.pattern.filter(|_| is_first && !self.holds.iter().any(has_passed))
    }

    /// The smallest crowd is badly served by `pattern`: that is no answer about load. Once what a
    /// larger crowd may have left behind is excluded, the search begins anew, and judges users
    /// beyond the pattern.
    fn begin_beyond(&mut self, pattern: Unloaded, at: RunTime) {
        let had_load = self.holds.iter().any(|hold| hold.users > self.settings.floor);
        self.pattern = None;
        if had_load && !self.has_rested {
            self.has_rested = true;
            self.now = Now::Resting(Pause::new(0, &self.settings.schedule));
            return;
        }
        self.unloaded = Some(pattern);
        self.holds.clear();
        self.decide(at);
    }

    /// Starts the next step.
    fn decide(&mut self, at: RunTime) {
        let next = self.known().next();
        if next == Next::Over(End::NeverPasses)
            && let Some(pattern) = self.pattern_without_load()
        {
            return self.begin_beyond(pattern, at);
        }
        match next {
            Next::Hold(purpose, users, whole_s) => self.hold(purpose, users, whole_s, at),
            Next::Repeat(users) => {
                self.repeat += 1;
                self.hold(Purpose::Bisect, users, self.settings.schedule.hold_s, at);
            }
            Next::Over(End::Ceiling) if self.is_below_generator => {
                self.now = Now::Over(End::GeneratorLimited, None);
            }
            Next::Over(end) => self.now = Now::Over(end, None),
        }
    }
}
