//! Which drops of UDP sockets are those of full receive buffers.
//!
//! The kernel counts in one figure for each socket (`sk_drops`) what found its receive buffer full, what a filter (`SO_ATTACH_FILTER`)
//! dropped, and wrong checksums (`udp_queue_rcv_one_skb` in `net/ipv4/udp.c`). The viewers of throng have such a filter while a receive
//! ring delivers: thousands of drops a second that are none. For the namespace it counts the causes apart: `RcvbufErrors`,
//! `MemErrors` and `InCsumErrors`, not the filters. A socket that drops more than the namespace has a filter.

use std::collections::{HashMap, HashSet};

use super::files::Reader;
use crate::proc::net_snmp;

/// Maximum number of sockets whose counters are kept.
const SOCKETS_MAX: usize = 65_536;
/// Counters of datagrams that a socket drops without a filter, in `snmp` and `snmp6`.
const CAUSES: [[&[u8]; 2]; 3] = [
    [b"RcvbufErrors", b"Udp6RcvbufErrors"],
    [b"MemErrors", b"Udp6MemErrors"],
    [b"InCsumErrors", b"Udp6InCsumErrors"],
];

/// Datagrams that the namespace of `pid` dropped without a filter since it exists; `None` if that cannot be read.
pub(super) fn without_filters(reader: &mut Reader, pid: u32) -> Option<u64> {
    let ipv4 = reader.path_one(&format!("/proc/{pid}/net/snmp")).ok()?;
    let counters = net_snmp::parse(ipv4).filter(|(protocol, ..)| *protocol == b"Udp");
    let mut sum: u64 = counters
        .filter(|(_, name, _)| CAUSES.iter().any(|[v4, _]| v4 == name))
        .map(|(.., count)| count)
        .sum();
    // Absent without IPv6.
    if let Ok(ipv6) = reader.path_one(&format!("/proc/{pid}/net/snmp6")) {
        let counters = net_snmp::parse6(ipv6).filter(|(name, _)| CAUSES.iter().any(|[_, v6]| v6 == name));
        sum = sum.saturating_add(counters.map(|(_, count)| count).sum());
    }
    Some(sum)
}

/// The drop counters of a namespace's sockets.
#[derive(Debug, Default)]
pub(super) struct SocketDrops {
    /// By inode.
    last: HashMap<u32, Counted>,
    /// The namespace's drops without filters, read before the last scan.
    before: Option<u64>,
    is_scanned: bool,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    drops: u32,
    has_filter: bool,
}

/// One scan of all sockets.
pub(super) struct Scan<'a, K> {
    drops: &'a mut SocketDrops,
    before: Option<u64>,
    alive: HashSet<u32>,
    grown: Vec<Grown<K>>,
}

struct Grown<K> {
    inode: u32,
    key: K,
    count: u64,
}

impl SocketDrops {
    /// Begins a scan; `before` is what [`without_filters`] returns immediately before it.
    pub(super) fn scan<K>(&mut self, before: Option<u64>) -> Scan<'_, K> {
        Scan { drops: self, before, alive: HashSet::new(), grown: Vec::new() }
    }
}

impl<K: Copy> Scan<'_, K> {
    /// A socket and its drop counter; `key` is returned with what it dropped.
    pub(super) fn add(&mut self, inode: u32, drops: u32, key: K) {
        if drops == 0 {
            return;
        }
        let known = self.drops.last.get(&inode).copied();
        // Drops from before the first scan do not count; a socket that is new since then counts from zero.
        let before = known.map_or(if self.drops.is_scanned { 0 } else { drops }, |known| known.drops);
        if known.is_some() || self.drops.last.len() < SOCKETS_MAX {
            let has_filter = known.is_some_and(|known| known.has_filter);
            self.drops.last.insert(inode, Counted { drops, has_filter });
            self.alive.insert(inode);
        }
        let count = u64::from(drops.saturating_sub(before));
        if count > 0 {
            self.grown.push(Grown { inode, key, count });
        }
    }

    /// What the sockets without a filter dropped since the last scan; `after` is what [`without_filters`] returns now.
    ///
    /// The namespace's counters are read before a scan and after the next one, so that they contain all that the sockets counted between.
    pub(super) fn end(self, after: Option<u64>) -> Vec<(K, u64)> {
        let Scan { drops, before, alive, grown } = self;
        let since = std::mem::replace(&mut drops.before, before);
        let most = since.zip(after).map(|(since, after)| after.saturating_sub(since));
        drops.is_scanned = true;
        let mut counted = Vec::new();
        for Grown { inode, key, count } in grown {
            let Some(known) = drops.last.get_mut(&inode) else { continue };
            known.has_filter |= most.is_some_and(|most| count > most);
            if !known.has_filter {
                counted.push((key, count));
            }
        }
        drops.last.retain(|inode, _| alive.contains(inode));
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scan between two readings of the namespace's counters.
    fn scan(drops: &mut SocketDrops, counters: [u64; 2], sockets: &[(u32, u32)]) -> Vec<(u32, u64)> {
        let mut scan = drops.scan(Some(counters[0]));
        sockets.iter().for_each(|(inode, count)| scan.add(*inode, *count, *inode));
        scan.end(Some(counters[1]))
    }

    #[test]
    fn what_a_filter_drops_is_no_full_buffer() {
        let mut drops = SocketDrops::default();
        assert_eq!(scan(&mut drops, [40, 40], &[(1, 30), (2, 9)]), []);
        // A ring delivers for socket 1; nothing found a full buffer.
        assert_eq!(scan(&mut drops, [40, 40], &[(1, 180), (2, 9)]), []);
        // The server's socket 2 drops 500; socket 1 goes on, with fewer than that.
        assert_eq!(scan(&mut drops, [540, 540], &[(1, 330), (2, 509)]), [(2, 500)]);
        // A new socket that drops more than the whole namespace.
        assert_eq!(scan(&mut drops, [545, 545], &[(1, 480), (2, 514), (3, 150)]), [(2, 5)]);
    }

    #[test]
    fn a_drop_between_the_counters_and_the_sockets_is_counted() {
        let mut drops = SocketDrops::default();
        assert_eq!(scan(&mut drops, [0, 0], &[]), []);
        // Dropped after the sockets were read, before the counters were.
        assert_eq!(scan(&mut drops, [0, 7], &[]), []);
        assert_eq!(scan(&mut drops, [7, 7], &[(1, 7)]), [(1, 7)]);
        // Dropped after the counters were read, before the sockets were.
        assert_eq!(scan(&mut drops, [7, 10], &[(1, 10)]), [(1, 3)]);
        assert_eq!(scan(&mut drops, [10, 10], &[(1, 10)]), []);
    }

    #[test]
    fn without_the_namespaces_counters_all_drops_count() {
        let mut drops = SocketDrops::default();
        let mut first = drops.scan(None);
        first.add(1, 5, ());
        assert_eq!(first.end(None), []);
        let mut second = drops.scan(None);
        second.add(1, 25, ());
        assert_eq!(second.end(None), [((), 20)]);
    }
}
