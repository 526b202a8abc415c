//! The send buffer of each media socket: throng takes the kernel's default.

use throng_observation::units::bytes;

use super::{Check, Facts, Verdict};

/// What Linux gives a socket unless it is told otherwise (`SK_WMEM_MAX`, sock.h).
const USUAL_BYTES: u64 = 212_992;

pub(super) fn check(facts: &Facts) -> Check {
    let setting = |name: &str| facts.number(&format!("/proc/sys/net/core/{name}"));
    let (usual, most) = (setting("wmem_default"), setting("wmem_max"));
    let shown =
        |limit: Option<u64>| limit.map_or_else(|| "?".to_owned(), |limit| bytes(limit as f64));
    Check {
        name: "send-buffer",
        found: format!("{} (net.core.wmem_default; wmem_max {})", shown(usual), shown(most)),
        verdict: Verdict::unless(
            usual.is_none_or(|bytes| bytes >= USUAL_BYTES),
            "a burst of a publisher may not fit, and makes its second invalid",
        ),
        change: format!("`sysctl net.core.wmem_default={USUAL_BYTES}`"),
    }
}
