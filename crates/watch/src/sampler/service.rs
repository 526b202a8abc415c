//! What systemd says of the service whose main process ended: it ends services at limits of their
//! units. It is asked by a thread, as `systemctl` may take longer than a pass.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::task::Poll;
use std::time::{Duration, Instant};

use throng_observation::host::{Culprit, HowEnded, ProcessEvent, ServiceResult};

use crate::logs::is_unit;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(1);
/// Between two questions, while systemd has not collected the process.
const ASKS_EVERY: Duration = Duration::from_millis(50);
/// Between two looks at whether `systemctl` is done.
const LOOKS_EVERY: Duration = Duration::from_millis(5);
/// Bytes that are read of an answer, which has three short lines.
const ANSWER_BYTES_MAX: u64 = 4_096;

/// Ends of processes of one service, whose events wait for what systemd says.
#[derive(Debug)]
pub(super) struct AskedUnit {
    /// The ends.
    pub(super) ends: Vec<AskedEnd>,
    /// What was asked.
    pub(super) question: Question,
}

/// The end of a process of a service.
#[derive(Debug)]
pub(super) struct AskedEnd {
    /// When it was seen.
    pub(super) at: Instant,
    /// The process.
    pub(super) process: ProcessEvent,
    /// How it ended.
    pub(super) how: HowEnded,
}

/// Who ended the main process of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MainEnd {
    /// The main process.
    pub(super) pid: u32,
    /// Who ended it.
    pub(super) by: Culprit,
}

/// A question to systemd about a service.
#[derive(Debug)]
pub(super) struct Question {
    answer: Receiver<Option<MainEnd>>,
    until: Instant,
}

impl Question {
    /// Asks whether one of the processes `pids`, which ended, was the main one of `unit`, and who
    /// ended it.
    pub(super) fn about(unit: &str, pids: Vec<u32>) -> Option<Self> {
        Self::of("systemctl", unit, pids, WITHIN)
    }

    fn of(systemctl: &str, unit: &str, pids: Vec<u32>, within: Duration) -> Option<Self> {
        let (systemctl, unit) = (systemctl.to_owned(), unit.to_owned());
        let until = Instant::now() + within;
        let (tell, answer) = mpsc::channel();
        let work = move || {
            // Nobody listens any more if it took too long.
            let _ = tell.send(main_end(&systemctl, &unit, &pids, until));
        };
        std::thread::Builder::new().name("watch-systemd".into()).spawn(work).ok()?;
        Some(Self { answer, until })
    }

    /// Who ended the main process, as soon as that is said or the time is over.
    pub(super) fn poll(&self) -> Poll<Option<MainEnd>> {
        match self.answer.try_recv() {
            Ok(main) => Poll::Ready(main),
            Err(TryRecvError::Empty) if Instant::now() < self.until => Poll::Pending,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }

    /// The same; waits for it.
    pub(super) fn wait(&self) -> Option<MainEnd> {
        let left = self.until.saturating_duration_since(Instant::now());
        self.answer.recv_timeout(left).ok().flatten()
    }
}

/// Asks until systemd has collected the process, or the time is over.
fn main_end(systemctl: &str, unit: &str, pids: &[u32], until: Instant) -> Option<MainEnd> {
    loop {
        match result_of(&shown(systemctl, unit, until)?, pids) {
            Poll::Ready(found) => {
                let (pid, result) = found?;
                return Some(MainEnd {
                    pid,
                    by: Culprit::Service { unit: unit.to_owned(), result },
                });
            }
            Poll::Pending if Instant::now() < until => std::thread::sleep(ASKS_EVERY),
            Poll::Pending => return None,
        }
    }
}

/// What `systemctl show` prints of a unit; `None` if it fails or takes too long.
fn shown(systemctl: &str, unit: &str, until: Instant) -> Option<String> {
    let mut command = Command::new(systemctl);
    command.args(["show", "--no-pager", "--property=Result,ExecMainPID,ExecMainCode", "--", unit]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let stdout = child.stdout.take()?;
    if !succeeds(&mut child, until) {
        return None;
    }
    let mut answer = String::new();
    stdout.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Whether it ends well in time; it is killed if it does not.
fn succeeds(child: &mut Child, until: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOKS_EVERY),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// The service that a control group is of: the first part of the path that is one. Those of the
/// manager of a user are below `user@1000.service`, and the system's does not know them.
pub(super) fn unit_of(path: &str) -> Option<&str> {
    let part = path.split('/').find(|part| part.ends_with(".service"))?;
    // systemd puts `_` before names that files of the kernel could have.
    let unit = part.strip_prefix('_').unwrap_or(part);
    (is_unit(unit) && !unit.starts_with("user@")).then_some(unit)
}

/// The main process, if it is one of `pids`, and the limit by which systemd ended the service, of
/// what `systemctl show` prints; pending while it has not collected the main process. Nothing of
/// another process than the main one, as that of a service which has been started again.
fn result_of(shown: &str, pids: &[u32]) -> Poll<Option<(u32, ServiceResult)>> {
    let value =
        |key: &str| shown.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let main = value("ExecMainPID").and_then(|pid| pid.parse::<u32>().ok());
    let Some(main) = main.filter(|pid| pids.contains(pid)) else { return Poll::Ready(None) };
    if value("ExecMainCode") == Some("0") {
        return Poll::Pending;
    }
    let result = value("Result").and_then(ServiceResult::from_name);
    Poll::Ready(result.map(|result| (main, result)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_service_is_the_first_of_the_path() {
        for (path, unit) in [
            ("/system.slice/media.service", Some("media.service")),
            ("/system.slice/system-media.slice/media@1.service", Some("media@1.service")),
            ("/system.slice/docker.service/payload/x.service", Some("docker.service")),
            ("/system.slice/_cgroup.service", Some("cgroup.service")),
            ("/user.slice/user-7.slice/user@7.service/app.slice/media.service", None),
            ("/user.slice/user-7.slice/session-1.scope", None),
            ("/system.slice/-H evil.service", None),
            ("/", None),
        ] {
            assert_eq!(unit_of(path), unit, "{path}");
        }
    }

    #[test]
    fn a_result_is_that_of_the_main_process_once_it_is_collected() {
        use ServiceResult::{OutOfMemory, Timeout, Watchdog};
        for (result, code, expect) in [
            ("oom-kill", "2", Poll::Ready(Some(OutOfMemory))),
            ("watchdog", "3", Poll::Ready(Some(Watchdog))),
            ("timeout", "2", Poll::Ready(Some(Timeout))),
            // How it ended says as much.
            ("signal", "2", Poll::Ready(None)),
            ("core-dump", "3", Poll::Ready(None)),
            ("exit-code", "1", Poll::Ready(None)),
            ("success", "1", Poll::Ready(None)),
            ("success", "0", Poll::Pending),
            ("oom-kill", "0", Poll::Pending),
        ] {
            let shown = format!("Result={result}\nExecMainCode={code}\nExecMainPID=17\n");
            let expect = expect.map(|result| result.map(|result| (17, result)));
            assert_eq!(result_of(&shown, &[17]), expect, "{shown}");
            // Workers, or the process before a restart.
            assert_eq!(result_of(&shown, &[18, 19]), Poll::Ready(None), "{shown}");
            let with_workers: Vec<u32> = (10..300).collect();
            assert_eq!(result_of(&shown, &with_workers), expect, "{shown}");
        }
        assert_eq!(result_of("", &[17]), Poll::Ready(None));
    }

    /// What is known of process 17 and its workers with a `systemctl` of these lines.
    fn asked(lines: &str, within: Duration) -> Option<MainEnd> {
        let place = tempfile::tempdir().unwrap();
        let systemctl = place.path().join("systemctl");
        std::fs::write(&systemctl, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&systemctl, PermissionsExt::from_mode(0o755)).unwrap();
        let pids = (18..300).chain([17]).collect();
        let systemctl = systemctl.to_str().unwrap();
        Question::of(systemctl, "media.service", pids, within).unwrap().wait()
    }

    #[test]
    fn systemd_is_asked_until_it_has_collected_the_process_and_not_for_longer_than_it_may_take() {
        let long = Duration::from_secs(20);
        let lines = "echo Result=watchdog; echo ExecMainPID=17\nif [ -e \"$0.asked\" ]; then echo ExecMainCode=3; else echo ExecMainCode=0; : > \"$0.asked\"; fi";
        let (unit, result) = ("media.service".to_owned(), ServiceResult::Watchdog);
        let by = Culprit::Service { unit, result };
        assert_eq!(asked(lines, long), Some(MainEnd { pid: 17, by }));
        assert_eq!(asked("exit 1", long), None, "no systemd runs here");
        let began = Instant::now();
        assert_eq!(asked("exec sleep 20", Duration::from_millis(50)), None);
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}
