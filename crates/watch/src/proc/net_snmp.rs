//! `/proc/net/snmp` and `/proc/net/netstat` (for each protocol a line of names and a line of
//! values), and `/proc/net/snmp6` (a name and a value on each line).

use super::scan::{fields, key_and_number, lines, number};

/// All counters of the paired files: protocol, name, value. Negative values (`MaxConn -1`) are
/// skipped.
pub fn parse(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], u64)> {
    let mut lines = lines(text);
    std::iter::from_fn(move || {
        let (names, figures) = (lines.next()?, lines.next()?);
        Some(pair(names, figures))
    })
    .flatten()
    .flatten()
}

/// Names and values of one protocol; `None` if the two lines belong to different protocols.
fn pair<'a>(
    names: &'a [u8],
    figures: &'a [u8],
) -> Option<impl Iterator<Item = (&'a [u8], &'a [u8], u64)> + use<'a>> {
    let (mut names, mut figures) = (fields(names), fields(figures));
    let protocol = names.next()?;
    if figures.next()? != protocol {
        return None;
    }
    let protocol = protocol.strip_suffix(b":")?;
    Some(
        names
            .zip(figures)
            .filter_map(move |(name, figure)| Some((protocol, name, number(figure)?))),
    )
}

/// All counters of `snmp6`.
pub fn parse6(text: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    lines(text).filter_map(key_and_number)
}
