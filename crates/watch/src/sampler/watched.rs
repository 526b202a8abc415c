//! Which processes are watched: those of the targets that run.

use std::sync::PoisonError;
use std::time::Instant;

use throng_observation::host::HostEventKind;

use super::Sampler;
use super::files::{HELP_DESCRIPTORS, HELP_RIGHTS, is_out_of_descriptors};
use super::process::Process;
use super::threads::is_gone;
use crate::config::WatchedProcess;
use crate::discovery::{TargetProcess, what_it_runs};

/// Maximum number of watched processes; the rest are reported and left out.
const PROCESSES_MAX: usize = 1024;

impl Sampler {
    pub(super) fn find(&mut self) {
        let processes = &self.processes;
        let found = self.finder.find(
            &mut self.reader,
            &mut self.dir,
            |pid| processes.get(&pid).map(|process| (process.target, process.with_descendants)),
            |target| processes.values().any(|process| process.target == target),
        );
        match found {
            Ok(found) => found.into_iter().for_each(|new| self.watch(new)),
            Err(error) => {
                let help = "mount it where the watcher runs";
                self.failures.report(&self.sink, "/proc", &error.to_string(), help);
            }
        }
        self.report_missing();
    }

    fn watch(&mut self, new: TargetProcess) {
        if self.processes.len() >= PROCESSES_MAX {
            let what = format!("processes beyond {PROCESSES_MAX}");
            let (why, help) = ("there are too many", "watch a narrower target");
            return self.failures.report(&self.sink, &what, why, help);
        }
        let opened = Process::open(new, &self.sink, &mut self.reader, &mut self.failures);
        match opened {
            Ok(process) => {
                let runs = what_it_runs(&mut self.reader, new.pid).unwrap_or_default();
                let detail = format!("{} (PID {}): {runs}", process.name, new.pid);
                let detail = detail.trim_end_matches([':', ' ']);
                self.add_process_facts(&process);
                let found = process.event(None);
                self.processes.insert(new.pid, process);
                // Who reads the event may look for the process.
                self.publish_processes();
                self.sink.process_event(Instant::now(), found, detail);
            }
            Err(error) if is_gone(&error) => {}
            Err(error) => {
                let (what, help) = match is_out_of_descriptors(&error) {
                    true => ("further processes".to_owned(), HELP_DESCRIPTORS),
                    false => (format!("PID {}", new.pid), HELP_RIGHTS),
                };
                self.failures.report(&self.sink, &what, &error.to_string(), help);
            }
        }
    }

    /// Reports once for each target that none of its processes runs.
    fn report_missing(&mut self) {
        for (place, missing) in self.missing.iter_mut().enumerate() {
            let is_served = self.processes.values().any(|process| process.target == place);
            if !is_served && !*missing {
                let Some(target) = self.finder.targets().get(place) else { continue };
                let help = if target.is_followed() {
                    "it is watched once it starts"
                } else {
                    "it is not followed"
                };
                let detail =
                    format!("{target}: no such process runs, or it is not visible; {help}");
                self.sink.event(Instant::now(), HostEventKind::Unreadable, detail);
            }
            *missing = !is_served;
        }
    }

    pub(super) fn publish_processes(&self) {
        let shared_processes = self.processes.values().map(|process| WatchedProcess {
            pid: process.pid,
            name: process.name.to_string(),
            target: process.target,
        });
        *self.shared_processes.lock().unwrap_or_else(PoisonError::into_inner) =
            shared_processes.collect();
    }
}
