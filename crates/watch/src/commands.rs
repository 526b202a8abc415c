//! Target commands: the watcher starts them and, at the end, terminates their whole process groups.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use throng_observation::host::{Culprit, HowEnded, ProcessEnd, ProcessEvent};
use throng_process::{Ended, Started, end_with_this_thread};

use crate::config::WatchError;
use crate::logs::{Drain, Output};
use crate::sampler::meter::Sink;
use crate::target::Target;

/// Time between SIGTERM and SIGKILL.
const COMMAND_ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait for the last output of a command that has ended: child processes of it may hold
/// the pipe open.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
/// How long to wait for the word of the sampler who killed a command: a few of its passes.
const KILLER_WITHIN: Duration = Duration::from_secs(3);
/// How many last lines are shown when a command fails.
const LAST_LINES_MAX: usize = 3;

/// The target commands, by the index of their target. They end when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands(Arc<Vec<(usize, StartedCommand)>>);

impl Commands {
    pub(crate) fn start(targets: &[Target]) -> Result<Self, WatchError> {
        let mut started: Vec<(usize, StartedCommand)> = Vec::new();
        for (place, target) in targets.iter().enumerate() {
            if let Target::Command(words) = target {
                let program =
                    words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
                let before = started.iter().filter(|(_, other)| other.program == program).count();
                started.push((place, StartedCommand::start(words, program, before)?));
            }
        }
        Ok(Self(Arc::new(started)))
    }

    /// Standard output and error of each command.
    pub(crate) fn outputs(&self) -> Vec<Output> {
        let drains = self.0.iter().flat_map(|(_, started)| &started.outputs);
        drains.map(|drain| drain.output().clone()).collect()
    }

    /// The process group of the target with this index.
    pub(crate) fn group(&self, place: usize) -> Option<u32> {
        self.0.iter().find(|(target, _)| *target == place).map(|(_, started)| started.child.id())
    }

    /// Notes who killed the command with this PID, as far as its control group tells.
    pub(crate) fn note_killer(&self, pid: u32, by: Option<Culprit>) {
        if let Some((_, command)) = self.0.iter().find(|(_, command)| command.child.id() == pid) {
            // The first look was nearest to the end.
            let _ = command.killer.set(by);
        }
    }

    /// Writes one event for each command that has ended; `reported` lists the targets already
    /// reported. The last time no command is waited for.
    pub(crate) fn report_exits(&self, sink: &Sink, reported: &mut Vec<usize>, is_last: bool) {
        for (place, command) in self.0.iter() {
            if !reported.contains(place)
                && let Some((at, end)) = command.end(is_last)
            {
                reported.push(*place);
                let target = u32::try_from(*place).unwrap_or(u32::MAX);
                let (name, pid) = (command.program.clone(), command.child.id());
                let detail = command.sentence(&end);
                let process = ProcessEvent { target, name, pid, end: Some(end) };
                sink.process_event(at, process, detail);
            }
        }
    }
}

/// A command in a process group of its own; dropping it ends the whole group. The kernel ends the
/// command with the thread that started it.
#[derive(Debug)]
struct StartedCommand {
    name: String,
    /// File name of the program.
    program: String,
    child: Child,
    _registered: Started,
    /// Standard error and output, in this order. They are always drained: a full pipe would block
    /// the server.
    outputs: Vec<Drain>,
    /// When its end was first noticed.
    ended_at: OnceLock<Instant>,
    /// Who killed it, once the sampler has looked.
    killer: OnceLock<Option<Culprit>>,
}

impl StartedCommand {
    /// Starts a command, on a thread that outlives what watches it; `before` counts the earlier
    /// commands of the same program.
    fn start(words: &[String], program: &str, before: usize) -> Result<Self, WatchError> {
        let named = program_of(words).to_owned();
        let fail = |error| WatchError::Start { command: named.clone(), error };
        let (name, arguments) = words.split_first().ok_or_else(|| {
            fail(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))
        })?;
        let mut command = Command::new(name);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_this_thread(&mut command, Ended::InOrder);
        let child = command.spawn().map_err(fail)?;
        let registered = Started::group(child.id());
        let (name, program) = (name.clone(), program.to_owned());
        let (outputs, ended_at, killer) = (Vec::new(), OnceLock::new(), OnceLock::new());
        let mut started =
            Self { name, program, child, _registered: registered, outputs, ended_at, killer };
        let stderr = started.child.stderr.take().map(|pipe| ("stderr", OwnedFd::from(pipe)));
        let stdout = started.child.stdout.take().map(|pipe| ("stdout", OwnedFd::from(pipe)));
        for (stream, pipe) in stderr.into_iter().chain(stdout) {
            let number = if before == 0 { String::new() } else { format!(" {}", before + 1) };
            let log = format!("{}{number} {stream}", started.program);
            started.outputs.push(Drain::start(log, pipe).map_err(fail)?);
        }
        Ok(started)
    }

    /// When it was seen to have ended, and how; with its last lines if it failed and who killed it,
    /// for which it is waited unless `is_last`.
    fn end(&self, is_last: bool) -> Option<(Instant, ProcessEnd)> {
        let how = how_ended(&self.status()?);
        let is_fault = how != HowEnded::Exit { code: 0 };
        let ended_at = self.ended_at.get_or_init(Instant::now);
        let is_read = self.outputs.iter().all(|drain| drain.output().is_over());
        if is_fault && !is_read && !is_last && ended_at.elapsed() < LAST_WORDS_WITHIN {
            return None;
        }
        let is_judged = self.killer.get().is_some() || !how.is_kill();
        if !is_judged && !is_last && ended_at.elapsed() < KILLER_WITHIN {
            return None;
        }
        let last = self.last_lines().filter(|_| is_fault);
        let killer = self.killer.get().cloned().flatten();
        let lines = last.as_ref().map_or(&[][..], |(_, lines)| lines.as_slice());
        let by = killer.or_else(|| Culprit::of(how, lines));
        let said =
            last.map(|(stream, lines)| format!("last lines on {stream}: {}", lines.join(" / ")));
        Some((*ended_at, ProcessEnd { how, by, said }))
    }

    fn sentence(&self, end: &ProcessEnd) -> String {
        let said = end.said.as_ref().map_or_else(String::new, |said| format!("; {said}"));
        // Any other culprit is known from the last lines, which follow.
        let how = if end.is_out_of_memory() { end.words() } else { end.how.words() };
        format!("the command {} (PID {}) ended {how}{said}", self.name, self.child.id())
    }

    /// Its last lines, of standard error if it wrote there.
    fn last_lines(&self) -> Option<(&'static str, Vec<String>)> {
        let of_streams = ["stderr", "stdout"].into_iter().zip(&self.outputs);
        let mut lines =
            of_streams.map(|(name, drain)| (name, drain.output().last_lines(LAST_LINES_MAX)));
        lines.find(|(_, lines)| !lines.is_empty())
    }

    /// Its exit status, if it has ended. It is not reaped here, so that its PID, which names the
    /// group, is not reused.
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

/// The program that a message may name. What follows may have secrets, also where a command is
/// written as one text, as `TOKEN=… server --key …` is.
fn program_of(words: &[String]) -> &str {
    let first = words.first().map_or("", |word| word.trim_start());
    first.split(|c: char| c.is_whitespace() || c == '=').next().unwrap_or_default()
}

fn how_ended(status: &WaitIdStatus) -> HowEnded {
    let byte = |value: i32| u8::try_from(value).ok();
    match (status.exit_status().and_then(byte), status.terminating_signal().and_then(byte)) {
        (Some(code), _) => HowEnded::Exit { code },
        (None, Some(number)) => HowEnded::Signal { number, core: status.dumped() },
        (None, None) => HowEnded::Unknown,
    }
}

impl Drop for StartedCommand {
    fn drop(&mut self) {
        // Even if the command itself has ended: processes that it left in its group end too.
        self.signal(Signal::TERM);
        let until = Instant::now() + COMMAND_ENDS_WITHIN;
        while self.status().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::host::{HostId, HostRow};

    use super::*;
    use crate::rows::rows;

    #[test]
    fn a_message_names_the_program_of_a_command_and_not_its_arguments() {
        for (words, program) in [
            (&["/not/there", "--token", "S3CRET"][..], "/not/there"),
            (&[" /not/there --token S3CRET"], "/not/there"),
            (&["TOKEN=S3CRET /not/there"], "TOKEN"),
        ] {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let said = Commands::start(&[Target::Command(words)]).unwrap_err().to_string();
            assert!(said.starts_with(&format!("cannot start `{program}`: ")), "{said}");
            assert!(!said.contains("S3CRET"), "{said}");
        }
    }

    #[test]
    fn a_command_that_was_killed_is_reported_with_who_killed_it() {
        let words = ["sh", "-c", "kill -9 $$"].map(str::to_owned).to_vec();
        let commands = Commands::start(&[Target::Command(words)]).unwrap();
        let pid = commands.group(0).unwrap();
        let (rows, received) = rows(10);
        let sink = Sink { rows, host: HostId(0), zero: Instant::now(), netns: None };
        let command = &commands.0[0].1;
        while command.status().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut reported = Vec::new();
        commands.report_exits(&sink, &mut reported, false);
        assert!(reported.is_empty(), "nobody has looked into its control group yet");
        let by = Culprit::OutOfMemory { group: "/a".into(), limit_bytes: Some(9), used_bytes: 8 };
        commands.note_killer(pid, Some(by.clone()));
        let until = Instant::now() + 2 * LAST_WORDS_WITHIN;
        while reported.is_empty() && Instant::now() < until {
            commands.report_exits(&sink, &mut reported, false);
            std::thread::sleep(Duration::from_millis(5));
        }
        let event = received.try_iter().find_map(|row| match row {
            HostRow::Event(event) => Some(event),
            _ => None,
        });
        let event = event.unwrap();
        assert_eq!(event.process.and_then(|process| process.end).and_then(|end| end.by), Some(by));
        assert!(event.detail.contains("for lack of memory"), "{}", event.detail);
    }
}
