//! Files of a control group, versions 1 and 2 (Documentation/admin-guide/cgroup-v2.rst,
//! cgroup-v1/): CPU, quota, memory, I/O.

use super::scan::{fields, find, lines, number};

/// CPU use and throttling of a group, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// CPU time; version 2 only.
    pub usage_us: Option<u64>,
    /// CPU time in user space; version 2 only.
    pub user_us: Option<u64>,
    /// CPU time in the kernel; version 2 only.
    pub system_us: Option<u64>,
    /// Number of quota periods that have passed.
    pub periods: Option<u64>,
    /// Number of periods in which the group was throttled.
    pub throttled_periods: Option<u64>,
    /// Total time for which its CPUs were throttled.
    pub throttled_us: Option<u64>,
}

/// Parses `cpu.stat` of either version.
#[must_use]
pub fn cpu_stat(text: &[u8]) -> CpuStat {
    CpuStat {
        usage_us: find(text, b"usage_usec"),
        user_us: find(text, b"user_usec"),
        system_us: find(text, b"system_usec"),
        periods: find(text, b"nr_periods"),
        throttled_periods: find(text, b"nr_throttled"),
        throttled_us: find(text, b"throttled_usec")
            .or_else(|| find(text, b"throttled_time").map(|ns| ns / 1000)),
    }
}

/// `cpu.max` of version 2, such as `150000 100000`: the quota in cores; `None` is unlimited.
#[must_use]
pub fn cpu_max(text: &[u8]) -> Option<f64> {
    let mut fields = fields(text);
    let (quota, period) = (number(fields.next()?)?, number(fields.next()?)?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1: the quota in cores; `None` (-1) is
/// unlimited.
#[must_use]
pub fn cfs_quota(quota: &[u8], period: &[u8]) -> Option<f64> {
    let (quota, period) = (number(quota.trim_ascii())?, number(period.trim_ascii())?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// Parses a file with one number; `max`, -1 and version 1's value for no limit (near 2^63) are
/// `None`.
#[must_use]
pub fn level(text: &[u8]) -> Option<u64> {
    number(text.trim_ascii()).filter(|value| *value < 1 << 62)
}

/// Bytes read and written, over all devices: `io.stat` of version 2.
#[must_use]
pub fn io_stat(text: &[u8]) -> (u64, u64) {
    let (mut read, mut written) = (0_u64, 0_u64);
    for field in lines(text).flat_map(fields) {
        let figure = |key: &[u8]| field.strip_prefix(key).and_then(number).unwrap_or(0);
        read = read.saturating_add(figure(b"rbytes="));
        written = written.saturating_add(figure(b"wbytes="));
    }
    (read, written)
}

/// Bytes read and written, over all devices: `blkio.throttle.io_service_bytes` of version 1.
#[must_use]
pub fn blkio_bytes(text: &[u8]) -> (u64, u64) {
    let (mut read, mut written) = (0_u64, 0_u64);
    for line in lines(text) {
        let mut fields = fields(line).skip(1);
        let (kind, bytes) = (fields.next(), fields.next().and_then(number).unwrap_or(0));
        match kind {
            Some(b"Read") => read = read.saturating_add(bytes),
            Some(b"Write") => written = written.saturating_add(bytes),
            _ => {}
        }
    }
    (read, written)
}
