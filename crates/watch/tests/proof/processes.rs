//! Processes that start, end, fork, or cannot be read.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throng_observation::host::HostEventKind::{ProcessEnded, ProcessFound, Unreadable};
use throng_observation::host::HowEnded;
use throng_watch::{LocalHost, Target, WatchConfig, WatchError};

use crate::recorded::{RecordedRows, watch};

const SOON: Duration = Duration::from_secs(10);

/// A process under a name of this test's own: a copy of `sleep`.
struct Named {
    folder: tempfile::TempDir,
    name: String,
}

impl Named {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("{name}{}", std::process::id() % 10_000);
        std::fs::copy("/bin/sleep", folder.path().join(&name)).unwrap();
        Self { folder, name }
    }

    fn start(&self) -> Child {
        Command::new(self.folder.path().join(&self.name)).arg("60").spawn().unwrap()
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_process_is_followed_by_its_name_when_it_restarts() {
    let named = Named::new("tw-follow");
    let watched = watch(vec![Target::Process(named.name.clone())]);
    let mut seen = RecordedRows::default();
    watched.until(&mut seen, SOON, "its absence", |seen| seen.said(Unreadable, "no such process"));
    let first = named.start();
    let found =
        |pid: u32| move |seen: &RecordedRows| seen.said(ProcessFound, &format!("(PID {pid})"));
    watched.until(&mut seen, SOON, "the first", found(first.id()));
    watched.until(&mut seen, SOON, "its memory", |seen| seen.max("process.rss", &[]).is_some());
    let gone = format!("(PID {})", first.id());
    kill(first);
    watched.until(&mut seen, SOON, "the end of the first", |seen| seen.said(ProcessEnded, &gone));
    let second = named.start();
    watched.until(&mut seen, SOON, "the second", found(second.id()));
    assert_eq!(watched.watching.processes().len(), 1);
    kill(second);
    let seen = watched.end(seen);
    let rss = seen.samples("process.rss", &[("process", &*named.name)]);
    assert!(
        rss.iter().any(|(_, value)| value.is_nan()),
        "the series of a process that ended ends: {rss:?}"
    );
}

#[test]
fn a_process_whose_main_thread_has_ended_is_watched() {
    // exit(2) ends the thread that calls it, `exit_group` all of them.
    let script = "import ctypes, platform, threading, time
threading.Thread(target=lambda: time.sleep(60)).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)";
    let started = Command::new("/usr/bin/python3").args(["-c", script]).spawn();
    let Ok(child) = started else {
        return throng_sim::skipped("there is no /usr/bin/python3");
    };
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let until = std::time::Instant::now() + SOON;
    while !stat().contains(") Z ") {
        assert!(std::time::Instant::now() < until, "{}", stat());
        std::thread::sleep(Duration::from_millis(10));
    }
    let watched = watch(vec![Target::Pid(child.id())]);
    let mut seen = RecordedRows::default();
    watched.until(&mut seen, SOON, "its memory", |seen| {
        seen.max("process.rss", &[]).is_some_and(|bytes| bytes > 1e6)
    });
    assert!(!seen.said(ProcessEnded, ""), "it goes on");
    let gone = format!("(PID {})", child.id());
    kill(child);
    watched.until(&mut seen, SOON, "its end", |seen| seen.said(ProcessEnded, &gone));
    watched.end(seen);
}

#[test]
fn a_command_is_started_with_its_children_and_all_of_them_end_with_the_watcher() {
    let named = Named::new("tw-child");
    let child = named.folder.path().join(&named.name);
    let script = format!("{} 60 & echo started; wait", child.display());
    let watched = watch(vec![Target::Command(vec!["sh".into(), "-c".into(), script])]);
    let mut seen = RecordedRows::default();
    let its_name = format!("{} (PID", named.name);
    watched.until(&mut seen, SOON, "the child", |seen| seen.said(ProcessFound, &its_name));
    let processes = watched.watching.processes();
    assert_eq!(processes.len(), 2, "{processes:?}");
    watched.end(seen);
    // After a kill the kernel may take a moment to end it.
    let goes_on = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    let until = std::time::Instant::now() + SOON;
    for process in processes {
        while goes_on(process.pid) {
            assert!(std::time::Instant::now() < until, "{process:?} still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn the_exit_of_a_command_is_reported() {
    let watched = watch(vec![Target::Command(["sh", "-c", "exit 3"].map(String::from).to_vec())]);
    let mut seen = RecordedRows::default();
    watched.until(&mut seen, SOON, "the exit code", |seen| seen.said(ProcessEnded, "exit code 3"));
    let seen = watched.end(seen);
    let ends: Vec<_> = seen.events.iter().filter(|event| event.kind == ProcessEnded).collect();
    assert_eq!(ends.len(), 1, "one end, one event: {ends:?}");
    assert_eq!(how(&seen), Some(HowEnded::Exit { code: 3 }));
}

/// How the process of the first end ended.
fn how(seen: &RecordedRows) -> Option<HowEnded> {
    let mut ends = seen.events.iter().filter(|event| event.kind == ProcessEnded);
    Some(ends.next()?.process.as_ref()?.end.as_ref()?.how)
}

#[test]
fn an_end_just_before_the_watch_stops_is_seen_with_its_signal() {
    let named = Named::new("tw-last");
    let watched = watch(vec![Target::Process(named.name.clone())]);
    let mut seen = RecordedRows::default();
    let child = named.start();
    let found = format!("(PID {})", child.id());
    watched.until(&mut seen, SOON, "the process", |seen| seen.said(ProcessFound, &found));
    kill(child);
    let seen = watched.end(seen);
    let Some(how) = how(&seen) else { panic!("no end: {:?}", seen.events) };
    // Before Linux 6.15 the status of a process that its parent has reaped is lost.
    assert!(matches!(how, HowEnded::Signal { number: 9, .. } | HowEnded::Unknown), "{how:?}");
}

#[test]
fn a_port_leads_to_the_process_that_listens_on_it() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let watched = watch(vec![Target::Port(listener.local_addr().unwrap().port())]);
    let mut seen = RecordedRows::default();
    let own = format!("(PID {})", std::process::id());
    watched.until(&mut seen, SOON, "this process", |seen| seen.said(ProcessFound, &own));
    watched.end(seen);
}

#[test]
fn a_target_that_cannot_be_watched_is_a_named_error() {
    let open =
        |target| LocalHost::open(WatchConfig { targets: vec![target], ..WatchConfig::default() });
    let nobody = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let pid = nobody.id();
    nobody.wait_with_output().unwrap();
    assert!(matches!(open(Target::Pid(pid)), Err(WatchError::NoProcess(p)) if p == pid));
    let error = open(Target::Command(vec!["/no/such/server".into()])).unwrap_err();
    assert!(error.to_string().contains("/no/such/server"), "{error}");
    let config = WatchConfig { period: Duration::ZERO, ..WatchConfig::default() };
    assert!(matches!(LocalHost::open(config), Err(WatchError::Period(_))));
}

#[test]
fn threads_by_the_thousand_come_and_go() {
    let watched = watch(vec![Target::Pid(std::process::id())]);
    let mut seen = RecordedRows::default();
    watched
        .until(&mut seen, SOON, "this process", |seen| seen.max("process.threads", &[]).is_some());
    let threads = |seen: &RecordedRows| {
        seen.samples("process.threads", &[]).last().map_or(0.0, |(_, value)| *value)
    };
    for _ in 0..2 {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let held = std::sync::Arc::new(std::sync::Mutex::new(held));
        let crowd: Vec<_> = (0..1_000)
            .map(|_| {
                let held = held.clone();
                std::thread::Builder::new()
                    .stack_size(64 * 1024)
                    .spawn(move || drop(held.lock()))
                    .unwrap()
            })
            .collect();
        drop(hold);
        crowd.into_iter().for_each(|thread| thread.join().unwrap());
    }
    // Unchanged values are not repeated; any series shows that the watcher continues.
    let before = watched.zero.elapsed().as_secs_f64();
    watched.until(&mut seen, SOON, "another pass", |seen| seen.last_at() > before);
    assert!(threads(&seen) > 0.0);
    watched.end(seen);
}
