//! A Go program limited to one core: no thread of it is full for long, because the runtime moves
//! work between threads.

use super::Planted;
use crate::pion;

pub(super) const PLANTED: Planted = Planted {
    name: "Go, GOMAXPROCS=1",
    what: "pion, GOMAXPROCS=1, 250 µs a packet",
    expects: &["runtime_parallelism"],
    verdict: "found",
    is_short: false,
    plant: |lab| pion::find(lab, "go_parallelism", 1, &["--work-per-packet", "250us"]),
};
