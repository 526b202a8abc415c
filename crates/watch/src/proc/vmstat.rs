//! `/proc/vmstat`: paging and memory reclaim.

use super::scan::{key_and_number, lines};

/// Counters since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// Page faults that read from a disk.
    pub faults_major: u64,
    /// KiB read from block devices.
    pub page_in_kib: u64,
    /// KiB written to block devices.
    pub page_out_kib: u64,
    /// Pages scanned in direct reclaim; by zone before Linux 4.8.
    pub scan_direct: u64,
    /// Allocations that stalled in direct reclaim; by zone since Linux 4.10.
    pub allocation_stalls: u64,
    /// File pages read again soon after their eviction.
    pub refaults_file: u64,
    /// Processes killed by the OOM killer; since Linux 4.13.
    pub oom_kills: u64,
}

/// Parses the counters; those that the kernel does not have are 0.
#[must_use]
pub fn parse(text: &[u8]) -> VmStat {
    let mut stat = VmStat::default();
    for (key, value) in lines(text).filter_map(key_and_number) {
        match key {
            b"pgmajfault" => stat.faults_major = value,
            b"pgpgin" => stat.page_in_kib = value,
            b"pgpgout" => stat.page_out_kib = value,
            b"oom_kill" => stat.oom_kills = value,
            // `workingset_refault` counted only file pages before Linux 5.9 introduced separate
            // counters.
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
