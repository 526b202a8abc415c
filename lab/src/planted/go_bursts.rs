//! Bursts of CPU use on all cores at each key frame, and hardly any between: the mean of a second
//! does not show them.

use super::Planted;
use crate::pion;

pub(super) const PLANTED: Planted = Planted {
    name: "Go, bursts",
    what: "pion, 12 ms of CPU a viewer at each key frame",
    expects: &["cpu_bursts"],
    verdict: "found",
    is_short: false,
    plant: |lab| pion::find(lab, "go_bursts", 2, &["--work-per-key-frame", "12ms"]),
};
