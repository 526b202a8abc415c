//! Limits that are reached: descriptors, a CPU quota, a receive buffer, an accept queue, a disk's queue.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throng_sim::requires_root;
use throng_watch::Target;

use crate::seen::{Seen, watch};

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
    // 39 of 40: the last is left for the loader of `sleep`.
    let script = "ulimit -n 40; for i in $(seq 3 38); do eval \"exec $i</dev/null\"; done; exec sleep 60";
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null());
    let held = Held(bash.spawn().unwrap());
    let watched = watch(vec![Target::Pid(held.0.id())]);
    let mut seen = Seen::default();
    watched.until(&mut seen, SOON, "all 40 descriptors", |seen| seen.max("process.fds", &[]) >= Some(38.0));
    assert_eq!(seen.find("process.fds", &[]).next().unwrap().limit, Some(40.0));
    watched.end(seen);
}

#[test]
fn a_receiver_that_is_too_slow_shows_which_datagrams_it_lost_and_whose_they_were() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = receiver.local_addr().unwrap().port().to_string();
    let watched = watch(vec![Target::Pid(std::process::id())]);
    let mut seen = Seen::default();
    // A first look, so that what is lost after it is told.
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
    let is_told = |seen: &Seen| {
        seen.max("socket.drops", &labels) > Some(0.0) && seen.max("udp.rcvbuf_errors", &[]) > Some(0.0)
    };
    watched.until(&mut seen, SOON, "the loss", is_told);
    std::thread::sleep(Duration::from_millis(2_500));
    let seen = watched.end(seen);
    let series = seen.find("socket.drops", &labels).next().unwrap();
    assert_eq!(series.labels["pid"], pid, "{series:?}");
    // What the buffer holds was not lost; all else was.
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
    let told = seen.sum("udp.rcvbuf_errors", &[], 0.0);
    assert!(told > lost * 0.9, "{told} of {lost} were told"); // others on this host may lose further ones
}

#[test]
fn an_accept_queue_that_nobody_empties_shows_its_length_and_backlog() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let _waiting: Vec<_> =
        (0..7).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
    let watched = watch(vec![Target::Pid(std::process::id())]);
    let mut seen = Seen::default();
    let labels = [("port", &*port), ("protocol", "tcp")];
    watched.until(&mut seen, SOON, "the queue", |seen| seen.max("socket.accept_queue", &labels) == Some(7.0));
    let limit = seen.find("socket.accept_queue", &labels).next().unwrap().limit;
    assert!(limit >= Some(128.0), "{limit:?}");
    watched.end(seen);
}

/// A control group of this test's own with a CPU quota of 20 %; gone when dropped.
struct Quota(Vec<PathBuf>);

impl Quota {
    fn new() -> Option<Self> {
        let name = format!("throng-proof-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).is_ok();
        if root.join("cgroup.controllers").exists() {
            let folder = root.join(name);
            std::fs::create_dir(&folder).ok()?;
            let quota = Self(vec![folder.clone()]);
            return write(folder.join("cpu.max"), "20000 100000").then_some(quota);
        }
        let folders: Vec<_> = ["cpu", "cpuacct"].map(|controller| root.join(controller).join(&name)).into();
        for folder in &folders {
            // Where both are one hierarchy the folder is there already.
            let _ = std::fs::create_dir(folder);
        }
        let cpu = folders.first()?.clone();
        let quota = Self(folders);
        let is_set =
            write(cpu.join("cpu.cfs_period_us"), "100000") && write(cpu.join("cpu.cfs_quota_us"), "20000");
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
    if !requires_root("a_cpu_quota_shows_as_limit_and_as_throttling") {
        return;
    }
    let Some(quota) = Quota::new() else {
        panic!("no control group with a CPU quota can be made here");
    };
    let join: Vec<_> =
        quota.0.iter().map(|folder| format!("echo $$ > {}/cgroup.procs", folder.display())).collect();
    let script = format!("{}; while :; do :; done", join.join("; "));
    let watched = watch(vec![Target::Command(vec!["sh".into(), "-c".into(), script])]);
    let mut seen = Seen::default();
    let is_enough = |seen: &Seen| seen.samples("cgroup.cpu", &[]).len() >= 4;
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

/// A loop device over a file; gone when dropped.
struct Loop {
    device: String,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn new(bytes: usize) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; bytes]).unwrap();
        let losetup =
            Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file.path()).output();
        let output = losetup.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { device: String::from_utf8_lossy(&output.stdout).trim().to_owned(), _file: file }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

#[test]
fn readers_that_crowd_a_disk_show_as_queue_await_and_pressure() {
    if !requires_root("readers_that_crowd_a_disk_show_as_queue_await_and_pressure") {
        return;
    }
    let disk = Loop::new(64 << 20);
    let reader =
        format!("while :; do dd if={} of=/dev/null bs=1M iflag=direct 2>/dev/null; done", disk.device);
    let readers: Vec<_> = (0..8)
        .map(|_| {
            use std::os::unix::process::CommandExt;
            let mut sh = Command::new("sh");
            Held(sh.args(["-c", &reader]).process_group(0).spawn().unwrap())
        })
        .collect();
    let watched = watch(vec![Target::Pid(readers[0].0.id())]);
    let mut seen = Seen::default();
    let name = disk.device.trim_start_matches("/dev/").to_owned();
    let labels = [("device", &*name)];
    let is_enough = |seen: &Seen| seen.samples("disk.queue", &labels).len() > 30;
    watched.until(&mut seen, SOON, "the disk", is_enough);
    for reader in &readers {
        let group = format!("-{}", reader.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    }
    let seen = watched.end(seen);
    drop(readers);
    let mean = |metric: &str| {
        let samples = seen.samples(metric, &labels);
        let last = samples.iter().rev().take(20).map(|(_, value)| *value).filter(|v| !v.is_nan());
        last.clone().sum::<f64>() / last.count() as f64
    };
    let (queue, reads, await_ms) = (mean("disk.queue"), mean("disk.reads"), mean("disk.read_await"));
    assert!(queue > 1.0 && reads > 0.0, "queue {queue}, {reads} reads/s");
    // Little's law holds between what is told of the queue, the rate and the wait.
    let little = reads * await_ms / 1e3;
    assert!(
        (little / queue - 1.0).abs() < 0.35,
        "queue {queue}, but {reads} reads/s wait {await_ms} ms each"
    );
    let pressure = seen.max("host.pressure.io.some", &[]);
    assert!(pressure.is_none_or(|share| share > 0.05), "{pressure:?}"); // a kernel without PSI says nothing
}
