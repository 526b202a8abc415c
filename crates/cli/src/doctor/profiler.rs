//! The profiler of watched processes (docs/profile.md).

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let level = facts.text("/proc/sys/kernel/perf_event_paranoid");
    let may = if facts.profiler.is_ok() { "allowed" } else { "refused" };
    Check {
        name: "profiler",
        found: format!(
            "sampling clock {may} (kernel.perf_event_paranoid {})",
            level.as_deref().unwrap_or("is missing")
        ),
        verdict: Verdict::unless(
            facts.profiler.is_ok(),
            "profiles say what threads wait for, and not which functions run",
        ),
        // The profiler's own words say what is missing.
        change: facts.profiler.as_ref().map_or_else(String::clone, |()| {
            "root, or `setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep throng`".to_owned()
        }),
    }
}
