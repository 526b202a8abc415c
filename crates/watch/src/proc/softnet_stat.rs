//! `/proc/net/softnet_stat` (net/core/net-procfs.c): the receive side of the network stack, one
//! line for each CPU.

use super::scan::{fields, hexadecimal, lines};

/// A CPU's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftNet {
    /// CPU number, in the file since Linux 5.10; before, the line's index, which differs if a CPU
    /// is offline.
    pub cpu: u32,
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Number of times its budget ran out with packets left.
    pub time_squeeze: u64,
    /// Packets dropped by the flow limit; since Linux 3.11.
    pub flow_limit: u64,
    /// Packets in the backlog; since Linux 5.10.
    pub backlog: Option<u64>,
}

/// The CPUs.
pub fn parse(text: &[u8]) -> impl Iterator<Item = SoftNet> {
    lines(text).zip(0..).filter_map(|(line, row)| cpu(line, row))
}

fn cpu(line: &[u8], row: u32) -> Option<SoftNet> {
    let mut columns = fields(line).map(hexadecimal);
    let (processed, dropped, time_squeeze) = (columns.next()??, columns.next()??, columns.next()??);
    let flow_limit = columns.nth(7).flatten().unwrap_or(0); // 11
    let backlog = columns.next().flatten(); // 12
    let cpu = columns.next().flatten().and_then(|cpu| u32::try_from(cpu).ok()); // 13
    Some(SoftNet { cpu: cpu.unwrap_or(row), processed, dropped, time_squeeze, flow_limit, backlog })
}
