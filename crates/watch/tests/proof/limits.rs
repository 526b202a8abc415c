//! Limits that a test reaches: descriptors, a CPU quota, a receive buffer, an accept queue, a
//! disk's queue.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throng_sim::requires_root;
use throng_watch::Target;

use crate::recorded::{RecordedRows, watch};

const SOON: Duration = Duration::from_secs(20);

/// A command that ends with the test.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_at_its_descriptor_limit_shows_level_and_limit() {
    // 39 of 40: the last is for the loader of `sleep`.
    let script =
        "ulimit -n 40; for i in $(seq 3 38); do eval \"exec $i</dev/null\"; done; exec sleep 60";
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null());
    let held = Held(bash.spawn().unwrap());
    let watched = watch(vec![Target::Pid(held.0.id())]);
    let mut seen = RecordedRows::default();
    // The first reading may come before the shell has set its limit.
    watched.until(&mut seen, SOON, "all 40 descriptors and their limit", |seen| {
        let is_limited = seen.find("process.fds", &[]).any(|series| series.limit == Some(40.0));
        is_limited && seen.max("process.fds", &[]) >= Some(38.0)
    });
    watched.end(seen);
}

#[test]
fn a_receiver_that_is_too_slow_shows_which_datagrams_it_lost_and_whose_they_were() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = receiver.local_addr().unwrap().port().to_string();
    let watched = watch(vec![Target::Pid(std::process::id())]);
    let mut seen = RecordedRows::default();
    // A first scan, so that later drops are counted.
    watched.until(&mut seen, SOON, "the sockets", |seen| seen.max("udp.sockets", &[]).is_some());
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 0;
    let labels = [("port", &*port), ("protocol", "udp")];
    let pid = std::process::id().to_string();
    for _ in 0..40 {
        for _ in 0..500 {
            sent += u64::from(sender.send_to(&[0; 1_000], receiver.local_addr().unwrap()).is_ok());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let is_told = |seen: &RecordedRows| {
        seen.max("socket.drops", &labels) > Some(0.0)
            && seen.max("udp.rcvbuf_errors", &[]) > Some(0.0)
    };
    watched.until(&mut seen, SOON, "the loss", is_told);
    std::thread::sleep(Duration::from_millis(2_500));
    let seen = watched.end(seen);
    let series = seen.find("socket.drops", &labels).next().unwrap();
    assert_eq!(series.labels["pid"], pid, "{series:?}");
    // Datagrams in the buffer were not dropped; all others were.
    let queue = seen.max("socket.receive_queue", &labels).unwrap();
    let limit = seen.find("socket.receive_queue", &labels).next().unwrap().limit.unwrap();
    assert!(queue > limit * 0.8, "the queue is at {queue} of {limit}");
    receiver.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2_000];
    let mut received = 0;
    while receiver.recv(&mut buffer).is_ok() {
        received += 1;
    }
    let lost = (sent - received) as f64;
    let reported = seen.sum("udp.rcvbuf_errors", &[], 0.0);
    assert!(reported > lost * 0.9, "{reported} of {lost} were reported"); // others on this host may lose further ones
}

#[test]
fn a_full_accept_queue_shows_its_length_and_backlog() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let _waiting: Vec<_> =
        (0..7).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
    let watched = watch(vec![Target::Pid(std::process::id())]);
    let mut seen = RecordedRows::default();
    let labels = [("port", &*port), ("protocol", "tcp")];
    watched.until(&mut seen, SOON, "the queue", |seen| {
        seen.max("socket.accept_queue", &labels) == Some(7.0)
    });
    let limit = seen.find("socket.accept_queue", &labels).next().unwrap().limit;
    assert!(limit >= Some(128.0), "{limit:?}");
    watched.end(seen);
}

#[test]
fn a_slow_receiver_is_distinguished_from_a_slow_path() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let _never_reads = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut written, _) = listener.accept().unwrap();
    let watched = watch(vec![Target::Pid(std::process::id())]);
    let mut seen = RecordedRows::default();
    let labels = [("port", &*port), ("protocol", "tcp")];
    let connected = |seen: &RecordedRows| seen.max("socket.connections", &labels) == Some(1.0);
    watched.until(&mut seen, SOON, "the connection", connected);
    written.set_nonblocking(true).unwrap();
    while std::io::Write::write(&mut written, &[0; 65_536]).is_ok() {}
    watched.until(&mut seen, SOON, "the slow reader", |seen| {
        seen.max("socket.peer_limited", &labels) > Some(0.5)
            && seen.max("socket.unsent", &labels) > Some(1e5)
    });
    let of = |metric| seen.max(metric, &labels).unwrap_or(0.0);
    assert!(
        of("socket.sending") <= 1.05 && of("socket.peer_limited") <= of("socket.sending") + 0.01
    );
    assert!(of("socket.buffer_limited") < 0.2 && of("socket.retransmitted") < 0.5);
    watched.end(seen);
}

#[test]
fn settings_of_the_network_are_those_of_the_servers_namespace() {
    if !requires_root() {
        return;
    }
    let script = "echo 77 > /proc/sys/net/core/somaxconn; exec sleep 60";
    let mut server = Command::new("unshare");
    let held = Held(server.args(["-n", "sh", "-c", script]).stdin(Stdio::null()).spawn().unwrap());
    let until = Instant::now() + SOON;
    while std::fs::read_to_string(format!("/proc/{}/comm", held.0.id())).unwrap().trim() != "sleep"
    {
        assert!(Instant::now() < until, "the server does not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    let watched = watch(vec![Target::Pid(held.0.id())]);
    let mut seen = RecordedRows::default();
    let is_theirs = |seen: &RecordedRows| {
        let facts = seen.info.as_ref().map(|info| &info.facts);
        facts.and_then(|facts| facts.get("net.core.somaxconn")).is_some_and(|value| value == "77")
    };
    watched.until(&mut seen, SOON, "the namespace's somaxconn", is_theirs);
    watched.end(seen);
}

/// A control group of this test's own with a CPU quota of 20 %, or a group without a quota in it;
/// gone when dropped.
struct Quota(Vec<PathBuf>);

impl Quota {
    /// A group in it.
    fn inside(&self) -> Self {
        let folders: Vec<_> = self.0.iter().map(|folder| folder.join("inside")).collect();
        for folder in &folders {
            let _ = std::fs::create_dir(folder);
        }
        Self(folders)
    }

    /// The shell commands that join it.
    fn join(&self) -> String {
        let join =
            self.0.iter().map(|folder| format!("echo $$ > {}/cgroup.procs", folder.display()));
        join.collect::<Vec<_>>().join("; ")
    }

    fn new(name: &str) -> Option<Self> {
        let name = format!("throng-proof-{name}-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).is_ok();
        if root.join("cgroup.controllers").exists() {
            let folder = root.join(name);
            std::fs::create_dir(&folder).ok()?;
            let quota = Self(vec![folder.clone()]);
            return write(folder.join("cpu.max"), "20000 100000").then_some(quota);
        }
        let folders: Vec<_> =
            ["cpu", "cpuacct"].map(|controller| root.join(controller).join(&name)).into();
        for folder in &folders {
            // If both are one hierarchy, the folder exists already.
            let _ = std::fs::create_dir(folder);
        }
        let cpu = folders.first()?.clone();
        let quota = Self(folders);
        let is_set = write(cpu.join("cpu.cfs_period_us"), "100000")
            && write(cpu.join("cpu.cfs_quota_us"), "20000");
        is_set.then_some(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[test]
fn a_cpu_quota_shows_as_limit_and_as_throttling() {
    if !requires_root() {
        return;
    }
    let Some(quota) = Quota::new("own") else {
        panic!("no control group with a CPU quota can be made here");
    };
    let script = format!("{}; while :; do :; done", quota.join());
    let watched = watch(vec![Target::Command(vec!["sh".into(), "-c".into(), script])]);
    let mut seen = RecordedRows::default();
    let is_enough = |seen: &RecordedRows| seen.samples("cgroup.cpu", &[]).len() >= 4;
    watched.until(&mut seen, SOON, "the group's CPU", is_enough);
    let seen = watched.end(seen);
    let series = seen.find("cgroup.cpu", &[]).next().unwrap();
    assert_eq!(series.limit, Some(0.2));
    assert!(series.labels["cgroup"].contains("throng-proof"), "{series:?}");
    let (first, last) =
        (seen.samples("cgroup.cpu", &[])[0].0, seen.samples("cgroup.cpu", &[]).last().unwrap().0);
    let mean = seen.sum("cgroup.cpu", &[], first) / (last - first);
    assert!((0.02..0.24).contains(&mean), "the group took {mean}");
    assert!(seen.max("cgroup.throttled_periods", &[]) > Some(0.3), "{seen:#?}");
    assert!(seen.max("cgroup.throttled", &[]) > Some(0.1));
}

#[test]
fn a_quota_of_an_ancestor_is_reported_with_that_groups_use_and_throttling() {
    if !requires_root() {
        return;
    }
    let Some(slice) = Quota::new("slice") else {
        panic!("no control group with a CPU quota can be made here");
    };
    let service = slice.inside();
    let script = format!("{}; while :; do :; done", service.join());
    let watched = watch(vec![Target::Command(vec!["sh".into(), "-c".into(), script])]);
    let mut seen = RecordedRows::default();
    let (slices, services) = (group_of(&slice), group_of(&service));
    let [of_slice, of_service] = [[("cgroup", &*slices)], [("cgroup", &*services)]];
    // A share needs two readings at different times, which the other counters of the group do not.
    let is_held = |seen: &RecordedRows| {
        seen.max("cgroup.throttled_periods", &of_slice) > Some(0.3)
            && seen.max("cgroup.cpu", &of_slice).is_some()
            && seen.max("cgroup.throttled", &of_slice) > Some(0.1)
    };
    watched.until(&mut seen, SOON, "the throttling of the group above", is_held);
    let seen = watched.end(seen);
    assert_eq!(seen.find("cgroup.cpu", &of_slice).next().unwrap().limit, Some(0.2));
    assert_eq!(seen.max("cgroup.cpu.quota", &of_slice), Some(0.2));
    assert!(seen.find("cgroup.cpu", &of_service).all(|series| series.limit.is_none()));
    assert!(seen.max("cgroup.throttled", &of_slice) > Some(0.1));
    drop(service);
}

/// The label of a group.
fn group_of(quota: &Quota) -> String {
    let below: Vec<_> = quota.0[0].iter().map(|part| part.to_str().unwrap()).collect();
    let from = below.iter().position(|part| part.starts_with("throng-proof")).unwrap();
    format!("/{}", below[from..].join("/"))
}

/// A loop device over a file; removed when dropped.
struct Loop {
    device: String,
    file: tempfile::NamedTempFile,
}

impl Loop {
    fn new(bytes: usize) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; bytes]).unwrap();
        let losetup = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(file.path())
            .output();
        let output = losetup.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { device: String::from_utf8_lossy(&output.stdout).trim().to_owned(), file }
    }

    /// The disk of the file, as `major:minor`.
    fn disk(&self) -> String {
        let number = std::fs::metadata(self.file.path()).unwrap().dev();
        let device = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        let sys = PathBuf::from(format!("/sys/dev/block/{device}"));
        let whole =
            sys.join("partition").exists().then(|| std::fs::read_to_string(sys.join("../dev")));
        whole.map_or(device, |text| text.unwrap().trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// A control group of this test with a limit on the read rate from a disk; removed on drop.
struct Throttle(PathBuf);

impl Throttle {
    /// A loop device submits reads to its file's disk on behalf of the reader, and is throttled
    /// there.
    fn new(disk: &str, bytes_per_s: u64) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let name = format!("throng-proof-disk-{}", std::process::id());
        let (folder, file, rule) = if root.join("cgroup.controllers").exists() {
            std::fs::write(root.join("cgroup.subtree_control"), "+io").ok()?;
            (root.join(name), "io.max", format!("{disk} rbps={bytes_per_s}"))
        } else {
            (
                root.join("blkio").join(name),
                "blkio.throttle.read_bps_device",
                format!("{disk} {bytes_per_s}"),
            )
        };
        std::fs::create_dir(&folder).ok()?;
        let throttle = Self(folder);
        std::fs::write(throttle.0.join(file), rule).is_ok().then_some(throttle)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let until = Instant::now() + SOON;
        // A process that was killed while the disk delayed its request ends with that request.
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn readers_of_a_throttled_disk_show_as_queue_await_and_pressure() {
    const BYTES_PER_S: u64 = 4 << 20;
    const READERS: usize = 4;
    const REQUEST_BYTES: u64 = 256 << 10;
    if !requires_root() {
        return;
    }
    let disk = Loop::new(16 << 20);
    let Some(throttle) = Throttle::new(&disk.disk(), BYTES_PER_S) else {
        panic!("no control group that throttles {} can be made here", disk.disk());
    };
    let reader = format!(
        "echo $$ > {}/cgroup.procs; while :; do dd if={} of=/dev/null bs={REQUEST_BYTES} iflag=direct 2>/dev/null; done",
        throttle.0.display(),
        disk.device
    );
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            use std::os::unix::process::CommandExt;
            let mut sh = Command::new("sh");
            Held(sh.args(["-c", &reader]).process_group(0).spawn().unwrap())
        })
        .collect();
    let watched = watch(vec![Target::Pid(readers[0].0.id())]);
    let mut seen = RecordedRows::default();
    let name = disk.device.trim_start_matches("/dev/").to_owned();
    let labels = [("device", &*name)];
    let is_enough = |seen: &RecordedRows| {
        seen.samples("disk.queue", &labels)
            .last()
            .is_some_and(|last| last.0 > 8.0 && seen.samples("disk.read_await", &labels).len() > 10)
    };
    watched.until(&mut seen, SOON, "the disk", is_enough);
    for reader in &readers {
        let group = format!("-{}", reader.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    }
    let seen = watched.end(seen);
    drop(readers);
    drop(throttle);
    // Excludes the beginning, in which the throttle allows a burst.
    let mean = |metric: &str| {
        let samples = seen.samples(metric, &labels);
        let from = samples.iter().map(|(at, _)| *at).find(|at| *at > 2.0).unwrap();
        let last = samples.iter().rfind(|(_, value)| !value.is_nan()).unwrap().0;
        seen.sum(metric, &labels, from) / (last - from)
    };
    let (queue, reads, bytes) = (mean("disk.queue"), mean("disk.reads"), mean("disk.read_bytes"));
    assert!(queue > 0.5 * READERS as f64 && queue < 1.5 * READERS as f64, "{queue} wait");
    assert!((bytes / BYTES_PER_S as f64 - 1.0).abs() < 0.4, "{bytes} bytes/s of {BYTES_PER_S}");
    // Each request waits for those before it: Little's law with the throttled rate.
    let awaits = seen.samples("disk.read_await", &labels);
    let awaits: Vec<f64> =
        awaits.iter().filter(|(at, ms)| *at > 2.0 && !ms.is_nan()).map(|s| s.1).collect();
    let await_ms = awaits.iter().sum::<f64>() / awaits.len() as f64;
    let expect_ms = READERS as f64 * REQUEST_BYTES as f64 / BYTES_PER_S as f64 * 1e3;
    assert!(
        (await_ms / expect_ms - 1.0).abs() < 0.4,
        "{await_ms} ms, and {expect_ms} are to be expected"
    );
    let little = reads * await_ms / 1e3;
    assert!(
        (little / queue - 1.0).abs() < 0.35,
        "queue {queue}, but {reads} reads/s wait {await_ms} ms each"
    );
    if std::fs::read("/proc/pressure/io").is_ok() {
        let pressure = seen.max("host.pressure.io.some", &[]);
        assert!(pressure > Some(0.5), "{pressure:?} of the time a task waits for the disk");
    }
}
