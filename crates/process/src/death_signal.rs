//! The kernel ends a child with the thread that started it (`PR_SET_PDEATHSIG`, prctl(2)).

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, getppid, set_dumpable_behavior,
    set_parent_process_death_signal as set_death_signal, test_kill_process,
};

/// The variable by which a throng that another one started knows the number of that.
const PARENT_VARIABLE: &str = "THRONG_PARENT";

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
/// this at exec: a throng is started by [`end_throng_with_this_thread`].
pub fn end_with_this_thread(command: &mut Command, how: Ended) {
    end_with(command, how.signal(), getpid());
}

/// The same for a `command` that is a throng, which asks once more by [`end_with_parent`]: throng
/// may have capabilities of its file (CAP_NET_RAW for receive rings).
pub fn end_throng_with_this_thread(command: &mut Command, how: Ended) {
    command.env(PARENT_VARIABLE, getpid().as_raw_nonzero().to_string());
    end_with_this_thread(command, how);
}

/// Makes the kernel end this process, by SIGTERM, with the throng that started it, if one did by
/// [`end_throng_with_this_thread`]; and lets others with its rights look at it, which the kernel
/// refuses of a program with capabilities of its file: by its environment it is found if it is
/// left.
///
/// # Errors
/// If that throng has died already.
pub fn end_with_parent() -> std::io::Result<()> {
    // Who has fewer capabilities still sees nothing (ptrace(2), PTRACE_MODE_READ). Where it is
    // refused, it is only not found.
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    let named = std::env::var(PARENT_VARIABLE).ok().and_then(|text| text.parse().ok());
    let Some(named) = named.and_then(Pid::from_raw) else { return Ok(()) };
    set_death_signal(Some(Signal::TERM))?;
    // Looked at after that line: a parent that died before it sends nothing.
    match place(named, getppid(), test_kill_process(named) != Err(Errno::SRCH)) {
        Place::Child => Ok(()),
        Place::Below => Ok(set_death_signal(None)?),
        Place::Orphan => Err(Errno::SRCH.into()),
    }
}

/// Where a process is that has the variable, which all that it starts inherit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is what was started.
    Child,
    /// One of those that started it was: its own parent ends it.
    Below,
    /// The throng that is named is gone.
    Orphan,
}

fn place(named: Pid, parent: Option<Pid>, lives: bool) -> Place {
    if parent == Some(named) {
        Place::Child
    } else if lives {
        Place::Below
    } else {
        Place::Orphan
    }
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
    fn a_throng_that_asks_itself_knows_whether_its_parent_lives() {
        let (named, other) = (getpid(), Pid::from_raw(i32::MAX).unwrap());
        for (parent, lives, expect) in [
            (Some(named), true, Place::Child),
            (Some(other), true, Place::Below),
            (Some(other), false, Place::Orphan),
            (None, false, Place::Orphan),
        ] {
            assert_eq!(place(named, parent, lives), expect, "{parent:?} {lives}");
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
