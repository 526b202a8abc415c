//! What comes next: the crowd at which the first of the resources ends that a change leaves as they
//! are.
//!
//! Unknown is not unlimited. A resource ends where its use meets its limit; where that is not
//! known, the prediction ends where the knowledge does, and what has no known limit at all is
//! named.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Demand;
use super::growth::{Growth, WIDTH_MIN};

/// The predicted effect of a change: the crowd at which the next resource saturates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Users at which the next resource saturates; more than these if `users_high` is `null`.
    pub users: f64,
    /// The lower end of its 95 % interval.
    pub users_low: f64,
    /// The upper end; `null` if it is only known that they are enough: saturation lies too far
    /// beyond the loads that were tried, or the demand cannot be told from noise.
    pub users_high: Option<f64>,
    /// The resource that saturates then, with its setting where one is known.
    pub next_resource: String,
    /// Whether that is an extrapolation, which is optimistic.
    pub extrapolated: bool,
    /// Resources that grow with the users and have no known limit: any of them may end before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// Furthest prediction, as a multiple of the largest load that was tried: beyond it an unknown
/// limit comes first.
pub(crate) const REACH_MAX: f64 = 4.0;

/// How many users a resource is enough for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) users: f64,
    pub(crate) low: f64,
    /// `None` if it is enough for these users and nothing is known of more.
    pub(crate) high: Option<f64>,
}

impl End {
    /// Enough for `users` at least.
    pub(crate) fn known_to(users: f64) -> Self {
        Self { users, low: users, high: None }
    }

    /// The same where `served` users were served, so that it is enough for them, and with the least
    /// width of an interval: what a server differs by from run to run.
    pub(crate) fn at_least(self, served: f64) -> Self {
        let users = self.users.max(served);
        let Some(high) = self.high else { return Self::known_to(users) };
        let half = (users * WIDTH_MIN).max(1.0);
        Self { users, low: self.low.min(users - half).max(0.0), high: Some(high.max(users + half)) }
    }
}

impl Demand {
    /// Where it ends, as far as that is known for up to `most` users; `None` if its limit is not
    /// known, or nothing that was measured speaks against `most`.
    pub(crate) fn end(&self, most: f64) -> Option<End> {
        let (usable, growth) = (self.usable()?, Growth::of(&[self]));
        let most = growth.as_ref().map_or(most, |growth| most.min(growth.reach()));
        if let Some(users) = self.users {
            let interval = self.users_low.zip(self.users_high).filter(|_| users <= most);
            let known = End::known_to(users.min(most));
            return Some(interval.map_or(known, |(low, high)| End {
                users,
                low,
                high: Some(high),
            }));
        }
        if self.used >= usable {
            // What is as full at any load that was served ends nothing.
            return self.grows().then(|| End::known_to(0.0));
        }
        // What cannot be told from noise may still grow, by as much as the noise allows.
        let known = growth?.users_within(usable, most).low;
        (known < most).then(|| End::known_to(known))
    }
}

/// The first resource to saturate among those that a change does not `ease`, on a server that
/// served up to `served` users and was tried with up to `tried`.
#[must_use]
pub fn after(
    demands: &[Demand],
    served: f64,
    tried: f64,
    ease: impl Fn(&Demand) -> bool,
) -> Option<Prediction> {
    let left: Vec<&Demand> = demands.iter().filter(|demand| !ease(demand)).collect();
    let end = |demand: &Demand| Some(demand.end(REACH_MAX * tried)?.at_least(served));
    let ends = left.iter().filter_map(|demand| Some((*demand, end(demand)?)));
    let (next, end) = ends.min_by(|(_, a), (_, b)| a.users.total_cmp(&b.users))?;
    Some(Prediction {
        users: end.users,
        users_low: end.low,
        users_high: end.high,
        next_resource: next.name_and_setting(),
        extrapolated: next.extrapolated || end.high.is_none(),
        unknown: without_limit(left),
    })
}

/// The names of those that grow with the users and have no known limit.
pub(crate) fn without_limit<'a>(demands: impl IntoIterator<Item = &'a Demand>) -> Vec<String> {
    let unknown = demands.into_iter().filter(|demand| demand.usable().is_none() && demand.grows());
    unknown.map(Demand::name).collect()
}

#[cfg(test)]
#[path = "next_tests.rs"]
mod tests;
