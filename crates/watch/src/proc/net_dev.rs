//! `/proc/net/dev`: counters of network interfaces.

use super::scan::{fields, lines, next_number};

/// The counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets with an error.
    pub errors: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets dropped because a ring buffer was full.
    pub fifo: u64,
}

/// An interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Received.
    pub rx: Direction,
    /// Sent.
    pub tx: Direction,
}

/// The interfaces; the two heading lines have no colon after a name and are skipped.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Interface<'_>> {
    lines(text).filter_map(interface)
}

fn interface(line: &[u8]) -> Option<Interface<'_>> {
    // The last colon, because an alias (`eth0:1`) contains one; old kernels put no blank after it.
    let colon = line.iter().rposition(|byte| *byte == b':')?;
    let name = line.get(..colon)?.trim_ascii();
    let mut fields = fields(line.get(colon + 1..)?);
    let mut direction = || {
        let mut n = || next_number(&mut fields);
        let direction =
            Direction { bytes: n()?, packets: n()?, errors: n()?, dropped: n()?, fifo: n()? };
        // frame, compressed, multicast; or collisions, carrier, compressed.
        let _others = (n()?, n()?, n()?);
        Some(direction)
    };
    Some(Interface { name, rx: direction()?, tx: direction()? })
}
