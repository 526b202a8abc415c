//! Several datagrams in one message (`UDP_SEGMENT`, udp(7)).

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let found = if facts.joins_datagrams { "taken as one message" } else { "refused" };
    Check {
        name: "joined-datagrams",
        found: format!("{found} (UDP_SEGMENT)"),
        verdict: Verdict::unless(
            facts.joins_datagrams,
            "publishers take more CPU for what they send",
        ),
        change: "Linux 4.18 or newer".to_owned(),
    }
}
