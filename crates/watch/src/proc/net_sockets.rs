//! `/proc/net/{udp,udp6,tcp,tcp6}`: sockets, used to find the process of a port, and where netlink
//! is unavailable.

use super::scan::{fields, hexadecimal, lines, number};

/// State of a listening TCP socket.
pub const TCP_LISTEN: u64 = 0x0a;

/// A socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Local port.
    pub port: u16,
    /// Remote port; 0 if not connected.
    pub peer_port: u16,
    /// TCP state; UDP uses 7 for unconnected.
    pub state: u64,
    /// Send queue, bytes.
    pub tx_queue: u64,
    /// Receive queue, bytes; of a listening socket, connections waiting to be accepted.
    pub rx_queue: u64,
    /// Inode, by which the owning process is found.
    pub inode: u64,
    /// Datagrams dropped; UDP only, since Linux 2.6.27.
    pub drops: Option<u64>,
}

/// The sockets; the heading is skipped.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Socket> {
    lines(text).filter_map(socket)
}

fn socket(line: &[u8]) -> Option<Socket> {
    let mut fields = fields(line).skip(1);
    let port = |address: &[u8]| {
        let colon = address.iter().rposition(|byte| *byte == b':')?;
        u16::try_from(hexadecimal(address.get(colon + 1..)?)?).ok()
    };
    let (local, peer, state) =
        (port(fields.next()?)?, port(fields.next()?)?, hexadecimal(fields.next()?)?);
    let mut queues = fields.next()?.split(|byte| *byte == b':');
    let (tx_queue, rx_queue) = (hexadecimal(queues.next()?)?, hexadecimal(queues.next()?)?);
    // timer, retransmissions, uid, timeout
    let inode = number(fields.nth(4)?)?;
    Some(Socket {
        port: local,
        peer_port: peer,
        state,
        tx_queue,
        rx_queue,
        inode,
        drops: fields.nth(2).and_then(number),
    })
}
