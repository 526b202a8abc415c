//! Commands that the watcher starts because they are to be watched, and ends with everything they started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use throng_observation::host::HostEventKind;

use crate::local::WatchError;
use crate::sampler::meter::Out;
use crate::target::Target;

/// How long a command may take to end after it was asked to.
const COMMAND_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The commands among the targets, by the targets' places. They end when the last clone goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands(Arc<Vec<(usize, Started)>>);

impl Commands {
    pub(crate) fn start(targets: &[Target]) -> Result<Self, WatchError> {
        let mut started = Vec::new();
        for (place, target) in targets.iter().enumerate() {
            if let Target::Command(words) = target {
                started.push((place, Started::start(words)?));
            }
        }
        Ok(Self(Arc::new(started)))
    }

    /// The process group of the target at this place.
    pub(crate) fn group(&self, place: usize) -> Option<u32> {
        self.0.iter().find(|(target, _)| *target == place).map(|(_, started)| started.child.id())
    }

    /// Says of each command once how it ended; `told` are the places of those that were said.
    pub(crate) fn tell_ends(&self, out: &Out, told: &mut Vec<usize>) {
        for (place, command) in self.0.iter() {
            if !told.contains(place)
                && let Some(how) = command.how_it_ended()
            {
                told.push(*place);
                out.event(Instant::now(), HostEventKind::ProcessEnded, how);
            }
        }
    }
}

/// A command that was started in a process group of its own; the whole group ends when this is dropped.
#[derive(Debug)]
struct Started {
    name: String,
    child: Child,
}

impl Started {
    fn start(words: &[String]) -> Result<Self, WatchError> {
        let fail = |error| WatchError::Start { command: words.join(" "), error };
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| fail(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty")))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).process_group(0);
        Ok(Self { name: program.clone(), child: command.spawn().map_err(fail)? })
    }

    /// A sentence on how it ended, if it has.
    fn how_it_ended(&self) -> Option<String> {
        let status = self.status()?;
        let how = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("with exit code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "for no known reason".into(),
        };
        Some(format!("the command {} (PID {}) ended {how}", self.name, self.child.id()))
    }

    /// How it ended, if it has. It is left to be waited for, so that its PID, which names the group, stays its own.
    fn status(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()?), options).ok().flatten()
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.pid() {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Also when the command itself is over: what it left behind in its group ends as well.
        self.signal(Signal::TERM);
        let until = Instant::now() + COMMAND_ENDS_WITHIN;
        while self.status().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}
