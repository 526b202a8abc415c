//! The planted limits: one known limit, one file.

use crate::search::{Lab, Outcome};

pub(crate) use line::FRAME_RATIO;

mod accept_backlog;
mod all_cores;
mod ceiling;
mod conference_line;
mod conference_quota;
mod copying;
mod cpu_quota;
mod crash;
mod descriptors;
mod disk_read;
mod generator;
mod go_bursts;
mod go_parallelism;
mod go_serial_join;
mod go_silent_drop;
mod hidden;
mod line;
mod lossy_path;
mod low_priority;
mod memory;
mod nothing;
mod one_thread;
mod port_range;
mod receive_buffer;
mod shared_lock;
mod two_at_once;

/// A planted limit.
pub(crate) struct Planted {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The findings that name it; if empty, the right answer is no confident finding.
    pub(crate) expects: &'static [&'static str],
    /// The expected `capacity.verdict`.
    pub(crate) verdict: &'static str,
    /// Fast and stable enough for every test run.
    pub(crate) is_short: bool,
    /// Starts the server, searches, and stops it.
    pub(crate) plant: fn(&Lab) -> anyhow::Result<Outcome>,
}

/// All planted limits.
pub(crate) const ALL: &[Planted] = &[
    one_thread::PLANTED,
    cpu_quota::PLANTED,
    all_cores::PLANTED,
    low_priority::PLANTED,
    line::PLANTED,
    conference_quota::PLANTED,
    conference_line::PLANTED,
    lossy_path::PLANTED,
    descriptors::PLANTED,
    port_range::PLANTED,
    disk_read::PLANTED,
    disk_read::IN_MEMORY,
    receive_buffer::PLANTED,
    memory::PLANTED,
    accept_backlog::PLANTED,
    shared_lock::PLANTED,
    copying::PLANTED,
    crash::PLANTED,
    ceiling::PLANTED,
    hidden::PLANTED,
    two_at_once::PLANTED,
    go_parallelism::PLANTED,
    go_silent_drop::PLANTED,
    go_bursts::PLANTED,
    go_serial_join::PLANTED,
    nothing::PLANTED,
    generator::PLANTED,
];
