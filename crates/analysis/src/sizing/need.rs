//! The need of a crowd for one resource.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, SizeRequest, SizedResource};
use crate::demand::growth::{Bend, Extrapolation, Growth};

/// How many users one more unit of a resource serves, at the largest load that passed, without
/// headroom.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsersPer {
    /// Users.
    pub value: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end; `null` if a user may cost nothing.
    pub high: Option<f64>,
}

impl UsersPer {
    /// `None` where the resource does not grow measurably.
    pub(super) fn of(resource: SizedResource, growth: &Growth) -> Option<Self> {
        let (unit, _) = resource.counted_per();
        let cost = growth.per_user().filter(|cost| cost.value > 0.0)?;
        let per = Self {
            value: unit / cost.value,
            low: unit / cost.high,
            high: (cost.low > 0.0).then(|| unit / cost.low),
        };
        (per.value.is_finite() && per.low.is_finite()).then_some(per)
    }
}

/// The need for one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceNeed {
    /// The resource.
    pub resource: SizedResource,
    /// The unit of `used` and `provide`: `cores`, `B/s`, `B`, `1/s`, `count`.
    pub unit: String,
    /// What the users use together on one server, with its 95 % interval.
    pub used: Estimate,
    /// What has to be there, so that it is used to the target utilisation.
    pub provide: Estimate,
    /// How far beyond the measurement.
    pub extrapolation: Extrapolation,
    /// Users per core, per Gbit/s, per GB …, without headroom; `null` where the resource does not
    /// grow measurably.
    pub users_per: Option<UsersPer>,
    /// What the users are counted per: `core`, `Gbit/s`, `GB` …
    pub per: String,
    /// Whether its growth is curved; `bends` says which way.
    pub is_curved: bool,
    /// Which way its growth bends; `null` if it is straight.
    pub bends: Option<Bend>,
    /// The process, thread or interface with the largest part.
    pub dominant: String,
    /// Its share, 0 to 1.
    pub dominant_share: f64,
}

impl ResourceNeed {
    pub(super) fn of(resource: SizedResource, growth: &Growth, request: &SizeRequest) -> Self {
        let used = growth.at(request.users);
        let (dominant, dominant_share) = growth.dominant(request.users);
        Self {
            resource,
            unit: resource.unit().symbol().into(),
            used,
            provide: used.times(1.0 / request.target_utilisation),
            extrapolation: growth.extrapolation(request.users),
            users_per: UsersPer::of(resource, growth),
            per: resource.counted_per().1.into(),
            is_curved: growth.is_curved(),
            bends: growth.bend(),
            dominant,
            dominant_share,
        }
    }
}
