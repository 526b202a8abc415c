//! Lists processes, their descendants and their threads from `/proc`.

use std::collections::{HashMap, HashSet};

use crate::proc::stat;

/// The numeric entries of a directory in `/proc`.
fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether the process exists.
pub(crate) fn exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/stat")).exists()
}

/// The threads of a process.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The name of a thread; `None` if it has ended.
pub(crate) fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// The threads of a process with their names.
pub(crate) fn thread_names(pid: u32) -> Vec<(u32, String)> {
    threads(pid).into_iter().filter_map(|tid| Some((tid, thread_name(pid, tid)?))).collect()
}

/// All processes: PID, name, parent.
fn all() -> Vec<(u32, String, u32)> {
    let read = |pid: u32| {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = stat::parse(&text)?;
        Some((pid, String::from_utf8_lossy(stat.name).into_owned(), stat.parent))
    };
    numbers("/proc").into_iter().filter_map(read).collect()
}

/// `roots` and all their descendants.
pub fn with_descendants(roots: &[u32]) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, _, parent) in all() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = HashSet::new();
    let mut open = roots.to_vec();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable();
    found
}

/// The processes with this name (of which the kernel keeps 15 bytes) or this program file name.
pub fn named(name: &str) -> Vec<u32> {
    let short = name.get(..15).unwrap_or(name);
    let is_it = |pid: u32, comm: &str| {
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let program =
            program.as_deref().and_then(|path| path.file_name()).and_then(|name| name.to_str());
        comm == short || program == Some(name)
    };
    let me = std::process::id();
    let mut found: Vec<u32> = all()
        .into_iter()
        .filter(|(pid, comm, _)| *pid != me && is_it(*pid, comm))
        .map(|(pid, ..)| pid)
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_with_its_threads() {
        let me = std::process::id();
        assert!(with_descendants(&[me]).contains(&me));
        assert!(threads(me).contains(&me));
        assert!(thread_name(me, me).is_some());
        assert_eq!(thread_name(me, u32::MAX), None);
    }
}
