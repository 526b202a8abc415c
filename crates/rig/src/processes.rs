//! Ending processes, also those that left their process group: everything that a marked process
//! starts inherits the mark.

use std::fs;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process, kill_process_group};

/// How often the end of a process is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An environment variable by which all processes of one server are found, whatever group or
/// session they moved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// The variable's name.
    pub const VARIABLE: &'static str = "THRONG_RIG";

    /// A mark; `text` is unique on this machine.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The processes that have it, with their names.
    #[must_use]
    pub fn processes(&self) -> Vec<(u32, String)> {
        let wanted = format!("{}={}", Self::VARIABLE, self.0);
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| *pid != std::process::id())
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
            })
            .map(|pid| {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                (pid, name.trim().to_owned())
            })
            .collect()
    }

    /// The processes of this user that run this program and do not show what they have: one with
    /// capabilities of its file shows it only to who has them too.
    pub(crate) fn hidden() -> Vec<(u32, String)> {
        let own = fs::read_to_string("/proc/self/comm").unwrap_or_default().trim().to_owned();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        // A program with capabilities of its file may not open its own environment either.
        let is_another = |pid: &u32| *pid != std::process::id();
        let is_denied = |pid: &u32| {
            let read = fs::read(format!("/proc/{pid}/environ"));
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        };
        let name = |pid: u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            is_of(&status, &own, getuid().as_raw()).then(|| (pid, own.clone()))
        };
        pids.filter(is_another).filter(is_denied).filter_map(name).collect()
    }

    /// Waits until no process has it, at most `within`.
    pub(crate) fn wait_until_gone(&self, within: Duration) {
        let give_up_at = Instant::now() + within;
        while Instant::now() < give_up_at && !self.processes().is_empty() {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Kills the processes that have it until there are none, and returns which there were.
    #[must_use]
    pub fn kill_all(&self, within: Duration) -> Vec<(u32, String)> {
        let give_up_at = Instant::now() + within;
        let mut killed: Vec<(u32, String)> = Vec::new();
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() >= give_up_at {
                return killed;
            }
            for process in left {
                kill(process.0);
                if !killed.contains(&process) {
                    killed.push(process);
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Whether a process with this `/proc/PID/status` has this name, was started by this user, and
/// lives: one that has ended, and whose parent has not asked how, shows its environment to root
/// alone.
fn is_of(status: &str, name: &str, user: u32) -> bool {
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let real = field("Uid:").and_then(|uids| uids.split_whitespace().next()?.parse().ok());
    let has_ended = field("State:").is_some_and(|state| state.starts_with(['Z', 'X']));
    field("Name:") == Some(name) && real == Some(user) && !has_ended
}

/// Sends SIGKILL.
pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Sends `signal` to the process group of `child`.
pub(crate) fn signal_group(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process_group(group, signal);
    }
}

/// Sends a signal (`SIGINT`, `SIGQUIT`, `SIGUSR1`, else SIGTERM) to a child alone.
pub fn signal_process(child: &Child, signal: &str) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process(pid, signal_named(signal));
    }
}

/// Waits for the end of `child`; `None` if it does not end in time.
pub(crate) fn wait(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let give_up_at = Instant::now() + within;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= give_up_at {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Asks the process group of `child` to end by `signal`, and kills it if it has not ended `within`
/// that time. Returns its status, and whether it had to be killed.
pub fn end_process(
    child: &mut Child,
    signal: &str,
    within: Duration,
) -> (Option<ExitStatus>, bool) {
    if let Ok(Some(status)) = child.try_wait() {
        return (Some(status), false);
    }
    signal_group(child, signal_named(signal));
    if let Some(status) = wait(child, within) {
        return (Some(status), false);
    }
    signal_group(child, Signal::KILL);
    (child.wait().ok(), true)
}

fn signal_named(name: &str) -> Signal {
    match name {
        "SIGINT" => Signal::INT,
        "SIGQUIT" => Signal::QUIT,
        "SIGUSR1" => Signal::USR1,
        _ => Signal::TERM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_name_and_who_started_it() {
        let status = "Name:\tthrong\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t7\t7\t7\t7\n";
        assert!(is_of(status, "throng", 1000));
        assert!(!is_of(status, "ssh-agent", 1000) && !is_of(status, "throng", 0));
        assert!(!is_of("", "throng", 0));
        assert!(is_of(&format!("{status}State:\tS (sleeping)\n"), "throng", 1000));
        assert!(!is_of(&format!("{status}State:\tZ (zombie)\n"), "throng", 1000));
    }
}
