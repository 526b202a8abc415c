//! Memory-mapped receive rings (docs/receiving.md).

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    Check {
        name: "receive-ring",
        found: facts.receive_ring.as_ref().map_or_else(String::clone, |()| "can be opened".into()),
        verdict: Verdict::unless(
            facts.receive_ring.is_ok(),
            "--receive ring is off: datagrams come by sockets, which take more CPU",
        ),
        change: "root, or `setcap cap_net_raw+ep throng`".to_owned(),
    }
}
