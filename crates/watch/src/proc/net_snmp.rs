//! `/proc/net/snmp`, `/proc/net/netstat` (a line of names, a line of figures, for each protocol) and `/proc/net/snmp6`
//! (a name and a figure a line).

use super::scan::{fields, key_and_number, lines, number};

/// Every counter of the paired files: protocol, name, figure. Figures that are negative (`MaxConn -1`) are left out.
pub fn parse(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], u64)> {
    let mut lines = lines(text);
    std::iter::from_fn(move || {
        let (names, figures) = (lines.next()?, lines.next()?);
        Some(pair(names, figures))
    })
    .flatten()
    .flatten()
}

/// Names and figures of one protocol; nothing when the two lines are not of the same.
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
    Some(names.zip(figures).filter_map(move |(name, figure)| Some((protocol, name, number(figure)?))))
}

/// Every counter of `snmp6`.
pub fn parse6(text: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    lines(text).filter_map(key_and_number)
}
