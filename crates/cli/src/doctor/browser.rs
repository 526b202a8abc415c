//! A browser, for canaries (docs/canary.md).

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let found = throng_browser::find(&facts.path);
    Check {
        name: "browser",
        verdict: Verdict::unless(found.is_some(), "off: [canary], browsers in the crowd"),
        found: found.map_or_else(
            || format!("none of {} in PATH", throng_browser::NAMES.join(", ")),
            |file| file.display().to_string(),
        ),
        change: "`apt-get install chromium`".to_owned(),
    }
}
