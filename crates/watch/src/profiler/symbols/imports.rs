//! Names unnamed functions by the files that import them.
//!
//! A stripped C library exports `memcpy` only as an indirect function; the chosen implementation
//! (`__memmove_avx_unaligned_erms`) has no symbol. But a caller's table, filled in by the dynamic
//! linker, has its address.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::elf;
use crate::profiler::processes::TrackedProcesses;
use crate::profiler::processes::maps::Backing;

/// Maximum number of processes examined; further ones of a server have the same tables.
const PROCESSES_MAX: usize = 8;

/// A function: the index of its image, and its virtual address in the file.
type Function = (u32, u64);

/// The names of `wanted` functions that a live process imports.
pub(super) fn name(
    wanted: &HashSet<Function>,
    tracked: &mut TrackedProcesses,
) -> HashMap<Function, Vec<u8>> {
    let mut names = HashMap::new();
    if wanted.is_empty() {
        return names;
    }
    let pids: Vec<u32> = tracked.living().map(|(pid, _)| pid).take(PROCESSES_MAX).collect();
    for pid in pids {
        if names.len() < wanted.len() {
            of_process(pid, wanted, tracked, &mut names);
        }
    }
    names
}

fn of_process(
    pid: u32,
    wanted: &HashSet<Function>,
    tracked: &mut TrackedProcesses,
    names: &mut HashMap<Function, Vec<u8>>,
) {
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else { return };
    let Some((process, images)) = tracked.process(pid) else { return };
    // Load address of each file in this process.
    let mut bases: HashMap<u32, u64> = HashMap::new();
    for (start, mapping) in process.memory.all() {
        let Backing::Image(id) = mapping.backing else { continue };
        let stated = images.get(id).and_then(|image| image.layout()?.address_of(mapping.offset));
        bases.extend(stated.map(|stated| (id, start.wrapping_sub(stated))));
    }
    let targets: HashMap<u64, Function> = wanted
        .iter()
        .filter_map(|(image, start)| {
            Some((bases.get(image)?.wrapping_add(*start), (*image, *start)))
        })
        .collect();
    if targets.is_empty() {
        return;
    }
    for (id, base) in &bases {
        let Some(file) = images.get(*id).and_then(|image| image.file.as_ref()) else { continue };
        for import in elf::imports(file) {
            let mut slot = [0; 8];
            if memory.read_exact_at(&mut slot, base.wrapping_add(import.slot)).is_err() {
                continue;
            }
            if let Some(function) = targets.get(&u64::from_ne_bytes(slot)) {
                names.entry(*function).or_insert(import.name);
            }
        }
    }
}
