//! The process groups that this process has started and not ended yet.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::stat::Stat;

/// Time between SIGTERM and SIGKILL: whoever asks twice does not want to wait.
const ENDS_WITHIN: Duration = Duration::from_millis(500);
/// When SIGTERM is sent once more: a throng counts the first with what its parent asked before.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How often their end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

static GROUPS: Mutex<Vec<Group>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<Group>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process group, by its leader.
#[derive(Debug)]
struct Group {
    /// Its place in the registry.
    key: u64,
    leader: u32,
    started_ticks: Option<u64>,
}

impl Group {
    /// Whether its leader lives.
    fn lives(&self) -> bool {
        Stat::of(self.leader)
            .is_some_and(|now| Some(now.started_ticks) == self.started_ticks && !now.is_zombie)
    }

    fn signal(&self, signal: Signal) {
        // The kernel gives the number of a group to nobody while the group has members; without
        // any it may be that of another process by now.
        let is_another =
            Stat::of(self.leader).is_some_and(|now| Some(now.started_ticks) != self.started_ticks);
        if let Some(group) = i32::try_from(self.leader).ok().and_then(Pid::from_raw)
            && !is_another
        {
            // It may have ended already.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// A process group in the registry, until this is dropped: whoever started it ends it then.
#[derive(Debug)]
#[must_use = "it leaves the registry when this is dropped"]
pub struct Started {
    key: u64,
}

impl Started {
    /// The group whose leader is `leader`, a child of this process.
    pub fn group(leader: u32) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = NEXT.fetch_add(1, Relaxed);
        let started_ticks = Stat::of(leader).map(|stat| stat.started_ticks);
        groups().push(Group { key, leader, started_ticks });
        Self { key }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        groups().retain(|group| group.key != self.key);
    }
}

/// Empties the registry: SIGTERM twice, and SIGKILL half a second later.
pub fn end_all() {
    end_all_within(ASKED_AGAIN_AFTER, ENDS_WITHIN);
}

/// The same with another time before the second SIGTERM, and from the first one to SIGKILL.
pub fn end_all_within(asked_again_after: Duration, ends_within: Duration) {
    let all = std::mem::take(&mut *groups());
    let began = Instant::now();
    for waited_for in [asked_again_after, ends_within] {
        all.iter().for_each(|group| group.signal(Signal::TERM));
        while all.iter().any(Group::lives) && began.elapsed() < waited_for {
            std::thread::sleep(LOOK_EVERY);
        }
    }
    all.iter().for_each(|group| group.signal(Signal::KILL));
}

/// Calls [`end_all`] when it is dropped: at the end of `main`, also by a panic.
#[derive(Debug)]
pub struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        end_all();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::*;

    /// What began at another time is not what was started: the kernel gives numbers again.
    #[test]
    fn another_process_with_the_number_of_a_group_gets_no_signal() {
        let mut child = Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
        let (leader, own) = (child.id(), Stat::of(child.id()).unwrap().started_ticks);
        let of = |ticks| Group { key: 0, leader, started_ticks: Some(ticks) };
        of(own.wrapping_sub(1)).signal(Signal::TERM);
        of(own).signal(Signal::KILL);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
