//! Control group layouts of kernels of several ages, version 2 from recorded files.

use std::collections::BTreeMap;

use throng_observation::host::{HostId, HostRow};

use super::*;
use crate::rows::{RowReceiver, rows};

#[test]
fn files_are_found_in_every_mixture_of_hierarchies() {
    let v1 = b"30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
               31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    let v2 = b"25 23 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    let inside = b"25 23 0:22 /docker/ab /sys/fs/cgroup ro - cgroup cgroup rw,cpu\n";
    for (groups, mounts, controller, path, expect) in [
        (
            &b"4:cpu,cpuacct:/a\n0::/b\n"[..],
            &v1[..],
            "cpu",
            "/a",
            Some(("/sys/fs/cgroup/cpu,cpuacct/a", false)),
        ),
        (b"4:cpu,cpuacct:/a\n0::/b\n", v1, "", "/b", Some(("/sys/fs/cgroup/unified/b", true))),
        (b"4:cpu,cpuacct:/a\n0::/b\n", v1, "", "/a", None), // the other hierarchy's group
        (
            b"0::/a.slice/b.service\n",
            v2,
            "cpu",
            "/a.slice/b.service",
            Some(("/sys/fs/cgroup/a.slice/b.service", true)),
        ),
        (b"4:cpu:/docker/ab/c\n", inside, "cpu", "/docker/ab/c", Some(("/sys/fs/cgroup/c", false))),
        // Ancestor groups, as far up as they are visible.
        (b"0::/a.slice/b.service\n", v2, "cpu", "/a.slice", Some(("/sys/fs/cgroup/a.slice", true))),
        (b"0::/a.slice/b.service\n", v2, "cpu", "/", Some(("/sys/fs/cgroup/", true))),
        (b"0::/a.slice/b.service\n", v2, "cpu", "/a", None),
        (b"4:cpu:/docker/ab/c\n", inside, "cpu", "/docker/ab", Some(("/sys/fs/cgroup/", false))),
        (b"4:cpu:/docker/ab/c\n", inside, "cpu", "/docker", None),
        (b"0::/../other\n", v2, "cpu", "/../other", None),
        (b"", v2, "cpu", "/", None),
        (b"0::/a\n", b"", "cpu", "/a", None),
    ] {
        let expect = expect.map(|(path, is_v2)| (PathBuf::from(path), is_v2));
        let mounts = Mounts { text: mounts.to_vec(), root: String::new() };
        assert_eq!(folder(groups, &mounts, controller, path), expect, "{}", scan::text(groups));
    }
    // Seen from a mount namespace that has none, through a process of another.
    let mounts = Mounts { text: v2.to_vec(), root: "/proc/7/root".into() };
    let found = folder(b"0::/a\n", &mounts, "", "/a");
    assert_eq!(found, Some((PathBuf::from("/proc/7/root/sys/fs/cgroup/a"), true)));
}

/// A service on Linux 6.18 with a CPU quota of 1.5 cores, a memory limit of 512 MiB and no limit of
/// tasks: its files at two moments, in systemd's hierarchy.
const V2_6_18: [[(&str, &str); 10]; 2] = [
    [
        ("cgroup.procs", "812\n"),
        (
            "cpu.stat",
            "usage_usec 8000000\nuser_usec 6000000\nsystem_usec 2000000\nnice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods 100\nnr_throttled 10\nthrottled_usec 500000\nnr_bursts 0\nburst_usec 0\n",
        ),
        ("cpu.max", "150000 100000\n"),
        ("memory.current", "104857600\n"),
        ("memory.max", "536870912\n"),
        (
            "memory.events",
            "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\nsock_throttled 0\n",
        ),
        ("pids.events", "max 0\n"),
        ("pids.current", "31\n"),
        ("pids.max", "max\n"),
        ("io.stat", "254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n7:0 \n"),
    ],
    [
        ("cgroup.procs", "812\n"),
        (
            "cpu.stat",
            "usage_usec 9000000\nuser_usec 6750000\nsystem_usec 2250000\nnice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods 120\nnr_throttled 15\nthrottled_usec 700000\nnr_bursts 0\nburst_usec 0\n",
        ),
        ("cpu.max", "150000 100000\n"),
        ("memory.current", "209715200\n"),
        ("memory.max", "536870912\n"),
        (
            "memory.events",
            "low 0\nhigh 0\nmax 6\noom 4\noom_kill 2\noom_group_kill 0\nsock_throttled 0\n",
        ),
        ("pids.events", "max 4\n"),
        ("pids.current", "33\n"),
        ("pids.max", "max\n"),
        (
            "io.stat",
            "254:0 rbytes=8192 wbytes=16384 rios=2 wios=4 dbytes=0 dios=0\n7:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
        ),
    ],
];

/// A slice around the service, with a memory limit of 600 MiB.
const SLICE: [(&str, &str); 3] = [
    ("memory.current", "524288000\n"),
    ("memory.max", "629145600\n"),
    ("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"),
];

/// Linux 4.18 (RHEL 8): without a quota there is no throttling, and there is no pressure.
const V2_4_18: [(&str, &str); 6] = [
    ("cgroup.procs", "812\n"),
    ("cpu.stat", "usage_usec 70\nuser_usec 60\nsystem_usec 10\n"),
    ("cpu.max", "max 100000\n"),
    ("memory.current", "4096\n"),
    ("memory.max", "max\n"),
    ("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"),
];

const PRESSURE: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";

/// A version 2 hierarchy in a folder, and the readings of a group in it.
struct Hierarchy {
    mount: tempfile::TempDir,
    /// The group, and the slice around it.
    groups: [Cgroup; 2],
    sink: Sink,
    receiver: RowReceiver,
}

impl Hierarchy {
    const PATH: &str = "/media.slice/janus.service";
    const SLICE: &str = "/media.slice";

    fn new(files: &[(&str, &str)]) -> Self {
        let mount = tempfile::tempdir().unwrap();
        let (rows, receiver) = rows(1_000);
        let sink = Sink { rows, host: HostId(0), zero: Instant::now(), netns: None };
        write(&mount, files);
        write_to(&mount, Self::SLICE, &SLICE);
        let mounted = format!(
            "25 23 0:22 / {} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
            mount.path().display()
        );
        let mounts = Mounts { text: mounted.into_bytes(), root: String::new() };
        let groups = format!("0::{}\n", Self::PATH).into_bytes();
        let groups = [Self::PATH, Self::SLICE].map(|path| {
            let files =
                Files::find(groups.clone(), &mounts, path, &sink, &mut ReadFailures::default());
            Cgroup::of_files(files, path.to_owned())
        });
        Self { mount, groups, sink, receiver }
    }

    fn read(&mut self) {
        self.groups[0].read(&self.sink, &mut Reader::new(), &Units::of_this_kernel());
    }

    /// A pass over both groups.
    fn read_all(&mut self) {
        for group in &mut self.groups {
            group.read(&self.sink, &mut Reader::new(), &Units::of_this_kernel());
        }
    }

    /// Who killed a process of the group: the group without memory, its limit, and what it used.
    fn killer(&self) -> Option<(String, Option<u64>, u64)> {
        match killer(&self.groups, Self::PATH, &mut Reader::new())? {
            Culprit::OutOfMemory { group, limit_bytes, used_bytes } => {
                Some((group, limit_bytes, used_bytes))
            }
            other => panic!("{other:?}"),
        }
    }

    /// The last value and the limit of each series.
    fn sampled(&self) -> BTreeMap<String, (f64, Option<f64>)> {
        let (mut names, mut sampled) = (BTreeMap::new(), BTreeMap::new());
        for row in self.receiver.try_iter() {
            match row {
                HostRow::Series(series) => {
                    assert_eq!(series.labels["cgroup"], Self::PATH);
                    names.insert(series.id, (series.metric, series.limit));
                }
                HostRow::Sample(sample) => {
                    let (name, limit) = &names[&sample.series];
                    sampled.insert(name.clone(), (sample.value, *limit));
                }
                _ => {}
            }
        }
        sampled
    }
}

fn write(mount: &tempfile::TempDir, files: &[(&str, &str)]) {
    write_to(mount, Hierarchy::PATH, files);
}

fn write_to(mount: &tempfile::TempDir, path: &str, files: &[(&str, &str)]) {
    let folder = mount.path().join(path.trim_start_matches('/'));
    std::fs::create_dir_all(&folder).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
}

#[test]
fn a_cgroup_v2_service_reports_use_limits_and_throttling() {
    let [before, after] = V2_6_18;
    let mut hierarchy = Hierarchy::new(&before);
    hierarchy.read();
    write(&hierarchy.mount, &after);
    hierarchy.read();
    let sampled = hierarchy.sampled();
    let value =
        |name: &str| sampled.get(name).unwrap_or_else(|| panic!("no {name} in {sampled:?}")).0;
    // Rates are over the time between the readings, which is the same for all values of a file.
    assert!((value("cgroup.cpu") / value("cgroup.cpu.user") - 4.0 / 3.0).abs() < 1e-9);
    assert!((value("cgroup.cpu") / value("cgroup.cpu.system") - 4.0).abs() < 1e-9);
    assert!((value("cgroup.cpu") / value("cgroup.throttled") - 5.0).abs() < 1e-9);
    assert!((value("cgroup.read_bytes") / value("cgroup.write_bytes") - 0.5).abs() < 1e-9);
    assert_eq!(value("cgroup.throttled_periods"), 0.25);
    assert_eq!(sampled["cgroup.cpu"].1, Some(1.5));
    assert_eq!(value("cgroup.cpu.quota"), 1.5);
    assert_eq!(sampled["cgroup.memory"], (209_715_200.0, Some(536_870_912.0)));
    assert_eq!(sampled["cgroup.pids"], (33.0, None));
    assert!(value("cgroup.memory.limit_hits") > 0.0 && value("cgroup.pids.limit_hits") > 0.0);
    assert!((value("cgroup.memory.ooms") / value("cgroup.memory.oom_kills") - 2.0).abs() < 1e-9);
}

#[test]
fn a_kill_since_the_last_pass_is_told_with_what_was_used_before() {
    let [before, after] = V2_6_18;
    let mut hierarchy = Hierarchy::new(&before);
    assert_eq!(hierarchy.killer(), None, "nothing was read yet");
    hierarchy.read_all();
    assert_eq!(hierarchy.killer(), None);
    write(&hierarchy.mount, &after);
    let killer = Some((Hierarchy::PATH.to_owned(), Some(536_870_912), 104_857_600));
    assert_eq!(hierarchy.killer(), killer);
    hierarchy.read_all();
    assert_eq!(
        hierarchy.killer(),
        killer,
        "the count was read before the end of the process was seen"
    );
    hierarchy.read_all();
    assert_eq!(hierarchy.killer(), None, "that was another process");
}

#[test]
fn the_group_without_memory_is_the_lowest_that_counts_its_limit_or_it_was_the_host() {
    let killed = [("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n")];
    let mut of_host = Hierarchy::new(&V2_6_18[0]);
    of_host.read_all();
    write(&of_host.mount, &killed);
    write_to(&of_host.mount, Hierarchy::SLICE, &killed);
    assert_eq!(of_host.killer(), Some((Hierarchy::PATH.to_owned(), None, 104_857_600)));

    let mut of_slice = Hierarchy::new(&V2_6_18[0]);
    of_slice.read_all();
    write(&of_slice.mount, &killed);
    write_to(&of_slice.mount, Hierarchy::SLICE, &[("memory.events", "oom 1\noom_kill 1\n")]);
    let killer = Some((Hierarchy::SLICE.to_owned(), Some(629_145_600), 524_288_000));
    assert_eq!(of_slice.killer(), killer, "its own limit is the tighter one, and was not hit");
}

#[test]
fn a_group_has_only_the_series_that_its_kernel_supports() {
    let mut hierarchy = Hierarchy::new(&V2_4_18);
    hierarchy.read();
    write(&hierarchy.mount, &[("cpu.stat", "usage_usec 90\nuser_usec 70\nsystem_usec 20\n")]);
    hierarchy.read();
    let sampled = hierarchy.sampled();
    let names: Vec<&str> = sampled.keys().map(String::as_str).collect();
    let rates = ["cgroup.cpu", "cgroup.cpu.system", "cgroup.cpu.user", "cgroup.memory"];
    let events = ["cgroup.memory.limit_hits", "cgroup.memory.oom_kills", "cgroup.memory.ooms"];
    assert_eq!(names, [&rates[..], &events].concat());
    assert!(sampled.values().all(|(_, limit)| limit.is_none()), "{sampled:?}");
}

#[test]
fn the_pressure_of_a_group_is_read_where_the_kernel_has_it() {
    let files = ["cpu", "memory", "io"].map(|spec| (format!("{spec}.pressure"), PRESSURE));
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let mut hierarchy = Hierarchy::new(&[&[("cgroup.procs", "1\n")][..], &files].concat());
    hierarchy.read();
    let more = PRESSURE.replace("=77", "=177").replace("=7\n", "=57\n");
    let more: Vec<_> = files.iter().map(|(name, _)| (*name, more.as_str())).collect();
    write(&hierarchy.mount, &more);
    hierarchy.read();
    let sampled = hierarchy.sampled();
    for spec in ["cpu", "memory", "io"] {
        let [some, full] =
            ["some", "full"].map(|kind| sampled[&format!("cgroup.pressure.{spec}.{kind}")].0);
        assert!((some / full - 2.0).abs() < 1e-9, "{spec}: {some} {full}");
    }
}

#[test]
fn the_ancestor_with_the_tightest_limit_is_found() {
    let mount = tempfile::tempdir().unwrap();
    let folder = mount.path().display();
    let put = |group: &str, name: &str, text: &str| {
        let folder = mount.path().join(group);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    };
    let path = "/pods/pod/container";
    let find = |groups: &str, mounted: &str| {
        let mounts = Mounts { text: mounted.as_bytes().to_vec(), root: String::new() };
        let ancestor = TighterLimits::find(groups.as_bytes(), &mounts, path, &mut Reader::new());
        (ancestor.cpu.unwrap_or_default(), ancestor.memory.unwrap_or_default())
    };
    let is = |cpu: &str, memory: &str| (cpu.to_owned(), memory.to_owned());

    let v2 = format!("25 23 0:22 / {folder} rw - cgroup2 cgroup2 rw\n");
    let in_v2 = || find("0::/pods/pod/container\n", &v2);
    put("pods/pod/container", "cpu.max", "max 100000\n");
    put("pods/pod/container", "memory.max", "1000000\n");
    put("pods/pod", "cpu.max", "50000 100000\n");
    put("pods/pod", "memory.max", "max\n");
    put("pods", "cpu.max", "200000 100000\n");
    put("pods", "memory.max", "900000\n");
    assert_eq!(in_v2(), is("/pods/pod", "/pods"));
    put("pods/pod/container", "cpu.max", "50000 100000\n");
    put("pods/pod/container", "memory.max", "800000\n");
    assert_eq!(in_v2(), is("", ""), "its own limits are as tight");

    let v1 = format!("30 23 0:26 / {folder} rw - cgroup cgroup rw,cpu,memory\n");
    for (group, quota, memory) in [
        ("pods/pod/container", "-1", "9223372036854771712"),
        ("pods/pod", "-1", "5000"),
        ("pods", "25000", "6000"),
    ] {
        put(group, "cpu.cfs_quota_us", quota);
        put(group, "cpu.cfs_period_us", "100000");
        put(group, "memory.limit_in_bytes", memory);
    }
    assert_eq!(find("4:cpu,memory:/pods/pod/container\n", &v1), is("/pods", "/pods/pod"));
}
