//! The search for the largest crowd that is served well: told each second how the crowd fared, it says how large the crowd
//! should be.
//!
//! `next` says in which order, `loads` what the holds together say.
//!
//! After each load that failed the crowd shrinks until it is served well again, so that no load is judged by the damage of
//! the one before. After a hold that the generator limited it shrinks until that keeps up again.

use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose, RunTime};

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
use holding::{HoldProgress, Holding};

mod estimate;
pub use estimate::Estimate;

mod pause;
use pause::{Pause, PauseProgress};

mod recovery;
pub(crate) use recovery::NEVER as NEVER_BACK;
use recovery::{Recovery, RecoveryProgress};

#[cfg(test)]
mod family_tests;
#[cfg(test)]
pub(crate) mod rng;
#[cfg(test)]
mod simulated_tests;

/// What is searched, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The goal whose limit is looked for; the others are read off the same holds.
    pub goal: Goal,
    /// The crowd of the baseline.
    pub start: u32,
    /// The smallest crowd that makes sense: 1, or 2 where participants need each other.
    pub floor: u32,
    /// Loads are multiples of this: 1, or the people of a room where whole rooms come and go.
    pub step: u32,
    /// The largest crowd that may be tried.
    pub ceiling: u32,
    /// How long each load is looked at.
    pub schedule: Schedule,
}

impl Settings {
    /// The load nearest to `users`, and never below the smallest.
    fn nearest(&self, users: f64) -> u32 {
        let step = self.step.max(1);
        ((users / f64::from(step)).round() as u32).saturating_mul(step).max(self.floor)
    }
}

/// How the crowd fared in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// The end of the second.
    pub at: RunTime,
    /// Participants who should have been served.
    pub users: u32,
    /// For how many of them it was a bad second, each by the share of the people whom it received badly.
    pub bad: f64,
    /// Median of the relative delay of frames, milliseconds; tells when queues have settled.
    pub delay_ms: Option<f64>,
    /// Whether the generator was past its own limits.
    pub is_limited: bool,
    /// Whether the crowd has the size that the search wants, and the time to join is over for all of it.
    pub is_complete: bool,
}

/// Why a search is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The limit lies between a load that passed and one that failed, each looked at for as long as it takes.
    Found,
    /// The largest crowd that may be tried was served well.
    Ceiling,
    /// The generator was the limit, again and again: of the server nothing is known above the loads that passed.
    GeneratorLimited,
    /// Even the smallest crowd was not served well.
    NeverPasses,
    /// Seconds were bad that no load explains: this host is too noisy to decide anything.
    TooNoisy,
    /// After a load that failed the server did not come back.
    NoRecovery,
    /// A crowd below the limit was served well, but not for long.
    NotSustained,
}

/// A search that goes on.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// What was held, and has ended.
    holds: Vec<HoldRow>,
    /// The search is repeated; which time, from 1.
    repeat: u32,
    next_number: u32,
    /// How many holds in a row the generator limited.
    limited_holds: u32,
    /// It was so often at some load that the search looks only below it.
    is_below_generator: bool,
    /// Names of the loads from 1, where they are no numbers of participants.
    values: Vec<String>,
    now: Now,
}

#[derive(Clone, Debug)]
enum Now {
    Holding(Box<Holding>),
    Recovering(Recovery, HoldRow),
    Pausing(Pause),
    Over(End, Option<HoldRow>),
}

/// What a search is at, for a person who watches.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What the present hold is for; `None` while the server or the generator recovers, and at the end.
    pub purpose: Option<Purpose>,
    /// How many participants it wants.
    pub users: u32,
    /// Seconds judged of the present hold, and of how many.
    pub judged_s: (u32, u32),
    /// Whether queues are still given time to settle.
    pub is_settling: bool,
    /// The largest crowd that passed in this repeat.
    pub passing: Option<u32>,
    /// The smallest that failed in this repeat.
    pub failing: Option<u32>,
    /// Which repeat it is, and of how many.
    pub repeat: (u32, u32),
    /// The passing and the failing load of each repeat that is over.
    pub found: Vec<(u32, u32)>,
    /// Names of the loads from 1, where they are no numbers of participants.
    pub values: Vec<String>,
}

impl Progress {
    /// A load as people read it.
    #[must_use]
    pub fn load(&self, load: u32) -> String {
        value(&self.values, load).unwrap_or_else(|| load.to_string())
    }
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

    /// A search that goes on where one with the same settings was cut off: `holds` are those that it had ended.
    #[must_use]
    pub fn resume(mut settings: Settings, holds: &[HoldRow]) -> Self {
        settings.step = settings.step.max(1);
        settings.floor = settings.floor.max(settings.step);
        settings.ceiling = settings.ceiling.max(settings.floor);
        settings.start = settings.start.clamp(settings.floor, settings.ceiling);
        let mut search = Self {
            settings,
            holds: holds.iter().filter(|hold| hold.until.is_some()).cloned().collect(),
            repeat: holds.iter().map(|hold| hold.repeat).max().unwrap_or(1).max(1),
            next_number: holds.iter().map(|hold| hold.number + 1).max().unwrap_or(0),
            limited_holds: 0,
            is_below_generator: false,
            values: Vec::new(),
            now: Now::Over(End::TooNoisy, None),
        };
        let at = search.holds.iter().filter_map(|hold| hold.until).max().unwrap_or_default();
        search.decide(at);
        search
    }

    /// Names the loads from 1 on: they are values of the scenario, in the order in which they weigh.
    #[must_use]
    pub fn named(mut self, values: Vec<String>) -> Self {
        if let Now::Holding(holding) = &mut self.now {
            holding.row.value = value(&values, holding.row.users);
        }
        self.values = values;
        self
    }

    /// How large the crowd should be now.
    #[must_use]
    pub fn wants(&self) -> u32 {
        match &self.now {
            Now::Holding(holding) => holding.row.users,
            Now::Recovering(recovery, _) => recovery.users,
            Now::Pausing(pause) => pause.users,
            Now::Over(..) => 0,
        }
    }

    /// Why it is over, once it is.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        match &self.now {
            Now::Over(end, _) => Some(end),
            _ => None,
        }
    }

    /// Takes in a second. Gives the rows that have changed, to be kept.
    pub fn second(&mut self, second: &Second) -> Vec<HoldRow> {
        match &mut self.now {
            Now::Holding(holding) => {
                let verdict = holding.second(second);
                let row = holding.row.clone();
                let has_calmed_down = holding.has_calmed_down();
                match verdict {
                    HoldProgress::Continues => {}
                    HoldProgress::Ended => self.ended(row.clone(), has_calmed_down, second.at),
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
                match pause.second(second) {
                    PauseProgress::NotYet => {}
                    PauseProgress::Over => self.decide(second.at),
                    PauseProgress::Never => self.now = Now::Over(End::GeneratorLimited, None),
                }
                Vec::new()
            }
            Now::Over(_, row) => row.take().into_iter().collect(),
        }
    }

    /// What it is at.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let (purpose, judged_s, is_settling) = match &self.now {
            Now::Holding(holding) => {
                (Some(holding.row.purpose), (holding.row.seconds, holding.whole_s()), holding.is_settling())
            }
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
            ..HoldRow::default()
        };
        self.next_number += 1;
        self.now = Now::Holding(Box::new(Holding::new(row, self.settings, whole_s)));
    }

    /// The generator was the limit: the same load again once it keeps up, unless it was so often.
    fn pause(&mut self) {
        self.limited_holds += 1;
        if self.limited_holds > pause::TRIES && !self.look_below() {
            self.now = Now::Over(End::GeneratorLimited, None);
            return;
        }
        let half = self.loads().passing().map_or(0, |load| load.users / 2);
        self.now = Now::Pausing(Pause::new(self.settings.nearest(f64::from(half)), &self.settings.schedule));
    }

    /// The server's limit may lie below the load that the generator cannot offer: from here on no load is tried above the
    /// middle between that and what passed. False where there is nothing between.
    fn look_below(&mut self) -> bool {
        let (limited, step) = (self.wants(), self.settings.step);
        let Some(passing) = self.loads().passing() else { return false };
        let apart = limited.saturating_sub(passing.users);
        if apart < 2 * step || f64::from(apart) <= self.settings.schedule.width_ratio * f64::from(limited) {
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

    /// Begins what comes next.
    fn decide(&mut self, at: RunTime) {
        match self.known().next() {
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
