//! The network in the server's namespace: interfaces, protocol counters and errors, queues.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use throng_observation::host::catalogue::{self as metric, Metric};

use super::files::{HELP_RIGHTS, ReadFailures, Reader};
use super::meter::{Meter, Rate, SeriesSpec, Sink};
use super::namespace::{self, Inside, Limits, Netlink};
use super::socket_drops::Counters;
use super::sockets::Sockets;
use super::units::Units;
use crate::proc::net_dev::{self, Interface};
use crate::proc::sockstat::SockStat;
use crate::proc::{net_snmp, netlink, scan, softnet_stat};

/// Maximum number of interfaces, and of queueing disciplines.
const INTERFACES_MAX: usize = 256;

/// Protocol and name in `snmp` and `netstat`, name in `snmp6`, metric.
type Known = (&'static [u8], &'static [u8], &'static [u8], &'static Metric);

/// Counters of `snmp`, `snmp6` and `netstat`.
const COUNTERS: [Known; 26] = [
    (b"Udp", b"InDatagrams", b"Udp6InDatagrams", &metric::UDP_IN_DATAGRAMS),
    (b"Udp", b"OutDatagrams", b"Udp6OutDatagrams", &metric::UDP_OUT_DATAGRAMS),
    (b"Udp", b"NoPorts", b"Udp6NoPorts", &metric::UDP_NO_PORTS),
    (b"Udp", b"InErrors", b"Udp6InErrors", &metric::UDP_IN_ERRORS),
    (b"Udp", b"RcvbufErrors", b"Udp6RcvbufErrors", &metric::UDP_RCVBUF_ERRORS),
    (b"Udp", b"SndbufErrors", b"Udp6SndbufErrors", &metric::UDP_SNDBUF_ERRORS),
    (b"Udp", b"MemErrors", b"Udp6MemErrors", &metric::UDP_MEM_ERRORS),
    (b"Udp", b"InCsumErrors", b"Udp6InCsumErrors", &metric::UDP_CHECKSUM_ERRORS),
    (b"Tcp", b"ActiveOpens", b"", &metric::TCP_ACTIVE_OPENS),
    (b"Tcp", b"PassiveOpens", b"", &metric::TCP_PASSIVE_OPENS),
    (b"Tcp", b"AttemptFails", b"", &metric::TCP_ATTEMPT_FAILS),
    (b"Tcp", b"EstabResets", b"", &metric::TCP_RESETS_RECEIVED),
    (b"Tcp", b"OutRsts", b"", &metric::TCP_RESETS_SENT),
    (b"Tcp", b"RetransSegs", b"", &metric::TCP_SEGMENTS_RETRANSMITTED),
    (b"Tcp", b"OutSegs", b"", &metric::TCP_SEGMENTS_OUT),
    (b"TcpExt", b"ListenOverflows", b"", &metric::TCP_LISTEN_OVERFLOWS),
    (b"TcpExt", b"ListenDrops", b"", &metric::TCP_LISTEN_DROPS),
    (b"TcpExt", b"TCPBacklogDrop", b"", &metric::TCP_BACKLOG_DROPS),
    (b"TcpExt", b"TCPRcvQDrop", b"", &metric::TCP_RECEIVE_QUEUE_DROPS),
    (b"TcpExt", b"TCPZeroWindowDrop", b"", &metric::TCP_ZERO_WINDOW_DROPS),
    (b"TcpExt", b"PruneCalled", b"", &metric::TCP_PRUNE_CALLED),
    (b"TcpExt", b"TCPReqQFullDrop", b"", &metric::TCP_SYN_QUEUE_DROPS),
    (b"TcpExt", b"TCPMemoryPressures", b"", &metric::TCP_MEMORY_PRESSURES),
    (b"TcpExt", b"TCPTimeouts", b"", &metric::TCP_TIMEOUTS),
    (b"TcpExt", b"TCPLostRetransmit", b"", &metric::TCP_LOST_RETRANSMITS),
    (b"TcpExt", b"TCPAbortOnMemory", b"", &metric::TCP_ABORTS_ON_MEMORY),
];
/// The first ones are UDP's, which are read in every pass.
const UDP_COUNTERS: usize = 8;
/// Indices of the counters of datagrams dropped for lack of buffer space.
const UDP_DROPS: [usize; 2] = [4, 6];

/// A network namespace that contains watched processes.
#[derive(Debug)]
pub(crate) struct Net {
    /// Its inode.
    pub(crate) namespace: u64,
    /// The label `netns` of its series; `None` for the first namespace.
    label: Option<Arc<str>>,
    files: Files,
    limits: Limits,
    /// Its settings, by their sysctl(8) names.
    pub(crate) settings: Vec<(&'static str, String)>,
    is_own: bool,
    counters: [Rate; COUNTERS.len()],
    /// IPv6's counters once read, and whether they grew: if IPv6 is unused, only full passes read
    /// it.
    over_ipv6: (Option<[u64; UDP_COUNTERS]>, bool),
    udp_drops_before: Option<u64>,
    interfaces: HashMap<Box<[u8]>, Nic>,
    levels: [Meter; 8],
    softnet: HashMap<u32, ([Rate; 4], Meter)>,
    conntrack: ([Rate; 3], Meter),
    qdiscs: HashMap<(u32, u32), ([Rate; 3], [Meter; 2])>,
    names: HashMap<u32, String>,
    pub(crate) sockets: Sockets,
}

#[derive(Debug)]
struct Files {
    dev: Option<File>,
    snmp: Option<File>,
    snmp6: Option<File>,
    netstat: Option<File>,
    sockstat: [Option<File>; 2],
    softnet: Option<File>,
    conntrack_stat: Option<File>,
    conntrack_count: Option<File>,
    route: Option<Netlink>,
}

#[derive(Debug, Default)]
struct Nic {
    rates: [Rate; 9],
    bits_per_s: Option<f64>,
}

impl Net {
    /// Opens the namespace of `pid`.
    pub(crate) fn open(
        pid: u32,
        namespace: u64,
        label: Option<&str>,
        sink: &Sink,
        failures: &mut ReadFailures,
    ) -> Self {
        let with_softnet = label.is_none();
        let inside = namespace::open(pid).unwrap_or_else(|error| {
            let what = format!("files in the network namespace of PID {pid}");
            failures.report(
                sink,
                &what,
                &error.to_string(),
                "run the watcher as root, or inside it (ip netns exec)",
            );
            let no = || Err(std::io::Error::from(error.kind()));
            let limits = Limits::default();
            Inside {
                route: no(),
                sockets: no(),
                conntrack_count: None,
                limits,
                settings: Vec::new(),
            }
        });
        let mut open =
            |name: &str| failures.open(sink, &format!("/proc/{pid}/net/{name}"), HELP_RIGHTS);
        let optional = |name: &str| File::open(format!("/proc/{pid}/net/{name}")).ok();
        let files = Files {
            dev: open("dev"),
            snmp: open("snmp"),
            netstat: open("netstat"),
            sockstat: [open("sockstat"), optional("sockstat6")],
            softnet: with_softnet.then(|| open("softnet_stat")).flatten(),
            // Absent without IPv6 or without connection tracking.
            snmp6: optional("snmp6"),
            conntrack_stat: optional("stat/nf_conntrack"),
            conntrack_count: inside.conntrack_count,
            route: inside.route.ok(),
        };
        Self {
            namespace,
            label: label.map(Arc::from),
            files,
            is_own: namespace::of(std::process::id()).is_ok_and(|own| own == namespace),
            sockets: Sockets::new(pid, inside.sockets.ok(), inside.limits.ports),
            limits: inside.limits,
            settings: inside.settings,
            counters: Default::default(),
            over_ipv6: Default::default(),
            udp_drops_before: None,
            interfaces: HashMap::new(),
            levels: Default::default(),
            softnet: HashMap::new(),
            conntrack: Default::default(),
            qdiscs: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// The sink with this namespace's label.
    pub(crate) fn sink(&self, sink: &Sink) -> Sink {
        Sink { netns: self.label.clone(), ..sink.clone() }
    }

    /// Reads the namespace; `true` if datagrams were dropped since the previous pass.
    pub(crate) fn read(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        units: &Units,
        is_slow: bool,
    ) -> bool {
        if let Some(Ok(text)) = self.files.dev.as_ref().map(|file| reader.all(file)) {
            read_interfaces(&mut self.interfaces, sink, text, self.is_own);
        }
        let dropped = self.read_counters(sink, reader, is_slow);
        if let Some(Ok(text)) = self.files.softnet.as_ref().map(|file| reader.all(file)) {
            read_softnet(&mut self.softnet, sink, text);
        }
        if is_slow {
            self.read_levels(sink, reader, units);
            self.read_conntrack(sink, reader);
            self.read_qdiscs(sink);
        }
        dropped
    }

    /// Reads its sockets: see [`Sockets::read`].
    pub(crate) fn read_sockets(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
        dropped: bool,
        processes: &HashMap<u32, String>,
    ) {
        let counters = Counters([self.files.snmp.as_ref(), self.files.snmp6.as_ref()]);
        self.sockets.read(sink, reader, failures, (dropped, counters), processes);
    }

    fn read_counters(&mut self, sink: &Sink, reader: &mut Reader, is_slow: bool) -> bool {
        let mut sums = [None::<u64>; COUNTERS.len()];
        let mut established = None;
        let wanted = if is_slow { COUNTERS.len() } else { UDP_COUNTERS };
        let mut add = |is_it: &dyn Fn(&Known) -> bool, value: u64| {
            if let Some(place) = COUNTERS.iter().take(wanted).position(is_it)
                && let Some(sum) = sums.get_mut(place)
            {
                *sum = Some(sum.unwrap_or(0).saturating_add(value));
            }
        };
        if let Some(Ok(text)) = self.files.snmp.as_ref().map(|file| reader.one(file)) {
            let ours = |protocol: &[u8]| protocol == b"Udp" || (is_slow && protocol == b"Tcp");
            for (protocol, name, value) in
                net_snmp::parse(text).filter(|(protocol, ..)| ours(protocol))
            {
                if protocol == b"Tcp" && name == b"CurrEstab" {
                    established = Some(value);
                }
                add(&|(p, n, ..)| *p == protocol && *n == name, value);
            }
        }
        self.read_ipv6(reader, is_slow);
        for ((.., name, _), value) in COUNTERS.iter().zip(self.over_ipv6.0.iter().flatten()) {
            add(&|(_, _, n, _)| n == name, *value);
        }
        if is_slow && let Some(Ok(text)) = self.files.netstat.as_ref().map(|file| reader.one(file))
        {
            let ours = net_snmp::parse(text).filter(|(protocol, ..)| *protocol == b"TcpExt");
            ours.for_each(|(protocol, name, value)| {
                add(&|(p, n, ..)| *p == protocol && *n == name, value);
            });
        }
        let now = Instant::now();
        for ((rate, sum), (.., kind)) in self.counters.iter_mut().zip(sums).zip(COUNTERS) {
            if let Some(sum) = sum {
                rate.put(sink, now, sum, 1.0, &SeriesSpec::host(kind));
            }
        }
        if let (Some(established), Some(meter)) =
            (established.filter(|_| is_slow), self.levels.first_mut())
        {
            meter.put(sink, now, established as f64, &SeriesSpec::host(&metric::TCP_ESTABLISHED));
        }
        let drops = UDP_DROPS.iter().filter_map(|place| sums.get(*place).copied().flatten()).sum();
        self.udp_drops_before.replace(drops).is_some_and(|before| drops > before)
    }

    fn read_ipv6(&mut self, reader: &mut Reader, is_slow: bool) {
        let (before, is_used) = self.over_ipv6;
        if !is_slow && !is_used {
            return;
        }
        let Some(Ok(text)) = self.files.snmp6.as_ref().map(|file| reader.one(file)) else { return };
        let counters = self.over_ipv6.0.get_or_insert_default();
        for (name, value) in net_snmp::parse6(text).filter(|(name, _)| name.starts_with(b"Udp6")) {
            let mut places = counters.iter_mut().zip(COUNTERS);
            if let Some((place, _)) = places.find(|(_, (.., theirs, _))| *theirs == name) {
                *place = value;
            }
        }
        if is_slow {
            self.over_ipv6.1 = self.over_ipv6.0 != before;
        }
    }

    fn read_levels(&mut self, sink: &Sink, reader: &mut Reader, units: &Units) {
        let mut stat = SockStat::default();
        for file in self.files.sockstat.iter().flatten() {
            if let Ok(text) = reader.one(file) {
                stat.read(text);
            }
        }
        if self.files.sockstat.iter().flatten().next().is_none() {
            return;
        }
        let now = Instant::now();
        let page = units.page_bytes as f64;
        let limits = &self.limits;
        let figures = [
            (stat.udp_in_use as f64, None, &metric::UDP_SOCKETS),
            (
                stat.udp_pages as f64 * page,
                limits.udp_pages_max.map(|n| n * page),
                &metric::UDP_MEMORY,
            ),
            (stat.tcp_in_use as f64, None, &metric::TCP_SOCKETS),
            (stat.tcp_time_wait as f64, limits.time_wait_max, &metric::TCP_TIME_WAIT),
            (stat.tcp_orphans as f64, limits.orphans_max, &metric::TCP_ORPHANS),
            (
                stat.tcp_pages as f64 * page,
                limits.tcp_pages_max.map(|n| n * page),
                &metric::TCP_MEMORY,
            ),
        ];
        for (meter, (value, limit, kind)) in self.levels.iter_mut().skip(1).zip(figures) {
            meter.put(sink, now, value, &SeriesSpec::host(kind).limit(limit));
        }
    }

    fn read_conntrack(&mut self, sink: &Sink, reader: &mut Reader) {
        let (rates, entries) = &mut self.conntrack;
        if let Some(Ok(text)) = self.files.conntrack_count.as_ref().map(|file| reader.one(file))
            && let Some(count) = scan::number(text.trim_ascii())
        {
            let spec =
                SeriesSpec::host(&metric::CONNTRACK_ENTRIES).limit(self.limits.conntrack_max);
            entries.put(sink, Instant::now(), count as f64, &spec);
        }
        if let Some(Ok(text)) = self.files.conntrack_stat.as_ref().map(|file| reader.all(file)) {
            // One line of names, then one line of hexadecimal numbers for each CPU.
            let mut lines = scan::lines(text);
            let names: Vec<&[u8]> =
                lines.next().map(|line| scan::fields(line).collect()).unwrap_or_default();
            let mut sums = [0_u64; 3];
            let kinds: [(&[u8], &Metric); 3] = [
                (b"insert_failed", &metric::CONNTRACK_INSERT_FAILED),
                (b"drop", &metric::CONNTRACK_DROPS),
                (b"early_drop", &metric::CONNTRACK_EARLY_DROPS),
            ];
            for line in lines {
                for (name, figure) in names.iter().zip(scan::fields(line)) {
                    let place = kinds.iter().position(|(wanted, _)| wanted == name);
                    if let Some(sum) = place.and_then(|place| sums.get_mut(place)) {
                        *sum = sum.saturating_add(scan::hexadecimal(figure).unwrap_or(0));
                    }
                }
            }
            let now = Instant::now();
            for ((rate, sum), (_, kind)) in rates.iter_mut().zip(sums).zip(kinds) {
                rate.put(sink, now, sum, 1.0, &SeriesSpec::host(kind));
            }
        }
    }

    fn read_qdiscs(&mut self, sink: &Sink) {
        const GET_QDISC: u16 = 38;
        let Some(route) = &mut self.files.route else { return };
        let (names, qdiscs) = (&self.names, &mut self.qdiscs);
        let mut has_unknown = false;
        let asked = route.dump(&netlink::dump_request(GET_QDISC, 20), |message| {
            let is_it = message.kind == netlink::NEW_QDISC;
            let Some(qdisc) =
                netlink::qdisc(message.payload).filter(|q| is_it && q.kind != b"noqueue")
            else {
                return;
            };
            let Some(interface) = names.get(&qdisc.interface) else {
                has_unknown = true;
                return;
            };
            let key = (qdisc.interface, qdisc.handle);
            if qdiscs.len() < INTERFACES_MAX || qdiscs.contains_key(&key) {
                let (rates, levels) = qdiscs.entry(key).or_default();
                read_qdisc(rates, levels, sink, interface, &qdisc);
            }
        });
        match asked {
            Ok(()) if has_unknown => self.read_interface_names(),
            // Late answers are recognised by their sequence number.
            Ok(()) => {}
            Err(error) if namespace::may_pass(&error) => {}
            Err(_) => self.files.route = None,
        }
    }

    /// Reads the names of interfaces by index.
    fn read_interface_names(&mut self) {
        const GET_LINK: u16 = 18;
        let Some(route) = &mut self.files.route else { return };
        let mut names = HashMap::new();
        let asked = route.dump(&netlink::dump_request(GET_LINK, 16), |message| {
            if let Some((index, name)) = netlink::link(message.payload)
                && names.len() < INTERFACES_MAX
            {
                names.insert(index, scan::text(name));
            }
        });
        if asked.is_ok() {
            self.names = names;
        }
    }
}

fn read_interfaces(
    interfaces: &mut HashMap<Box<[u8]>, Nic>,
    sink: &Sink,
    text: &[u8],
    is_own: bool,
) {
    for interface in net_dev::parse(text) {
        if interface.rx.packets == 0 && interface.tx.packets == 0 {
            continue; // never used
        }
        if !interfaces.contains_key(interface.name) {
            if interfaces.len() >= INTERFACES_MAX {
                continue;
            }
            let bits_per_s = is_own.then(|| line_rate(interface.name)).flatten();
            interfaces.insert(interface.name.into(), Nic { bits_per_s, ..Nic::default() });
        }
        if let Some(nic) = interfaces.get_mut(interface.name) {
            nic.read(sink, &interface);
        }
    }
}

/// The speed of an interface in bit/s; virtual ones have -1 or none. `/sys` shows the namespace in
/// which it was mounted.
fn line_rate(name: &[u8]) -> Option<f64> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.contains('/'))?;
    let text = std::fs::read(format!("/sys/class/net/{name}/speed")).ok()?;
    scan::number(text.trim_ascii()).filter(|mbit| *mbit > 0).map(|mbit| mbit as f64 * 1e6)
}

impl Nic {
    fn read(&mut self, sink: &Sink, interface: &Interface<'_>) {
        let now = Instant::now();
        let name = scan::text(interface.name);
        let labels = [("interface", &*name)];
        let (rx, tx) = (&interface.rx, &interface.tx);
        let limit = self.bits_per_s.map(|bits| bits / 8.0);
        let figures = [
            (rx.bytes, limit, &metric::NIC_RX_BYTES),
            (tx.bytes, limit, &metric::NIC_TX_BYTES),
            (rx.packets, None, &metric::NIC_RX_PACKETS),
            (tx.packets, None, &metric::NIC_TX_PACKETS),
            (rx.errors, None, &metric::NIC_RX_ERRORS),
            (tx.errors, None, &metric::NIC_TX_ERRORS),
            (rx.dropped, None, &metric::NIC_RX_DROPPED),
            (tx.dropped, None, &metric::NIC_TX_DROPPED),
            (rx.fifo, None, &metric::NIC_RX_FIFO),
        ];
        for (rate, (count, limit, kind)) in self.rates.iter_mut().zip(figures) {
            rate.put(sink, now, count, 1.0, &SeriesSpec::new(kind, &labels).limit(limit));
        }
    }
}

fn read_softnet(cpus: &mut HashMap<u32, ([Rate; 4], Meter)>, sink: &Sink, text: &[u8]) {
    let now = Instant::now();
    for cpu in softnet_stat::parse(text) {
        let (rates, backlog) = cpus.entry(cpu.cpu).or_default();
        let number = cpu.cpu.to_string();
        let labels = [("cpu", &*number)];
        let figures = [
            (cpu.processed, &metric::SOFTNET_PROCESSED),
            (cpu.dropped, &metric::SOFTNET_DROPPED),
            (cpu.time_squeeze, &metric::SOFTNET_TIME_SQUEEZE),
            (cpu.flow_limit, &metric::SOFTNET_FLOW_LIMIT),
        ];
        for (rate, (count, kind)) in rates.iter_mut().zip(figures) {
            rate.put(sink, now, count, 1.0, &SeriesSpec::new(kind, &labels));
        }
        if let Some(packets) = cpu.backlog {
            let spec = SeriesSpec::new(&metric::SOFTNET_BACKLOG, &labels);
            backlog.put(sink, now, packets as f64, &spec);
        }
    }
}

fn read_qdisc(
    rates: &mut [Rate; 3],
    levels: &mut [Meter; 2],
    sink: &Sink,
    interface: &str,
    qdisc: &netlink::Qdisc<'_>,
) {
    let now = Instant::now();
    let (kind, handle) = (scan::text(qdisc.kind), format!("{:x}:", qdisc.handle >> 16));
    let labels = [("interface", interface), ("qdisc", &*kind), ("handle", &*handle)];
    let counts = [
        (qdisc.drops, &metric::QDISC_DROPS),
        (qdisc.overlimits, &metric::QDISC_OVERLIMITS),
        (qdisc.requeues, &metric::QDISC_REQUEUES),
    ];
    for (rate, (count, kind)) in rates.iter_mut().zip(counts) {
        rate.put(sink, now, count.into(), 1.0, &SeriesSpec::new(kind, &labels));
    }
    let waiting = [
        (qdisc.bytes, &metric::QDISC_BACKLOG_BYTES),
        (qdisc.packets, &metric::QDISC_BACKLOG_PACKETS),
    ];
    for (meter, (value, kind)) in levels.iter_mut().zip(waiting) {
        meter.put(sink, now, value.into(), &SeriesSpec::new(kind, &labels));
    }
}
