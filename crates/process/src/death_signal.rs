//! The kernel ends a child with the thread that started it (`PR_SET_PDEATHSIG`, prctl(2)).

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, getppid, set_parent_process_death_signal as set_death_signal,
};

/// How a process is ended whose parent died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By SIGTERM: it puts in order what it has.
    InOrder,
    /// By SIGKILL.
    AtOnce,
}

impl Ended {
    fn signal(self) -> Signal {
        match self {
            Self::InOrder => Signal::TERM,
            Self::AtOnce => Signal::KILL,
        }
    }
}

/// Makes the kernel end `command`, once it runs, with the thread that starts it: also after `kill
/// -9` of this process. A program with capabilities of its file, or that changes its user, loses
/// this at exec.
pub fn end_with_this_thread(command: &mut Command, how: Ended) {
    end_with(command, how.signal(), getpid());
}

fn end_with(command: &mut Command, signal: Signal, parent: Pid) {
    let ask = move || -> std::io::Result<()> {
        set_death_signal(Some(signal))?;
        // A parent that died before that line sends nothing any more.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec only two system calls are made, on values that were copied
    // before; nothing is allocated, and no lock is taken.
    unsafe {
        command.pre_exec(ask);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        for (how, signal) in [(Ended::InOrder, 15), (Ended::AtOnce, 9)] {
            let starts = move || {
                let mut command = Command::new("sleep");
                command.arg("100");
                end_with_this_thread(&mut command, how);
                command.spawn().unwrap()
            };
            let mut child = std::thread::spawn(starts).join().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(signal), "{how:?}");
        }
    }

    #[test]
    fn a_child_whose_parent_has_died_before_it_asked_does_not_start() {
        // Nobody's child has its own number for a parent.
        let other = Pid::from_raw(i32::MAX).unwrap();
        let mut command = Command::new("true");
        end_with(&mut command, Signal::KILL, other);
        let error = command.spawn().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::SRCH.raw_os_error()));
    }
}
