//! Files as kernels of several ages and builds write them, and the same files with every simple
//! kind of damage.

use throng_observation::host::CpuTimes;

use super::cpu_stat::Line;
use super::*;

/// Linux 6.18, two cores.
const STAT_6_18: &str = "cpu  470281 1031 97846 1873205 12020 0 6311 20744 0 0\n\
cpu0 235033 520 49215 936013 5849 0 3204 10419 0 0\ncpu1 235247 511 48630 937191 6170 0 3106 10324 0 0\n\
intr 58218331 0 0 0 1 2 3\nctxt 88431823\nbtime 1795230000\nprocesses 151732\nprocs_running 5\nprocs_blocked 1\n\
softirq 9861432 0 1 2 3\n";
/// Linux 2.6.32 (RHEL 6): nine columns, an offline core.
const STAT_2_6_32: &str = "cpu  100 0 50 800 10 0 1 2 3\ncpu0 60 0 25 400 5 0 1 1 3\ncpu2 40 0 25 400 5 0 0 1 0\n\
intr 1\nctxt 7\nprocesses 9\nprocs_running 1\nprocs_blocked 0\n";
/// Linux 2.4: four columns.
const STAT_2_4: &str = "cpu  1 2 3 4\ncpu0 1 2 3 4\nctxt 5\n";

#[test]
fn cpu_time_reads_with_four_columns_to_ten() {
    let all = |text: &str| {
        cpu_stat::parse(text.as_bytes()).find_map(|line| match line {
            Line::All(times) => Some(times),
            _ => None,
        })
    };
    let cores = |text: &str| {
        let core = |line| match line {
            Line::Core(number, _) => Some(number),
            _ => None,
        };
        cpu_stat::parse(text.as_bytes()).filter_map(core).collect::<Vec<_>>()
    };
    assert_eq!(all(STAT_6_18).unwrap().steal, 20_744);
    assert_eq!(all(STAT_2_6_32).unwrap().guest, 3);
    let expect = CpuTimes { user: 1, nice: 2, system: 3, idle: 4, ..CpuTimes::default() };
    assert_eq!(all(STAT_2_4), Some(expect));
    assert_eq!((cores(STAT_6_18), cores(STAT_2_6_32)), (vec![0, 1], vec![0, 2]));
    assert!(cpu_stat::parse(STAT_6_18.as_bytes()).any(|line| line == Line::Blocked(1)));
}

/// 6.18 has 17 fields after the name, 4.18 has 15, 2.6.32 has 11.
const DISKSTATS: &str = " 254       0 vda 3902082 156954 243608410 5375078 221098 321327 184340560 1069887 3 290808 6492986 126448 88 85397136 43198 17690 4821\n\
   8       1 sda1 11 12 13 14 15 16 17 18 0 20 21 22 23 24 25\n\
 104       0 cciss/c0d0 5 0 40 8 1 0 8 2 0 9 10\n   8       2 sda2 5 6 7 8\n";

#[test]
fn disks_read_with_eleven_fields_or_more() {
    let disks: Vec<_> = diskstats::parse(DISKSTATS.as_bytes()).collect();
    assert_eq!(
        disks.iter().map(|disk| scan::text(disk.name)).collect::<Vec<_>>(),
        ["vda", "sda1", "cciss/c0d0"]
    );
    assert_eq!(
        (disks[0].in_flight, disks[0].ms_busy, disks[0].ms_weighted),
        (3, 290_808, 6_492_986)
    );
    assert_eq!((disks[2].reads, disks[2].sectors_read, disks[2].ms_writing), (5, 40, 2));
}

const MEMINFO_6: &str = "MemTotal:       24683000 kB\nMemFree:        18230000 kB\nMemAvailable:   23495000 kB\nBuffers:  10 kB\nCached:  20 kB\nSwapTotal:      100 kB\nSwapFree:       40 kB\nDirty:  3 kB\nWriteback: 4 kB\n";
/// Kernels before 3.14 have no MemAvailable.
const MEMINFO_3_10: &str = "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 50 kB\nCached: 300 kB\n";

#[test]
fn available_memory_is_estimated_on_old_kernels() {
    let new = meminfo::parse(MEMINFO_6.as_bytes()).unwrap();
    assert_eq!((new.available, new.cached, new.dirty), (23_495_000 << 10, 30 << 10, 7 << 10));
    assert_eq!(meminfo::parse(MEMINFO_3_10.as_bytes()).unwrap().available, 450 << 10);
    assert_eq!(meminfo::parse(b"rubbish\n"), None);
}

const PRESSURE_6: &str = "some avg10=8.25 avg60=21.31 avg300=14.98 total=4949830116\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
/// Before 5.13 the CPU had no second line.
const PRESSURE_5_4: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";

#[test]
fn pressure_is_the_total_and_may_lack_the_second_line() {
    let pressure = |text: &str| pressure::parse(text.as_bytes());
    assert_eq!(
        (pressure(PRESSURE_6).some_us, pressure(PRESSURE_6).full_us),
        (Some(4_949_830_116), Some(7))
    );
    assert_eq!((pressure(PRESSURE_5_4).some_us, pressure(PRESSURE_5_4).full_us), (Some(12), None));
}

const VMSTAT_6: &str = "pgpgin 10\npgpgout 20\npgmajfault 3\npgscan_direct 7\npgscan_direct_throttle 99\nallocstall_dma 0\nallocstall_normal 4\nallocstall_movable 1\nworkingset_refault_anon 9\nworkingset_refault_file 8\noom_kill 2\n";
const VMSTAT_3_10: &str = "pgpgin 10\npgpgout 20\npgmajfault 3\npgscan_direct_dma 1\npgscan_direct_normal 2\nallocstall 6\n";
const VMSTAT_4_9: &str = "workingset_refault 5\npgscan_direct 1\n";

#[test]
fn reclaim_is_counted_by_zone_or_in_all() {
    let stat = |text: &str| {
        let stat = vmstat::parse(text.as_bytes());
        (stat.scan_direct, stat.allocation_stalls, stat.refaults_file, stat.oom_kills)
    };
    assert_eq!(stat(VMSTAT_6), (7, 5, 8, 2));
    assert_eq!(stat(VMSTAT_3_10), (3, 6, 0, 0));
    assert_eq!(stat(VMSTAT_4_9), (1, 0, 5, 0));
}

/// Old kernels put no blank after the colon.
const NET_DEV: &str = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n  eth0:4294967296 7 1 2 3 0 0 0 8 9 10 11 12 0 0 0\neth0:1: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n";

#[test]
fn interfaces_read_with_and_without_a_blank_behind_the_colon() {
    let interfaces: Vec<_> = net_dev::parse(NET_DEV.as_bytes()).collect();
    assert_eq!(
        interfaces.iter().map(|i| scan::text(i.name)).collect::<Vec<_>>(),
        ["lo", "eth0", "eth0:1"]
    );
    let eth0 = &interfaces[1];
    assert_eq!(
        (eth0.rx.bytes, eth0.rx.dropped, eth0.rx.fifo, eth0.tx.packets, eth0.tx.dropped),
        (1 << 32, 2, 3, 9, 11)
    );
}

const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoAlgorithm MaxConn ActiveOpens CurrEstab\nTcp: 1 -1 5 3\n\
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\nUdp: 11 12 13 14 15 16 17 18 19\n";
/// 2.6.32 has fewer UDP counters.
const SNMP_2_6_32: &str =
    "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 1 2 3 4 5 6\n";

#[test]
fn counters_are_found_by_name_wherever_they_stand() {
    let find = |text: &str, wanted: &str| {
        net_snmp::parse(text.as_bytes())
            .find(|(_, name, _)| *name == wanted.as_bytes())
            .map(|(.., value)| value)
    };
    assert_eq!(
        (find(SNMP, "RcvbufErrors"), find(SNMP, "MemErrors"), find(SNMP, "CurrEstab")),
        (Some(15), Some(19), Some(3))
    );
    assert_eq!(find(SNMP, "MaxConn"), None);
    assert_eq!(
        (find(SNMP_2_6_32, "RcvbufErrors"), find(SNMP_2_6_32, "MemErrors")),
        (Some(5), None)
    );
    assert_eq!(find("Udp: A B\nTcp: 1 2\n", "A"), None);
}

const UDP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
  123: 0100007F:1F90 00000000:0000 07 00000000:00034A80 00:00000000 00000000     0        0 4711 2 00000000a1b2c3d4 77\n";
const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 00000000000000000000000000000000:1FFC 00000000000000000000000000000000:0000 0A 00000000:00000005 00:00000000 00000000     0        0 1077 1 000000001291874f 100 0 0 10 0\n";

#[test]
fn sockets_show_port_queue_owner_and_drops() {
    let udp: Vec<_> = net_sockets::parse(UDP.as_bytes()).collect();
    assert_eq!(
        (udp[0].port, udp[0].rx_queue, udp[0].inode, udp[0].drops),
        (8080, 0x34a80, 4711, Some(77))
    );
    let tcp: Vec<_> = net_sockets::parse(TCP6.as_bytes()).collect();
    assert_eq!(
        (tcp[0].port, tcp[0].state, tcp[0].rx_queue, tcp[0].inode),
        (8188, net_sockets::TCP_LISTEN, 5, 1077)
    );
}

/// 6.18 names the CPU in the thirteenth column; 4.19 has eleven columns, 2.6.32 nine.
const SOFTNET: &str = "01720060 00000001 00000011 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000003 00000004 00000000 00000000\n\
0000000a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000005\n\
0000000b 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n";

#[test]
fn soft_interrupts_name_their_cpu_or_stand_in_its_line() {
    let cpus: Vec<_> = softnet_stat::parse(SOFTNET.as_bytes()).collect();
    let figures: Vec<_> = cpus
        .iter()
        .map(|c| (c.cpu, c.processed, c.dropped, c.time_squeeze, c.flow_limit, c.backlog))
        .collect();
    assert_eq!(
        figures,
        [(4, 0x0172_0060, 1, 17, 2, Some(3)), (1, 10, 0, 0, 5, None), (2, 11, 0, 0, 0, None)]
    );
}

const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
Max cpu time              unlimited            unlimited            seconds   \n\
Max open files            1024                 1048576              files     \n\
Max realtime priority     0                    0                    \n";

#[test]
fn limits_are_numbers_or_unlimited() {
    assert_eq!(limits::open_files(LIMITS.as_bytes()), Some(1024));
    let all: Vec<_> = limits::parse(LIMITS.as_bytes()).collect();
    assert_eq!(all[0], ("Max cpu time", None, None));
    assert_eq!(all[2], ("Max realtime priority", Some(0), Some(0)));
    assert_eq!(
        limits::open_files(
            b"Max open files            unlimited            unlimited            files\n"
        ),
        None
    );
}

const SOCKSTAT: &str = "sockets: used 21\nTCP: inuse 1 orphan 2 tw 3 alloc 4 mem 5\nUDP: inuse 6 mem 7\nUDPLITE: inuse 8\nRAW: inuse 0\n";
const SOCKSTAT6: &str = "TCP6: inuse 10\nUDP6: inuse 20\n";
const CPU_STAT_V2: &str = "usage_usec 100\nuser_usec 60\nsystem_usec 40\nnr_periods 5\nnr_throttled 2\nthrottled_usec 999\nnr_bursts 0\n";
const CPU_STAT_V1: &str = "nr_periods 5\nnr_throttled 2\nthrottled_time 999000\n";
const BLKIO: &str =
    "254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 0\n254:0 Total 12288\n8:0 Read 1\nTotal 12289\n";
const IO_STAT: &str =
    "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:0 rbytes=1 wbytes=2\n";

#[test]
fn both_versions_of_control_groups_say_the_same() {
    let mut stat = sockstat::SockStat::default();
    stat.read(SOCKSTAT.as_bytes());
    stat.read(SOCKSTAT6.as_bytes());
    assert_eq!(
        (stat.tcp_in_use, stat.udp_in_use, stat.tcp_time_wait, stat.udp_pages),
        (11, 26, 3, 7)
    );
    for text in [CPU_STAT_V1, CPU_STAT_V2] {
        let stat = cgroup_files::cpu_stat(text.as_bytes());
        assert_eq!(
            (stat.periods, stat.throttled_periods, stat.throttled_us),
            (Some(5), Some(2), Some(999))
        );
    }
    assert_eq!(cgroup_files::cpu_max(b"150000 100000\n"), Some(1.5));
    assert_eq!(
        (cgroup_files::cpu_max(b"max 100000\n"), cgroup_files::cpu_max(b"1 0\n")),
        (None, None)
    );
    assert_eq!(cgroup_files::cfs_quota(b"20000\n", b"100000\n"), Some(0.2));
    assert_eq!(cgroup_files::cfs_quota(b"-1\n", b"100000\n"), None);
    assert_eq!(cgroup_files::level(b"9223372036854771712\n"), None);
    assert_eq!(cgroup_files::blkio_bytes(BLKIO.as_bytes()), (4097, 8192));
    assert_eq!(cgroup_files::io_stat(IO_STAT.as_bytes()), (4097, 8194));
}

/// Every parser reads any bytes without a panic, and its output is bounded by its input.
pub(super) fn every_parser(text: &[u8]) {
    let bound = text.len() + 1;
    assert!(cpu_stat::parse(text).count() <= bound);
    assert!(diskstats::parse(text).count() <= bound);
    assert!(net_dev::parse(text).count() <= bound);
    assert!(net_snmp::parse(text).count() <= bound);
    assert!(net_snmp::parse6(text).count() <= bound);
    assert!(net_sockets::parse(text).count() <= bound);
    assert!(softnet_stat::parse(text).count() <= bound);
    assert!(softirqs::net_rx(text).count() <= bound);
    assert!(limits::parse(text).count() <= bound);
    assert!(cgroup::parse(text).count() <= bound);
    assert!(mountinfo::parse(text).count() <= bound);
    let _ = (meminfo::parse(text), pressure::parse(text), vmstat::parse(text), io::parse(text));
    let _ = (
        schedstat::parse(text),
        statm::resident_pages(text),
        status::switches(text),
        stat::parse(text),
    );
    let _ = status::cpus_allowed(text);
    sockstat::SockStat::default().read(text);
    let _ =
        (cgroup_files::cpu_stat(text), cgroup_files::cpu_max(text), cgroup_files::io_stat(text));
    let _ = (cgroup_files::blkio_bytes(text), cgroup_files::level(text));
    for message in netlink::messages(text) {
        assert!(message.payload.len() < text.len());
    }
    let _ = (netlink::link(text), netlink::qdisc(text), netlink::socket(text));
    assert!(
        diskstats::parse(text).filter(|disk| diskstats::is_partition(disk.name)).count() <= bound
    );
}

#[test]
fn no_damage_to_any_file_panics_a_parser() {
    let files = [
        STAT_6_18,
        STAT_2_6_32,
        STAT_2_4,
        DISKSTATS,
        MEMINFO_6,
        MEMINFO_3_10,
        PRESSURE_6,
        PRESSURE_5_4,
        VMSTAT_6,
        VMSTAT_3_10,
        NET_DEV,
        SNMP,
        SNMP_2_6_32,
        UDP,
        TCP6,
        SOFTNET,
        LIMITS,
        SOCKSTAT,
        SOCKSTAT6,
        CPU_STAT_V2,
        BLKIO,
        IO_STAT,
        "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\n",
        "1 2 3\n",
        "0::/a\n",
        "25 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "18446744073709551615 -1 99999999999999999999\n",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..40_000 {
        let mut bytes = files[round % files.len()].as_bytes().to_vec();
        for _ in 0..=random.usize(..4) {
            let at = random.usize(..=bytes.len());
            match random.u8(..6) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = random.u8(..),
                2 => bytes.insert(at, *random.choice(b"0 9-:\n)\xff\0").unwrap()),
                3 if at < bytes.len() => drop(bytes.remove(at)),
                4 => bytes.truncate(at.max(1) - 1),
                _ => {
                    let other = files[random.usize(..files.len())].as_bytes();
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[random.usize(..other.len())..]);
                }
            }
        }
        every_parser(&bytes);
    }
    every_parser(b"");
    every_parser(&[b'9'; 4096]);
}
