//! Which packets to request again (RFC 4585 §6.2.1), and when.
//!
//! A missing packet is requested 10 ms after a later one arrived, so that plain reordering requests nothing; again
//! after each round trip (100 ms while it is unknown), at most 10 times. 100 ms and 10 are the values of
//! libwebrtc's `nack_requester.cc` (`kDefaultRtt`, `kMaxNackRetries`); libwebrtc requests without the 10 ms until
//! it has seen reordering. The list is bounded; when it is full the oldest packets are dropped, and a key frame is
//! needed, as in libwebrtc.

use std::collections::VecDeque;

/// How long reordering may take before a packet is requested, ms.
const REORDER_TOLERANCE_MS: u32 = 10;

/// Round trip assumed while it is unknown, ms.
const DEFAULT_ROUND_TRIP_MS: u32 = 100;

/// Least time between requests of the same packet, ms: a round trip measured on loopback would cause a storm.
const MIN_RETRY_MS: u32 = 20;

/// Most requests for one packet.
const MAX_TRIES: u8 = 10;

#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u16,
    tries: u8,
    ask_at_ms: u32,
}

/// The list of packets to request.
#[derive(Debug)]
pub struct NackList {
    missing: VecDeque<Missing>,
    missing_max: usize,
    retry_ms: u32,
    /// Lower bound of all `ask_at_ms`; `u32::MAX` when there is none.
    next_ms: u32,
    overflowed: bool,
}

impl NackList {
    /// A list of at most `missing_max` packets; 0 never requests.
    #[must_use]
    pub fn new(missing_max: usize) -> Self {
        let missing = VecDeque::new();
        Self { missing, missing_max, retry_ms: DEFAULT_ROUND_TRIP_MS, next_ms: u32::MAX, overflowed: false }
    }

    /// Sets the time before a request is repeated.
    pub fn round_trip_ms(&mut self, round_trip_ms: u32) {
        self.retry_ms = round_trip_ms.max(MIN_RETRY_MS);
    }

    /// The `count` numbers from `first` on (mod 2^16) were found missing.
    pub fn missing(&mut self, first: u16, count: u16, now_ms: u32) {
        let ask_at_ms = now_ms.saturating_add(REORDER_TOLERANCE_MS);
        let kept = usize::from(count).min(self.missing_max);
        self.overflowed |= self.missing_max > 0 && self.missing.len() + usize::from(count) > self.missing_max;
        for back in (1..=kept as u16).rev() {
            if self.missing.len() >= self.missing_max {
                self.missing.pop_front();
            }
            let sequence = first.wrapping_add(count).wrapping_sub(back);
            self.missing.push_back(Missing { sequence, tries: 0, ask_at_ms });
            self.next_ms = self.next_ms.min(ask_at_ms);
        }
    }

    /// A packet below the highest number arrived. Returns whether it had been requested.
    pub fn arrived(&mut self, sequence: u16) -> bool {
        let at = self.missing.iter().position(|m| m.sequence == sequence);
        let asked = at.and_then(|at| self.missing.remove(at)).is_some_and(|m| m.tries > 0);
        if self.missing.is_empty() {
            self.next_ms = u32::MAX;
        }
        asked
    }

    /// Appends the numbers to request now, in order; returns how many.
    pub fn take(&mut self, now_ms: u32, out: &mut Vec<u16>) -> usize {
        if now_ms < self.next_ms {
            return 0;
        }
        let before = out.len();
        let retry_at_ms = now_ms.saturating_add(self.retry_ms);
        self.missing.retain_mut(|m| {
            let due = now_ms >= m.ask_at_ms;
            if due && m.tries < MAX_TRIES {
                out.push(m.sequence);
                m.tries += 1;
                m.ask_at_ms = retry_at_ms;
                return true;
            }
            !due
        });
        self.next_ms = self.missing.iter().map(|m| m.ask_at_ms).min().unwrap_or(u32::MAX);
        out.len() - before
    }

    /// When [`Self::take`] has something to do.
    #[must_use]
    pub fn next_timeout_ms(&self) -> Option<u32> {
        (self.next_ms != u32::MAX).then_some(self.next_ms)
    }

    /// A key frame that begins with `first` was decoded: earlier packets are not needed.
    pub fn forget_before(&mut self, first: u16) {
        while self.missing.front().is_some_and(|m| first.wrapping_sub(m.sequence).cast_signed() > 0) {
            self.missing.pop_front();
        }
        if self.missing.is_empty() {
            self.next_ms = u32::MAX;
        }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.missing.clear();
        self.next_ms = u32::MAX;
        self.overflowed = false;
    }

    /// Whether packets were dropped from the full list since the previous call: they are never requested again.
    pub fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflowed)
    }

    /// Most memory outside of this struct, bytes.
    #[cfg(test)]
    pub(super) fn memory_max(&self) -> usize {
        self.missing_max * size_of::<Missing>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(list: &mut NackList, now_ms: u32) -> Vec<u16> {
        let mut out = Vec::new();
        assert_eq!(list.take(now_ms, &mut out), out.len());
        out
    }

    #[test]
    fn reordering_asks_for_nothing() {
        let mut list = NackList::new(8);
        list.missing(5, 1, 0);
        assert_eq!(list.next_timeout_ms(), Some(10));
        assert_eq!(take(&mut list, 9), [0_u16; 0]);
        assert!(!list.arrived(5), "it had not been asked for");
        assert_eq!((take(&mut list, 10), list.next_timeout_ms()), (vec![], None));
    }

    #[test]
    fn a_packet_is_asked_for_ten_times_a_round_trip_apart() {
        let mut list = NackList::new(8);
        list.missing(65535, 2, 0);
        let mut asked_at = Vec::new();
        for now_ms in 0..2000 {
            let out = take(&mut list, now_ms);
            if !out.is_empty() {
                assert_eq!(out, [65535, 0]);
                asked_at.push(now_ms);
            }
            if now_ms == 500 {
                list.round_trip_ms(30);
            }
        }
        assert_eq!(asked_at, [10, 110, 210, 310, 410, 510, 540, 570, 600, 630]);
        assert_eq!(list.next_timeout_ms(), None);
    }

    #[test]
    fn an_answer_is_known_as_one() {
        let mut list = NackList::new(8);
        list.missing(5, 3, 0);
        assert_eq!(take(&mut list, 10), [5, 6, 7]);
        assert!(list.arrived(6));
        assert!(!list.arrived(6), "only once");
        assert_eq!(take(&mut list, 110), [5, 7]);
    }

    #[test]
    fn a_key_frame_ends_the_wait_for_what_is_before_it() {
        let mut list = NackList::new(8);
        list.missing(65534, 4, 0);
        list.forget_before(1);
        assert_eq!(take(&mut list, 10), [1]);
    }

    #[test]
    fn a_full_list_keeps_the_newest_and_reports_the_drop() {
        let mut list = NackList::new(4);
        list.missing(0, 3, 0);
        assert!(!list.take_overflow());
        list.missing(10, 2, 0);
        assert!(list.take_overflow() && !list.take_overflow());
        assert_eq!(take(&mut list, 10), [1, 2, 10, 11]);
        list.missing(100, 60_000, 20);
        assert_eq!(take(&mut list, 30), [60_096, 60_097, 60_098, 60_099]);
        let mut never = NackList::new(0);
        never.missing(1, 5, 0);
        assert_eq!((take(&mut never, 100), never.take_overflow()), (vec![], false));
    }
}
