//! Keeps reading a server's sources, and adds packs as further processes start.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use throng_observation::pack::Pack;

use super::SourceReaders;
use crate::background::BackgroundThread;
use crate::local::WatchedProcesses;
use crate::reading::ReadingWriter;
use crate::{Target, packs};

/// How often to check for new processes.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// How often to retry sources that could not be read.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// How many process names are remembered as looked up.
const CHECKED_MAX: usize = 1024;

/// The handle of a server's running sources, from
/// [`SourceConfig::begin`](super::SourceConfig::begin). Dropping it ends them.
#[derive(Debug)]
pub struct SourceWatch {
    /// The packs chosen at the start.
    pub packs: Vec<Pack>,
    /// Configured sources that cannot be used; all others are read. These are events of the run
    /// too.
    pub problems: Vec<String>,
    changes: Receiver<Vec<Pack>>,
    // Dropped in this order: the thread ends when the sender is gone.
    _stop: Sender<()>,
    _thread: Option<BackgroundThread>,
}

impl SourceWatch {
    /// Continues reading on a thread of its own, and adds packs when further processes start.
    pub(super) fn follow(
        packs: Vec<Pack>,
        mut problems: Vec<String>,
        (mut readers, mut choice, processes): (SourceReaders, Choice, WatchedProcesses),
        writer: ReadingWriter,
    ) -> Self {
        let ((sender, changes), (stop, stopped)) = (mpsc::channel(), mpsc::channel::<()>());
        let thread = BackgroundThread::spawn("watch-sources", move || {
            let _cost = writer.charge();
            let mut retry_at = Instant::now() + RETRY_EVERY;
            while matches!(stopped.recv_timeout(CHECK_EVERY), Err(RecvTimeoutError::Timeout)) {
                if choice.add_processes(&processes) {
                    let packs = choice.packs();
                    readers.set_packs(packs.clone());
                    // The receiver may be gone.
                    let _ = sender.send(packs);
                }
                if Instant::now() >= retry_at {
                    readers.retry();
                    retry_at = Instant::now() + RETRY_EVERY;
                }
            }
            readers.stop();
        });
        if let Err(error) = &thread {
            problems.push(format!("its logs and endpoints are not read: {error}"));
        }
        Self { packs, problems, changes, _stop: stop, _thread: thread.ok() }
    }

    /// The packs, if they have changed since the last call.
    #[must_use]
    pub fn changed_packs(&self) -> Option<Vec<Pack>> {
        self.changes.try_iter().last()
    }

    /// Stops all readers after they have read what is already there. Dropping it does the same.
    pub fn stop(self) {
        drop(self);
    }
}

/// Chooses the packs of a server by its target and by every process that the target ever had: packs
/// are not removed when a process ends.
pub(super) struct Choice {
    all: Vec<Pack>,
    /// The pack that the user named; it overrides the choice by process names.
    named: Option<String>,
    /// Process names by which packs were chosen; at most one for each pack.
    names: Vec<String>,
    chosen: BTreeSet<String>,
    /// Process names already looked up.
    checked: BTreeSet<String>,
}

impl Choice {
    pub(super) fn new(all: &[Pack], named: Option<&str>, targets: &[Target]) -> Self {
        let (names, chosen, checked) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut choice =
            Self { all: all.to_vec(), named: named.map(str::to_owned), names, chosen, checked };
        for target in targets {
            choice.add(match target {
                Target::Process(name) => name,
                Target::Unit(name) => name.trim_end_matches(".service"),
                Target::Command(words) => {
                    words.first().and_then(|word| word.rsplit('/').next()).unwrap_or("")
                }
                Target::Cgroup(_) | Target::Pid(_) | Target::Port(_) => continue,
            });
        }
        choice
    }

    /// Looks at the current processes; returns whether they add packs.
    pub(super) fn add_processes(&mut self, processes: &WatchedProcesses) -> bool {
        let before = self.names.len();
        processes.now().iter().for_each(|process| self.add(&process.name));
        self.names.len() > before && self.named.is_none()
    }

    fn add(&mut self, name: &str) {
        if self.checked.contains(name) {
            return;
        }
        if self.checked.len() >= CHECKED_MAX {
            self.checked.clear();
        }
        self.checked.insert(name.to_owned());
        // Packs for any server (`*`) are used anyway.
        let is_of = |pack: &&Pack| {
            pack.is_of_process(name) && pack.processes.iter().all(|glob| glob != "*")
        };
        let its = self.all.iter().filter(is_of).map(|pack| pack.pack.clone());
        let before = self.chosen.len();
        self.chosen.extend(its);
        if self.chosen.len() > before {
            self.names.push(name.to_owned());
        }
    }

    pub(super) fn packs(&self) -> Vec<Pack> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        packs::of_server(&self.all, self.named.as_deref(), &names)
    }
}
