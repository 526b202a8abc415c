//! What the kernel reads the time from.

use super::{Check, Facts, Verdict};

/// Those that take a system call and a slow device for each reading (vdso(7)).
const SLOW: [&str; 4] = ["acpi_pm", "hpet", "jiffies", "xen"];

pub(super) fn check(facts: &Facts) -> Check {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let found = facts.text(&format!("{folder}/current_clocksource"));
    let is_slow = found.as_deref().is_some_and(|name| SLOW.contains(&name));
    Check {
        name: "clock-source",
        found: found.unwrap_or_else(|| "not known".to_owned()),
        verdict: Verdict::unless(!is_slow, "each reading of the time takes a system call"),
        change: format!(
            "`echo tsc > {folder}/current_clocksource`, if available_clocksource has it"
        ),
    }
}
