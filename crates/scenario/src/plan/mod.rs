//! The plan of a scenario: every join with its intended time, and the resources that server and
//! generator need.

use std::net::IpAddr;
use std::time::Duration;

use throng_observation::run::{CohortId, ParticipantId};

use crate::canary::Canary;
use crate::conversation::Conversation;
use crate::destination::Destination;
use crate::objective::Objective;
use crate::role::Role;
use crate::room::RoomConfig;
use crate::run::{Caps, RunTimes, Stream};
use crate::scenario::Scenario;
use crate::share::Share;
use crate::tap::Tap;
use crate::target::{Endpoint, Target};
use crate::watch::Watch;

mod joins;
mod load;

use joins::{joins_of, mark_followed};
pub use load::{ExpectedLoad, Needs, OWN_DESCRIPTORS};

/// The joins of a run and their expected load. Plans are deterministic: two plans of one scenario
/// are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The server under load.
    pub target: Target,
    /// Names of the cohorts by `CohortId`.
    pub cohorts: Vec<String>,
    /// The behaviour of the participants of each cohort in a conference, by `CohortId`.
    pub roles: Vec<Role>,
    /// The destination of each cohort, by `CohortId`.
    pub destinations: Vec<Destination>,
    /// The talkspurts; `None`: all participants speak all the time.
    pub conversation: Option<Conversation>,
    /// The room of a conference, if the run creates it.
    pub room: Option<RoomConfig>,
    /// The joins in the order of their times; in the whole plan, the participant's id is the index.
    pub joins: Vec<Join>,
    /// From the first intended join until all participants are asked to leave.
    pub duration: Duration,
    /// Time at the start that media metrics and their objectives exclude.
    pub warm_up: Duration,
    /// Interval of the plain-text summary.
    pub summary_every: Duration,
    /// The monitored processes; the index of a watch is its `HostId`.
    pub watch: Vec<Watch>,
    /// The participants whose received video is decoded.
    pub tap: Option<Tap>,
    /// Real browsers that join with the crowd.
    pub canary: Option<Canary>,
    /// The objectives of the run.
    pub objectives: Vec<Objective>,
    /// The limits in force, for the whole crowd.
    pub caps: Caps,
    /// The part of the crowd that this plan covers.
    pub share: Share,
    /// The load of this share on the server.
    pub expected: ExpectedLoad,
    /// The resources of the generator that this share needs.
    pub needs: Needs,
    /// One line per cohort of the file: size, arrival, stay.
    pub(crate) arrivals: Vec<String>,
    stream: Stream,
}

/// One participant's intended visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Numbered in the order of joins over all cohorts. A participant that replaces another has a
    /// new number.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// The number in the cohort, from 0; a participant that replaces another has the same one.
    pub place: u32,
    /// The intended time, from the start of the run.
    pub at: Duration,
    /// When to leave, from the start of the run; `None`: at its end.
    pub leave_at: Option<Duration>,
    /// Whether other participants of the same room, which stay longer, may still be joining at
    /// `leave_at`.
    pub others_follow: bool,
    /// The local address, if the cohort has a list.
    pub source_ip: Option<IpAddr>,
}

impl Scenario {
    /// Every join of the scenario, and the expected load.
    #[must_use]
    pub fn plan(&self) -> Plan {
        Plan::of(self)
    }
}

impl Plan {
    /// The plan of a scenario, for the whole crowd.
    fn of(scenario: &Scenario) -> Self {
        let RunTimes { duration, warm_up, summary_every } = scenario.run;
        let mut joins: Vec<Join> = Vec::new();
        let (rooms, each) = (scenario.target.rooms, scenario.crowd.len());
        for (index, cohort) in scenario.crowd.iter().enumerate() {
            let of_room = |room: u32| {
                CohortId(u16::try_from(room as usize * each + index).unwrap_or(u16::MAX))
            };
            joins_of(cohort, (rooms, &of_room), duration, &mut joins);
        }
        let (cohorts, roles): (_, Vec<Role>) = scenario.cohorts().unzip();
        // A stable sort: simultaneous joins keep the order of the file.
        joins.sort_by_key(|join| join.at);
        for (number, join) in (0_u32..).zip(&mut joins) {
            join.participant = ParticipantId(number);
        }
        mark_followed(&roles, duration, &mut joins);
        let mut plan = Self {
            target: scenario.target.clone(),
            cohorts,
            roles,
            destinations: Destination::all_of(scenario),
            conversation: scenario.conversation,
            room: scenario.room.clone(),
            joins,
            duration,
            warm_up,
            summary_every,
            watch: scenario.watch.clone(),
            tap: scenario.tap.clone(),
            canary: scenario.canary.clone(),
            objectives: scenario.objectives.clone(),
            caps: scenario.caps.clone(),
            share: Share::ALL,
            expected: ExpectedLoad::default(),
            needs: Needs::default(),
            arrivals: scenario.crowd.iter().map(|cohort| cohort.describe(rooms)).collect(),
            stream: scenario.stream.clone(),
        };
        plan.add_up();
        plan
    }

    /// The part of this plan for one of several generators; ids and times stay those of the whole
    /// plan.
    #[must_use]
    pub fn share(&self, share: Share) -> Self {
        let mut part = self.clone();
        part.joins.retain(|join| share.holds(join.participant.0));
        part.share = share;
        part.add_up();
        part
    }

    /// The part of the plan that one machine of several plays: the participants that it `holds`, by
    /// their numbers. What there is one of (browsers, watched hosts) stays with the whole plan.
    #[must_use]
    pub fn part(&self, holds: impl Fn(u32) -> bool) -> Self {
        let mut part = Self { canary: None, watch: Vec::new(), ..self.clone() };
        part.joins.retain(|join| holds(join.participant.0));
        part.add_up();
        part
    }

    /// The endpoint of a browser: that of the participant with its number in the first cohort that
    /// receives media.
    #[must_use]
    pub fn endpoint_of_browser(&self, number: u32) -> Endpoint {
        let mut destinations = self.destinations.iter();
        destinations.find(|destination| destination.part().receives_media()).map_or_else(
            || self.target.endpoint.clone(),
            |destination| destination.endpoint(number, number.into()),
        )
    }
}

#[cfg(test)]
mod tests;
