//! `/proc/vmstat`: paging and reclaim.

use super::scan::{key_and_number, lines};

/// Counters since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// Faults that read from a disk.
    pub faults_major: u64,
    /// KiB read from block devices.
    pub page_in_kib: u64,
    /// KiB written to block devices.
    pub page_out_kib: u64,
    /// Pages looked at by tasks that reclaimed for themselves; by zone before 4.8.
    pub scan_direct: u64,
    /// Allocations that had to reclaim; by zone since 4.10.
    pub allocation_stalls: u64,
    /// File pages read again soon after eviction.
    pub refaults_file: u64,
    /// Processes killed; since 4.13.
    pub oom_kills: u64,
}

/// The counters; what a kernel does not have is 0.
#[must_use]
pub fn parse(text: &[u8]) -> VmStat {
    let mut stat = VmStat::default();
    for (key, value) in lines(text).filter_map(key_and_number) {
        match key {
            b"pgmajfault" => stat.faults_major = value,
            b"pgpgin" => stat.page_in_kib = value,
            b"pgpgout" => stat.page_out_kib = value,
            b"oom_kill" => stat.oom_kills = value,
            // `workingset_refault` counted file pages alone, before anonymous ones were told apart in 5.9.
            b"workingset_refault_file" | b"workingset_refault" => stat.refaults_file = value,
            b"pgscan_direct_throttle" => {}
            _ if key.starts_with(b"pgscan_direct") => {
                stat.scan_direct = stat.scan_direct.saturating_add(value);
            }
            _ if key.starts_with(b"allocstall") => {
                stat.allocation_stalls = stat.allocation_stalls.saturating_add(value);
            }
            _ => {}
        }
    }
    stat
}
