//! The load of a plan, and whether its owners consented to that much.

use std::time::Duration;

use throng_observation::units;
use throng_scenario::{Caps, ExpectedLoad};

/// The load that a plan puts on its target.
#[derive(Clone)]
pub(super) struct Demand {
    pub(super) expected: ExpectedLoad,
    pub(super) duration: Duration,
}

impl Demand {
    /// Whether the load is within `caps`. A plan that is not is refused, never reduced.
    pub(super) fn within(&self, caps: &Caps) -> Result<(), String> {
        let (expected, duration) = (&self.expected, self.duration);
        let mbit_per_s = expected.server_in_mbit_per_s + expected.server_out_mbit_per_s;
        let too_much = [
            caps.users
                .is_some_and(|max| expected.users > max)
                .then(|| format!("{} users", expected.users)),
            caps.joins_per_s
                .is_some_and(|max| f64::from(expected.joins_per_s) > max.max(1.0))
                .then(|| format!("{} joins per second", expected.joins_per_s)),
            caps.mbit_per_s
                .is_some_and(|max| mbit_per_s > max)
                .then(|| format!("{mbit_per_s:.0} Mbit/s")),
            caps.duration.is_some_and(|max| duration > max).then(|| units::duration(duration)),
        ];
        match too_much.into_iter().flatten().next() {
            Some(what) => Err(format!(
                "the owner's consent does not cover {what}; ask for less, or for another proof"
            )),
            None => Ok(()),
        }
    }
}
