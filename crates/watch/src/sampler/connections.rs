//! TCP send performance by port: whether the receivers, the send buffers or the network path limit
//! sending.
//!
//! For each connection the kernel counts how long there was data to send, and for how much of that
//! time the peer's window or the send buffer was the limit (struct tcp_info). The rest waited for
//! the path: round trip time and losses.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::time::Instant;

use throng_observation::host::catalogue as metric;

use super::meter::{Meter, Rate, SeriesSpec, Sink};
use crate::proc::netlink::{Socket, TcpInfo};

/// Maximum number of tracked connections; traffic of further ones is not reported.
const CONNECTIONS_MAX: usize = 65_536;
const ESTABLISHED: u8 = 1;

/// The connections of all monitored ports.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// The last counters of each connection, by inode.
    last: HashMap<u32, TcpInfo>,
    /// Meters of the ports that have been scanned before.
    by_port: HashMap<u16, Meters>,
}

#[derive(Debug, Default)]
struct Meters {
    total: Total,
    levels: [Meter; 3],
    rates: [Rate; 4],
}

/// Totals over all connections of a port since its first scan.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    retransmitted: u64,
    busy_us: u64,
    peer_limited_us: u64,
    buffer_limited_us: u64,
}

/// The sum over a port's connections in one scan.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    established: u32,
    unsent_bytes: u64,
    unacked: u64,
    grown: Total,
}

/// One scan of all connections.
pub(super) struct Scan<'a> {
    connections: &'a mut Connections,
    alive: HashMap<u32, TcpInfo>,
    sums: HashMap<u16, Sum>,
}

impl Connections {
    pub(super) fn scan(&mut self) -> Scan<'_> {
        let sums = self.by_port.keys().map(|port| (*port, Sum::default())).collect();
        Scan { connections: self, alive: HashMap::new(), sums }
    }

    /// Ends the series of a port.
    pub(super) fn end(&mut self, sink: &Sink, port: u16) {
        let Some(mut meters) = self.by_port.remove(&port) else { return };
        let now = Instant::now();
        meters.levels.iter_mut().for_each(|meter| meter.end(sink, now));
        meters.rates.iter_mut().for_each(|rate| rate.end(sink, now));
    }
}

impl Scan<'_> {
    /// Adds a connection of a listening port.
    pub(super) fn add(&mut self, socket: &Socket) {
        let before = self.before(socket);
        let sum = self.sums.entry(socket.port).or_default();
        sum.established += u32::from(socket.state == ESTABLISHED);
        let Some(tcp_info) = socket.tcp_info.filter(|_| socket.inode != 0) else { return };
        sum.unsent_bytes += u64::from(tcp_info.unsent_bytes);
        sum.unacked += u64::from(tcp_info.unacked);
        if self.alive.len() >= CONNECTIONS_MAX {
            return;
        }
        if let Some(before) = before {
            sum.grown += Total::between(&before, &tcp_info);
        }
        self.alive.insert(socket.inode, tcp_info);
    }

    /// The counters of a connection before this scan. `None` if their growth cannot be assigned to
    /// this interval: at the first scan of its port, and if the table was full.
    fn before(&self, socket: &Socket) -> Option<TcpInfo> {
        let Connections { last, by_port } = &*self.connections;
        let known = last.get(&socket.inode).copied();
        let is_new = || by_port.contains_key(&socket.port) && last.len() < CONNECTIONS_MAX;
        known.or_else(|| is_new().then(TcpInfo::default))
    }

    /// Writes the series; `with_labels` supplies the labels of a port.
    pub(super) fn put(
        self,
        sink: &Sink,
        mut with_labels: impl FnMut(u16, &mut dyn FnMut(&[(&str, &str)])),
    ) {
        let now = Instant::now();
        for (port, sum) in self.sums {
            let meters = self.connections.by_port.entry(port).or_default();
            meters.total += sum.grown;
            with_labels(port, &mut |labels| meters.put(sink, now, &sum, labels));
        }
        self.connections.last = self.alive;
    }
}

impl Meters {
    fn put(&mut self, sink: &Sink, now: Instant, sum: &Sum, labels: &[(&str, &str)]) {
        let Total { retransmitted, busy_us, peer_limited_us, buffer_limited_us } = self.total;
        let levels = [
            (f64::from(sum.established), &metric::SOCKET_CONNECTIONS),
            (sum.unsent_bytes as f64, &metric::SOCKET_UNSENT),
            (sum.unacked as f64, &metric::SOCKET_UNACKED),
        ];
        for (meter, (value, kind)) in self.levels.iter_mut().zip(levels) {
            meter.put(sink, now, value, &SeriesSpec::new(kind, labels));
        }
        // Microseconds a second, divided by a million, are the mean number of connections.
        let rates = [
            (retransmitted, 1.0, &metric::SOCKET_RETRANSMITTED),
            (busy_us, 1e-6, &metric::SOCKET_SENDING),
            (peer_limited_us, 1e-6, &metric::SOCKET_PEER_LIMITED),
            (buffer_limited_us, 1e-6, &metric::SOCKET_BUFFER_LIMITED),
        ];
        for (rate, (count, scale, kind)) in self.rates.iter_mut().zip(rates) {
            rate.put(sink, now, count, scale, &SeriesSpec::new(kind, labels));
        }
    }
}

impl Total {
    /// The growth between two scans of a connection.
    fn between(before: &TcpInfo, now: &TcpInfo) -> Self {
        Self {
            retransmitted: now.retransmitted.saturating_sub(before.retransmitted).into(),
            busy_us: now.busy_us.saturating_sub(before.busy_us),
            peer_limited_us: now.peer_limited_us.saturating_sub(before.peer_limited_us),
            buffer_limited_us: now.buffer_limited_us.saturating_sub(before.buffer_limited_us),
        }
    }
}

impl AddAssign for Total {
    fn add_assign(&mut self, more: Self) {
        self.retransmitted += more.retransmitted;
        self.busy_us += more.busy_us;
        self.peer_limited_us += more.peer_limited_us;
        self.buffer_limited_us += more.buffer_limited_us;
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::host::{HostId, HostRow};

    use super::*;
    use crate::rows::rows;

    const HOUR_US: u64 = 3_600_000_000;

    /// A connection with this inode and busy time.
    fn connection(port: u16, inode: u32, busy_us: u64) -> Socket {
        let tcp_info =
            TcpInfo { retransmitted: 7, busy_us, peer_limited_us: busy_us, ..TcpInfo::default() };
        Socket { port, inode, state: ESTABLISHED, tcp_info: Some(tcp_info), ..Socket::default() }
    }

    /// A sequence of scans.
    struct Scans {
        connections: Connections,
        sink: Sink,
        receiver: crate::RowReceiver,
    }

    impl Scans {
        fn new() -> Self {
            let (rows, receiver) = rows(1_000);
            let sink = Sink { rows, host: HostId(0), zero: Instant::now(), netns: None };
            Self { connections: Connections::default(), sink, receiver }
        }

        /// Scans these sockets; returns the totals of `port`: retransmitted segments, busy
        /// microseconds, and those limited by the peer's window.
        fn at(&mut self, sockets: &[Socket], port: u16) -> [u64; 3] {
            let mut scan = self.connections.scan();
            sockets.iter().for_each(|socket| scan.add(socket));
            scan.put(&self.sink, |_, put| put(&[]));
            let total = self.connections.by_port[&port].total;
            [total.retransmitted, total.busy_us, total.peer_limited_us]
        }

        /// All rates that were written.
        fn rates(&self) -> Vec<f64> {
            let (mut rates, mut reported) = (Vec::new(), Vec::new());
            for row in self.receiver.try_iter() {
                match row {
                    HostRow::Series(spec) if spec.metric == metric::SOCKET_SENDING.name => {
                        reported.push(spec.id);
                    }
                    HostRow::Sample(spec) if reported.contains(&spec.series) => {
                        rates.push(spec.value);
                    }
                    _ => {}
                }
            }
            rates
        }
    }

    #[test]
    fn traffic_before_the_first_scan_of_a_port_does_not_count() {
        let mut scans = Scans::new();
        let (other, old) = (connection(80, 1, 5), connection(443, 2, HOUR_US));
        assert_eq!(scans.at(&[other], 80), [0, 0, 0]);
        assert_eq!(scans.at(&[other, old], 443), [0, 0, 0]);
        assert_eq!(scans.at(&[other, old], 443), [0, 0, 0]);
        let rates = scans.rates();
        assert!(!rates.is_empty() && rates.iter().all(|rate| *rate == 0.0), "{rates:?}");
    }

    #[test]
    fn a_new_connection_counts_from_its_start_and_an_ended_one_stays_counted() {
        let mut scans = Scans::new();
        scans.at(&[connection(443, 2, HOUR_US)], 443);
        let both = [connection(443, 2, HOUR_US + 30), connection(443, 3, 200)];
        assert_eq!(scans.at(&both, 443), [7, 230, 230]);
        assert_eq!(scans.at(&both[..1], 443), [7, 230, 230]);
        assert!(scans.rates().iter().any(|rate| *rate > 0.0));
    }
}
