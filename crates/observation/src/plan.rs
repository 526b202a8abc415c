//! What a run was planned to be, as far as its report needs it. It is kept with the run, so that a
//! report reads no scenario.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run::{CohortId, ParticipantId};
use crate::{RunTime, SubscribePolicy, VcardPolicy};

/// The plan of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Time at the start that media metrics and their objectives exclude, microseconds.
    pub warm_up_us: u64,
    /// The objectives, as the scenario has them.
    pub objectives: Vec<String>,
    /// The cohorts of the scenario in the order of their ids. A search that varied a value has them
    /// once for each value; here they are once.
    pub cohorts: Vec<PlannedCohort>,
    /// The visits of a conference in the order of their participants; of other runs none, as their
    /// reports need none.
    pub joins: Vec<PlannedJoin>,
}

impl RunPlan {
    /// Time at the start that media metrics and their objectives exclude.
    #[must_use]
    pub fn warm_up(&self) -> Duration {
        Duration::from_micros(self.warm_up_us)
    }

    /// How many rooms there are; 1 where there is no conference.
    #[must_use]
    pub fn rooms(&self) -> u32 {
        let last = self.cohorts.iter().map(|cohort| cohort.room).max();
        last.unwrap_or(0).saturating_add(1)
    }

    /// Participants of all cohorts in all rooms.
    #[must_use]
    pub fn users(&self) -> u64 {
        self.cohorts.iter().map(|cohort| u64::from(cohort.size)).sum()
    }

    /// The visit of a participant of this cohort.
    #[must_use]
    pub fn join_of(&self, participant: ParticipantId, cohort: CohortId) -> Option<&PlannedJoin> {
        let at = self.joins.binary_search_by_key(&participant, |join| join.participant).ok()?;
        self.joins.get(at).filter(|join| join.cohort == cohort)
    }
}

/// What the participants of a cohort do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCohort {
    /// Which cohort.
    pub cohort: CohortId,
    /// The index of its room, from 0.
    pub room: u32,
    /// Its participants at a time.
    pub size: u32,
    /// Whether it has a URL of its own, in place of that of the target.
    pub has_own_url: bool,
    /// Whether they send media to each other.
    pub confers: bool,
    /// Whether they send media and receive none.
    pub only_publishes: bool,
    /// Whether they receive media, or may.
    pub watches: bool,
    /// Whether media goes into a buffer from which it is played.
    pub plays_from_buffer: bool,
    /// Whether they load a page around the player.
    pub loads_page: bool,
    /// Whether they are in a chat.
    pub is_in_chat: bool,
    /// Whether they send video.
    pub sends_video: bool,
    /// Whether they send audio.
    pub sends_audio: bool,
    /// Whether they send their video in several sizes at once.
    pub sends_layers: bool,
    /// Whose video they receive.
    pub video: SubscribePolicy,
    /// Whose audio they receive.
    pub audio: SubscribePolicy,
    /// Whose vCards they fetch, where they are in a chat.
    pub vcards: VcardPolicy,
    /// What one of them sends on the wire, bits per second; `None` where it is not known before.
    pub sent_bps: Option<f64>,
}

impl Default for PlannedCohort {
    /// That of a participant of a conference of whom nothing else is known: it sends video and
    /// audio, and receives all others.
    fn default() -> Self {
        Self {
            cohort: CohortId(0),
            room: 0,
            size: 0,
            has_own_url: false,
            confers: true,
            only_publishes: false,
            watches: true,
            plays_from_buffer: false,
            loads_page: false,
            is_in_chat: false,
            sends_video: true,
            sends_audio: true,
            sends_layers: false,
            video: SubscribePolicy::All,
            audio: SubscribePolicy::All,
            vcards: VcardPolicy::default(),
            sent_bps: None,
        }
    }
}

impl PlannedCohort {
    /// Whether they send anything.
    #[must_use]
    pub fn sends(&self) -> bool {
        self.sends_video || self.sends_audio
    }
}

/// The visit of one participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedJoin {
    /// The participant.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// When it is to join.
    pub intended_at: RunTime,
    /// When it is to leave; `None`: at the end of the run.
    pub leave_at: Option<RunTime>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_is_that_of_the_participant_and_its_cohort() {
        let join = |number, cohort| PlannedJoin {
            participant: ParticipantId(number),
            cohort: CohortId(cohort),
            intended_at: RunTime(0),
            leave_at: None,
        };
        // A file may lack one.
        let plan =
            RunPlan { joins: vec![join(0, 0), join(2, 1), join(3, 0)], ..RunPlan::default() };
        assert_eq!(plan.join_of(ParticipantId(2), CohortId(1)), Some(&join(2, 1)));
        assert_eq!(plan.join_of(ParticipantId(2), CohortId(0)), None);
        assert_eq!(plan.join_of(ParticipantId(1), CohortId(0)), None);
    }

    #[test]
    fn rooms_and_users_are_those_of_all_cohorts() {
        let cohort = |room, size| PlannedCohort { room, size, ..PlannedCohort::default() };
        let cohorts = vec![cohort(0, 1), cohort(0, 24), cohort(1, 1), cohort(1, 24)];
        let plan = RunPlan { cohorts, ..RunPlan::default() };
        assert_eq!((plan.rooms(), plan.users()), (2, 50));
        assert_eq!((RunPlan::default().rooms(), RunPlan::default().users()), (1, 0));
    }
}
