//! The table itself: one entry a metric, in the groups in which the page shows them.

use super::super::Unit;
use super::{Group, Metric, Together};

groups! {
    "Threads of the watched processes: labels `process`, `pid`, `tid`, `thread`. A thread's \
     series begin when it first runs." {
        THREAD_CPU = "thread.cpu", Ratio,
            "Share of one core that the thread ran on",
            "/proc/P/task/T/schedstat field 1";
        THREAD_RUN_QUEUE_WAIT = "thread.run_queue_wait", Ratio,
            "Share of the time that the thread was ready to run and waited for a CPU",
            "/proc/P/task/T/schedstat field 2";
        THREAD_SWITCHES_VOLUNTARY = "thread.switches_voluntary", PerSecond,
            "Times a hot thread gave its CPU away to wait for something",
            "/proc/P/task/T/status voluntary_ctxt_switches";
        THREAD_SWITCHES_INVOLUNTARY = "thread.switches_involuntary", PerSecond,
            "Times a hot thread was taken off its CPU",
            "/proc/P/task/T/status nonvoluntary_ctxt_switches";
        THREAD_CPUS_ALLOWED = "thread.cpus_allowed", Count Largest,
            "CPUs that a hot thread may run on, by its affinity and its cpuset",
            "/proc/P/task/T/status Cpus_allowed_list";
    }
    "Watched processes: labels `process`, `pid`." {
        PROCESS_CPU = "process.cpu", Ratio,
            "CPU time of all threads, also of those that have ended, in cores",
            "/proc/P/stat utime + stime";
        PROCESS_CPU_USER = "process.cpu.user", Ratio,
            "The part of process.cpu in user space",
            "/proc/P/stat utime";
        PROCESS_CPU_SYSTEM = "process.cpu.system", Ratio,
            "The part of process.cpu in the kernel",
            "/proc/P/stat stime";
        PROCESS_THREADS = "process.threads", Count,
            "Threads",
            "/proc/P/stat num_threads";
        PROCESS_THREADS_BLOCKED = "process.threads_blocked", Count,
            "Threads in uninterruptible (disk) sleep when they were looked at, each within the \
             last 10 s",
            "/proc/P/task/T/stat state D";
        PROCESS_STOPPED = "process.stopped", Ratio Largest,
            "1 when it was found stopped by a signal or a debugger, 0 when not",
            "/proc/P/stat state T or t";
        PROCESS_RSS = "process.rss", Bytes,
            "Resident memory",
            "/proc/P/statm resident";
        PROCESS_FAULTS_MINOR = "process.faults_minor", PerSecond,
            "Page faults that needed no I/O",
            "/proc/P/stat minflt";
        PROCESS_FAULTS_MAJOR = "process.faults_major", PerSecond,
            "Page faults that had to read from a disk",
            "/proc/P/stat majflt";
        PROCESS_READ_BYTES = "process.read_bytes", BytesPerSecond,
            "Bytes that the process caused to be fetched from storage, mapped files and sendfile \
             included",
            "/proc/P/io read_bytes";
        PROCESS_WRITE_BYTES = "process.write_bytes", BytesPerSecond,
            "Bytes that the process caused to be sent to storage",
            "/proc/P/io write_bytes";
        PROCESS_READ_CHARS = "process.read_chars", BytesPerSecond,
            "Bytes returned by read calls, from the page cache and pipes as well",
            "/proc/P/io rchar";
        PROCESS_WRITE_CHARS = "process.write_chars", BytesPerSecond,
            "Bytes given to write calls",
            "/proc/P/io wchar";
        PROCESS_FDS = "process.fds", Count,
            "Open file descriptors; the limit is the soft limit of open files",
            "/proc/P/fd, /proc/P/limits Max open files";
        PROCESS_BLKIO_WAIT = "process.blkio_wait", Ratio,
            "Share of the time that the process's threads waited for block I/O, all threads \
             together; 0 unless kernel.task_delayacct is 1",
            "/proc/P/stat delayacct_blkio_ticks";
    }
    "CPU of the whole host, in cores; the limit is the number of online CPUs." {
        HOST_CPU_USER = "host.cpu.user", Ratio,
            "Cores running user code (without guests)",
            "/proc/stat cpu user - guest";
        HOST_CPU_NICE = "host.cpu.nice", Ratio,
            "Cores running user code at lowered priority",
            "/proc/stat cpu nice - guest_nice";
        HOST_CPU_SYSTEM = "host.cpu.system", Ratio,
            "Cores running the kernel",
            "/proc/stat cpu system";
        HOST_CPU_IDLE = "host.cpu.idle", Ratio,
            "Cores idle",
            "/proc/stat cpu idle";
        HOST_CPU_IOWAIT = "host.cpu.iowait", Ratio,
            "Cores idle while a task waited for I/O; alone no evidence of a disk limit",
            "/proc/stat cpu iowait";
        HOST_CPU_IRQ = "host.cpu.irq", Ratio,
            "Cores serving interrupts",
            "/proc/stat cpu irq";
        HOST_CPU_SOFTIRQ = "host.cpu.softirq", Ratio,
            "Cores serving soft interrupts, the network stack's receive side among them",
            "/proc/stat cpu softirq";
        HOST_CPU_STEAL = "host.cpu.steal", Ratio,
            "Cores wanted and not given by the hypervisor",
            "/proc/stat cpu steal";
        HOST_CPU_GUEST = "host.cpu.guest", Ratio,
            "Cores running virtual machines",
            "/proc/stat cpu guest + guest_nice";
        HOST_CPU_BUSY = "host.cpu.busy", Ratio,
            "Cores that were neither idle nor stolen",
            "/proc/stat cpu, all but idle, iowait and steal";
        HOST_CONTEXT_SWITCHES = "host.context_switches", PerSecond,
            "Context switches",
            "/proc/stat ctxt";
        HOST_FORKS = "host.forks", PerSecond,
            "Processes and threads created",
            "/proc/stat processes";
        HOST_PROCS_RUNNING = "host.procs_running", Count,
            "Tasks running or ready to run",
            "/proc/stat procs_running";
        HOST_PROCS_BLOCKED = "host.procs_blocked", Count,
            "Tasks blocked on I/O",
            "/proc/stat procs_blocked";
    }
    "Each core: label `cpu`." {
        CORE_USER = "core.user", Ratio,
            "Share of the core running user code (without guests)",
            "/proc/stat cpuN user - guest";
        CORE_NICE = "core.nice", Ratio,
            "Share of the core running user code at lowered priority",
            "/proc/stat cpuN nice - guest_nice";
        CORE_SYSTEM = "core.system", Ratio,
            "Share of the core running the kernel",
            "/proc/stat cpuN system";
        CORE_IDLE = "core.idle", Ratio,
            "Share of the core idle",
            "/proc/stat cpuN idle";
        CORE_IOWAIT = "core.iowait", Ratio,
            "Share of the core idle while a task waited for I/O; alone no evidence of a disk limit",
            "/proc/stat cpuN iowait";
        CORE_IRQ = "core.irq", Ratio,
            "Share of the core serving interrupts",
            "/proc/stat cpuN irq";
        CORE_SOFTIRQ = "core.softirq", Ratio,
            "Share of the core serving soft interrupts, the network stack's receive side among \
             them",
            "/proc/stat cpuN softirq";
        CORE_STEAL = "core.steal", Ratio,
            "Share of the core wanted and not given by the hypervisor",
            "/proc/stat cpuN steal";
        CORE_GUEST = "core.guest", Ratio,
            "Share of the core running virtual machines",
            "/proc/stat cpuN guest + guest_nice";
        CORE_BUSY = "core.busy", Ratio,
            "Share of the core that was neither idle nor stolen",
            "/proc/stat cpuN, all but idle, iowait and steal";
    }
    "Pressure stall information of the host (PSI): the share of the time in which tasks waited \
     for lack of a resource." {
        HOST_PRESSURE_CPU_SOME = "host.pressure.cpu.some", Ratio,
            "Share of the time that some task waited for a CPU",
            "/proc/pressure/cpu some total";
        HOST_PRESSURE_CPU_FULL = "host.pressure.cpu.full", Ratio,
            "Share of the time that all tasks waited for a CPU",
            "/proc/pressure/cpu full total";
        HOST_PRESSURE_MEMORY_SOME = "host.pressure.memory.some", Ratio,
            "Share of the time that some task waited for memory",
            "/proc/pressure/memory some total";
        HOST_PRESSURE_MEMORY_FULL = "host.pressure.memory.full", Ratio,
            "Share of the time that all tasks waited for memory",
            "/proc/pressure/memory full total";
        HOST_PRESSURE_IO_SOME = "host.pressure.io.some", Ratio,
            "Share of the time that some task waited for block I/O",
            "/proc/pressure/io some total";
        HOST_PRESSURE_IO_FULL = "host.pressure.io.full", Ratio,
            "Share of the time that all tasks waited for block I/O",
            "/proc/pressure/io full total";
        HOST_PRESSURE_IRQ_FULL = "host.pressure.irq.full", Ratio,
            "Share of the time that interrupts kept all tasks of a CPU from running",
            "/proc/pressure/irq full total";
    }
    "Memory of the host; the limit of the levels is MemTotal." {
        HOST_MEMORY_AVAILABLE = "host.memory.available", Bytes,
            "Memory that can be had without swapping",
            "/proc/meminfo MemAvailable";
        HOST_MEMORY_FREE = "host.memory.free", Bytes,
            "Memory that is used for nothing",
            "/proc/meminfo MemFree";
        HOST_MEMORY_CACHED = "host.memory.cached", Bytes,
            "Page cache",
            "/proc/meminfo Cached + Buffers";
        HOST_MEMORY_DIRTY = "host.memory.dirty", Bytes,
            "Page cache that waits to be written",
            "/proc/meminfo Dirty + Writeback";
        HOST_MEMORY_SWAP_USED = "host.memory.swap_used", Bytes,
            "Swap in use; the limit is SwapTotal",
            "/proc/meminfo SwapTotal - SwapFree";
        HOST_MEMORY_FAULTS_MAJOR = "host.memory.faults_major", PerSecond,
            "Page faults that had to read from a disk",
            "/proc/vmstat pgmajfault";
        HOST_MEMORY_PAGE_IN = "host.memory.page_in", BytesPerSecond,
            "Bytes read from block devices",
            "/proc/vmstat pgpgin (KiB)";
        HOST_MEMORY_PAGE_OUT = "host.memory.page_out", BytesPerSecond,
            "Bytes written to block devices",
            "/proc/vmstat pgpgout (KiB)";
        HOST_MEMORY_SCAN_DIRECT = "host.memory.scan_direct", PerSecond,
            "Pages looked at by tasks that had to reclaim memory themselves",
            "/proc/vmstat pgscan_direct*";
        HOST_MEMORY_ALLOCATION_STALLS = "host.memory.allocation_stalls", PerSecond,
            "Allocations that waited until memory was reclaimed",
            "/proc/vmstat allocstall*";
        HOST_MEMORY_REFAULTS_FILE = "host.memory.refaults_file", PerSecond,
            "File pages read again soon after they were evicted: the page cache is too small",
            "/proc/vmstat workingset_refault_file (workingset_refault before 5.9)";
        HOST_MEMORY_OOM_KILLS = "host.memory.oom_kills", PerSecond,
            "Processes killed for lack of memory",
            "/proc/vmstat oom_kill";
        HOST_FILES = "host.files", Count,
            "Open files of the host; the limit is fs.file-max",
            "/proc/sys/fs/file-nr";
    }
    "Disks: label `device`; partitions and devices that were never used are left out." {
        DISK_READ_BYTES = "disk.read_bytes", BytesPerSecond,
            "Bytes read",
            "/proc/diskstats field 3 (sectors of 512)";
        DISK_WRITE_BYTES = "disk.write_bytes", BytesPerSecond,
            "Bytes written",
            "/proc/diskstats field 7 (sectors of 512)";
        DISK_READS = "disk.reads", PerSecond,
            "Reads completed",
            "/proc/diskstats field 1";
        DISK_WRITES = "disk.writes", PerSecond,
            "Writes completed",
            "/proc/diskstats field 5";
        DISK_READ_AWAIT = "disk.read_await", Milliseconds Largest,
            "Mean time of a read, waiting included; no sample when none completed",
            "/proc/diskstats field 4 / field 1";
        DISK_WRITE_AWAIT = "disk.write_await", Milliseconds Largest,
            "Mean time of a write, waiting included; no sample when none completed",
            "/proc/diskstats field 8 / field 5";
        DISK_QUEUE = "disk.queue", Count,
            "Requests in the queue or at the device, mean",
            "/proc/diskstats field 11";
        DISK_IN_FLIGHT = "disk.in_flight", Count,
            "Requests at the device, now",
            "/proc/diskstats field 9";
        DISK_BUSY = "disk.busy", Ratio,
            "Share of the time with a request at the device; says little of devices that serve \
             many at once",
            "/proc/diskstats field 10";
    }
    "Interfaces in the server's network namespace: label `interface`. Bytes are as the interface \
     counts them; the limit is its speed, where one is known." {
        NIC_RX_BYTES = "nic.rx_bytes", BytesPerSecond,
            "Bytes received",
            "/proc/P/net/dev receive bytes; speed: /sys/class/net/I/speed";
        NIC_RX_PACKETS = "nic.rx_packets", PerSecond,
            "Packets received",
            "/proc/P/net/dev packets";
        NIC_RX_ERRORS = "nic.rx_errors", PerSecond,
            "Packets not received for an error",
            "/proc/P/net/dev errs";
        NIC_RX_DROPPED = "nic.rx_dropped", PerSecond,
            "Packets dropped that should have been received (missed ones included)",
            "/proc/P/net/dev drop";
        NIC_TX_BYTES = "nic.tx_bytes", BytesPerSecond,
            "Bytes sent",
            "/proc/P/net/dev transmit bytes; speed: /sys/class/net/I/speed";
        NIC_TX_PACKETS = "nic.tx_packets", PerSecond,
            "Packets sent",
            "/proc/P/net/dev packets";
        NIC_TX_ERRORS = "nic.tx_errors", PerSecond,
            "Packets not sent for an error",
            "/proc/P/net/dev errs";
        NIC_TX_DROPPED = "nic.tx_dropped", PerSecond,
            "Packets dropped that should have been sent",
            "/proc/P/net/dev drop";
        NIC_RX_FIFO = "nic.rx_fifo", PerSecond,
            "Packets lost because the receive ring was full",
            "/proc/P/net/dev receive fifo";
    }
    "Queueing disciplines in the server's network namespace: labels `interface`, `qdisc`, \
     `handle`." {
        QDISC_BACKLOG_BYTES = "qdisc.backlog_bytes", Bytes,
            "Bytes that wait to be sent",
            "RTM_GETQDISC TCA_STATS_QUEUE backlog";
        QDISC_BACKLOG_PACKETS = "qdisc.backlog_packets", Count,
            "Packets that wait to be sent",
            "RTM_GETQDISC TCA_STATS_QUEUE qlen";
        QDISC_DROPS = "qdisc.drops", PerSecond,
            "Packets dropped: the queue was full or the shaper refused",
            "RTM_GETQDISC TCA_STATS_QUEUE drops";
        QDISC_OVERLIMITS = "qdisc.overlimits", PerSecond,
            "Times the shaper made a packet wait",
            "RTM_GETQDISC TCA_STATS_QUEUE overlimits";
        QDISC_REQUEUES = "qdisc.requeues", PerSecond,
            "Packets put back because the device was busy",
            "RTM_GETQDISC TCA_STATS_QUEUE requeues";
    }
    "The receive side of the network stack, a CPU a series: label `cpu`. The file counts the \
     whole host in every namespace." {
        SOFTNET_PROCESSED = "softnet.processed", PerSecond,
            "Packets handled",
            "/proc/net/softnet_stat column 1";
        SOFTNET_DROPPED = "softnet.dropped", PerSecond,
            "Packets dropped: the CPU's backlog was full (net.core.netdev_max_backlog)",
            "/proc/net/softnet_stat column 2";
        SOFTNET_TIME_SQUEEZE = "softnet.time_squeeze", PerSecond,
            "Times the CPU had to stop with packets left (net.core.netdev_budget)",
            "/proc/net/softnet_stat column 3";
        SOFTNET_FLOW_LIMIT = "softnet.flow_limit", PerSecond,
            "Packets dropped because one flow filled the backlog",
            "/proc/net/softnet_stat column 11";
        SOFTNET_BACKLOG = "softnet.backlog", Count,
            "Packets in the backlog, now",
            "/proc/net/softnet_stat column 12 (since 5.10)";
    }
    "Soft interrupts of the network, a CPU a series: label `cpu`." {
        SOFTIRQ_NET_RX = "softirq.net_rx", PerSecond,
            "Times the CPU went to take packets off its network devices; one CPU far above the \
             others takes them all",
            "/proc/softirqs NET_RX";
    }
    "UDP in the server's network namespace, IPv4 and IPv6 together." {
        UDP_IN_DATAGRAMS = "udp.in_datagrams", PerSecond,
            "Datagrams delivered to sockets",
            "/proc/P/net/snmp Udp InDatagrams, snmp6";
        UDP_OUT_DATAGRAMS = "udp.out_datagrams", PerSecond,
            "Datagrams sent",
            "/proc/P/net/snmp Udp OutDatagrams, snmp6";
        UDP_NO_PORTS = "udp.no_ports", PerSecond,
            "Datagrams for a port without a listener",
            "/proc/P/net/snmp Udp NoPorts, snmp6";
        UDP_IN_ERRORS = "udp.in_errors", PerSecond,
            "Datagrams that could not be delivered, for whatever reason",
            "/proc/P/net/snmp Udp InErrors, snmp6";
        UDP_RCVBUF_ERRORS = "udp.rcvbuf_errors", PerSecond,
            "Datagrams dropped because a socket's receive buffer was full",
            "/proc/P/net/snmp Udp RcvbufErrors, snmp6";
        UDP_SNDBUF_ERRORS = "udp.sndbuf_errors", PerSecond,
            "Datagrams not sent because a socket's send buffer was full",
            "/proc/P/net/snmp Udp SndbufErrors, snmp6";
        UDP_MEM_ERRORS = "udp.mem_errors", PerSecond,
            "Datagrams dropped because net.ipv4.udp_mem was used up",
            "/proc/P/net/snmp Udp MemErrors, snmp6";
        UDP_CHECKSUM_ERRORS = "udp.checksum_errors", PerSecond,
            "Datagrams with a wrong checksum",
            "/proc/P/net/snmp Udp InCsumErrors, snmp6";
        UDP_SOCKETS = "udp.sockets", Count,
            "UDP sockets",
            "/proc/P/net/sockstat UDP inuse, sockstat6";
        UDP_MEMORY = "udp.memory", Bytes Largest,
            "Memory of all UDP sockets of the host; the limit is the third figure of \
             net.ipv4.udp_mem",
            "/proc/P/net/sockstat UDP mem (pages)";
    }
    "TCP in the server's network namespace." {
        TCP_ESTABLISHED = "tcp.established", Count,
            "Connections",
            "/proc/P/net/snmp Tcp CurrEstab";
        TCP_ACTIVE_OPENS = "tcp.active_opens", PerSecond,
            "Connections opened from here",
            "/proc/P/net/snmp Tcp ActiveOpens";
        TCP_PASSIVE_OPENS = "tcp.passive_opens", PerSecond,
            "Connections accepted",
            "/proc/P/net/snmp Tcp PassiveOpens";
        TCP_ATTEMPT_FAILS = "tcp.attempt_fails", PerSecond,
            "Connections that failed before they were established",
            "/proc/P/net/snmp Tcp AttemptFails";
        TCP_RESETS_RECEIVED = "tcp.resets_received", PerSecond,
            "Established connections that were reset",
            "/proc/P/net/snmp Tcp EstabResets";
        TCP_RESETS_SENT = "tcp.resets_sent", PerSecond,
            "Resets sent",
            "/proc/P/net/snmp Tcp OutRsts";
        TCP_SEGMENTS_RETRANSMITTED = "tcp.segments_retransmitted", PerSecond,
            "Segments sent again",
            "/proc/P/net/snmp Tcp RetransSegs";
        TCP_SEGMENTS_OUT = "tcp.segments_out", PerSecond,
            "Segments sent",
            "/proc/P/net/snmp Tcp OutSegs";
        TCP_LISTEN_OVERFLOWS = "tcp.listen_overflows", PerSecond,
            "Connections refused because an accept queue was full",
            "/proc/P/net/netstat TcpExt ListenOverflows";
        TCP_LISTEN_DROPS = "tcp.listen_drops", PerSecond,
            "Connection attempts dropped by listening sockets, for whatever reason",
            "/proc/P/net/netstat TcpExt ListenDrops";
        TCP_BACKLOG_DROPS = "tcp.backlog_drops", PerSecond,
            "Segments dropped because a socket's backlog was full",
            "/proc/P/net/netstat TcpExt TCPBacklogDrop";
        TCP_RECEIVE_QUEUE_DROPS = "tcp.receive_queue_drops", PerSecond,
            "Segments dropped because a socket's receive buffer was full",
            "/proc/P/net/netstat TcpExt TCPRcvQDrop";
        TCP_ZERO_WINDOW_DROPS = "tcp.zero_window_drops", PerSecond,
            "Segments dropped because the window was closed",
            "/proc/P/net/netstat TcpExt TCPZeroWindowDrop";
        TCP_PRUNE_CALLED = "tcp.prune_called", PerSecond,
            "Times the kernel threw data away to stay within a receive buffer",
            "/proc/P/net/netstat TcpExt PruneCalled";
        TCP_SYN_QUEUE_DROPS = "tcp.syn_queue_drops", PerSecond,
            "Connection attempts dropped because the SYN queue was full",
            "/proc/P/net/netstat TcpExt TCPReqQFullDrop";
        TCP_MEMORY_PRESSURES = "tcp.memory_pressures", PerSecond,
            "Times TCP came under net.ipv4.tcp_mem pressure",
            "/proc/P/net/netstat TcpExt TCPMemoryPressures";
        TCP_TIMEOUTS = "tcp.timeouts", PerSecond,
            "Retransmission timeouts",
            "/proc/P/net/netstat TcpExt TCPTimeouts";
        TCP_LOST_RETRANSMITS = "tcp.lost_retransmits", PerSecond,
            "Retransmitted segments that were lost again",
            "/proc/P/net/netstat TcpExt TCPLostRetransmit";
        TCP_ABORTS_ON_MEMORY = "tcp.aborts_on_memory", PerSecond,
            "Connections ended for lack of memory",
            "/proc/P/net/netstat TcpExt TCPAbortOnMemory";
        TCP_SOCKETS = "tcp.sockets", Count,
            "TCP sockets in use",
            "/proc/P/net/sockstat TCP inuse, sockstat6";
        TCP_TIME_WAIT = "tcp.time_wait", Count,
            "Connections in TIME_WAIT; the limit is net.ipv4.tcp_max_tw_buckets",
            "/proc/P/net/sockstat TCP tw";
        TCP_ORPHANS = "tcp.orphans", Count Largest,
            "Connections that no process holds; the limit is net.ipv4.tcp_max_orphans",
            "/proc/P/net/sockstat TCP orphan";
        TCP_MEMORY = "tcp.memory", Bytes Largest,
            "Memory of all TCP sockets of the host; the limit is the third figure of \
             net.ipv4.tcp_mem",
            "/proc/P/net/sockstat TCP mem (pages)";
        TCP_EPHEMERAL_PORTS = "tcp.ephemeral_ports", Count Largest,
            "Local ports in use toward the one peer address and port that uses most; the limit is \
             the size of net.ipv4.ip_local_port_range",
            "NETLINK_SOCK_DIAG TCP, every 10 s";
    }
    "Sockets of the watched processes: labels `process`, `pid`, `port`, `protocol`. Looked at \
     while datagrams are being dropped, and every 10 s." {
        SOCKET_DROPS = "socket.drops", PerSecond,
            "Datagrams dropped at full receive buffers of the sockets bound to the port",
            "NETLINK_SOCK_DIAG INET_DIAG_SKMEMINFO drops; /proc/P/net/udp drops";
        SOCKET_RECEIVE_QUEUE = "socket.receive_queue", Bytes Largest,
            "Memory of datagrams that wait in the fullest socket of the port; the limit is its \
             receive buffer",
            "NETLINK_SOCK_DIAG INET_DIAG_SKMEMINFO rmem_alloc, rcvbuf; /proc/P/net/udp rx_queue";
        SOCKET_ACCEPT_QUEUE = "socket.accept_queue", Count,
            "Connections that wait to be accepted; the limit is the backlog",
            "NETLINK_SOCK_DIAG idiag_rqueue, idiag_wqueue; /proc/P/net/tcp rx_queue";
        SOCKET_CONNECTIONS = "socket.connections", Count,
            "Established connections of a port that is listened on",
            "NETLINK_SOCK_DIAG TCP, every 10 s";
        SOCKET_UNSENT = "socket.unsent", Bytes,
            "Bytes written to these connections and not sent yet",
            "NETLINK_SOCK_DIAG INET_DIAG_INFO tcpi_notsent_bytes, every 10 s";
        SOCKET_UNACKED = "socket.unacked", Count,
            "Segments sent on these connections and not acknowledged yet",
            "NETLINK_SOCK_DIAG INET_DIAG_INFO tcpi_unacked, every 10 s";
        SOCKET_RETRANSMITTED = "socket.retransmitted", PerSecond,
            "Segments sent again on connections of the port",
            "NETLINK_SOCK_DIAG INET_DIAG_INFO tcpi_total_retrans, every 10 s";
        SOCKET_SENDING = "socket.sending", Count,
            "Connections of the port that had something to send, on the mean",
            "NETLINK_SOCK_DIAG INET_DIAG_INFO tcpi_busy_time, every 10 s";
        SOCKET_PEER_LIMITED = "socket.peer_limited", Count,
            "Of those that send, how many waited for a slow reader: the peer's window was full",
            "NETLINK_SOCK_DIAG INET_DIAG_INFO tcpi_rwnd_limited, every 10 s";
        SOCKET_BUFFER_LIMITED = "socket.buffer_limited", Count,
            "Of those that send, how many waited for room in their send buffer",
            "NETLINK_SOCK_DIAG INET_DIAG_INFO tcpi_sndbuf_limited, every 10 s";
    }
    "Connection tracking in the server's network namespace." {
        CONNTRACK_ENTRIES = "conntrack.entries", Count,
            "Connections tracked; the limit is nf_conntrack_max",
            "/proc/sys/net/netfilter/nf_conntrack_count";
        CONNTRACK_INSERT_FAILED = "conntrack.insert_failed", PerSecond,
            "Connections that could not be tracked",
            "/proc/P/net/stat/nf_conntrack insert_failed";
        CONNTRACK_DROPS = "conntrack.drops", PerSecond,
            "Packets dropped because the table was full",
            "/proc/P/net/stat/nf_conntrack drop";
        CONNTRACK_EARLY_DROPS = "conntrack.early_drops", PerSecond,
            "Connections forgotten early to make room",
            "/proc/P/net/stat/nf_conntrack early_drop";
    }
    "The control group of the watched process (version 1 or 2), and the groups above it that \
     bound its CPU or memory more tightly than it does itself: label `cgroup`." {
        CGROUP_CPU = "cgroup.cpu", Ratio,
            "CPU time of the group, in cores; the limit is its quota",
            "cpu.stat usage_usec; version 1: cpuacct.usage; quota: cpu.max, cpu.cfs_quota_us";
        CGROUP_CPU_USER = "cgroup.cpu.user", Ratio,
            "The part of cgroup.cpu in user space",
            "cpu.stat user_usec; version 1: cpuacct.stat user";
        CGROUP_CPU_SYSTEM = "cgroup.cpu.system", Ratio,
            "The part of cgroup.cpu in the kernel",
            "cpu.stat system_usec; version 1: cpuacct.stat system";
        CGROUP_CPU_QUOTA = "cgroup.cpu.quota", Ratio Largest,
            "CPU time that the group may use, in cores; absent without a quota",
            "cpu.max; version 1: cpu.cfs_quota_us / cpu.cfs_period_us";
        CGROUP_THROTTLED_PERIODS = "cgroup.throttled_periods", Ratio Largest,
            "Share of the quota's periods in which the group was held back",
            "cpu.stat nr_throttled / nr_periods";
        CGROUP_THROTTLED = "cgroup.throttled", Ratio,
            "Time that CPUs of the group were held back by the quota, in cores",
            "cpu.stat throttled_usec; version 1: throttled_time";
        CGROUP_MEMORY = "cgroup.memory", Bytes,
            "Memory charged to the group; the limit is the group's",
            "memory.current, memory.max; version 1: memory.usage_in_bytes, memory.limit_in_bytes";
        CGROUP_MEMORY_LIMIT_HITS = "cgroup.memory.limit_hits", PerSecond,
            "Times the group ran into its memory limit",
            "memory.events max; version 1: memory.failcnt";
        CGROUP_MEMORY_OOMS = "cgroup.memory.ooms", PerSecond,
            "Times the group could not be given memory at its limit: an allocation failed, or \
             something was killed",
            "memory.events oom (version 2)";
        CGROUP_MEMORY_OOM_KILLS = "cgroup.memory.oom_kills", PerSecond,
            "Processes of the group killed for lack of memory",
            "memory.events oom_kill; version 1: memory.oom_control oom_kill";
        CGROUP_PIDS = "cgroup.pids", Count,
            "Tasks in the group; the limit is pids.max",
            "pids.current, pids.max";
        CGROUP_PIDS_LIMIT_HITS = "cgroup.pids.limit_hits", PerSecond,
            "Times a thread or process could not be made because of pids.max",
            "pids.events max";
        CGROUP_READ_BYTES = "cgroup.read_bytes", BytesPerSecond,
            "Bytes that the group read from block devices",
            "io.stat rbytes; version 1: blkio.throttle.io_service_bytes Read";
        CGROUP_WRITE_BYTES = "cgroup.write_bytes", BytesPerSecond,
            "Bytes that the group wrote to block devices",
            "io.stat wbytes; version 1: blkio.throttle.io_service_bytes Write";
        CGROUP_PRESSURE_CPU_SOME = "cgroup.pressure.cpu.some", Ratio,
            "Share of the time that some task of the group waited for a CPU",
            "cpu.pressure some total (version 2)";
        CGROUP_PRESSURE_CPU_FULL = "cgroup.pressure.cpu.full", Ratio,
            "Share of the time that all tasks of the group waited for a CPU",
            "cpu.pressure full total (version 2)";
        CGROUP_PRESSURE_MEMORY_SOME = "cgroup.pressure.memory.some", Ratio,
            "Share of the time that some task of the group waited for memory",
            "memory.pressure some total (version 2)";
        CGROUP_PRESSURE_MEMORY_FULL = "cgroup.pressure.memory.full", Ratio,
            "Share of the time that all tasks of the group waited for memory",
            "memory.pressure full total (version 2)";
        CGROUP_PRESSURE_IO_SOME = "cgroup.pressure.io.some", Ratio,
            "Share of the time that some task of the group waited for block I/O",
            "io.pressure some total (version 2)";
        CGROUP_PRESSURE_IO_FULL = "cgroup.pressure.io.full", Ratio,
            "Share of the time that all tasks of the group waited for block I/O",
            "io.pressure full total (version 2)";
    }
    "The watcher itself." {
        WATCHER_CPU = "watcher.cpu", Ratio,
            "Share of one core that watching cost: counters, logs, endpoints, profiles, and the \
             rows of all of them",
            "CPU clocks of the watching threads; of the whole process where it only watches";
        WATCHER_RSS = "watcher.rss", Bytes,
            "Resident memory of the process that the watcher runs in",
            "/proc/self/statm";
        WATCHER_LATE_PASSES = "watcher.late_passes", PerSecond,
            "Passes over the files that began more than a fifth of their period late",
            "own clock";
        WATCHER_ROWS_DROPPED = "watcher.rows_dropped", PerSecond,
            "Rows that were not taken in time and are missing from the run",
            "own count";
    }
}
