//! The browser's processes: a process group that ends with this process, and its CPU use.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use throng_process::{Ended, Started, end_with_this_thread};

use crate::BrowserError;

/// Descriptor from which `--remote-debugging-pipe` reads its commands.
const COMMANDS_FD: RawFd = 3;
/// Descriptor to which it writes its responses.
const ANSWERS_FD: RawFd = 4;
/// Above both, so that neither is overwritten before it is copied.
const SAFE_FD: RawFd = 10;
/// Time to end after SIGTERM.
const ENDING: Duration = Duration::from_secs(2);

/// A process group whose leader is the browser; all of it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    leader: Child,
    _registered: Started,
}

impl ProcessGroup {
    /// Starts `command` with `commands` and `answers` at the descriptors that the browser expects.
    /// The kernel ends it with the calling thread, also after `kill -9`.
    pub(crate) fn start(
        command: &mut Command,
        commands: &impl AsRawFd,
        answers: &impl AsRawFd,
    ) -> Result<Self, BrowserError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let (commands, answers) = (commands.as_raw_fd(), answers.as_raw_fd());
        // A terminal's Ctrl-C must not reach the browser; this process ends it.
        command.process_group(0);
        // First, because the descriptors below may be that by which the child reports an error.
        end_with_this_thread(command, Ended::AtOnce);
        let before_exec = move || {
            // SAFETY: only system calls that signal-safety(7) allows between fork and exec; they
            // take numbers and touch no memory of this process. Both descriptors are open until
            // `spawn` below returns.
            unsafe {
                let commands = checked(libc::fcntl(commands, libc::F_DUPFD_CLOEXEC, SAFE_FD))?;
                let answers = checked(libc::fcntl(answers, libc::F_DUPFD_CLOEXEC, SAFE_FD))?;
                checked(libc::dup2(commands, COMMANDS_FD))?;
                checked(libc::dup2(answers, ANSWERS_FD)).map(drop)
            }
        };
        // SAFETY: the closure allocates nothing and takes no locks, see above.
        unsafe { command.pre_exec(before_exec) };
        let leader = command.spawn().map_err(|error| BrowserError::Start { program, error })?;
        let registered = Started::group(leader.id());
        Ok(Self { leader, _registered: registered })
    }

    /// The id of the group and of its leader.
    pub(crate) fn id(&self) -> u32 {
        self.leader.id()
    }

    fn signal(&self, signal: libc::c_int) {
        if let Ok(group) = i32::try_from(self.leader.id()) {
            // SAFETY: kill only sends a signal, to the group of a child that nobody has waited for.
            unsafe { libc::kill(-group, signal) };
        }
    }

    /// Whether its leader has ended. It is not waited for: until then its id, and so the group's,
    /// is given to no other process.
    fn has_ended(&self) -> bool {
        // SAFETY: all zeroes is a valid siginfo_t.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is a whole siginfo_t that lives through the call.
        let done = unsafe { libc::waitid(libc::P_PID, self.leader.id(), &raw mut info, how) };
        // There is no such child, or it has ended; of one that runs waitid(2) says nothing.
        done != 0 || info.si_signo == libc::SIGCHLD
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // SIGTERM first, so that it ends its own children; then SIGKILL for the whole group.
        self.signal(libc::SIGTERM);
        let until = Instant::now() + ENDING;
        while !self.has_ended() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(libc::SIGKILL);
        let _ = self.leader.wait();
    }
}

fn checked(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}

/// CPU time that the living processes of group `id` have used, microseconds (user + system).
pub(crate) fn cpu_us(id: u32) -> u64 {
    // SAFETY: sysconf has no preconditions.
    let ticks_per_s =
        u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(0).max(1);
    let stats =
        std::fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten().filter_map(|entry| {
            let is_process =
                entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
            std::fs::read_to_string(entry.path().join("stat")).ok().filter(|_| is_process)
        });
    let ticks: u64 = stats.filter_map(|stat| ticks_of(&stat, id)).sum();
    ticks.saturating_mul(1_000_000) / ticks_per_s
}

/// utime + stime (fields 14 and 15) of a `/proc/PID/stat` whose pgrp (field 5) is `group`;
/// proc_pid_stat(5).
fn ticks_of(stat: &str, group: u32) -> Option<u64> {
    // The name (field 2) may hold anything, also parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    (number(5)? == u64::from(group)).then_some(number(14)?.saturating_add(number(15)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_group_is_no_other_process_s_until_the_group_was_killed() {
        let (answers, commands) = std::io::pipe().unwrap();
        // A leader that leaves a process behind.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 300 &"]);
        let group = ProcessGroup::start(&mut command, &answers, &commands).unwrap();
        let leader = Path::new("/proc").join(group.id().to_string());
        let until = Instant::now() + Duration::from_secs(10);
        while !group.has_ended() {
            assert!(Instant::now() < until, "the leader does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(group.has_ended() && leader.exists(), "nobody has waited for it");
        drop((answers, commands));
        drop(group);
        assert!(!leader.exists());
    }

    #[test]
    fn processes_of_the_group_are_counted_whatever_their_name_is() {
        let stat = "4711 (a ) b (c) S 1 4700 4700 0 -1 4194560 1 0 0 0 230 17 0 0 20 0 1 0";
        for (text, group, expect) in [
            (stat, 4700, Some(247)),
            (stat, 4711, None),
            ("4711 (chromium) S 1 4700", 4700, None),
            ("", 0, None),
            ("1 (x) S 1 -1 1 0 -1 0 1 0 0 0 1 1", 1, None),
        ] {
            assert_eq!(ticks_of(text, group), expect, "{text}");
        }
    }
}
