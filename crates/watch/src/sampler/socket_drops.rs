//! Which drops of UDP sockets are those of full receive buffers.
//!
//! The kernel counts in one figure for each socket (`sk_drops`) what found its receive buffer full,
//! what a filter (`SO_ATTACH_FILTER`) dropped, and wrong checksums (`udp_queue_rcv_one_skb` in
//! `net/ipv4/udp.c`). The viewers of throng have such a filter while a receive ring delivers:
//! thousands of drops a second that are none. For the namespace it counts the causes apart:
//! `RcvbufErrors`, `MemErrors` and `InCsumErrors`, not the filters. Where all sockets together drop
//! more than the namespace, some have filters; then only the sockets of watched processes count,
//! and none for more than the namespace.

use std::collections::HashMap;
use std::fs::File;

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

/// A namespace's open files `snmp` and `snmp6`; the latter is absent without IPv6.
#[derive(Clone, Copy)]
pub(crate) struct Counters<'a>(pub(crate) [Option<&'a File>; 2]);

impl Counters<'_> {
    /// Datagrams that the namespace dropped without a filter since it exists; `None` if that cannot
    /// be read.
    pub(super) fn dropped_without_filter(self, reader: &mut Reader) -> Option<u64> {
        let [ipv4, ipv6] = self.0;
        let counters =
            net_snmp::parse(reader.one(ipv4?).ok()?).filter(|(protocol, ..)| *protocol == b"Udp");
        let is_cause = |name: &[u8], family: usize| {
            CAUSES.iter().any(|names| names.get(family) == Some(&name))
        };
        let of_ipv4: u64 =
            counters.filter(|(_, name, _)| is_cause(name, 0)).map(|(.., count)| count).sum();
        let of_ipv6 = ipv6.and_then(|file| reader.one(file).ok()).map_or(0, |text| {
            net_snmp::parse6(text)
                .filter(|(name, _)| is_cause(name, 1))
                .map(|(_, count)| count)
                .sum()
        });
        Some(of_ipv4.saturating_add(of_ipv6))
    }
}

/// The drop counters of a namespace's sockets.
#[derive(Debug, Default)]
pub(super) struct SocketDrops {
    /// By inode: the counter, and the scan that had the socket last.
    last: HashMap<u32, (u32, u32)>,
    /// The namespace's drops without filters, read before the last scan.
    before: Option<u64>,
    scans: u32,
}

/// One scan of all sockets.
pub(super) struct Scan<'a, K> {
    drops: &'a mut SocketDrops,
    before: Option<u64>,
    grown: Vec<Grown<K>>,
}

struct Grown<K> {
    key: K,
    is_watched: bool,
    count: u64,
}

impl SocketDrops {
    /// Begins a scan; `before` is what [`Counters::dropped_without_filter`] returns immediately
    /// before it.
    pub(super) fn scan<K>(&mut self, before: Option<u64>) -> Scan<'_, K> {
        Scan { drops: self, before, grown: Vec::new() }
    }
}

impl<K: Copy> Scan<'_, K> {
    /// A socket and its drop counter; `key` is returned with what it dropped.
    pub(super) fn add(&mut self, inode: u32, drops: u32, (key, is_watched): (K, bool)) {
        if drops == 0 {
            return;
        }
        let known = self.drops.last.get(&inode).copied();
        // Drops from before the first scan do not count; a socket that is new since then counts
        // from zero.
        let before =
            known.map_or(if self.drops.scans == 0 { drops } else { 0 }, |(drops, _)| drops);
        if known.is_some() || self.drops.last.len() < SOCKETS_MAX {
            self.drops.last.insert(inode, (drops, self.drops.scans));
        }
        let count = u64::from(drops.saturating_sub(before));
        if count > 0 {
            self.grown.push(Grown { key, is_watched, count });
        }
    }

    /// What found full receive buffers since the last scan; `after` is what
    /// [`Counters::dropped_without_filter`] returns now.
    ///
    /// The namespace's counters are read before a scan and after the next one, so that they contain
    /// all that the sockets counted between.
    pub(super) fn end(self, after: Option<u64>) -> Vec<(K, u64)> {
        let Scan { drops, before, grown } = self;
        let since = std::mem::replace(&mut drops.before, before);
        let most = since.zip(after).map(|(since, after)| after.saturating_sub(since));
        // A scan under load may leave a socket out.
        let scan = drops.scans;
        drops.last.retain(|_, (_, seen)| scan.saturating_sub(*seen) < 2);
        drops.scans = scan.saturating_add(1);
        let all: u64 = grown.iter().map(|grown| grown.count).sum();
        let Some(most) = most.filter(|most| all > *most) else {
            return grown.into_iter().map(|grown| (grown.key, grown.count)).collect();
        };
        let watched = grown.into_iter().filter(|grown| grown.is_watched && most > 0);
        watched.map(|grown| (grown.key, grown.count.min(most))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scan between two readings of the namespace's counters. Sockets from 10 on are those of
    /// watched processes.
    fn scan(
        drops: &mut SocketDrops,
        counters: [u64; 2],
        sockets: &[(u32, u32)],
    ) -> Vec<(u32, u64)> {
        let mut scan = drops.scan(Some(counters[0]));
        sockets.iter().for_each(|(inode, count)| scan.add(*inode, *count, (*inode, *inode >= 10)));
        scan.end(Some(counters[1]))
    }

    #[test]
    fn what_a_filter_drops_is_no_full_buffer() {
        let mut drops = SocketDrops::default();
        assert_eq!(scan(&mut drops, [40, 40], &[(1, 30), (10, 9)]), []);
        // A ring delivers for socket 1; nothing found a full buffer.
        assert_eq!(scan(&mut drops, [40, 40], &[(1, 180), (10, 9)]), []);
        // The server's socket drops 500; the viewers' go on, each with fewer than that, together
        // with more.
        let filtered = [(1, 330), (2, 300), (3, 300), (10, 509)];
        assert_eq!(scan(&mut drops, [540, 540], &filtered), [(10, 500)]);
        // A filter of the server's own counts for no more than the namespace.
        assert_eq!(
            scan(&mut drops, [545, 545], &[(1, 480), (10, 514), (11, 90)]),
            [(10, 5), (11, 5)]
        );
        assert_eq!(scan(&mut drops, [545, 545], &[(1, 480), (10, 514), (11, 900)]), []);
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
        // A scan that missed the socket.
        assert_eq!(scan(&mut drops, [10, 10], &[]), []);
        assert_eq!(scan(&mut drops, [10, 12], &[(1, 12)]), [(1, 2)]);
    }

    #[test]
    fn without_the_namespaces_counters_all_drops_count() {
        let mut drops = SocketDrops::default();
        let mut first = drops.scan(None);
        first.add(1, 5, ((), false));
        assert_eq!(first.end(None), []);
        let mut second = drops.scan(None);
        second.add(1, 25, ((), false));
        assert_eq!(second.end(None), [((), 20)]);
    }
}
