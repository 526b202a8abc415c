//! `/proc/pressure/*` and `*.pressure` of control groups (Documentation/accounting/psi.rst): time stood still.

use super::scan::{fields, lines, number};

/// Time since boot in which tasks stood still, microseconds. The averages of the file are not read: they lag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some task did.
    pub some_us: Option<u64>,
    /// All tasks did. Missing for the CPU before 5.13.
    pub full_us: Option<u64>,
}

/// The totals.
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
