use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;
use throng_engine::preflight::{Limits, Needs};
use throng_fleet::disciplined::{ClockWord, WordSource};

use super::*;
use crate::fleet::clock_source::Chrony;

/// A machine on which all is well, with these files of the kernel.
fn facts(files: &[(&str, &str)]) -> (TempDir, Facts) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let facts = Facts {
        root: folder.path().to_str().unwrap().to_owned(),
        path: folder.path().join("bin").into(),
        needs: Needs {
            participants: 1,
            descriptors_each: 2,
            ports_each: 1,
            source_ips: 1,
            receive_buffer_bytes: 1 << 20,
            memory_each_bytes: 77_000,
        },
        limits: Limits {
            descriptors: 20_000,
            ports: (32_768, 60_999),
            receive_buffer_bytes_max: None,
            memory_bytes: None,
        },
        descriptors_soft: 1_024,
        threads: 4,
        steal_ratio: 0.0,
        chrony: Chrony::Keeps(ClockWord { bound_us: 250, source: WordSource::Chrony }),
        is_synchronised: None,
        receive_ring: Ok(()),
        profiler: Ok(()),
        joins_datagrams: true,
        gstreamer: Ok(()),
    };
    (folder, facts)
}

fn limits(check: &Check) -> u64 {
    check.verdict.viewers_max().unwrap_or_else(|| panic!("{check:?} limits nothing"))
}

fn is_ok(check: &Check) -> bool {
    check.verdict == Verdict::Ok
}

#[test]
fn each_check_has_a_name_of_its_own_and_a_change() {
    let (_folder, facts) = facts(&[]);
    let checks = checks(&facts);
    let mut names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CHECKS.len(), "{names:?}");
    assert!(checks.iter().all(|check| !check.found.is_empty() && !check.change.is_empty()));
}

#[test]
fn open_files_and_ports_suffice_for_a_number_of_viewers() {
    let (_folder, mut facts) = facts(&[]);
    let found = descriptors::check(&facts);
    assert_eq!(found.found, "20000 (soft limit 1024, which throng raises)");
    assert_eq!((limits(&found), limits(&ports::check(&facts))), (9_968, 28_232));
    facts.needs.source_ips = 2;
    let found = ports::check(&facts);
    assert_eq!(limits(&found), 56_464);
    assert_eq!(found.found, "32768 to 60999 of each of 2 source addresses");
    facts.limits.descriptors = u64::MAX;
    assert!(is_ok(&descriptors::check(&facts)));
    (facts.limits.descriptors, facts.descriptors_soft) = (300, 300);
    assert_eq!(descriptors::check(&facts).found, "300");
}

#[test]
fn memory_is_that_of_the_tightest_group_and_no_more_than_others_leave() {
    let group = [
        ("proc/meminfo", "MemTotal: 4000000 kB\n"),
        ("proc/self/status", "RssAnon:\t 0 kB\nRssShmem:\t 0 kB\n"),
        ("proc/self/cgroup", "0::/a\n"),
        ("proc/self/mountinfo", "35 24 0:30 / /cgroup rw - cgroup2 cgroup2 rw\n"),
        ("cgroup/a/memory.current", "0\n"),
        ("cgroup/a/memory.stat", "anon 0\n"),
        ("cgroup/a/memory.max", "77000000\n"),
    ];
    let (_folder, of_group) = facts(&group);
    let check = memory::check(&of_group);
    assert!(check.found.contains("cgroup/a leaves; a run ends itself at 80 %"), "{check:?}");
    assert_eq!(limits(&check), 800);
    let (_folder, of_machine) = facts(&group[..1]);
    let check = memory::check(&of_machine);
    assert!(check.found.contains("of the machine"), "{check:?}");
    assert_eq!(limits(&check), 42_555);
    let shared = ("proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 1000000 kB\n");
    let (_folder, of_shared) = facts(&[shared]);
    let check = memory::check(&of_shared);
    assert_eq!(
        check.found,
        "4.10 GB of the machine; a run ends itself at 80 % of it; the machine has 1.02 GB available"
    );
    assert_eq!(limits(&check), 13_298);
    let (_folder, of_nothing) = facts(&[]);
    assert!(matches!(memory::check(&of_nothing).verdict, Verdict::Lacks { .. }));
}

#[test]
fn a_table_of_connections_has_room_for_those_that_are_not_in_it() {
    let of = "proc/sys/net/netfilter/nf_conntrack_";
    let (max, count) = (format!("{of}max"), format!("{of}count"));
    let (_folder, tracked) = facts(&[(&*max, "1000\n"), (&*count, "200\n")]);
    let check = conntrack::check(&tracked);
    assert_eq!((limits(&check), &*check.found), (400, "200 of 1000 connections"));
    let (_folder, unlimited) = facts(&[(&*max, "0\n"), (&*count, "200\n")]);
    assert!(is_ok(&conntrack::check(&unlimited)));
    let (_folder, untracked) = facts(&[]);
    assert!(is_ok(&conntrack::check(&untracked)));
}

#[test]
fn small_buffers_lack_room() {
    let core = |name: &str| format!("proc/sys/net/core/{name}");
    let (usual, most) = (core("wmem_default"), core("wmem_max"));
    let (_folder, mut small) = facts(&[(&*usual, "4096\n"), (&*most, "212992\n")]);
    let check = send_buffer::check(&small);
    assert_eq!(check.found, "4.10 kB (net.core.wmem_default; wmem_max 213 kB)");
    assert!(!is_ok(&check) && is_ok(&receive_buffer::check(&small)));
    for (limit, expect) in [(212_992, false), (1 << 20, true)] {
        small.limits.receive_buffer_bytes_max = Some(limit);
        let check = receive_buffer::check(&small);
        assert_eq!(is_ok(&check), expect, "{check:?}");
        assert!(check.change.contains("rmem_max=1048576"), "{check:?}");
    }
    let (_folder, untold) = facts(&[(&*usual, "212992\n")]);
    assert!(is_ok(&send_buffer::check(&untold)));
}

#[test]
fn a_quota_below_the_cpus_holds_threads_back_in_either_version() {
    let status = "Cpus_allowed_list:\t0-1\n";
    let of_machine = [("sys/devices/system/cpu/online", "0-3\n"), ("proc/self/status", status)];
    let v2 = [
        ("proc/self/cgroup", "0::/a/b\n"),
        ("proc/self/mountinfo", "35 24 0:30 / /cgroup rw - cgroup2 cgroup2 rw\n"),
        ("cgroup/a/b/cpu.max", "max 100000\n"),
        ("cgroup/a/cpu.max", "150000 100000\n"),
    ];
    let v1 = [
        ("proc/self/cgroup", "1:cpu,cpuacct:/a\n"),
        ("proc/self/mountinfo", "32 31 0:29 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n"),
        ("cpu/a/cpu.cfs_quota_us", "200000\n"),
        ("cpu/a/cpu.cfs_period_us", "100000\n"),
    ];
    for (files, found, expect) in [
        (&[][..], "2 of 4; 4 engine threads at most", true),
        (&v2[..], "2 of 4; 4 engine threads at most; quota of 1.50 cores by ", false),
        (&v1[..], "2 of 4; 4 engine threads at most; quota of 2.00 cores by ", true),
    ] {
        let (_folder, facts) = facts(&[&of_machine[..], files].concat());
        let check = cpus::check(&facts);
        assert!(check.found.starts_with(found), "{check:?}");
        assert_eq!(is_ok(&check), expect, "{check:?}");
    }
}

#[test]
fn what_a_hypervisor_takes_is_judged_as_in_a_run() {
    let (_folder, mut facts) = facts(&[]);
    assert!(is_ok(&steal::check(&facts)));
    facts.steal_ratio = 0.06;
    assert!(matches!(steal::check(&facts).verdict, Verdict::Lacks { .. }));
}

#[test]
fn a_clock_is_right_by_the_word_of_whoever_keeps_it() {
    let (_folder, mut facts) = facts(&[]);
    for (bound_us, time, expect) in [
        (250, "250 µs", true),
        (4_200, "4.2 ms", true),
        (50_000, "50 ms", true),
        (50_001, "50 ms", false),
        (30_000_000, "30.00 s", false),
    ] {
        facts.chrony = Chrony::Keeps(ClockWord { bound_us, source: WordSource::Chrony });
        let check = clock::check(&facts);
        assert_eq!(check.found, format!("within {time} of true time (chrony)"));
        assert_eq!(is_ok(&check), expect, "{check:?}");
    }
    for (chrony, word, expect) in [
        (Chrony::Silent, Some(true), "synchronised (timedatectl)"),
        (Chrony::Silent, Some(false), "not synchronised (timedatectl)"),
        (Chrony::Silent, None, "not known: neither chronyc nor timedatectl answers"),
        (Chrony::FollowsNone, None, "not synchronised: chrony follows no source"),
        (Chrony::FollowsNone, Some(false), "not synchronised: chrony follows no source"),
        (Chrony::FollowsNone, Some(true), "synchronised (timedatectl)"),
    ] {
        (facts.chrony, facts.is_synchronised) = (chrony, word);
        let check = clock::check(&facts);
        assert_eq!((&*check.found, is_ok(&check)), (expect, word == Some(true)));
        assert_eq!(check.change.contains("install chrony"), chrony == Chrony::Silent);
    }
}

#[test]
fn a_slow_clock_source_is_told() {
    let file = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    for (name, expect) in [("tsc\n", true), ("kvm-clock\n", true), ("hpet\n", false)] {
        let (_folder, facts) = facts(&[(file, name)]);
        let check = clocksource::check(&facts);
        assert_eq!((&*check.found, is_ok(&check)), (name.trim(), expect));
    }
}

#[test]
fn a_missing_right_is_named_with_what_is_off() {
    let (_folder, mut facts) = facts(&[("proc/sys/kernel/perf_event_paranoid", "2\n")]);
    let checks: [fn(&Facts) -> Check; 4] =
        [receive_ring::check, profiler::check, segments::check, gstreamer::check];
    assert!(checks.iter().all(|check| is_ok(&check(&facts))));
    facts.receive_ring = Err("a packet socket needs CAP_NET_RAW".to_owned());
    facts.profiler = Err("no sampling clock: run as root".to_owned());
    facts.joins_datagrams = false;
    facts.gstreamer = Err("libgstreamer-1.0.so.0 is not here".to_owned());
    assert!(checks.iter().all(|check| !is_ok(&check(&facts))));
    let found = profiler::check(&facts);
    assert_eq!(found.found, "sampling clock refused (kernel.perf_event_paranoid 2)");
    assert_eq!(found.change, "no sampling clock: run as root");
    assert!(receive_ring::check(&facts).found.contains("CAP_NET_RAW"));
}

#[test]
fn programs_are_looked_for_in_path() {
    let programs = [("bin/ffmpeg", ""), ("bin/ffprobe", ""), ("bin/chromium", "")];
    let (folder, facts) = facts(&programs);
    assert_eq!(ffmpeg::check(&facts).found, "not in PATH", "none can be run");
    assert!(!is_ok(&browser::check(&facts)));
    for (name, _) in programs {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path().join(name), mode).unwrap();
    }
    assert!(is_ok(&ffmpeg::check(&facts)) && is_ok(&browser::check(&facts)));
    std::fs::remove_file(folder.path().join("bin/ffprobe")).unwrap();
    let check = ffmpeg::check(&facts);
    assert!(!is_ok(&check) && check.found.ends_with("bin/ffmpeg"), "{check:?}");
}
