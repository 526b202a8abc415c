//! Each limit planted into a made-up search with noise: the verdict has to name it, and only it.

mod world_tests;

use throng_observation::Goal;
use throng_observation::host::{HostEventKind, Unit};

use crate::verdict::{Certainty, Explained, explain};
use world_tests::{FAIL, Harm, Moment, PASS, World};

fn explained(world: &mut World) -> Explained {
    explain(&world.run(), Goal::Acceptable)
}

/// A limit is planted; the verdict names it, with evidence, and what it was not.
fn check(expect: &str, plant: impl Fn(&mut World)) {
    let mut world = World::new();
    plant(&mut world);
    let found = explained(&mut world).bottleneck;
    let told = format!("{expect}: {found:#?}");
    assert_eq!(found.finding.as_deref(), Some(expect), "{told}");
    assert!(matches!(found.verdict, Certainty::Bottleneck), "{told}");
    assert!(found.score.is_some_and(|score| (70.0..=100.0).contains(&score)), "{told}");
    assert!(found.evidence.len() >= 3 && !found.not_limiting.is_empty(), "{told}");
    assert!(found.change.is_some_and(|change| !change.is_empty()), "{told}");
    assert!(!found.title.is_empty() && found.resource.is_some_and(|resource| !resource.is_empty()), "{told}");
}

/// What a full resource does: in step with the crowd, and full just above the load that passes.
fn full(m: Moment) -> f64 {
    (m.users / f64::from(PASS) * 0.94).min(0.995)
}

fn hot_worker(world: &mut World) {
    world.without("thread.cpu").without("thread.run_queue_wait");
    world.thread("media", "worker-0", 11, full, |_| 0.01);
    world.process("media", |m| full(m) + 0.05);
}

#[test]
fn one_full_thread_with_a_setting_is_named_with_it() {
    check("one_thread_full", hot_worker);
    let mut world = World::new();
    hot_worker(&mut world);
    let found = explained(&mut world).bottleneck;
    assert!(found.change.is_some_and(|change| change.contains("--workers (media.conf)")));
    let next = found.predicts.expect("something ends next");
    assert!(next.users > f64::from(FAIL), "{next:?}");
    let crossed = found.evidence.iter().find_map(|line| line.crossed_at_s).expect("a crossing");
    assert!(
        found.first_bad_s.is_some_and(|bad| (bad as f64 - 15.0..bad as f64 + 2.0).contains(&crossed)),
        "{crossed}"
    );
}

#[test]
fn a_process_of_one_thread_without_a_setting_is_single_threaded() {
    check("single_threaded", |world| {
        world.without("thread.cpu").without("thread.run_queue_wait");
        world.thread("prosody", "prosody", 11, full, |_| 0.01);
        world.process("prosody", full);
    });
}

#[test]
fn one_of_several_that_is_full_is_uneven() {
    check("uneven_threads", |world| {
        world.thread("media", "worker-0", 11, full, |_| 0.01);
        world.thread("media", "worker-1", 12, |m| 0.1 * full(m), |_| 0.01);
        world.thread("media", "worker-2", 13, |m| 0.1 * full(m), |_| 0.01);
    });
}

#[test]
fn threads_that_take_turns_are_told_from_python_and_elsewhere() {
    let turns = |world: &mut World, process: &'static str| {
        world.without("thread.cpu").without("thread.run_queue_wait");
        for (name, tid) in [("t-a", 11), ("t-b", 12), ("t-c", 13), ("t-d", 14)] {
            world.thread(process, name, tid, |m| full(m) / 4.0, |_| 0.01);
        }
        world.process(process, full);
        let labels = [("process", process), ("pid", "7"), ("tid", "11"), ("thread", "t-a")];
        world.put("thread.switches_voluntary", &labels, Unit::PerSecond, None, |m| 100.0 * m.users);
    };
    check("gil", |world| turns(world, "python3"));
    check("lock_contention", |world| turns(world, "relay"));
    // A host that others kept full from the start does not hide it.
    let mut world = World::new();
    turns(&mut world, "relay");
    for (name, tid) in [("t-a", 11), ("t-b", 12), ("t-c", 13), ("t-d", 14)] {
        world.thread("relay", name, tid, |m| full(m) / 4.0, |m| if m.over { 0.25 } else { 0.05 });
    }
    world.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |_| 1.99);
    let found = explained(&mut world).bottleneck;
    let named: Vec<_> = found.finding.iter().chain(found.others.iter().map(|other| &other.finding)).collect();
    assert!(named.iter().any(|key| *key == "lock_contention"), "{found:#?}");
}

#[test]
fn all_cores_busy_with_threads_that_wait_is_the_cpu() {
    check("cpu_full", |world| {
        world.thread("media", "worker-0", 11, |m| 0.8 * full(m), |m| if m.over { 0.3 } else { 0.02 });
        world.thread("media", "worker-1", 12, |m| 0.8 * full(m), |m| if m.over { 0.3 } else { 0.02 });
        world.put("host.cpu.busy", &[], Unit::Ratio, Some(8.0), |m| 8.0 * full(m));
    });
    // Workers that bursts of frames keep from being quite full, and neither waits: where there is a core for each and no
    // more, another worker finds none; where there are more cores, it does.
    let workers = |world: &mut World, cores: f64| {
        world.without("thread.cpu").without("thread.run_queue_wait");
        world.thread("media", "worker-0", 11, |m| 0.95 * full(m), |_| 0.03);
        world.thread("media", "worker-1", 12, |m| 0.84 * full(m), |_| 0.03);
        world.process("media", |m| 1.79 * full(m));
        world.put("host.cpu.busy", &[], Unit::Ratio, Some(cores), |m| 1.82 * full(m));
    };
    check("cpu_full", |world| workers(world, 2.0));
    check("one_thread_full", |world| workers(world, 8.0));
    // A full thread beside one of other work that leaves a good part of its core: that part is worth another worker.
    check("one_thread_full", |world| {
        world.without("thread.cpu").without("thread.run_queue_wait");
        world.thread("media", "worker-0", 11, full, |_| 0.03);
        world.thread("media", "mixer", 12, |m| 0.65 * full(m), |_| 0.03);
        world.process("media", |m| 1.65 * full(m));
        world.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |m| 1.68 * full(m));
    });
}

#[test]
fn a_host_that_others_fill_is_not_the_limit_of_a_thread_that_never_waits() {
    check("one_thread_full", |world| {
        hot_worker(world);
        // The generator shares the host's cores.
        world.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |m| 1.98 * full(m));
    });
}

#[test]
fn a_quota_outranks_the_thread_that_it_holds_back() {
    check("cpu_quota", |world| {
        hot_worker(world);
        let group = [("cgroup", "/media")];
        world.put("cgroup.cpu", &group, Unit::Ratio, Some(1.0), full);
        world.put("cgroup.throttled_periods", &group, Unit::Ratio, None, |m| if m.over { 0.7 } else { 0.01 });
        world.put("cgroup.throttled", &group, Unit::Ratio, None, |m| if m.over { 0.3 } else { 0.0 });
    });
}

#[test]
fn a_quota_is_named_where_the_time_of_its_group_is_counted_elsewhere() {
    check("cpu_quota", |world| {
        world.process("media", |m| 0.5 * full(m));
        let group = [("cgroup", "/media")];
        world.put("cgroup.cpu.quota", &group, Unit::Ratio, None, |_| 0.5);
        world.put("cgroup.throttled_periods", &group, Unit::Ratio, None, |m| if m.over { 1.0 } else { 0.6 });
        world.put("cgroup.throttled", &group, Unit::Ratio, None, |m| if m.over { 1.5 } else { 0.3 });
    });
}

#[test]
fn a_hypervisor_that_takes_is_named() {
    check("cpu_steal", |world| {
        world.put("host.cpu.steal", &[], Unit::Ratio, Some(8.0), |m| if m.over { 1.2 } else { 0.01 });
    });
}

#[test]
fn waiting_for_a_cpu_beside_idle_ones_is_affinity() {
    check("run_queue", |world| {
        world.thread("media", "worker-0", 11, |m| 0.5 * full(m), |m| if m.over { 0.4 } else { 0.01 });
        world.thread("media", "worker-1", 12, |m| 0.5 * full(m), |m| if m.over { 0.4 } else { 0.01 });
    });
}

fn slow_disk(world: &mut World) {
    let process = [("process", "media"), ("pid", "7")];
    let read = |m: Moment| (125e3 * m.users).min(5e6);
    world.put("disk.read_bytes", &[("device", "loop3")], Unit::BytesPerSecond, None, read);
    world.put("process.read_bytes", &process, Unit::BytesPerSecond, None, read);
    world.put("disk.read_await", &[("device", "loop3")], Unit::Milliseconds, None, |m| {
        if m.over { 80.0 } else { 2.0 }
    });
    world.put("host.pressure.io.some", &[], Unit::Ratio, None, |m| if m.over { 0.9 } else { 0.05 });
    world.put("process.threads_blocked", &process, Unit::Count, None, |m| if m.over { 4.0 } else { 0.0 });
}

#[test]
fn a_disk_that_gives_no_more_is_named_and_iowait_alone_is_not() {
    check("disk_read", slow_disk);
    let mut world = World::new();
    slow_disk(&mut world);
    world.put("disk.read_bytes", &[("device", "vda")], Unit::BytesPerSecond, None, |_| 80e6);
    let found = explained(&mut world).bottleneck;
    assert_eq!(found.resource.as_deref(), Some("disk loop3"), "others read more from theirs");
    let mut world = World::new();
    world.put("host.cpu.iowait", &[], Unit::Ratio, Some(8.0), |_| 7.5);
    world.put("host.pressure.io.some", &[], Unit::Ratio, None, |m| if m.over { 1.0 } else { 0.1 });
    let found = explained(&mut world).bottleneck;
    assert_eq!(found.verdict, Certainty::Unattributed, "{found:#?}");
}

#[test]
fn a_page_cache_that_is_too_small_is_named_where_the_server_reads() {
    let refaults = |m: Moment| if m.over { 30_000.0 } else { 5.0 };
    check("page_cache", |world| {
        let process = [("process", "media"), ("pid", "7")];
        world.put("host.memory.refaults_file", &[], Unit::PerSecond, None, refaults);
        world.put("process.read_bytes", &process, Unit::BytesPerSecond, None, move |m| 4096.0 * refaults(m));
    });
    let mut world = World::new();
    world.put("host.memory.refaults_file", &[], Unit::PerSecond, None, refaults);
    let found = explained(&mut world).bottleneck;
    assert_eq!(found.verdict, Certainty::Unattributed, "somebody else's files: {found:#?}");
}

#[test]
fn memory_is_named_by_kills_and_outranks_the_crash() {
    check("memory", |world| {
        world.put("cgroup.memory", &[("cgroup", "/media")], Unit::Bytes, Some(1e8), |m| 1e8 * full(m));
        world.put("process.rss", &[("process", "media"), ("pid", "7")], Unit::Bytes, None, |m| 1e8 * full(m));
        world.put("cgroup.memory.oom_kills", &[("cgroup", "/media")], Unit::PerSecond, None, |m| {
            if m.over { 1.0 } else { 0.0 }
        });
        world.events.push((HostEventKind::ProcessEnded, "media (PID 7): killed by signal 9"));
        world.harm = Harm::NotServed;
    });
}

#[test]
fn a_crash_is_a_finding_with_its_signal() {
    check("server_crashed", |world| {
        world.events.push((HostEventKind::ProcessEnded, "media (PID 7): killed by signal 11 (SIGSEGV)"));
        world.harm = Harm::NotServed;
    });
}

#[test]
fn a_slow_reader_is_the_buffer_and_a_full_one_is_the_thread() {
    let drops =
        |world: &mut World| {
            world.put("udp.rcvbuf_errors", &[], Unit::PerSecond, None, |m| if m.over { 80.0 } else { 0.0 });
            let socket = [("process", "media"), ("pid", "7"), ("port", "5004"), ("protocol", "udp")];
            world.put("socket.receive_queue", &socket, Unit::Bytes, Some(2e5), |m| {
                if m.over { 2e5 } else { 1e3 }
            });
            world.harm = Harm::Loss;
        };
    check("udp_receive_buffer", drops);
    check("one_thread_full", |world| {
        hot_worker(world);
        drops(world);
    });
}

#[test]
fn a_cpu_full_of_soft_interrupts_is_named() {
    check("softirq", |world| {
        world.put("core.softirq", &[("cpu", "0")], Unit::Ratio, None, |m| 0.85 * full(m));
        world.put("softnet.dropped", &[("cpu", "0")], Unit::PerSecond, None, |m| {
            if m.over { 200.0 } else { 0.0 }
        });
        world.harm = Harm::Loss;
    });
}

#[test]
fn a_line_is_named_by_its_speed_and_a_shaper_by_its_queue() {
    check("line_rate", |world| {
        world.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, Some(5e6), |m| {
            5e6 * full(m)
        });
        world.put("qdisc.backlog_packets", &[("interface", "eth0")], Unit::Count, None, |m| {
            if m.over { 90.0 } else { 0.0 }
        });
    });
    check("line_rate", |world| {
        world.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, None, |m| 5e6 * full(m));
        world.put("qdisc.backlog_packets", &[("interface", "eth0")], Unit::Count, None, |m| {
            if m.over { 90.0 } else { 0.1 }
        });
        world.put("qdisc.drops", &[("interface", "eth0")], Unit::PerSecond, None, |m| {
            if m.over { 400.0 } else { 0.0 }
        });
        world.put("qdisc.overlimits", &[("interface", "eth0")], Unit::PerSecond, None, |m| 10.0 * m.users);
        world.harm = Harm::Loss;
    });
}

#[test]
fn full_send_buffers_are_named() {
    check("backpressure", |world| {
        world.put("udp.sndbuf_errors", &[], Unit::PerSecond, None, |m| if m.over { 300.0 } else { 0.0 });
        world.harm = Harm::Loss;
    });
}

#[test]
fn loss_behind_the_card_is_the_path() {
    check("path_loss", |world| world.harm = Harm::Loss);
}

#[test]
fn tables_that_are_full_are_named() {
    let process = [("process", "media"), ("pid", "7")];
    check("file_descriptors", |world| {
        world.put("process.fds", &process, Unit::Count, Some(100.0), |m| (18.0 + 2.0 * m.users).min(100.0));
        world.put("tcp.listen_overflows", &[], Unit::PerSecond, None, |m| if m.over { 3.0 } else { 0.0 });
        world.harm = Harm::NotServed;
        world.refusals = true;
    });
    check("local_ports", |world| {
        world.put("tcp.ephemeral_ports", &[], Unit::Count, Some(82.0), |m| (2.0 * m.users).min(82.0));
        world.harm = Harm::NotServed;
    });
    check("conntrack", |world| {
        world.put("conntrack.entries", &[], Unit::Count, Some(82.0), |m| (2.0 * m.users).min(82.0));
        world.put("conntrack.drops", &[], Unit::PerSecond, None, |m| if m.over { 5.0 } else { 0.0 });
        world.harm = Harm::NotServed;
    });
}

#[test]
fn an_accept_queue_that_overflows_is_named() {
    check("accept_queue", |world| {
        world.put("tcp.listen_overflows", &[], Unit::PerSecond, None, |m| if m.over { 3.0 } else { 0.0 });
        world.put("tcp.listen_drops", &[], Unit::PerSecond, None, |m| if m.over { 3.0 } else { 0.0 });
        let socket = [("process", "media"), ("pid", "7"), ("port", "80"), ("protocol", "tcp")];
        world.put("socket.accept_queue", &socket, Unit::Count, Some(8.0), |m| if m.over { 9.0 } else { 0.0 });
        // Who is turned away tries again.
        world.put(
            "tcp.segments_retransmitted",
            &[],
            Unit::PerSecond,
            None,
            |m| if m.over { 8.0 } else { 0.0 },
        );
        world.put("tcp.segments_out", &[], Unit::PerSecond, None, |_| 30.0);
        world.harm = Harm::NotServed;
    });
}

#[test]
fn a_cliff_with_refusals_and_room_is_the_configuration() {
    check("configured_ceiling", |world| {
        world.harm = Harm::NotServed;
        world.refusals = true;
    });
}

#[test]
fn a_generator_past_its_limits_says_nothing_about_the_server() {
    let mut world = World::new();
    hot_worker(&mut world);
    world.generator_cpu = 0.9;
    let found = explained(&mut world).bottleneck;
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (Certainty::GeneratorLimited, Some("generator_limited"))
    );
}

fn profile(world: &mut World, symbols: &[(&'static str, &'static str, u32)]) {
    world.profile = Some(symbols.to_vec());
}

#[test]
fn what_a_full_thread_is_busy_with_explains_it() {
    for (symbol, module, key) in [
        ("__memmove_avx_unaligned_erms", "libc.so.6", "copy_dominated"),
        ("H264Parser_step", "media", "hot_function"),
        ("aesni_ctr32_encrypt_blocks", "libcrypto.so.3", "crypto"),
        ("udp_sendmsg", "[kernel]", "system_calls"),
    ] {
        let mut world = World::new();
        hot_worker(&mut world);
        profile(
            &mut world,
            &[(symbol, module, 500), ("a", "media", 100), ("b", "media", 100), ("c", "media", 100)],
        );
        let found = explained(&mut world).bottleneck;
        assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{found:#?}");
        assert!(found.others.iter().any(|other| other.finding == key), "{key}: {found:#?}");
    }
}

#[test]
fn ordinary_encryption_explains_nothing() {
    let mut world = World::new();
    hot_worker(&mut world);
    let many = ["a", "b", "c", "d", "e", "f"].map(|name| (name, "media", 100));
    let mut symbols = many.to_vec();
    symbols.extend([("srtp_protect", "libsrtp2", 100), ("aesni_x", "libcrypto", 100)]);
    profile(&mut world, &symbols);
    let found = explained(&mut world).bottleneck;
    assert!(found.others.is_empty(), "{:#?}", found.others);
}

#[test]
fn a_relay_that_only_copies_in_one_thread_is_bound_by_copying() {
    check("copy_dominated", |world| {
        world.without("thread.cpu").without("thread.run_queue_wait");
        world.thread("relay", "relay", 11, full, |_| 0.01);
        world.process("relay", full);
        profile(
            world,
            &[
                ("rep_movs_alternative", "[kernel]", 400),
                ("__memmove_avx", "libc.so.6", 300),
                ("x", "relay", 300),
            ],
        );
    });
}

#[test]
fn nothing_full_is_said_to_be_nothing_that_can_be_seen() {
    let found = explained(&mut World::new()).bottleneck;
    assert_eq!((found.verdict, found.finding), (Certainty::Unattributed, None));
    assert!(
        found.not_limiting.len() >= 5 && found.title.contains("Not a resource"),
        "{:?}",
        found.not_limiting
    );
}

#[test]
fn two_limits_at_once_are_both_named() {
    let mut world = World::new();
    hot_worker(&mut world);
    world.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, Some(5e6), |m| 5e6 * full(m));
    world.put("qdisc.backlog_packets", &[("interface", "eth0")], Unit::Count, None, |m| {
        if m.over { 90.0 } else { 0.0 }
    });
    let found = explained(&mut world).bottleneck;
    assert_eq!(found.verdict, Certainty::CoBottleneck, "{found:#?}");
    assert!(found.title.contains("Two limits at once") && found.others.len() == 1, "{found:#?}");
}

#[test]
fn without_a_watcher_the_cause_was_not_observed() {
    let mut world = World::new();
    world.is_watched = false;
    let found = explained(&mut world).bottleneck;
    assert_eq!(found.verdict, Certainty::NotObserved);
    assert!(found.title.contains("not observed") && found.change.is_some());
}

#[test]
fn a_plain_run_gets_a_cause_too() {
    let mut world = World::new();
    hot_worker(&mut world);
    world.is_search = false;
    let explained = explained(&mut world);
    assert_eq!(
        explained.bottleneck.finding.as_deref(),
        Some("one_thread_full"),
        "{:#?}",
        explained.bottleneck
    );
    assert!(explained.demand.iter().any(|demand| demand.users.is_some()));
}

#[test]
fn a_run_in_which_nothing_failed_has_nothing_to_explain() {
    let mut world = World::new();
    let mut run = world.run();
    run.holds.retain(|hold| hold.users <= PASS);
    run.experience.iter_mut().for_each(|row| row.bad = 0);
    let found = explain(&run, Goal::Acceptable);
    assert_eq!(found.bottleneck.verdict, Certainty::NothingFailed);
    assert!(!found.demand.is_empty(), "what a user costs is told all the same");
    assert_eq!(explain(&Default::default(), Goal::Clean).bottleneck.verdict, Certainty::NothingFailed);
}

#[test]
fn the_resource_that_ends_first_stands_first_and_the_next_after_the_fix() {
    let mut world = World::new();
    hot_worker(&mut world);
    let explained = explained(&mut world);
    let first = &explained.demand[0];
    assert!(first.name().contains("worker-0") && !first.extrapolated, "{first:?}");
    let users = first.users.unwrap();
    assert!((users / (f64::from(PASS) * 0.95 / 0.94) - 1.0).abs() < 0.03, "{users}");
    let next = explained.bottleneck.predicts.unwrap();
    assert!(next.extrapolated && next.users_low <= next.users && next.users <= next.users_high, "{next:?}");
}

#[test]
fn every_finding_has_its_paragraph_in_the_documentation() {
    let page = include_str!("../../../../docs/findings.md");
    for (key, _) in crate::findings::RULES {
        assert!(page.contains(&format!("**{key}**: ")), "{key}");
    }
}
