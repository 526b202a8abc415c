//! A server that drops packets before they reach its socket and repeats what is asked for: nothing outside of it shows it.

use super::Planted;
use crate::pion;

pub(super) const PLANTED: Planted = Planted {
    name: "Go, drops silently",
    what: "pion, drops what is above 1,500 packets a second before sendto",
    expects: &[],
    verdict: "found",
    is_short: false,
    plant: |lab| pion::find(lab, "go_silent_drop", 2, &["--drop-above", "1500"]),
};
