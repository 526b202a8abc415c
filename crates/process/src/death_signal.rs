//! The kernel ends a child with the thread that started it (`PR_SET_PDEATHSIG`).
//!
//! What a process asked for is kept when it executes a program, except one that changes its user or
//! group or has capabilities of its file, and is not inherited by what it forks (prctl(2)). So a
//! throng, which may have such capabilities, asks once more for what its parent asked for it; and
//! one that something else started, such as a server of a rig, keeps what that asked for.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, getppid, set_dumpable_behavior,
    set_parent_process_death_signal as set_death_signal, test_kill_process,
};

use crate::stat::Stat;

/// The variable by which a throng that another one started knows the number of that, and how it is
/// to end with it: `4711 KILL`.
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

    fn name(self) -> &'static str {
        match self {
            Self::InOrder => "TERM",
            Self::AtOnce => "KILL",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::InOrder, Self::AtOnce].into_iter().find(|how| how.name() == name)
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
    command.env(PARENT_VARIABLE, format!("{} {}", getpid().as_raw_pid(), how.name()));
    end_with_this_thread(command, how);
}

/// Makes the kernel end this process with the throng that started it, if one did by
/// [`end_throng_with_this_thread`], and as that said; and lets others with its rights look at it,
/// which the kernel refuses of a program with capabilities of its file: by its environment it is
/// found if it is left.
///
/// # Errors
/// If that throng has died already.
pub fn end_with_parent() -> io::Result<()> {
    // Who has fewer capabilities still sees nothing (ptrace(2), PTRACE_MODE_READ). Where it is
    // refused, it is only not found.
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    let parent = std::env::var(PARENT_VARIABLE).ok();
    match parent.as_deref().and_then(parsed) {
        Some((named, how)) => end_with_named(named, how),
        None => Ok(()),
    }
}

/// Of the variable's text.
fn parsed(text: &str) -> Option<(Pid, Ended)> {
    let (number, how) = text.split_once(' ')?;
    let number = i32::try_from(number.parse::<u32>().ok()?).ok()?;
    Some((Pid::from_raw(number)?, Ended::named(how)?))
}

fn end_with_named(named: Pid, how: Ended) -> io::Result<()> {
    match place(named, getppid(), lives(named)) {
        Place::Child => {
            set_death_signal(Some(how.signal()))?;
            // A parent that died before that line sends nothing any more.
            if getppid() == Some(named) { Ok(()) } else { Err(Errno::SRCH.into()) }
        }
        // What its own parent asked for is not this one's to change.
        Place::Below => Ok(()),
        Place::Orphan => Err(Errno::SRCH.into()),
    }
}

/// One that was killed and that nobody has waited for has a number still.
fn lives(named: Pid) -> bool {
    let stat = u32::try_from(named.as_raw_pid()).ok().and_then(Stat::of);
    // Where others are hidden (proc(5), hidepid) a signal tells.
    stat.map_or_else(|| test_kill_process(named) != Err(Errno::SRCH), |stat| !stat.is_zombie)
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
    let ask = move || -> io::Result<()> {
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

    use rustix::process::{
        WaitId, WaitIdOptions, parent_process_death_signal as death_signal, waitid,
    };

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

    /// Of the thread of a test, which has one of its own.
    fn with_death_signal(before: Option<Signal>, then: impl FnOnce()) -> Option<Signal> {
        set_death_signal(before).unwrap();
        then();
        let after = death_signal().unwrap();
        set_death_signal(None).unwrap();
        after
    }

    #[test]
    fn a_throng_asks_for_what_its_parent_asked_for_it() {
        for (how, signal) in [(Ended::InOrder, Signal::TERM), (Ended::AtOnce, Signal::KILL)] {
            let mut command = Command::new("throng");
            end_throng_with_this_thread(&mut command, how);
            let (_, text) = command.get_envs().find(|(name, _)| *name == PARENT_VARIABLE).unwrap();
            let text = text.unwrap().to_str().unwrap();
            assert_eq!(parsed(text), Some((getpid(), how)), "{text}");
            let parent = getppid().unwrap();
            let asks = || end_with_named(parent, how).unwrap();
            assert_eq!(with_death_signal(None, asks), Some(signal), "{how:?}");
        }
        for text in ["", "4711", "4711 9", "0 TERM", "-7 TERM", "x TERM", "4711 TERM "] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn what_another_parent_asked_for_stays() {
        // This process lives and is not its own parent.
        let asks = || end_with_named(getpid(), Ended::InOrder).unwrap();
        assert_eq!(with_death_signal(Some(Signal::KILL), asks), Some(Signal::KILL));
        assert_eq!(with_death_signal(None, asks), None);
    }

    #[test]
    fn a_parent_that_was_killed_and_not_waited_for_does_not_live() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let named = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(lives(named));
        child.kill().unwrap();
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(named), ended).unwrap();
        assert!(!lives(named) && test_kill_process(named).is_ok());
        assert!(end_with_named(named, Ended::InOrder).is_err(), "it does not outlive it");
        child.wait().unwrap();
        assert!(!lives(named));
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
