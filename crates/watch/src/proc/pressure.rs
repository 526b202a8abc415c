//! Pressure stall information: `/proc/pressure/*` and `*.pressure` of control groups
//! (Documentation/accounting/psi.rst).

use super::scan::{fields, lines, number};

/// Time since boot in which tasks stalled, microseconds. The averages in the file are not used,
/// because they lag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task stalled.
    pub some_us: Option<u64>,
    /// All tasks stalled. Absent for the CPU before Linux 5.13.
    pub full_us: Option<u64>,
}

/// Parses the totals.
#[must_use]
pub fn parse(text: &[u8]) -> Pressure {
    let mut pressure = Pressure::default();
    for line in lines(text) {
        let mut fields = fields(line);
        let kind = fields.next();
        let total = fields.find_map(|field| number(field.strip_prefix(b"total=")?));
        match kind {
            Some(b"some") => pressure.some_us = total,
            Some(b"full") => pressure.full_us = total,
            _ => {}
        }
    }
    pressure
}
