//! The planted limits and nuisances: one known limit, one file.

use std::process::Command;

use anyhow::ensure;

use crate::search::{Lab, Outcome};

pub(crate) use line::FRAME_RATIO;

mod accept_backlog;
mod address_limit;
mod all_cores;
mod bursts;
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
mod killed;
mod killed_at_once;
mod line;
mod lossy_path;
mod low_priority;
mod memory;
mod niced;
mod nothing;
mod one_thread;
mod policer;
mod port_range;
mod receive_buffer;
mod send_buffer;
mod shared_lock;
mod short_jobs;
mod source_stops;
mod two_at_once;
mod two_watches;

/// A planted limit.
pub(crate) struct Planted {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The findings that name it; if empty, the right answer is no confident finding.
    pub(crate) expects: &'static [&'static str],
    /// The expected `capacity.verdict`, or [`RUN`](crate::search::RUN) of a plain run.
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
    niced::PLANTED,
    line::PLANTED,
    conference_quota::PLANTED,
    conference_line::PLANTED,
    lossy_path::PLANTED,
    bursts::PLANTED,
    policer::PLANTED,
    descriptors::PLANTED,
    port_range::PLANTED,
    disk_read::PLANTED,
    disk_read::IN_MEMORY,
    receive_buffer::PLANTED,
    send_buffer::PLANTED,
    memory::PLANTED,
    killed::PLANTED,
    accept_backlog::PLANTED,
    shared_lock::PLANTED,
    copying::PLANTED,
    crash::PLANTED,
    killed_at_once::PLANTED,
    source_stops::PLANTED,
    short_jobs::PLANTED,
    ceiling::PLANTED,
    two_watches::PLANTED,
    address_limit::PLANTED,
    address_limit::MANY_ADDRESSES,
    hidden::PLANTED,
    two_at_once::PLANTED,
    go_parallelism::PLANTED,
    go_silent_drop::PLANTED,
    go_bursts::PLANTED,
    go_serial_join::PLANTED,
    nothing::PLANTED,
    generator::PLANTED,
];

/// The note of a search whose smallest crowd is served no better than larger ones.
const AS_WITHOUT_LOAD: &str = "at the smallest crowd already";
/// What moves a thread to other CPUs: no advice where none is idle.
const NO_PLACEMENT: &[&str] = &["taskset", "CPUAffinity", "cpuset.cpus", "isolcpus"];

/// Sends a signal to a process, by its option of kill(1), such as `-STOP`.
fn signal(pid: u32, option: &str) -> anyhow::Result<()> {
    let sent = Command::new("kill").args([option, &pid.to_string()]).status()?;
    ensure!(sent.success(), "kill {option} {pid}");
    Ok(())
}
