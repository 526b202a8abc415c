//! The way of a cohort: at which URL its participants join, and over how many streams they are spread.

use std::sync::Arc;

use crate::names::Whose;
use crate::scenario::Scenario;
use crate::streams::Streams;
use crate::target::{Endpoint, Protocol, Target};

/// Where the participants of one cohort go.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// The scenario's target, or the cohort's own URL on the same host and port.
    pub target: Arc<Target>,
    /// The cohort's name in the scenario, without the room.
    pub(crate) cohort: String,
    /// The place of its room, from 0.
    pub(crate) room: u32,
    pub(crate) streams: Option<Streams>,
}

impl Destination {
    /// The ways of all cohorts of a run, room after room.
    pub(crate) fn all_of(scenario: &Scenario) -> Vec<Self> {
        let usual = Arc::new(scenario.target.clone());
        let target = |own: &Option<Target>| {
            own.as_ref().map_or_else(|| Arc::clone(&usual), |own| Arc::new(own.clone()))
        };
        let targets: Vec<Arc<Target>> = scenario.crowd.iter().map(|cohort| target(&cohort.target)).collect();
        let of_room = |room: u32| {
            scenario.crowd.iter().zip(&targets).map(move |(cohort, target)| Self {
                target: Arc::clone(target),
                cohort: cohort.name.clone(),
                room,
                streams: cohort.streams.clone(),
            })
        };
        (0..scenario.target.rooms).flat_map(of_room).collect()
    }

    /// Where the participant of number `number` in the cohort goes; `random` was drawn for this join.
    #[must_use]
    pub fn endpoint(&self, number: u32, random: u64) -> Endpoint {
        self.target.endpoint_of(&self.whose(number, Some(random)))
    }

    /// Its URL as the scenario would write it, without secrets; `None` where all have the same.
    #[must_use]
    pub fn shown(&self, number: u32) -> Option<String> {
        self.target.shown_of(&self.whose(number, None))
    }

    /// Whether its participants only send, as by WHIP.
    #[must_use]
    pub fn is_send_only(&self) -> bool {
        self.target.protocol() == Protocol::Whip
    }

    fn whose(&self, number: u32, random: Option<u64>) -> Whose<'_> {
        let stream = self.streams.as_ref().map_or(0, |streams| streams.of(number));
        Whose { number, stream, room: self.room, cohort: &self.cohort, random }
    }
}
