//! The ends of watched processes: how and by whom, as far as kernel and systemd tell.

use std::task::Poll;
use std::time::Instant;

use throng_observation::host::{Culprit, HowEnded, ProcessEnd, ProcessEvent};

use super::process::Process;
use super::service::{AskedEnd, AskedUnit, MainEnd, Question, unit_of};
use super::{Sampler, cgroup};

/// Services about which systemd is asked at a time, each by a thread.
const ASKED_MAX: usize = 8;

impl Sampler {
    /// A process was seen to have ended. If the kernel does not say how while its parent has not
    /// reaped it, it is asked once more in the next pass.
    pub(super) fn ended(&mut self, pid: u32, how: HowEnded) {
        let Some(process) = self.processes.remove(&pid) else { return };
        let how = process.how_ended(how);
        let is_first_look = process.ended_by.set(self.killed_for_memory(&process, how)).is_ok();
        let is_asked_again =
            is_first_look && how == HowEnded::Unknown && process.is_zombie(&mut self.reader);
        self.processes.insert(pid, process);
        if !is_asked_again {
            self.remove(pid, how);
        }
    }

    pub(super) fn remove(&mut self, pid: u32, how: HowEnded) {
        let Some(mut process) = self.processes.remove(&pid) else { return };
        self.publish_processes();
        self.report_end(&process, how);
        self.thread_budget += process.end(&self.sink);
        self.nets.iter_mut().for_each(|net| net.sockets.end(&self.sink, pid));
        self.finder.forget(pid);
        if let Some(missing) = self.missing.get_mut(process.target) {
            *missing = false;
        }
    }

    /// Writes an event about the end of a process, with how it ended and who ended it as far as the
    /// kernel tells.
    fn report_end(&mut self, process: &Process, how: HowEnded) {
        let how = process.how_ended(how);
        let may_be_killed = how.is_kill() || how == HowEnded::Unknown;
        let seen_by = process.ended_by.get().cloned().flatten().filter(|_| may_be_killed);
        let by = seen_by
            .or_else(|| self.killed_for_memory(process, how))
            .or_else(|| self.logged_by_kernel(process, how));
        // The command itself is reported by who started it, with its last lines.
        if how != HowEnded::Replaced && self.finder.is_command(process.pid) {
            return self.commands.note_killer(process.pid, by);
        }
        let (at, end) = (Instant::now(), ProcessEnd::new(how));
        let end = ProcessEnd { by: by.or(end.by), ..end };
        match unit_to_ask(process, &end) {
            Some(unit) => {
                let asked = AskedEnd { at, process: process.event(None), how };
                self.to_ask.entry(unit.to_owned()).or_default().push(asked);
            }
            None => self.tell_end(at, process.event(None), end),
        }
    }

    /// Asks systemd about the ends that wait for it, once for each service.
    pub(super) fn ask(&mut self) {
        for (unit, ends) in std::mem::take(&mut self.to_ask) {
            let pids = ends.iter().map(|end| end.process.pid).collect();
            let has_room = self.asked.len() < ASKED_MAX;
            match has_room.then(|| Question::about(&unit, pids)).flatten() {
                Some(question) => self.asked.push(AskedUnit { ends, question }),
                None => self.tell_answered(ends, None),
            }
        }
    }

    /// Tells the ends of which systemd has said who it was, or had its time to say it.
    pub(super) fn tell_asked(&mut self) {
        for asked in std::mem::take(&mut self.asked) {
            match asked.question.poll() {
                Poll::Pending => self.asked.push(asked),
                Poll::Ready(main) => self.tell_answered(asked.ends, main.as_ref()),
            }
        }
    }

    pub(super) fn tell_answered(&self, ends: Vec<AskedEnd>, main: Option<&MainEnd>) {
        for AskedEnd { at, process, how } in ends {
            let by = main.filter(|main| main.pid == process.pid).map(|main| main.by.clone());
            self.tell_end(at, process, ProcessEnd { by, ..ProcessEnd::new(how) });
        }
    }

    fn tell_end(&self, at: Instant, process: ProcessEvent, end: ProcessEnd) {
        let detail = match end.how {
            HowEnded::Exit { .. } | HowEnded::Signal { .. } => {
                format!(": it ended {}", end.words())
            }
            HowEnded::Replaced => ": it executed another program".into(),
            HowEnded::Unknown => {
                end.by.as_ref().map_or_else(String::new, |by| format!(": {}", by.words()))
            }
        };
        let detail = format!("{}{detail}", process.label());
        self.sink.process_event(at, ProcessEvent { end: Some(end), ..process }, detail);
    }

    /// The control group of a process that the kernel may have killed for lack of memory, if it
    /// counted a kill there of late.
    fn killed_for_memory(&mut self, process: &Process, how: HowEnded) -> Option<Culprit> {
        let may_be_it = how.is_kill() || how == HowEnded::Unknown;
        let path = process.cgroup.as_deref().filter(|_| may_be_it)?;
        cgroup::killer(&self.cgroups, path, &mut self.reader)
    }

    /// Who ended it, where the kernel has logged that.
    fn logged_by_kernel(&mut self, process: &Process, how: HowEnded) -> Option<Culprit> {
        let now = Instant::now();
        self.kernel_log.read(now);
        let thread_name = |tid: u32| process.threads.name_of(tid);
        self.kernel_log.culprit((process.pid, &*process.name), how, now, thread_name)
    }
}

/// The service of which systemd is asked about an end that nothing else explains.
fn unit_to_ask<'a>(process: &'a Process, end: &ProcessEnd) -> Option<&'a str> {
    let is_explained =
        end.by.is_some() || end.how == HowEnded::Replaced || end.how.exit_code() == Some(0);
    unit_of(process.cgroup.as_deref().filter(|_| !is_explained)?)
}
