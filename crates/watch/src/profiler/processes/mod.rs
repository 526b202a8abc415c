//! The tracked processes: thread names and executable mappings, updated by the kernel's records
//! when they fork, exec and end.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

pub(crate) mod image;
pub(crate) mod maps;
pub(crate) mod tree;

use super::perf::{Event, Ids, Mmap};
use super::symbols::jit;
use super::unwind::Unwinding;
use image::{Images, MappedFile};
use maps::{Mapping, MapsLine, Memory};

/// Maximum number of processes tracked at a time.
const PROCESSES_MAX: usize = 16_384;
/// Maximum number of thread names for one process.
const THREADS_MAX: usize = 65_536;
/// Maximum number of JIT maps kept open.
const JITS_MAX: usize = 256;

/// A tracked process.
pub(crate) struct Process {
    /// A unique id, because the kernel reuses PIDs.
    pub(crate) serial: u32,
    pub(crate) memory: Memory,
    pub(crate) unwinding: Unwinding,
    parent: u32,
    threads: HashMap<u32, Arc<str>>,
}

/// All tracked processes, and the files that outlive them.
pub(crate) struct TrackedProcesses {
    pub(crate) images: Images,
    /// JIT maps by the process's serial number.
    pub(crate) jits: HashMap<u32, File>,
    /// Number of processes whose mappings could not be read.
    pub(crate) unreadable: usize,
    /// Number of processes not tracked because there were too many.
    pub(crate) refused: usize,
    processes: HashMap<u32, Process>,
    follows_children: bool,
    serials: u32,
}

impl TrackedProcesses {
    pub(crate) fn new(follows_children: bool) -> Self {
        Self {
            images: Images::default(),
            jits: HashMap::new(),
            unreadable: 0,
            refused: 0,
            processes: HashMap::new(),
            follows_children,
            serials: 0,
        }
    }

    /// Tracks a running process, with its descendants if configured.
    pub(crate) fn add(&mut self, pid: u32) {
        let pids = if self.follows_children { tree::with_descendants(&[pid]) } else { vec![pid] };
        for pid in pids {
            if !self.processes.contains_key(&pid) {
                self.read(pid);
            }
        }
    }

    /// Reads a process's mappings and thread names from `/proc`.
    fn read(&mut self, pid: u32) {
        let mut memory = Memory::default();
        match std::fs::read(format!("/proc/{pid}/maps")) {
            Ok(text) => {
                let lines = text.split(|byte| *byte == b'\n').filter_map(MapsLine::parse);
                for line in lines.filter(|line| line.is_executable) {
                    let (start, end) = (line.start, line.end);
                    let mapped = MappedFile { start, end, inode: line.inode, path: line.path };
                    let backing = self.images.backing(pid, &[], &mapped);
                    memory.map(start, Mapping { end, offset: line.offset, backing });
                }
            }
            // It has ended: it will not be sampled.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => self.unreadable += 1,
        }
        let threads =
            tree::thread_names(pid).into_iter().map(|(tid, name)| (tid, name.into())).collect();
        self.insert(pid, 0, memory, threads);
    }

    fn insert(&mut self, pid: u32, parent: u32, memory: Memory, threads: HashMap<u32, Arc<str>>) {
        if self.processes.len() >= PROCESSES_MAX {
            self.refused += 1;
            return;
        }
        self.serials = self.serials.wrapping_add(1);
        let unwinding = Unwinding::default();
        self.processes
            .insert(pid, Process { serial: self.serials, memory, unwinding, parent, threads });
    }

    /// A process, and the images to which its mappings refer.
    pub(crate) fn process(&mut self, pid: u32) -> Option<(&mut Process, &mut Images)> {
        Some((self.processes.get_mut(&pid)?, &mut self.images))
    }

    /// The live processes with their PIDs.
    pub(crate) fn living(&self) -> impl Iterator<Item = (u32, &Process)> {
        self.processes.iter().map(|(pid, process)| (*pid, process))
    }

    /// Opens the process's JIT map if it has one that is not open yet.
    pub(crate) fn look_for_jit_map(&mut self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else { return };
        if self.jits.len() < JITS_MAX && !self.jits.contains_key(&process.serial) {
            self.jits.extend(jit::open(pid).map(|file| (process.serial, file)));
        }
    }

    /// The name of a thread.
    pub(crate) fn thread_name(&mut self, ids: Ids) -> Arc<str> {
        let Some(process) = self.processes.get_mut(&ids.pid) else { return Arc::from("?") };
        if let Some(name) = process.threads.get(&ids.tid) {
            return Arc::clone(name);
        }
        let name: Arc<str> =
            tree::thread_name(ids.pid, ids.tid).unwrap_or_else(|| "?".to_owned()).into();
        process.name(ids.tid, Arc::clone(&name));
        name
    }

    /// Updates the processes by a record; samples are ignored.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Fork { parent, child } => self.forked(*parent, *child),
            Event::Exit(ids) => {
                let Some(process) = self.processes.get_mut(&ids.pid) else { return };
                process.threads.remove(&ids.tid);
                if process.threads.is_empty() {
                    self.processes.remove(&ids.pid);
                }
            }
            Event::Name { ids, name, exec } => {
                let Some(process) = self.processes.get_mut(&ids.pid) else { return };
                if *exec {
                    process.memory = Memory::default();
                    process.unwinding = Unwinding::default();
                    process.threads.clear();
                    // JIT code of the earlier program does not belong to this one.
                    self.serials = self.serials.wrapping_add(1);
                    process.serial = self.serials;
                }
                process.name(ids.tid, Arc::from(name.as_str()));
            }
            Event::Mmap(ids, mmap) => self.mapped(*ids, mmap),
            Event::Sample(_) | Event::Lost(_) | Event::Throttled => {}
        }
    }

    fn forked(&mut self, parent: Ids, child: Ids) {
        let Some(process) = self.processes.get_mut(&parent.pid) else { return };
        let name = process.threads.get(&parent.tid).cloned();
        if child.pid == parent.pid {
            if let Some(name) = name {
                process.name(child.tid, name);
            }
        } else if self.follows_children {
            let memory = process.memory.clone();
            let name = name.unwrap_or_else(|| Arc::from("?"));
            self.insert(child.pid, parent.pid, memory, HashMap::from([(child.tid, name)]));
        }
    }

    fn mapped(&mut self, ids: Ids, mmap: &Mmap) {
        let Some(process) = self.processes.get_mut(&ids.pid) else { return };
        let &Mmap { start, end, offset, inode, ref path } = mmap;
        let mapped = MappedFile { start, end, inode, path };
        let backing = self.images.backing(ids.pid, &[process.parent], &mapped);
        process.memory.map(start, Mapping { end, offset, backing });
        process.unwinding = Unwinding::default();
    }
}

impl Process {
    fn name(&mut self, tid: u32, name: Arc<str>) {
        if self.threads.len() < THREADS_MAX || self.threads.contains_key(&tid) {
            self.threads.insert(tid, name);
        }
    }
}

#[cfg(test)]
mod tests;
