//! Whether this host's clock is right, and how far it may be off.

use throng_observation::units::duration_ms;

use super::{Check, Facts, Verdict};
use crate::fleet::clock_source::Chrony;

/// An eighth of 400 ms, the usual objective for the delay of video.
const ERROR_US_MAX: u64 = 50_000;

const OFF: &str =
    "latency behind live, and delay between machines, are off by the error of the clock";

pub(super) fn check(facts: &Facts) -> Check {
    let (found, verdict) = match (facts.chrony, facts.is_synchronised) {
        (Chrony::Keeps(word), _) => (
            format!("within {} of true time (chrony)", time(word.bound_us)),
            Verdict::unless(word.bound_us <= ERROR_US_MAX, OFF),
        ),
        (_, Some(true)) => ("synchronised (timedatectl)".to_owned(), Verdict::Ok),
        (Chrony::FollowsNone, _) => {
            ("not synchronised: chrony follows no source".to_owned(), Verdict::lacks(OFF))
        }
        (Chrony::Silent, Some(false)) => {
            ("not synchronised (timedatectl)".to_owned(), Verdict::lacks(OFF))
        }
        (Chrony::Silent, None) => (
            "not known: neither chronyc nor timedatectl answers".to_owned(),
            Verdict::lacks("unless something else keeps it right, latency behind live may be off"),
        ),
    };
    Check { name: "clock", found, verdict, change: change(facts.chrony) }
}

fn time(us: u64) -> String {
    if us < 1_000 { format!("{us} µs") } else { duration_ms(us as f64 / 1e3) }
}

fn change(chrony: Chrony) -> String {
    match chrony {
        Chrony::Silent => "`apt-get install chrony`; of a container on its host".to_owned(),
        Chrony::Keeps(_) | Chrony::FollowsNone => {
            "a nearer source in chrony.conf (`chronyc sources` shows those it has)".to_owned()
        }
    }
}
