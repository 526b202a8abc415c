//! A server that drops packets before its socket and answers NACKs: no counter outside of it shows
//! the drops.

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
