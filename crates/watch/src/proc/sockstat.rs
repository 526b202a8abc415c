//! `/proc/net/sockstat` and `sockstat6`: sockets and their memory.

use super::scan::{fields, lines, number};

/// Values of both files; memory in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SockStat {
    /// TCP sockets in use.
    pub tcp_in_use: u64,
    /// TCP sockets without a process.
    pub tcp_orphans: u64,
    /// Connections in TIME_WAIT.
    pub tcp_time_wait: u64,
    /// Memory of TCP, pages, of the whole host.
    pub tcp_pages: u64,
    /// UDP sockets.
    pub udp_in_use: u64,
    /// Memory of UDP, pages, of the whole host.
    pub udp_pages: u64,
}

impl SockStat {
    /// Adds the values of a file; `sockstat6` has further sockets but no memory.
    pub fn read(&mut self, text: &[u8]) {
        for line in lines(text) {
            let mut fields = fields(line);
            let protocol = fields.next();
            while let (Some(name), Some(value)) = (fields.next(), fields.next().and_then(number)) {
                let figure = match (protocol, name) {
                    (Some(b"TCP:" | b"TCP6:"), b"inuse") => &mut self.tcp_in_use,
                    (Some(b"TCP:"), b"orphan") => &mut self.tcp_orphans,
                    (Some(b"TCP:"), b"tw") => &mut self.tcp_time_wait,
                    (Some(b"TCP:"), b"mem") => &mut self.tcp_pages,
                    (Some(b"UDP:" | b"UDP6:"), b"inuse") => &mut self.udp_in_use,
                    (Some(b"UDP:"), b"mem") => &mut self.udp_pages,
                    _ => continue,
                };
                *figure = figure.saturating_add(value);
            }
        }
    }
}
