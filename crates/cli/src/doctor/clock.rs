//! Whether this host's clock is right, and how far it may be off.

use super::{Check, Facts, Verdict};

const OFF: &str =
    "latency behind live, and delay between machines, are off by the error of the clock";

pub(super) fn check(facts: &Facts) -> Check {
    let (found, verdict) = match (facts.clock_bound_us, facts.is_synchronised) {
        (Some(bound_us), _) => (format!("within {bound_us} µs of true time (chrony)"), Verdict::Ok),
        (None, Some(true)) => ("synchronised (timedatectl)".to_owned(), Verdict::Ok),
        (None, Some(false)) => ("not synchronised (timedatectl)".to_owned(), Verdict::lacks(OFF)),
        (None, None) => (
            "nobody tells: neither chronyc nor timedatectl".to_owned(),
            Verdict::lacks("unless somebody else keeps it, latency behind live may be off"),
        ),
    };
    Check {
        name: "clock",
        found,
        verdict,
        change: "`apt-get install chrony`; of a container on its host".to_owned(),
    }
}
