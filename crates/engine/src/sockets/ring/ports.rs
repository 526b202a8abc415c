//! Local ports of an engine thread's datagram sockets: of a range of its own, so that one filter
//! selects the thread's datagrams for its ring.

use std::ops::RangeInclusive;

/// Ports per participant: two tracks of RTSP have a pair each.
const PER_PARTICIPANT: usize = 4;

/// Fewest ports of a thread.
const PORTS_MIN: usize = 512;

/// Ports that are tried for a socket before the kernel chooses one outside the range.
const ATTEMPTS: usize = 64;

/// The range that the kernel chooses from if it does not say which (`ip_local_port_range` of
/// Linux).
const USUAL: RangeInclusive<u16> = 32_768..=60_999;

/// The ports of a thread, which are used one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalPorts {
    range: RangeInclusive<u16>,
    next: u16,
}

impl LocalPorts {
    /// The ports of thread `number` of `threads`, each with `participants`. Other processes have
    /// such ranges as well: `seed` makes it unlikely that they are the same, and ports in use are
    /// skipped.
    pub(crate) fn of_thread(number: usize, threads: usize, participants: usize, seed: u32) -> Self {
        let text =
            std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        Self::within(&parse_range(&text).unwrap_or(USUAL), (number, threads), participants, seed)
    }

    fn within(
        all: &RangeInclusive<u16>,
        (number, threads): (usize, usize),
        participants: usize,
        seed: u32,
    ) -> Self {
        let slice = all.len() / threads.max(1);
        let wanted = participants.saturating_mul(PER_PARTICIPANT).max(PORTS_MIN).min(slice).max(1);
        // Ranges begin at multiples of their length, so that those of two processes are the same or
        // apart.
        let offset = seed as usize % (slice / wanted).max(1) * wanted;
        let start = usize::from(*all.start()) + number * slice + offset;
        let start = u16::try_from(start).unwrap_or(*all.start());
        let end =
            start.saturating_add(u16::try_from(wanted - 1).unwrap_or(u16::MAX)).min(*all.end());
        Self { range: start..=end, next: start }
    }

    #[cfg(test)]
    pub(crate) fn only(range: RangeInclusive<u16>) -> Self {
        Self { next: *range.start(), range }
    }

    pub(crate) fn range(&self) -> &RangeInclusive<u16> {
        &self.range
    }

    /// The ports to try for the next socket.
    pub(crate) fn candidates(&mut self) -> impl Iterator<Item = u16> + '_ {
        std::iter::repeat_with(|| self.take()).take(ATTEMPTS)
    }

    fn take(&mut self) -> u16 {
        let port = self.next;
        self.next = if port >= *self.range.end() { *self.range.start() } else { port + 1 };
        port
    }
}

/// Two ports, as in the kernel's file.
fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut ports = text.split_ascii_whitespace().map(str::parse);
    let (first, last) = (ports.next()?.ok()?, ports.next()?.ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_ranges_of_their_own_within_the_kernels() {
        let all = 32_768..=60_999;
        for (threads, participants, seed) in
            [(1, 10, 0), (2, 300, 77), (8, 20_000, 3), (64, 1_000, u32::MAX)]
        {
            let ranges: Vec<_> = (0..threads)
                .map(|number| LocalPorts::within(&all, (number, threads), participants, seed).range)
                .collect();
            assert!(
                ranges.iter().all(|range| all.contains(range.start()) && all.contains(range.end()))
            );
            assert!(ranges.iter().all(|range| range.start() <= range.end()), "{ranges:?}");
            assert!(ranges.is_sorted_by(|one, next| one.end() < next.start()), "{ranges:?}");
        }
        assert_eq!(LocalPorts::within(&all, (0, 1), 300, 0).range.len(), 1200);
    }

    #[test]
    fn ports_are_used_in_turn_and_rubbish_leaves_the_usual_range() {
        let mut ports = LocalPorts { range: 7..=9, next: 8 };
        assert_eq!(ports.candidates().take(5).collect::<Vec<_>>(), [8, 9, 7, 8, 9]);
        assert_eq!(parse_range("32768\t60999\n"), Some(USUAL));
        for rubbish in ["", "5", "9 8", "0 9", "x y", "1 70000"] {
            assert_eq!(parse_range(rubbish), None, "{rubbish}");
        }
    }
}
