//! Joins that take two seconds each and are answered one at a time.

use super::Planted;
use crate::pion;

pub(super) const PLANTED: Planted = Planted {
    name: "Go, serialised joins",
    what: "pion, 2 s for each join, one at a time",
    expects: &["signalling_serialised"],
    verdict: "found",
    is_short: false,
    plant: |lab| pion::find(lab, "go_serial_join", 2, &["--serial-join", "2s"]),
};
