//! Memory: a run ends itself before the kernel ends a process, and takes none that others use.

use throng_engine::memory_share;
use throng_engine::preflight::{Limits, MORE_MEMORY};
use throng_observation::limits::MEMORY_RATIO_MAX;
use throng_observation::units::bytes;

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let share = memory_share(&facts.root);
    let found = share.as_ref().map_or_else(
        || "not known".to_owned(),
        |share| {
            let whose = share.group.as_ref().map_or_else(
                || "of the machine".to_owned(),
                |group| format!("that {} leaves", group.display()),
            );
            let (all, ratio) = (bytes(share.bytes as f64), MEMORY_RATIO_MAX * 1e2);
            let available = share.available_bytes.map_or_else(String::new, |available| {
                format!("; the machine has {} available", bytes(available as f64))
            });
            format!("{all} {whose}; a run ends itself at {ratio:.0} % of it{available}")
        },
    );
    let memory_bytes = share.map(|share| share.usable_bytes());
    let viewers = Limits { memory_bytes, ..facts.limits }.by_memory(&facts.needs);
    Check {
        name: "memory",
        found,
        verdict: viewers.map_or_else(
            || Verdict::lacks("a run does not end itself before the memory is used up"),
            |viewers| Verdict::Limits { viewers },
        ),
        change: MORE_MEMORY.to_owned(),
    }
}
