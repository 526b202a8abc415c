//! `/proc/P/statm`: memory of a process, pages.

use super::scan::{fields, number};

/// Resident pages.
#[must_use]
pub fn resident_pages(text: &[u8]) -> Option<u64> {
    fields(text).nth(1).and_then(number)
}
