//! CPU steal in the last second.

use throng_observation::limits::STEAL_RATIO_MAX;
use throng_observation::units::percent;

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    Check {
        name: "cpu-steal",
        found: format!("{} in a second", percent(facts.steal_ratio)),
        verdict: Verdict::unless(
            facts.steal_ratio <= STEAL_RATIO_MAX,
            "such seconds make a run invalid, and no other figure of a guest shows them",
        ),
        change: "a machine whose CPUs are not shared".to_owned(),
    }
}
