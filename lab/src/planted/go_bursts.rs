//! All cores for a moment at each key frame, and hardly anything between: no second's mean shows it.

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
