//! Whole files of kernels of several ages, in `recorded/`. Those of 6.18 were captured on a machine
//! with two cores (a group's path and addresses other than loopback are removed). Those of other
//! kernels have the same figures in the form that their documentation and source describe: columns
//! and lines that were added later are left out, names are the old ones.

use super::cpu_stat::Line;
use super::recorded_tests::every_parser;
use super::*;

macro_rules! files {
    ($($kernel:literal { $($name:literal)+ })+) => {
        const FILES: &[(&str, &str, &[u8])] =
            &[$($(($kernel, $name, include_bytes!(concat!("recorded/", $kernel, "/", $name)))),+),+];
    };
}

files! {
    "6.18" {
        "diskstats" "file-nr" "meminfo" "net_dev" "net_netstat" "net_snmp" "net_snmp6" "net_sockstat" "net_sockstat6"
        "net_softnet_stat" "net_stat_nf_conntrack" "net_tcp" "net_udp" "pressure_cpu" "pressure_io" "pressure_memory"
        "self_cgroup" "self_io" "self_limits" "self_mountinfo" "self_schedstat" "self_stat" "self_statm" "self_status"
        "softirqs" "stat" "vmstat"
    }
    "6.1" { "meminfo" "net_snmp" "net_softnet_stat" "pressure_cpu" "vmstat" }
    "5.10" { "diskstats" "meminfo" "net_snmp" "net_softnet_stat" "pressure_cpu" "vmstat" }
    "4.19" { "diskstats" "meminfo" "net_softnet_stat" "self_io" "self_schedstat" "stat" "vmstat" }
    "4.14" { "diskstats" }
}

fn of(kernel: &str, name: &str) -> &'static [u8] {
    FILES.iter().find(|(k, n, _)| (*k, *n) == (kernel, name)).map(|(.., text)| *text).unwrap()
}

/// The file of every kernel that has one.
fn all(name: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().filter(move |(_, n, _)| *n == name).map(|(kernel, _, text)| (*kernel, *text))
}

#[test]
fn every_parser_reads_every_file() {
    for (kernel, name, text) in FILES {
        assert!(!text.is_empty(), "{kernel}/{name}");
        every_parser(text);
    }
}

#[test]
fn the_machine_reads_alike_from_every_kernel() {
    for (kernel, text) in all("stat") {
        let all = cpu_stat::parse(text).find_map(|line| match line {
            Line::All(times) => Some(times),
            _ => None,
        });
        let times = all.unwrap();
        assert_eq!(
            (times.user, times.idle, times.steal),
            (3_720_918, 4_377_104, 131_569),
            "{kernel}"
        );
        let cores = cpu_stat::parse(text).filter(|line| matches!(line, Line::Core(..))).count();
        assert_eq!(cores, 2, "{kernel}");
        assert!(cpu_stat::parse(text).any(|line| line == Line::Running(16)), "{kernel}");
    }
    for (kernel, text) in all("meminfo") {
        let memory = meminfo::parse(text).unwrap();
        let kib = |kib: u64| kib << 10;
        assert_eq!(
            (memory.total, memory.available),
            (kib(24_682_416), kib(21_072_228)),
            "{kernel}"
        );
        assert_eq!(
            (memory.cached, memory.dirty),
            (kib(380_284 + 17_338_296), kib(192_280 + 20)),
            "{kernel}"
        );
    }
    for (kernel, text) in all("vmstat") {
        let stat = vmstat::parse(text);
        assert_eq!((stat.page_in_kib, stat.faults_major), (196_931_347, 35_676), "{kernel}");
        assert_eq!((stat.scan_direct, stat.allocation_stalls), (71_587, 480), "{kernel}");
        assert_eq!((stat.refaults_file, stat.oom_kills), (867_597, 2), "{kernel}");
    }
    for (kernel, text) in all("diskstats") {
        let disks: Vec<_> = diskstats::parse(text).collect();
        let columns = scan::fields(scan::lines(text).next().unwrap()).count();
        let expect = [("4.14", 14), ("4.19", 18), ("5.10", 20), ("6.18", 20)];
        assert!(expect.contains(&(kernel, columns)), "{kernel} has {columns}");
        let named = |name: &[u8]| *disks.iter().find(|disk| disk.name == name).unwrap();
        let captured = diskstats::parse(of("6.18", "diskstats"));
        assert!(disks.iter().copied().eq(captured), "{kernel}");
        assert!(named(b"vda").reads > 380_000 && named(b"vda").ms_weighted > 1_700_000, "{kernel}");
    }
    let net_rx: Vec<_> = softirqs::net_rx(of("6.18", "softirqs")).collect();
    assert_eq!(net_rx.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [0, 1]);
    assert!(net_rx.iter().all(|(_, count)| *count > 10_000_000), "{net_rx:?}");
    assert!(scan::number(scan::fields(of("6.18", "file-nr")).next().unwrap()) > Some(0));
}

#[test]
fn pressure_is_there_since_4_20_and_of_all_tasks_of_a_cpu_since_5_13() {
    let pressures = all("pressure_cpu").map(|(kernel, text)| (kernel, pressure::parse(text)));
    let stalls: Vec<_> = pressures.map(|(kernel, p)| (kernel, p.some_us, p.full_us)).collect();
    let some = Some(4_492_926_799);
    assert_eq!(stalls, [("6.18", some, Some(0)), ("6.1", some, Some(0)), ("5.10", some, None)]);
    for name in ["pressure_io", "pressure_memory"] {
        let pressure = pressure::parse(of("6.18", name));
        assert!(
            pressure.full_us > Some(0) && pressure.some_us >= pressure.full_us,
            "{name}: {pressure:?}"
        );
    }
}

#[test]
fn the_network_reads_alike_from_every_kernel() {
    for (kernel, text) in all("net_softnet_stat") {
        let cpus: Vec<_> = softnet_stat::parse(text).collect();
        let figures: Vec<_> =
            cpus.iter().map(|c| (c.cpu, c.processed, c.dropped, c.time_squeeze)).collect();
        assert_eq!(figures, [(0, 0x019a_1eaf, 0, 0x98), (1, 0x0134_b6a7, 0, 0xa7)], "{kernel}");
        let has_backlog = cpus.iter().all(|cpu| cpu.backlog.is_some());
        assert_eq!(has_backlog, kernel != "4.19", "{kernel}");
    }
    for (kernel, text) in all("net_snmp") {
        let udp = |wanted: &str| {
            net_snmp::parse(text)
                .find(|(protocol, name, _)| *protocol == b"Udp" && *name == wanted.as_bytes())
                .map(|(.., value)| value)
        };
        assert_eq!(
            (udp("InDatagrams"), udp("RcvbufErrors")),
            (Some(30_862_875), Some(164_946)),
            "{kernel}"
        );
        assert_eq!(udp("MemErrors").is_some(), kernel != "5.10", "{kernel}"); // since 5.11
    }
    let of = |name| of("6.18", name);
    let extended =
        |wanted: &[u8]| net_snmp::parse(of("net_netstat")).any(|(_, name, _)| name == wanted);
    assert!(
        extended(b"ListenOverflows")
            && extended(b"TCPReqQFullDrop")
            && extended(b"TCPMemoryPressures")
    );
    assert!(net_snmp::parse6(of("net_snmp6")).any(|(name, _)| name == b"Udp6RcvbufErrors"));
    let interfaces: Vec<_> = net_dev::parse(of("net_dev")).map(|i| scan::text(i.name)).collect();
    assert!(
        interfaces.contains(&"lo".into()) && interfaces.contains(&"eth0".into()),
        "{interfaces:?}"
    );
    let mut stat = sockstat::SockStat::default();
    stat.read(of("net_sockstat"));
    stat.read(of("net_sockstat6"));
    assert!(stat.tcp_in_use >= 6 && stat.tcp_pages == 33, "{stat:?}");
    let udp: Vec<_> =
        net_sockets::parse(of("net_udp")).map(|socket| (socket.port, socket.drops)).collect();
    assert_eq!(udp, [(5004, Some(0))]);
    assert!(
        net_sockets::parse(of("net_tcp")).any(|socket| socket.state == net_sockets::TCP_LISTEN)
    );
}

#[test]
fn a_process_reads_from_its_files() {
    let of = |name| of("6.18", name);
    let stat = stat::parse(of("self_stat")).unwrap();
    assert_eq!((stat.name, stat.state, stat.threads), (&b"media server"[..], b'R', 1));
    assert_eq!((stat.user_ticks, stat.system_ticks, stat.started_ticks), (12, 0, 4_283_414));
    assert_eq!((stat.faults_minor, stat.faults_major), (3_409, 0));
    assert_eq!(statm::resident_pages(of("self_statm")), Some(3_980));
    assert!(status::switches(of("self_status")).is_some_and(|switches| switches.involuntary > 0));
    assert_eq!(
        cgroup::path_of(of("self_cgroup"), "memory").map(|group| group.path),
        Some("/server")
    );
    let hierarchies: Vec<_> = mountinfo::parse(of("self_mountinfo")).collect();
    assert!(hierarchies.iter().any(|mount| mount.is_v2 && mount.point == "/sys/fs/cgroup/unified"));
    assert!(
        hierarchies
            .iter()
            .any(|mount| !mount.is_v2 && mount.options.split(',').any(|o| o == "cpu"))
    );
    assert!(limits::open_files(of("self_limits")).is_some());
    for (kernel, text) in all("self_schedstat") {
        let times = schedstat::parse(text).unwrap();
        let expect =
            schedstat::SchedStat { on_cpu_ns: 54_647_991, waiting_ns: 188_937_202, slices: 45 };
        assert_eq!(times, expect, "{kernel}");
    }
    for (kernel, text) in all("self_io") {
        let io = io::parse(text).unwrap();
        assert_eq!((io.read_bytes, io.write_bytes), (36_864, 1_359_872), "{kernel}");
    }
}
