//! A limit for each finding, planted into a sim that has room for everything.

use throng_observation::host::{HostEventKind, Unit};
use throng_observation::{Failure, FailureReason};

use super::simulated_run::{Moment, PASS, SimulatedRun, UserImpact};

/// A limit that a test plants.
pub(super) type PlantLimit = fn(&mut SimulatedRun);

/// What a full resource does: in step with the crowd, and full just above the load that passes.
pub(super) fn full(m: Moment) -> f64 {
    (m.users / f64::from(PASS) * 0.94).min(0.995)
}

/// Each finding that watched figures can show, and a limit that must lead to it.
pub(super) const PLANTED_LIMITS: &[(&str, PlantLimit)] = &[
    ("one_thread_full", hot_worker),
    ("single_threaded", single),
    ("uneven_threads", uneven),
    ("runtime_parallelism", one_core_of_go),
    ("gil", |sim| turns(sim, "python3")),
    ("lock_contention", |sim| turns(sim, "relay")),
    ("cpu_full", all_cores),
    ("cpu_quota", quota),
    ("cpu_quota", quota_counted_elsewhere),
    ("cpu_steal", steal),
    ("run_queue", affinity),
    ("cpu_bursts", bursts),
    ("copy_dominated", relay_that_copies),
    ("disk_read", slow_disk),
    ("disk_read", disk_of_a_file_server),
    ("page_cache", small_page_cache),
    ("memory", kills),
    ("udp_receive_buffer", slow_reader),
    ("softirq", softirq),
    ("line_rate", full_line),
    ("line_rate", shaper),
    ("line_rate", line_of_a_file_server),
    ("one_thread_full", worker_of_a_file_server),
    ("backpressure", send_buffers),
    ("path_loss", |sim| sim.impact = UserImpact::Loss),
    ("file_descriptors", descriptors),
    ("local_ports", ports),
    ("accept_queue", accept_queue),
    ("tcp_memory", tcp_memory),
    ("conntrack", conntrack),
    ("task_limit", tasks),
    ("server_crashed", crash),
    ("process_stopped", stopped),
    ("signalling_serialised", serial_joins),
    ("configured_ceiling", refusals),
    ("configured_ceiling", worker_connections),
];

const PROCESS: [(&str, &str); 2] = [("process", "media"), ("pid", "7")];
const GROUP: [(&str, &str); 1] = [("cgroup", "/media")];

pub(super) fn hot_worker(sim: &mut SimulatedRun) {
    sim.without("thread.cpu").without("thread.run_queue_wait");
    sim.thread("media", "worker-0", 11, full, |_| 0.01);
    sim.process("media", |m| full(m) + 0.05);
}

fn stopped(sim: &mut SimulatedRun) {
    sim.put("process.stopped", &PROCESS, Unit::Ratio, None, |m| if m.over { 1.0 } else { 0.0 });
    // What was to be sent stays where it is.
    slow_reader(sim);
}

fn single(sim: &mut SimulatedRun) {
    sim.without("thread.cpu").without("thread.run_queue_wait");
    sim.thread("prosody", "prosody", 11, full, |_| 0.01);
    sim.process("prosody", full);
}

fn uneven(sim: &mut SimulatedRun) {
    sim.thread("media", "worker-0", 11, full, |_| 0.01);
    sim.thread("media", "worker-1", 12, |m| 0.1 * full(m), |_| 0.01);
    sim.thread("media", "worker-2", 13, |m| 0.1 * full(m), |_| 0.01);
}

/// A program of Go that works on one core: its work goes from thread to thread.
fn one_core_of_go(sim: &mut SimulatedRun) {
    sim.facts.insert("sfu.runtime".into(), "go".into());
    go_on_one_core(sim);
}

pub(super) fn go_on_one_core(sim: &mut SimulatedRun) {
    sim.without("thread.cpu").without("thread.run_queue_wait");
    for (tid, turn) in [(11, 0), (12, 1), (13, 2)] {
        // Each of them works for some seconds; the next takes over.
        let cpu = move |m: Moment| {
            if (m.second / 3) % 3 == turn { 0.97 * full(m) } else { 0.02 * full(m) }
        };
        sim.thread("sfu", "sfu", tid, cpu, |_| 0.01);
    }
    sim.process("sfu", full);
}

pub(super) fn turns(sim: &mut SimulatedRun, process: &'static str) {
    sim.without("thread.cpu").without("thread.run_queue_wait");
    for (name, tid) in [("t-a", 11), ("t-b", 12), ("t-c", 13), ("t-d", 14)] {
        sim.thread(process, name, tid, |m| full(m) / 4.0, |_| 0.01);
    }
    sim.process(process, full);
    let labels = [("process", process), ("pid", "7"), ("tid", "11"), ("thread", "t-a")];
    sim.put("thread.switches_voluntary", &labels, Unit::PerSecond, None, |m| 100.0 * m.users);
}

fn all_cores(sim: &mut SimulatedRun) {
    sim.thread("media", "worker-0", 11, |m| 0.8 * full(m), |m| if m.over { 0.3 } else { 0.02 });
    sim.thread("media", "worker-1", 12, |m| 0.8 * full(m), |m| if m.over { 0.3 } else { 0.02 });
    sim.put("host.cpu.busy", &[], Unit::Ratio, Some(8.0), |m| 8.0 * full(m));
}

fn quota(sim: &mut SimulatedRun) {
    hot_worker(sim);
    sim.put("cgroup.cpu", &GROUP, Unit::Ratio, Some(1.0), full);
    sim.put(
        "cgroup.throttled_periods",
        &GROUP,
        Unit::Ratio,
        None,
        |m| if m.over { 0.7 } else { 0.01 },
    );
    sim.put("cgroup.throttled", &GROUP, Unit::Ratio, None, |m| if m.over { 0.3 } else { 0.0 });
}

fn quota_counted_elsewhere(sim: &mut SimulatedRun) {
    sim.process("media", |m| 0.5 * full(m));
    sim.put("cgroup.cpu.quota", &GROUP, Unit::Ratio, None, |_| 0.5);
    sim.put(
        "cgroup.throttled_periods",
        &GROUP,
        Unit::Ratio,
        None,
        |m| if m.over { 1.0 } else { 0.6 },
    );
    sim.put("cgroup.throttled", &GROUP, Unit::Ratio, None, |m| if m.over { 1.5 } else { 0.3 });
}

fn steal(sim: &mut SimulatedRun) {
    sim.put("host.cpu.steal", &[], Unit::Ratio, Some(8.0), |m| if m.over { 1.2 } else { 0.01 });
}

fn affinity(sim: &mut SimulatedRun) {
    sim.thread("media", "worker-0", 11, |m| 0.5 * full(m), |m| if m.over { 0.4 } else { 0.01 });
    sim.thread("media", "worker-1", 12, |m| 0.5 * full(m), |m| if m.over { 0.4 } else { 0.01 });
}

/// Past the limit the packets of a key frame take two tenths of each second.
fn bursts(sim: &mut SimulatedRun) {
    sim.without("thread.cpu").without("thread.run_queue_wait");
    sim.bursty_thread("media", "worker-0", 11, |m| match (m.over, m.tenth) {
        (true, 0 | 1) => 0.99,
        (false, 0) => 0.015 * m.users,
        _ => 0.008 * m.users,
    });
    sim.process("media", |m| 0.01 * m.users);
}

fn relay_that_copies(sim: &mut SimulatedRun) {
    sim.without("thread.cpu").without("thread.run_queue_wait");
    sim.thread("relay", "relay", 11, full, |_| 0.01);
    sim.process("relay", full);
    sim.profile = Some(vec![
        ("rep_movs_alternative", "[kernel]", 400),
        ("__memmove_avx", "libc.so.6", 300),
        ("x", "relay", 300),
    ]);
}

pub(super) fn slow_disk(sim: &mut SimulatedRun) {
    let read = |m: Moment| (125e3 * m.users).min(5e6);
    sim.put("disk.read_bytes", &[("device", "loop3")], Unit::BytesPerSecond, None, read);
    sim.put("process.read_bytes", &PROCESS, Unit::BytesPerSecond, None, read);
    sim.put("disk.read_await", &[("device", "loop3")], Unit::Milliseconds, None, |m| {
        if m.over { 80.0 } else { 2.0 }
    });
    sim.put("host.pressure.io.some", &[], Unit::Ratio, None, |m| if m.over { 0.9 } else { 0.05 });
    sim.put(
        "process.threads_blocked",
        &PROCESS,
        Unit::Count,
        None,
        |m| if m.over { 4.0 } else { 0.0 },
    );
}

/// A file server whose players read more different files than memory holds.
fn disk_of_a_file_server(sim: &mut SimulatedRun) {
    slow_disk(sim);
    sim.impact = UserImpact::Stall;
}

/// A file server with small files in memory on a line that its players fill; TCP adapts, and few
/// packets are dropped.
fn line_of_a_file_server(sim: &mut SimulatedRun) {
    full_line(sim);
    sim.put("tcp.segments_retransmitted", &[], Unit::PerSecond, None, |m| {
        if m.over { 60.0 } else { 0.5 }
    });
    sim.put("tcp.segments_out", &[], Unit::PerSecond, None, |m| {
        90.0 * m.users.min(f64::from(PASS))
    });
    sim.impact = UserImpact::Stall;
}

/// A file server with one worker, which encrypts for all of its players.
fn worker_of_a_file_server(sim: &mut SimulatedRun) {
    hot_worker(sim);
    sim.impact = UserImpact::Stall;
}

pub(super) fn refaults(m: Moment) -> f64 {
    if m.over { 30_000.0 } else { 5.0 }
}

fn small_page_cache(sim: &mut SimulatedRun) {
    sim.put("host.memory.refaults_file", &[], Unit::PerSecond, None, refaults);
    sim.put("process.read_bytes", &PROCESS, Unit::BytesPerSecond, None, |m| 4096.0 * refaults(m));
}

fn kills(sim: &mut SimulatedRun) {
    sim.put("cgroup.memory", &GROUP, Unit::Bytes, Some(1e8), |m| 1e8 * full(m));
    sim.put("process.rss", &PROCESS, Unit::Bytes, None, |m| 1e8 * full(m));
    sim.put("cgroup.memory.oom_kills", &GROUP, Unit::PerSecond, None, |m| {
        if m.over { 1.0 } else { 0.0 }
    });
    sim.events.push((HostEventKind::ProcessEnded, "media (PID 7): killed by signal 9"));
    sim.impact = UserImpact::NotServed;
}

fn tasks(sim: &mut SimulatedRun) {
    sim.put("cgroup.pids", &GROUP, Unit::Count, Some(100.0), |m| 20.0 + (2.0 * m.users).min(80.0));
    sim.put("cgroup.pids.limit_hits", &GROUP, Unit::PerSecond, None, |m| {
        if m.over { 1.0 } else { 0.0 }
    });
    sim.impact = UserImpact::NotServed;
}

fn crash(sim: &mut SimulatedRun) {
    sim.events.push((HostEventKind::ProcessEnded, "media (PID 7): killed by signal 11 (SIGSEGV)"));
    sim.impact = UserImpact::NotServed;
}

pub(super) fn slow_reader(sim: &mut SimulatedRun) {
    sim.put("udp.rcvbuf_errors", &[], Unit::PerSecond, None, |m| if m.over { 80.0 } else { 0.0 });
    let socket = [("process", "media"), ("pid", "7"), ("port", "5004"), ("protocol", "udp")];
    sim.put("socket.receive_queue", &socket, Unit::Bytes, Some(2e5), |m| {
        if m.over { 2e5 } else { 1e3 }
    });
    sim.impact = UserImpact::Loss;
}

fn softirq(sim: &mut SimulatedRun) {
    sim.put("core.softirq", &[("cpu", "0")], Unit::Ratio, None, |m| 0.85 * full(m));
    sim.put("softnet.dropped", &[("cpu", "0")], Unit::PerSecond, None, |m| {
        if m.over { 200.0 } else { 0.0 }
    });
    sim.impact = UserImpact::Loss;
}

pub(super) fn full_line(sim: &mut SimulatedRun) {
    sim.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, Some(5e6), |m| {
        5e6 * full(m)
    });
    sim.put("qdisc.backlog_packets", &[("interface", "eth0")], Unit::Count, None, |m| {
        if m.over { 90.0 } else { 0.0 }
    });
}

fn shaper(sim: &mut SimulatedRun) {
    sim.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, None, |m| {
        5e6 * full(m)
    });
    sim.put("qdisc.backlog_packets", &[("interface", "eth0")], Unit::Count, None, |m| {
        if m.over { 90.0 } else { 0.1 }
    });
    sim.put("qdisc.drops", &[("interface", "eth0")], Unit::PerSecond, None, |m| {
        if m.over { 400.0 } else { 0.0 }
    });
    sim.put("qdisc.overlimits", &[("interface", "eth0")], Unit::PerSecond, None, |m| {
        10.0 * m.users
    });
    sim.impact = UserImpact::Loss;
}

pub(super) fn send_buffers(sim: &mut SimulatedRun) {
    sim.put("udp.sndbuf_errors", &[], Unit::PerSecond, None, |m| if m.over { 300.0 } else { 0.0 });
    sim.impact = UserImpact::Loss;
}

fn descriptors(sim: &mut SimulatedRun) {
    sim.put("process.fds", &PROCESS, Unit::Count, Some(100.0), |m| {
        (18.0 + 2.0 * m.users).min(100.0)
    });
    sim.put("tcp.listen_overflows", &[], Unit::PerSecond, None, |m| if m.over { 3.0 } else { 0.0 });
    sim.impact = UserImpact::NotServed;
    sim.refusals = Some(Failure::new(FailureReason::Refused, "the room is full"));
}

fn ports(sim: &mut SimulatedRun) {
    sim.put("tcp.ephemeral_ports", &[], Unit::Count, Some(82.0), |m| (2.0 * m.users).min(82.0));
    sim.impact = UserImpact::NotServed;
}

fn conntrack(sim: &mut SimulatedRun) {
    sim.put("conntrack.entries", &[], Unit::Count, Some(82.0), |m| (2.0 * m.users).min(82.0));
    sim.put("conntrack.drops", &[], Unit::PerSecond, None, |m| if m.over { 5.0 } else { 0.0 });
    sim.impact = UserImpact::NotServed;
}

fn accept_queue(sim: &mut SimulatedRun) {
    sim.put("tcp.listen_overflows", &[], Unit::PerSecond, None, |m| if m.over { 3.0 } else { 0.0 });
    sim.put("tcp.listen_drops", &[], Unit::PerSecond, None, |m| if m.over { 3.0 } else { 0.0 });
    let socket = [("process", "media"), ("pid", "7"), ("port", "80"), ("protocol", "tcp")];
    sim.put(
        "socket.accept_queue",
        &socket,
        Unit::Count,
        Some(8.0),
        |m| if m.over { 9.0 } else { 0.0 },
    );
    // A refused user tries again.
    sim.put("tcp.segments_retransmitted", &[], Unit::PerSecond, None, |m| {
        if m.over { 8.0 } else { 0.0 }
    });
    sim.put("tcp.segments_out", &[], Unit::PerSecond, None, |_| 30.0);
    sim.impact = UserImpact::NotServed;
}

/// A file server whose players read more slowly than it writes.
pub(super) fn tcp_memory(sim: &mut SimulatedRun) {
    sim.put("tcp.memory", &[], Unit::Bytes, Some(1e8), |m| 7.5e7 * full(m));
    sim.put("tcp.memory_pressures", &[], Unit::PerSecond, None, |m| if m.over { 0.5 } else { 0.0 });
    sim.impact = UserImpact::Stall;
}

fn serial_joins(sim: &mut SimulatedRun) {
    sim.join_s = Some(2.0);
    sim.impact = UserImpact::NotServed;
}

pub(super) fn refusals(sim: &mut SimulatedRun) {
    sim.impact = UserImpact::NotServed;
    sim.refusals = Some(Failure::new(FailureReason::Refused, "the room is full"));
}

/// A web server that takes no further connection, and says so in its log alone: the others wait.
fn worker_connections(sim: &mut SimulatedRun) {
    sim.impact = UserImpact::NotServed;
    let labels = [("pattern", "worker_connections"), ("pack", "nginx")];
    sim.put("log.lines", &labels, Unit::PerSecond, None, |m| if m.over { 2.0 } else { 0.0 });
}
