//! How sending goes on the TCP connections of a port: whether its readers, its buffers or the path hold it up.
//!
//! The kernel counts for each connection how long it had something to send, and how much of that the peer's window or the
//! send buffer held it up (struct tcp_info). What is left of it waited for the path: its round trip and its losses.

use std::collections::HashMap;
use std::time::Instant;

use throng_observation::host::catalogue as metric;

use super::meter::{Meter, Of, Out, Rate};
use crate::proc::netlink::{Flow, Socket};

/// Connections that are kept in mind; what further ones send is not told.
const CONNECTIONS_MAX: usize = 65_536;
const ESTABLISHED: u8 = 1;

/// The connections of all ports.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// Counters of each connection as last seen; `None` before the first look.
    seen: Option<HashMap<u32, Flow>>,
    by_port: HashMap<u16, Meters>,
}

#[derive(Debug, Default)]
struct Meters {
    total: Total,
    levels: [Meter; 3],
    rates: [Rate; 4],
}

/// What all connections of a port have come to since watching began.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    retransmitted: u64,
    busy_us: u64,
    peer_limited_us: u64,
    buffer_limited_us: u64,
}

/// What the connections of a port show together at one look.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    established: u32,
    unsent_bytes: u64,
    unacked: u64,
    grown: Total,
}

/// One look at all connections.
pub(super) struct Look<'a> {
    connections: &'a mut Connections,
    alive: HashMap<u32, Flow>,
    sums: HashMap<u16, Sum>,
}

impl Connections {
    pub(super) fn look(&mut self) -> Look<'_> {
        let sums = self.by_port.keys().map(|port| (*port, Sum::default())).collect();
        Look { connections: self, alive: HashMap::new(), sums }
    }

    /// Ends what a port had.
    pub(super) fn end(&mut self, out: &Out, port: u16) {
        let Some(mut meters) = self.by_port.remove(&port) else { return };
        let now = Instant::now();
        meters.levels.iter_mut().for_each(|meter| meter.end(out, now));
        meters.rates.iter_mut().for_each(|rate| rate.end(out, now));
    }
}

impl Look<'_> {
    /// A connection of a port that is listened on.
    pub(super) fn add(&mut self, socket: &Socket) {
        let sum = self.sums.entry(socket.port).or_default();
        sum.established += u32::from(socket.state == ESTABLISHED);
        let Some(flow) = socket.flow.filter(|_| socket.inode != 0) else { return };
        sum.unsent_bytes += u64::from(flow.unsent_bytes);
        sum.unacked += u64::from(flow.unacked);
        if self.alive.len() >= CONNECTIONS_MAX {
            return;
        }
        // What a connection had come to before watching began is not this run's; one that came since is.
        let before = match &self.connections.seen {
            None => flow,
            Some(seen) => seen.get(&socket.inode).copied().unwrap_or_default(),
        };
        sum.grown.add(&before, &flow);
        self.alive.insert(socket.inode, flow);
    }

    /// Writes what was seen; `tell` knows the labels of a port.
    pub(super) fn put(self, out: &Out, mut tell: impl FnMut(u16, &mut dyn FnMut(&[(&str, &str)]))) {
        let now = Instant::now();
        for (port, sum) in self.sums {
            let meters = self.connections.by_port.entry(port).or_default();
            meters.total.grow(&sum.grown);
            tell(port, &mut |labels| meters.put(out, now, &sum, labels));
        }
        self.connections.seen = Some(self.alive);
    }
}

impl Meters {
    fn put(&mut self, out: &Out, now: Instant, sum: &Sum, labels: &[(&str, &str)]) {
        let Total { retransmitted, busy_us, peer_limited_us, buffer_limited_us } = self.total;
        let levels = [
            (f64::from(sum.established), &metric::SOCKET_CONNECTIONS),
            (sum.unsent_bytes as f64, &metric::SOCKET_UNSENT),
            (sum.unacked as f64, &metric::SOCKET_UNACKED),
        ];
        for (meter, (value, kind)) in self.levels.iter_mut().zip(levels) {
            meter.put(out, now, value, &Of::labelled(kind, labels));
        }
        // Microseconds in a second are connections, on the mean.
        let rates = [
            (retransmitted, 1.0, &metric::SOCKET_RETRANSMITTED),
            (busy_us, 1e-6, &metric::SOCKET_SENDING),
            (peer_limited_us, 1e-6, &metric::SOCKET_PEER_LIMITED),
            (buffer_limited_us, 1e-6, &metric::SOCKET_BUFFER_LIMITED),
        ];
        for (rate, (count, scale, kind)) in self.rates.iter_mut().zip(rates) {
            rate.put(out, now, count, scale, &Of::labelled(kind, labels));
        }
    }
}

impl Total {
    /// What came between two looks at a connection.
    fn add(&mut self, before: &Flow, now: &Flow) {
        self.retransmitted += u64::from(now.retransmitted.saturating_sub(before.retransmitted));
        self.busy_us += now.busy_us.saturating_sub(before.busy_us);
        self.peer_limited_us += now.peer_limited_us.saturating_sub(before.peer_limited_us);
        self.buffer_limited_us += now.buffer_limited_us.saturating_sub(before.buffer_limited_us);
    }

    fn grow(&mut self, by: &Self) {
        self.retransmitted += by.retransmitted;
        self.busy_us += by.busy_us;
        self.peer_limited_us += by.peer_limited_us;
        self.buffer_limited_us += by.buffer_limited_us;
    }
}
