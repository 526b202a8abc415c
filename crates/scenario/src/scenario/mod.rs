//! The scenario: a load test as a file or a command line describes it.

use std::time::Duration;

use crate::arrival::{Arrival as _, ArrivalKind};
use crate::canary::Canary;
use crate::churn::{Reconnect, Stay, StayTime};
use crate::conversation::Conversation;
use crate::network::AddressRange;
use crate::objective::Objective;
use crate::role::{Role, Subscription};
use crate::room::RoomConfig;
use crate::run::{Caps, OutputConfig, RunTimes, Stream};
use crate::source::Source;
use crate::streams::Streams;
use crate::tap::Tap;
use crate::target::{Part, Target};
use crate::units;
use crate::watch::Watch;

mod keys;

/// More participants than one run could hold in memory.
pub(crate) const SIZE_MAX: u64 = 1_000_000;

/// A load test. [`Scenario::parse_with`] and [`Scenario::from_flags`] return checked scenarios
/// only.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The server under load.
    pub target: Target,
    /// The cohorts in the order of the file, at least one; in the first room, a cohort's index is
    /// its `CohortId`.
    pub crowd: Vec<Cohort>,
    /// Length of the run, warm-up, interval of summaries.
    pub run: RunTimes,
    /// The stream that one viewer is expected to receive.
    pub stream: Stream,
    /// The talkspurts in a conference; `None`: all participants speak all the time.
    pub conversation: Option<Conversation>,
    /// The room of a conference, if the run creates it.
    pub room: Option<RoomConfig>,
    /// The monitored processes; the index of a watch is its `HostId`.
    pub watch: Vec<Watch>,
    /// The participants whose received video is decoded.
    pub tap: Option<Tap>,
    /// Real browsers that join with the crowd.
    pub canary: Option<Canary>,
    /// The objectives of the run (service level objectives; k6: thresholds).
    pub objectives: Vec<Objective>,
    /// The output of the run.
    pub output: OutputConfig,
    /// The limits in force.
    pub caps: Caps,
    /// What it was read from.
    pub source: Source,
}

/// Participants with the same configuration, which arrive together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cohort {
    /// Its name in reports; unique in the scenario.
    pub name: String,
    /// Number of participants per room, at least 1; with `rejoin`, at a time.
    pub size: u32,
    /// The schedule of their joins.
    pub arrival: ArrivalKind,
    /// When its arrivals begin, since the start of the run.
    pub starts_at: Duration,
    /// How long each participant stays; `None`: until the end of the run.
    pub stay: Option<Stay>,
    /// Local addresses, assigned round robin; empty: the kernel chooses.
    pub source_ips: Vec<AddressRange>,
    /// The streams that they are distributed over, for `{stream}` in the URL.
    pub streams: Option<Streams>,
    /// Their own URL, on the same host as the scenario's target.
    pub target: Option<Target>,
    /// The behaviour of its participants in a conference; `None`: the default.
    pub role: Option<Role>,
    /// When all of them leave and join again.
    pub reconnect: Option<Reconnect>,
}

impl Scenario {
    /// Participants of all cohorts in all rooms.
    #[must_use]
    pub fn users(&self) -> u64 {
        let of_room: u64 = self.crowd.iter().map(|cohort| u64::from(cohort.size)).sum();
        of_room.saturating_mul(u64::from(self.target.rooms))
    }

    /// The scenario with joins exactly when their schedules say: a search, which adds participants
    /// at an even rate, plays it so.
    #[must_use]
    pub fn without_jitter(mut self) -> Self {
        self.crowd.iter_mut().for_each(|cohort| cohort.arrival.remove_jitter());
        self
    }

    /// The role of a cohort's participants. Those that only send receive nobody, whatever the role
    /// says.
    fn role_of(&self, cohort: &Cohort) -> Role {
        let role = cohort.role.clone().unwrap_or_default();
        match cohort.target.as_ref().unwrap_or(&self.target).part() {
            Part::Publish => Role { subscribe: Subscription::NONE, ..role },
            Part::Watch | Part::Confer | Part::Chat | Part::Visit => role,
        }
    }

    /// Name and role of each cohort of the run, by `CohortId`: the cohorts of the file, room after
    /// room.
    pub fn cohorts(&self) -> impl Iterator<Item = (String, Role)> {
        let rooms = self.target.rooms;
        (0..rooms).flat_map(move |room| {
            self.crowd.iter().map(move |cohort| {
                let name = match rooms {
                    1 => cohort.name.clone(),
                    _ => format!("{}, room {}", cohort.name, room + 1),
                };
                (name, Role { room, ..self.role_of(cohort) })
            })
        })
    }
}

impl Cohort {
    /// The intended joins of `size` participants in a run of `duration`, in ascending order.
    pub(crate) fn joins(
        &self,
        size: u32,
        duration: Duration,
    ) -> impl Iterator<Item = Duration> + '_ {
        let offsets = self.arrival.offsets_before(size, duration.saturating_sub(self.starts_at));
        offsets.map(|offset| self.starts_at.saturating_add(offset))
    }

    /// One line for the plan.
    pub(crate) fn describe(&self, rooms: u32) -> String {
        let per_room = if rooms > 1 { format!(" in each of {rooms} rooms") } else { String::new() };
        let arrival = self.arrival.describe(self.size.saturating_mul(rooms));
        let mut line = format!("{} {}{per_room}, {arrival}", self.size, self.name);
        if !self.starts_at.is_zero() {
            line += &format!(" from {} on", units::shown(self.starts_at));
        }
        if let Some(stay) = &self.stay {
            line += &match stay.time {
                StayTime::Constant(time) => format!(", stay {}", units::shown(time)),
                StayTime::Exponential { mean, seed } => {
                    format!(", mean stay {} (exponential, seed {seed})", units::shown(mean))
                }
            };
            line.push_str(if stay.rejoin { ", replaced" } else { "" });
        }
        if let Some(streams) = &self.streams {
            line += &format!(", {}", streams.describe());
        }
        if let Some(target) = &self.target {
            line += &format!(", at {} ({})", target.display(), target.protocol().name());
        }
        line
    }
}
