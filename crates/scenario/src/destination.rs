//! The destination of a cohort: the URL of each of its participants, and the streams that they are
//! distributed over.

use std::sync::Arc;

use crate::scenario::Scenario;
use crate::streams::Streams;
use crate::target::{Endpoint, Part, Target};
use crate::url_template::UrlValues;

/// The destination of one cohort.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// The scenario's target, or the cohort's own URL on the same host.
    pub target: Arc<Target>,
    /// The cohort's name in the scenario, without the room.
    pub(crate) cohort: String,
    /// The index of its room, from 0.
    pub(crate) room: u32,
    pub(crate) streams: Option<Streams>,
}

impl Scenario {
    /// The destination of each cohort of the run, by `CohortId`.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        Destination::all_of(self)
    }
}

impl Destination {
    /// The destinations of all cohorts of a run, room after room.
    pub(crate) fn all_of(scenario: &Scenario) -> Vec<Self> {
        let default = Arc::new(scenario.target.clone());
        let target = |own: &Option<Target>| {
            own.as_ref().map_or_else(|| Arc::clone(&default), |own| Arc::new(own.clone()))
        };
        let targets: Vec<Arc<Target>> =
            scenario.crowd.iter().map(|cohort| target(&cohort.target)).collect();
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

    /// The endpoint of participant `number` of the cohort; `random` is the random number of this
    /// join.
    #[must_use]
    pub fn endpoint(&self, number: u32, random: u64) -> Endpoint {
        self.target.endpoint_of(&self.values(number, Some(random)))
    }

    /// The URL of participant `number`, secrets redacted; `None` if all have the same.
    #[must_use]
    pub fn shown(&self, number: u32) -> Option<String> {
        self.target.shown_of(&self.values(number, None))
    }

    /// What its participants do.
    #[must_use]
    pub fn part(&self) -> Part {
        self.target.part()
    }

    fn values(&self, number: u32, random: Option<u64>) -> UrlValues<'_> {
        let stream = self.streams.as_ref().map_or(0, |streams| streams.of(number));
        UrlValues { number, stream, room: self.room, cohort: &self.cohort, random }
    }
}
