//! The steps of a search for the limit: a load that was held, for how long, and what it came to.

use serde::{Deserialize, Serialize};

use crate::RunTime;

/// What a hold was for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A small crowd: the floor of delay and load, and whether this host is quiet enough to decide anything.
    #[default]
    Baseline,
    /// A step of the way up, which tells what a user costs.
    Demand,
    /// Between a load that passed and one that failed.
    Bisect,
    /// A load again of which its holds do not yet agree, or one bad moment decided.
    Retest,
    /// The failing load again, for longer: one unlucky moment must not decide.
    Confirm,
    /// The passing load again after the failing one was confirmed: it must not have passed by luck, or only early.
    Verify,
    /// A low and a high load in turns: does it depend on the load at all that seconds are bad?
    DependenceTest,
    /// Below the limit for long: what leaks or drifts shows here.
    Soak,
}

impl Purpose {
    /// All.
    pub const ALL: [Self; 8] = [
        Self::Baseline,
        Self::Demand,
        Self::Bisect,
        Self::Retest,
        Self::Confirm,
        Self::Verify,
        Self::DependenceTest,
        Self::Soak,
    ];

    /// The word for it in tables and keys.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Demand => "demand",
            Self::Bisect => "bisect",
            Self::Retest => "retest",
            Self::Confirm => "confirm",
            Self::Verify => "verify",
            Self::DependenceTest => "dependence_test",
            Self::Soak => "soak",
        }
    }
}

/// How well the crowd is to be served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Nobody notices anything: at most 0.1 % of users have a bad second.
    Clean,
    /// At most 1 % of users have a bad second: the headline.
    #[default]
    Acceptable,
    /// More than 20 % of users have bad seconds beyond it: nobody would call it a service.
    Broken,
}

impl Goal {
    /// All, strictest first.
    pub const ALL: [Self; 3] = [Self::Clean, Self::Acceptable, Self::Broken];

    /// The word for it in tables and keys.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Acceptable => "acceptable",
            Self::Broken => "broken",
        }
    }

    /// A second is bad for this goal when a larger share of its users had a bad one.
    #[must_use]
    pub fn bad_ratio_max(self) -> f64 {
        match self {
            Self::Clean => 0.001,
            Self::Acceptable => 0.01,
            Self::Broken => 0.20,
        }
    }

    /// The exceed ratio (RFC 9971): the share of seconds that may be bad.
    #[must_use]
    pub fn exceed_ratio(self) -> f64 {
        match self {
            Self::Clean | Self::Acceptable => 0.05,
            Self::Broken => 0.5,
        }
    }
}

/// What a load came to for one goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    /// Not held long enough to say.
    #[default]
    Undecided,
    /// It kept the goal.
    Yes,
    /// It did not.
    No,
}

impl HoldOutcome {
    /// The word for it in tables and keys.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Yes => "yes",
            Self::No => "no",
        }
    }
}

/// One hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HoldRow {
    /// Holds are numbered from 0 in order of time; a later row of the same number replaces it.
    pub number: u32,
    /// The search is repeated; which time, from 1.
    pub repeat: u32,
    /// What it was for.
    pub purpose: Purpose,
    /// The load: how many participants the search wanted; or, where it varied a value of the scenario, which of them, from 1.
    pub users: u32,
    /// Loads that differ by less than this do not exist: 1, or the people of a room where rooms are varied.
    pub step: u32,
    /// Where a value of the scenario is varied: the value, such as `crowd.publish.video = 360p`.
    pub value: Option<String>,
    /// Since when it wanted them.
    pub from: RunTime,
    /// Since when seconds count: the joins are over and queues have settled.
    pub judged_from: Option<RunTime>,
    /// When it was over.
    pub until: Option<RunTime>,
    /// Seconds that were judged.
    pub seconds: u32,
    /// Seconds that were bad, by [`Goal`] in the order of [`Goal::ALL`].
    pub bad_seconds: [u32; 3],
    /// Stretches of bad seconds for [`Goal::Acceptable`], those less than 3 good seconds apart counted as one: how often it
    /// went bad, where [`Self::bad_seconds`] says for how long.
    pub bad_stretches: u32,
    /// Whether it was still bad when it ended: a moment is over while the load lasts, an overload is not.
    pub bad_to_the_end: bool,
    /// When the first second was bad for [`Goal::Acceptable`]: its end.
    pub broke_at: Option<RunTime>,
    /// What it came to, by [`Goal`] in the order of [`Goal::ALL`].
    pub passed: [HoldOutcome; 3],
    /// Participants × seconds that were judged.
    pub user_seconds: u64,
    /// Those of them that were bad.
    pub bad_user_seconds: u64,
    /// Seconds in which the generator was past its own limits.
    pub limited_seconds: u32,
    /// After a load that failed: how long the server took to serve a smaller crowd well again, milliseconds.
    pub recovery_ms: Option<u64>,
    /// Why it ended, in a sentence, where that is not the ordinary end of its time.
    pub why: Option<String>,
}

impl HoldRow {
    /// What it came to for `goal`.
    #[must_use]
    pub fn passed(&self, goal: Goal) -> HoldOutcome {
        self.passed[goal as usize]
    }

    /// Whether more than half of its seconds were bad for `goal`.
    #[must_use]
    pub fn is_mostly_bad(&self, goal: Goal) -> bool {
        self.bad_seconds[goal as usize] * 2 > self.seconds || self.seconds == 0
    }

    /// Whether it was mostly bad, and to the end: an overload lasts while the load does.
    #[must_use]
    pub fn is_overloaded(&self, goal: Goal) -> bool {
        self.is_mostly_bad(goal) && self.bad_to_the_end
    }
}
