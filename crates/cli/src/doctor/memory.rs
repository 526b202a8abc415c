//! Memory: a run ends itself before the kernel ends a process.

use throng_engine::memory_share;
use throng_observation::limits::MEMORY_RATIO_MAX;
use throng_observation::units::bytes;

use super::{Check, Facts, Verdict};

/// What a viewer takes at least: one of WebRTC on sockets, as docs/performance.md has it.
const VIEWER_BYTES: f64 = 77e3;

pub(super) fn check(facts: &Facts) -> Check {
    let (found, verdict) = match memory_share(&facts.root) {
        None => ("not told".to_owned(), Verdict::lacks("no run is ended for lack of memory")),
        Some(share) => {
            let whose = share.group.map_or_else(
                || "of the machine".to_owned(),
                |group| format!("that {} leaves", group.display()),
            );
            let (all, ratio) = (share.bytes as f64, MEMORY_RATIO_MAX);
            let found =
                format!("{} {whose}; a run ends itself at {:.0} % of it", bytes(all), ratio * 1e2);
            (found, Verdict::Limits { viewers: (all * ratio / VIEWER_BYTES) as u64 })
        }
    };
    Check {
        name: "memory",
        found,
        verdict,
        change: "more memory; of a control group MemoryMax= of systemd, --memory of a container"
            .to_owned(),
    }
}
