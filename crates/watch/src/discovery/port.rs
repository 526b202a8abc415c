//! Finds the processes that hold a port: by the sockets bound to it, in every network namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::other_thread;
use crate::proc::net_sockets::{self, TCP_LISTEN};
use crate::proc::scan;
use crate::sampler::files::Reader;

/// Maximum number of processes that are searched.
const PROCESSES_MAX: usize = 65_536;

/// The processes that listen on TCP `port` or are bound to UDP `port`. Processes of other users are
/// visible only to root.
pub(crate) fn holders(reader: &mut Reader, port: u16) -> Vec<u32> {
    let mut by_namespace: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    for pid in processes() {
        // If the link may not be read, the descriptors may not either.
        if let Some(link) = namespace(pid) {
            by_namespace.entry(link.as_os_str().as_bytes().to_vec()).or_default().push(pid);
        }
    }
    let mut holders = Vec::new();
    for pids in by_namespace.values() {
        let Some(inodes) = pids.iter().find_map(|pid| bound(reader, *pid, port)) else { continue };
        if !inodes.is_empty() {
            holders.extend(
                pids.iter().copied().filter(|pid| holds(*pid, |inode| inodes.contains(&inode))),
            );
        }
    }
    holders
}

/// The network namespace of a process; of its other threads where its main thread has ended.
fn namespace(pid: u32) -> Option<PathBuf> {
    match std::fs::read_link(format!("/proc/{pid}/ns/net")) {
        Ok(link) => Some(link),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::read_link(format!("{}/ns/net", other_thread(pid)?)).ok()
        }
        Err(_) => None,
    }
}

/// All processes.
fn processes() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.take(PROCESSES_MAX).collect()
}

/// The inodes of the sockets bound to `port` in the namespace of `pid`; `None` when the process has
/// ended.
fn bound(reader: &mut Reader, pid: u32, port: u16) -> Option<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    let mut is_there = false;
    for (file, is_tcp) in [("tcp", true), ("tcp6", true), ("udp", false), ("udp6", false)] {
        let Ok(text) = reader.path(&format!("/proc/{pid}/net/{file}")) else { continue };
        is_there = true;
        let is_bound = |socket: &net_sockets::Socket| {
            socket.port == port && (!is_tcp || socket.state == TCP_LISTEN) && socket.inode != 0
        };
        inodes.extend(net_sockets::parse(text).filter(is_bound).map(|socket| socket.inode));
    }
    is_there.then_some(inodes)
}

/// Whether a process has an open socket for which `is_wanted` holds.
fn holds(pid: u32, is_wanted: impl Fn(u64) -> bool) -> bool {
    socket_inodes(pid).any(is_wanted)
}

/// The inodes of a process's open sockets; empty when they may not be read.
pub(crate) fn socket_inodes(pid: u32) -> impl Iterator<Item = u64> {
    let entries = |folder: &str| std::fs::read_dir(format!("{folder}/fd")).into_iter().flatten();
    let mut of_main = entries(&format!("/proc/{pid}")).peekable();
    // A process whose main thread has ended has them by its other threads.
    let other = of_main.peek().is_none().then(|| other_thread(pid)).flatten();
    let of_other = other.into_iter().flat_map(move |folder| entries(&folder));
    of_main
        .chain(of_other)
        .filter_map(|entry| socket_inode(&std::fs::read_link(entry.ok()?.path()).ok()?))
}

/// `socket:[4711]`.
fn socket_inode(link: &Path) -> Option<u64> {
    scan::number(link.as_os_str().as_bytes().strip_prefix(b"socket:[")?.strip_suffix(b"]")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_port_is_found_by_its_socket() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut reader = Reader::new();
        assert_eq!(holders(&mut reader, port), [std::process::id()]);
        drop(listener);
        assert!(holders(&mut reader, port).is_empty());
    }

    #[test]
    fn only_links_of_sockets_are_sockets() {
        for (link, expect) in
            [("socket:[4711]", Some(4711)), ("pipe:[1]", None), ("socket:[x]", None), ("/a", None)]
        {
            assert_eq!(socket_inode(Path::new(link)), expect);
        }
    }
}
