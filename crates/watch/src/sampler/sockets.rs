//! Sockets that drop datagrams, have full queues, or use up the local ports. The kernel is queried
//! only with cause.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use throng_observation::host::catalogue as metric;

use super::connections::Connections;
use super::files::{ReadFailures, Reader};
use super::meter::{Meter, Rate, SeriesSpec, Sink};
use super::namespace::Netlink;
use super::socket_drops::{Counters, SocketDrops};
use crate::discovery::socket_inodes;
use crate::proc::net_sockets::{self, TCP_LISTEN};
use crate::proc::netlink::{self, Socket, SocketDetail, SocketMemory};

/// Interval of scans without cause.
const SCAN_EVERY: Duration = Duration::from_secs(10);
/// Searching for socket owners may take 1/200 of the time.
const OWNERS_SHARE: u32 = 200;
/// Maximum number of series, and of sockets and peers.
const SERIES_MAX: usize = 512;
const SOCKETS_MAX: usize = 65_536;

const INET: u8 = 2;
const INET6: u8 = 10;
const TCP: u8 = 6;
const UDP: u8 = 17;
const LISTENING: u32 = 1 << 10;
/// All TCP states but listening (10) and closed (7).
const CONNECTED: u32 = 0xfff & !(1 << 10) & !(1 << 7);

/// A port of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    pid: u32,
    port: u16,
    is_udp: bool,
}

/// The sockets of a network namespace.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// A process in the namespace, whose files are read if netlink fails.
    pid: u32,
    diag: Option<Netlink>,
    ports: Option<(u16, u16)>,
    owners: HashMap<u32, u32>,
    owners_at: Option<Instant>,
    scan_at: Option<Instant>,
    is_dropping: bool,
    drops: SocketDrops,
    by_key: HashMap<Key, Meters>,
    ephemeral: Meter,
    connections: Connections,
}

#[derive(Debug, Default)]
struct Meters {
    total_drops: u64,
    drops: Rate,
    queue: Meter,
}

/// The sum over a port's sockets.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    dropped: u64,
    queue: u32,
    limit: u32,
}

impl Sockets {
    pub(crate) fn new(pid: u32, diag: Option<Netlink>, ports: Option<(u16, u16)>) -> Self {
        Self {
            pid,
            diag,
            ports,
            owners: HashMap::new(),
            owners_at: None,
            scan_at: None,
            is_dropping: false,
            drops: SocketDrops::default(),
            by_key: HashMap::new(),
            ephemeral: Meter::default(),
            connections: Connections::default(),
        }
    }

    /// Scans listening sockets, and UDP sockets if datagrams were `dropped`; `processes` are the
    /// watched ones in this namespace.
    pub(crate) fn read(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
        (dropped, counters): (bool, Counters<'_>),
        processes: &HashMap<u32, String>,
    ) {
        let now = Instant::now();
        let is_due = self.scan_at.is_none_or(|at| now >= at);
        if is_due || dropped {
            self.find_owners(now, processes);
        }
        self.read_listening(sink, reader, processes);
        if is_due {
            self.scan_at = Some(now + SCAN_EVERY);
            self.read_connected(sink, processes);
        }
        // One scan more after the last drop, so that the rate returns to zero.
        if is_due || dropped || self.is_dropping {
            self.is_dropping = dropped;
            self.read_datagrams(sink, reader, failures, processes, counters);
        }
    }

    /// Finds the owners of sockets. That is expensive with many descriptors and is then done less
    /// often.
    fn find_owners(&mut self, now: Instant, processes: &HashMap<u32, String>) {
        if self.owners_at.is_some_and(|at| now < at) {
            return;
        }
        self.owners.clear();
        for pid in processes.keys() {
            for inode in socket_inodes(*pid) {
                if let Ok(inode) = u32::try_from(inode)
                    && self.owners.len() < SOCKETS_MAX
                {
                    self.owners.insert(inode, *pid);
                }
            }
        }
        self.owners_at = Some(now + (now.elapsed() * OWNERS_SHARE).max(Duration::from_secs(1)));
    }

    fn read_listening(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        processes: &HashMap<u32, String>,
    ) {
        let mut sums: HashMap<Key, Sum> = HashMap::new();
        let owners = &self.owners;
        let mut add = |socket: &Socket| {
            let Some(pid) = owners.get(&socket.inode) else { return };
            let sum = sums.entry(Key { pid: *pid, port: socket.port, is_udp: false }).or_default();
            if socket.receive_queue >= sum.queue {
                (sum.queue, sum.limit) = (socket.receive_queue, socket.send_queue);
            }
        };
        if dump(self.diag.as_mut(), TCP, LISTENING, SocketDetail::Memory, &mut add).is_err() {
            for socket in from_files(reader, self.pid, ["tcp", "tcp6"], |s| s.state == TCP_LISTEN) {
                add(&socket);
            }
        }
        for (key, sum) in sums {
            let Some(meters) = meters(&mut self.by_key, key) else { continue };
            with_labels(key, processes, |labels| {
                let limit = (sum.limit > 0).then_some(f64::from(sum.limit));
                let spec = SeriesSpec::new(&metric::SOCKET_ACCEPT_QUEUE, labels).limit(limit);
                meters.queue.put(sink, Instant::now(), sum.queue.into(), &spec);
            });
        }
    }

    fn read_datagrams(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
        processes: &HashMap<u32, String>,
        counters: Counters<'_>,
    ) {
        for (key, sum) in self.sum_datagrams(sink, reader, failures, counters) {
            // Of thousands of ports only those that drop or are half full are reported.
            let is_worth_it = sum.dropped > 0 || sum.queue > sum.limit / 2;
            if !is_worth_it && !self.by_key.contains_key(&key) {
                continue;
            }
            let Some(meters) = meters(&mut self.by_key, key) else { continue };
            let now = Instant::now();
            let since = (meters.total_drops == 0 && sum.dropped > 0).then(|| {
                self.scan_at.map_or(now, |at| at - SCAN_EVERY).min(now - Duration::from_secs(1))
            });
            if let Some(since) = since {
                meters.drops.begin(since, 0);
            }
            meters.total_drops += sum.dropped;
            with_labels(key, processes, |labels| {
                let drops = SeriesSpec::new(&metric::SOCKET_DROPS, labels);
                if let Some(since) = since {
                    meters.drops.meter.begin_at_zero(sink, since, &drops);
                }
                meters.drops.put(sink, now, meters.total_drops, 1.0, &drops);
                let limit = (sum.limit > 0).then_some(f64::from(sum.limit));
                let queue = SeriesSpec::new(&metric::SOCKET_RECEIVE_QUEUE, labels).limit(limit);
                meters.queue.put(sink, now, sum.queue.into(), &queue);
            });
        }
    }

    /// Scans UDP sockets: queues, and drops at full buffers since the last scan, by port.
    fn sum_datagrams(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
        counters: Counters<'_>,
    ) -> Vec<(Key, Sum)> {
        let mut sums: HashMap<Key, Sum> = HashMap::new();
        let owners = &self.owners;
        let mut scan = self.drops.scan(counters.dropped_without_filter(reader));
        let mut add = |socket: &Socket| {
            let Some(memory) = socket.memory else { return };
            let pid = owners.get(&socket.inode).copied().unwrap_or(0);
            let key = Key { pid, port: socket.port, is_udp: true };
            scan.add(socket.inode, memory.drops, (key, pid != 0));
            let sum = sums.entry(key).or_default();
            if memory.received >= sum.queue {
                (sum.queue, sum.limit) = (memory.received, memory.receive_limit);
            }
        };
        if let Err(error) = dump(self.diag.as_mut(), UDP, u32::MAX, SocketDetail::Memory, &mut add)
        {
            let help = "load the module udp_diag, or run the watcher as root; /proc/P/net/udp is \
                        read instead";
            failures.report(sink, "queues of UDP sockets by netlink", &error.to_string(), help);
            for socket in from_files(reader, self.pid, ["udp", "udp6"], |_| true) {
                add(&socket);
            }
        }
        for (key, count) in scan.end(counters.dropped_without_filter(reader)) {
            sums.entry(key).or_default().dropped += count;
        }
        // Watched processes first: series are limited.
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| (key.pid == 0, key.port));
        sums
    }

    /// Scans TCP connections: send performance on listening ports, and the local ports in use
    /// toward the most used peer, because TCP needs another local port for each connection to the
    /// same peer.
    fn read_connected(&mut self, sink: &Sink, processes: &HashMap<u32, String>) {
        let (low, high) = self.ports.unwrap_or((1, 0));
        let listened: HashMap<u16, Key> =
            self.by_key.keys().filter(|key| !key.is_udp).map(|key| (key.port, *key)).collect();
        let mut scan = self.connections.scan();
        let mut by_peer: HashMap<([u8; 16], u16), u32> = HashMap::new();
        let mut add = |socket: &Socket| {
            if listened.contains_key(&socket.port) {
                scan.add(socket);
            }
            let key = (socket.peer_address, socket.peer_port);
            if (low..=high).contains(&socket.port)
                && (by_peer.len() < SOCKETS_MAX || by_peer.contains_key(&key))
            {
                *by_peer.entry(key).or_default() += 1;
            }
        };
        if dump(self.diag.as_mut(), TCP, CONNECTED, SocketDetail::TcpInfo, &mut add).is_err() {
            return;
        }
        scan.put(sink, |port, put| {
            if let Some(key) = listened.get(&port) {
                with_labels(*key, processes, put);
            }
        });
        if high > low {
            let most = by_peer.values().copied().max().unwrap_or(0);
            let limit = f64::from(high - low) + 1.0;
            let spec = SeriesSpec::host(&metric::TCP_EPHEMERAL_PORTS).limit(Some(limit));
            self.ephemeral.put(sink, Instant::now(), most.into(), &spec);
        }
    }

    /// Ends the series of a process's sockets.
    pub(crate) fn end(&mut self, sink: &Sink, pid: u32) {
        let now = Instant::now();
        let connections = &mut self.connections;
        self.by_key.retain(|key, meters| {
            if key.pid == pid {
                connections.end(sink, key.port);
                meters.drops.end(sink, now);
                meters.queue.end(sink, now);
            }
            key.pid != pid
        });
        self.owners.retain(|_, owner| *owner != pid);
    }
}

fn meters(by_key: &mut HashMap<Key, Meters>, key: Key) -> Option<&mut Meters> {
    if by_key.len() >= SERIES_MAX && !by_key.contains_key(&key) {
        return None;
    }
    Some(by_key.entry(key).or_default())
}

/// Calls `put` with the labels of a port. Sockets of unwatched processes are reported too: they
/// fill the same buffers.
fn with_labels(key: Key, processes: &HashMap<u32, String>, put: impl FnOnce(&[(&str, &str)])) {
    let (pid, port) = (key.pid.to_string(), key.port.to_string());
    let process = processes.get(&key.pid).map_or("(not watched)", String::as_str);
    let protocol = if key.is_udp { "udp" } else { "tcp" };
    put(&[("process", process), ("pid", &pid), ("port", &port), ("protocol", protocol)]);
}

fn dump(
    diag: Option<&mut Netlink>,
    protocol: u8,
    states: u32,
    detail: SocketDetail,
    add: &mut dyn FnMut(&Socket),
) -> io::Result<()> {
    let diag = diag.ok_or(io::ErrorKind::PermissionDenied)?;
    for family in [INET, INET6] {
        diag.dump(&netlink::socket_request(family, protocol, states, detail), |message| {
            if let Some(socket) = netlink::socket(message.payload) {
                add(&socket);
            }
        })?;
    }
    Ok(())
}

/// The same from `/proc/P/net`, which has no queue limits.
fn from_files(
    reader: &mut Reader,
    pid: u32,
    files: [&str; 2],
    is_it: impl Fn(&net_sockets::Socket) -> bool,
) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for file in files {
        let Ok(text) = reader.path(&format!("/proc/{pid}/net/{file}")) else { continue };
        let clip = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let all = net_sockets::parse(text).filter(|socket| is_it(socket)).map(|socket| Socket {
            port: socket.port,
            peer_port: socket.peer_port,
            receive_queue: clip(socket.rx_queue),
            inode: clip(socket.inode),
            memory: socket.drops.map(|drops| SocketMemory {
                received: clip(socket.rx_queue),
                receive_limit: 0,
                drops: clip(drops),
            }),
            ..Socket::default()
        });
        sockets.extend(all);
    }
    sockets
}
