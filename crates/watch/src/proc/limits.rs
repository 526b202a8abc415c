//! `/proc/P/limits`: resource limits of a process.

use super::scan::{fields, lines, number};

/// Limits by name: the soft one and the hard one; `None` is unlimited.
pub fn parse(text: &[u8]) -> impl Iterator<Item = (&str, Option<u64>, Option<u64>)> {
    lines(text).filter_map(limit)
}

/// The name is padded to 25 columns and holds blanks, so the figures are found behind it.
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
