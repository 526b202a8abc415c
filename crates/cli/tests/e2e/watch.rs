//! `throng watch`: by itself, as an agent, and on the host of a real Janus.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throng_observation::host::HostData;
use throng_sim::janus::{self, Janus};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::HostFile;

use crate::throng::{Running, THRONG, plain};

/// The integral of a metric over the series that `is_it`, from the first sample to the last.
fn sum(host: &HostData, metric: &str, from_s: f64, to_s: f64, is_it: impl Fn(&str) -> bool) -> f64 {
    let of = |series: &&throng_observation::host::HostSeries| {
        series.metric == metric && series.labels.get("process").is_some_and(|name| is_it(name))
    };
    let mut total = 0.0;
    for series in host.series.iter().filter(of) {
        let samples: Vec<_> =
            host.samples.iter().filter(|sample| sample.series == series.id).collect();
        for pair in samples.windows(2) {
            let (from, to) =
                (pair[0].at.as_secs_f64().max(from_s), pair[1].at.as_secs_f64().min(to_s));
            if !pair[1].value.is_nan() && to > from {
                total += (to - from) * pair[1].value;
            }
        }
    }
    total
}

/// CPU seconds of the threads of a process and of the process itself, between two readings: the
/// first after `from_s` and the last before `to_s`. Threads are read in the same pass.
pub(crate) fn threads_and_process(
    host: &HostData,
    name: &str,
    from_s: f64,
    to_s: f64,
) -> (f64, f64) {
    let is_its = |id| {
        let label = |s: &throng_observation::host::HostSeries| {
            s.labels.get("process").is_some_and(|of| of == name)
        };
        host.series.iter().any(|s| s.id == id && s.metric == "process.cpu" && label(s))
    };
    let read =
        host.samples.iter().filter(|sample| is_its(sample.series)).map(|s| s.at.as_secs_f64());
    let read: Vec<f64> = read.filter(|at| (from_s..to_s).contains(at)).collect();
    let (from, to) = (read[0], read[read.len() - 1]);
    assert!(to - from > (to_s - from_s) / 2.0, "{read:?}");
    let cpu = |metric| sum(host, metric, from, to, |of| of == name);
    (cpu("thread.cpu"), cpu("process.cpu"))
}

#[test]
fn the_threads_of_a_real_janus_are_named_and_sum_to_its_process() {
    if !requires_root() {
        return;
    }
    let address = Ipv4Addr::new(10, 74, 1, 1);
    let namespace = Namespace::with_veth("watch-janus", address).unwrap();
    let server = Janus::start(&namespace, address).unwrap();
    let _feed = server.feed().unwrap();
    let target = format!("janus+ws://127.0.0.1:{}/streaming/{}", janus::PORT, janus::H264);
    let mut viewers = Running::start(
        Some(&namespace),
        &["view", &target, "-n", "8", "--every", "100ms", "--for", "16s", "--quiet"],
    );
    viewers.when_playing(8);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.db");
    let pid = server.pid().to_string();
    let said =
        plain(&["watch", "--pid", &pid, "--for", "10s", "--quiet", "-o", file.to_str().unwrap()]);
    let table = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{table}{}", String::from_utf8_lossy(&said.stderr));
    viewers.wait();
    let host = HostFile::read(&file).unwrap().host;
    let names: Vec<_> = host
        .series
        .iter()
        .filter(|series| series.metric == "thread.cpu")
        .filter_map(|series| series.labels.get("thread"))
        .collect();
    assert!(names.iter().any(|name| name.starts_with("hloop")), "{names:?}\n{table}");
    let (threads, process) = threads_and_process(&host, "janus", 1.5, 9.5);
    assert!(process > 0.05, "Janus did nothing: {process} s\n{table}");
    // Two percent, and at both ends the tick in which the kernel counts a process's time.
    assert!(
        (threads - process).abs() < 0.02 * process + 0.02,
        "threads {threads} s, process {process} s\n{table}"
    );
}

/// An agent that ends with the test.
struct Agent {
    child: Child,
    address: String,
    token: String,
}

impl Agent {
    fn start() -> Self {
        let mut command = Command::new(THRONG);
        command.args(["watch", "--listen", "0", "--allow-load", "8188", "--", "sleep", "60"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut find = |key: &str| loop {
            let line = lines.next().unwrap().unwrap();
            if let Some(value) = line.trim().strip_prefix(key) {
                break value.trim().to_owned();
            }
        };
        let address = find("agent").trim_start_matches("tls://").to_owned();
        let token = find("token");
        assert_eq!(find("fingerprint").len(), 64);
        assert!(address.starts_with("127.0.0.1:"), "a port alone is of this machine: {address}");
        Self { child, address, token }
    }

    fn peak_resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

#[test]
fn an_agent_under_a_flood_stays_up_and_small() {
    let mut agent = Agent::start();
    assert_eq!(agent.token.len(), 32);
    let mut held = Vec::new();
    for round in 0..300_u32 {
        if let Ok(mut stream) = TcpStream::connect(&agent.address) {
            let _ = stream.write_all(&vec![round as u8; 32 * 1024]);
            held.push(stream);
        }
    }
    assert!(agent.child.try_wait().unwrap().is_none(), "the agent is gone");
    let peak = agent.peak_resident_kib();
    assert!(peak < 48 * 1024, "the flood took {peak} KiB");
}

#[test]
fn what_cannot_be_watched_is_said_before_anything_begins() {
    for (args, word) in [
        (&["watch", "--port", "0"][..], "1 to 65535"),
        (&["watch", "--pid", "4194305"], "no process with PID"),
        (&["watch", "--for", "x"], "--for"),
        (&["watch", "--listen", "0.0.0.0:0", "--no-tls"], "not a loopback address"),
        (&["watch", "--listen", "127.0.0.1:0", "--token", "short"], "16 characters"),
        (&["watch", "--listen", "127.0.0.1"], "write a port, such as"),
        (&["watch", "--allow-load", "1"], "--listen"),
    ] {
        let said = plain(args);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && text.contains(word), "{args:?}: {text}");
    }
}

#[test]
fn a_process_whose_name_is_a_command_of_the_terminal_is_shown_as_text() {
    // Clears the screen, sets the clipboard (OSC 52), and begins a line of its own.
    let names = [r"\033[2J\033[41m", r"\033]52;c;eA==\007", r"a\r\nFORGED"];
    let watch = |name: &str| {
        let script = format!("printf '{name}' > /proc/$$/comm; while :; do sleep 0.2; done");
        plain(&[
            "watch", "--plain", "--every", "500ms", "--for", "6s", "--", "/bin/sh", "-c", &script,
        ])
    };
    let watched = std::thread::scope(|scope| {
        names.map(|name| scope.spawn(move || watch(name))).map(|watched| watched.join().unwrap())
    });
    for watched in watched {
        let said = [&watched.stdout[..], &watched.stderr[..]].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(watched.status.success() && said.contains("PID"), "{said}");
        let harmful = said.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(harmful, None, "{said:?}");
        assert!(!said.lines().any(|line| line.starts_with("FORGED")), "{said}");
        assert!(
            said.contains(r"\u{1b}") || said.contains(r"a\r\nFORGED"),
            "its name is shown:\n{said}"
        );
    }
}

/// `throng watch` with a command that runs `first`, and the number of that command.
fn watching(first: &str) -> (Child, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("{first}; echo $$ > {}; while :; do sleep 0.1; done", file.display());
    let mut command = Command::new(THRONG);
    command.args(["watch", "--plain", "--for", "60s", "--", "/bin/sh", "-c", &script]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let watching = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let pid = loop {
        match std::fs::read_to_string(&file) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => assert!(Instant::now() < until, "it was not started"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    (watching, pid)
}

/// It is gone, or waits for somebody who asks how it ended.
fn ends(pid: &str) {
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(5);
    while !stat().is_empty() && !stat().contains(") Z ") && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(stat().is_empty() || stat().contains(") Z "), "{}", stat());
}

/// The second signal does not wait, and drops nothing.
#[test]
fn a_second_signal_leaves_nothing_of_what_was_started() {
    let (mut watching, pid) = watching("trap '' INT TERM");
    for _ in 0..2 {
        let sent = Command::new("kill").args(["-INT", &watching.id().to_string()]).status();
        assert!(sent.unwrap().success());
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(watching.wait().unwrap().code(), Some(130));
    ends(&pid);
}

#[test]
fn a_watched_command_ends_with_a_throng_that_is_killed() {
    let (mut watching, pid) = watching(":");
    watching.kill().unwrap();
    watching.wait().unwrap();
    ends(&pid);
}
