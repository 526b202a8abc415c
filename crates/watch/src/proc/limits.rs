//! `/proc/P/limits`: resource limits of a process.

use super::scan::{fields, lines, number};

/// The limits: name, soft and hard limit; `None` is unlimited.
pub fn parse(text: &[u8]) -> impl Iterator<Item = (&str, Option<u64>, Option<u64>)> {
    lines(text).filter_map(limit)
}

/// The name contains blanks and is padded to 25 columns; the numbers follow.
fn limit(line: &[u8]) -> Option<(&str, Option<u64>, Option<u64>)> {
    let (name, figures) = line.split_at_checked(25)?;
    let name = std::str::from_utf8(name).ok()?.trim();
    let mut fields = fields(figures);
    let mut value = || match fields.next()? {
        b"unlimited" => Some(None),
        field => number(field).map(Some),
    };
    let (soft, hard) = (value()?, value()?);
    name.starts_with("Max ").then_some((name, soft, hard))
}

/// The soft limit of open files.
#[must_use]
pub fn open_files(text: &[u8]) -> Option<u64> {
    parse(text).find(|(name, ..)| *name == "Max open files").and_then(|(_, soft, _)| soft)
}
