//! Which packets to request again (RFC 4585 §6.2.1), and when.
//!
//! A missing packet is requested 10 ms after a later one arrived, so that plain reordering requests
//! nothing; again after each 100 ms, at most 10 times. 100 ms and 10 are the values of libwebrtc's
//! `nack_requester.cc` (`kDefaultRtt`, `kMaxNackRetries`). It replaces the 100 ms by the round trip
//! where it knows one: not in a browser that only receives on the connection, because only a sender
//! measures it, from the reports on what it sends. It requests without the 10 ms until it has seen
//! reordering. The list is bounded; when it is full the oldest packets are dropped, and a key frame
//! is needed, as in libwebrtc.
//!
//! Times of arrival decide, not those at which the packets are passed on: a packet that arrives
//! after its request was due is requested, even where both become known at once. So it makes no
//! difference for the first request how often a driver reads its sockets.

use std::collections::VecDeque;

/// How long reordering may take before a packet is requested, ms.
const REORDER_TOLERANCE_MS: u32 = 10;

/// Time between requests of the same packet, ms: an unknown round trip is taken for so long.
const RETRY_MS: u32 = 100;

/// Most packets that are requested at once although they have arrived.
const ARRIVED_LATE_MAX: usize = 32;

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
    /// To be requested although they have arrived: later than their requests were due.
    arrived_late: Vec<u16>,
    /// Lower bound of all `ask_at_ms`; `u32::MAX` when there is none.
    next_ms: u32,
    overflowed: bool,
}

impl NackList {
    /// A list of at most `missing_max` packets; 0 never requests.
    #[must_use]
    pub fn new(missing_max: usize) -> Self {
        let missing = VecDeque::new();
        Self {
            missing,
            missing_max,
            arrived_late: Vec::new(),
            next_ms: u32::MAX,
            overflowed: false,
        }
    }

    /// The `count` numbers from `first` on (mod 2^16) were found missing.
    pub fn missing(&mut self, first: u16, count: u16, now_ms: u32) {
        let ask_at_ms = now_ms.saturating_add(REORDER_TOLERANCE_MS);
        let kept = usize::from(count).min(self.missing_max);
        self.overflowed |=
            self.missing_max > 0 && self.missing.len() + usize::from(count) > self.missing_max;
        for back in (1..=kept as u16).rev() {
            if self.missing.len() >= self.missing_max {
                self.missing.pop_front();
            }
            let sequence = first.wrapping_add(count).wrapping_sub(back);
            self.missing.push_back(Missing { sequence, tries: 0, ask_at_ms });
            self.next_ms = self.next_ms.min(ask_at_ms);
        }
    }

    /// A packet below the highest number arrived. Returns whether it had been requested by then, or
    /// was to be.
    pub fn arrived(&mut self, sequence: u16, arrived_ms: u32) -> bool {
        let at = self.missing.iter().position(|m| m.sequence == sequence);
        let Some(m) = at.and_then(|at| self.missing.remove(at)) else { return false };
        let has_room = self.arrived_late.len() < ARRIVED_LATE_MAX;
        let is_requested = arrived_ms >= m.ask_at_ms && m.tries < MAX_TRIES && has_room;
        if is_requested {
            self.arrived_late.push(sequence);
        }
        self.forget_time_if_empty();
        m.tries > 0 || is_requested
    }

    fn forget_time_if_empty(&mut self) {
        if self.missing.is_empty() && self.arrived_late.is_empty() {
            self.next_ms = u32::MAX;
        }
    }

    /// Appends the numbers to request now, ascending (mod 2^16); returns how many. They are those
    /// of which nothing arrived until `heard_ms`; what arrived between that and `now_ms` may not be
    /// known yet.
    pub fn take(&mut self, now_ms: u32, heard_ms: u32, out: &mut Vec<u16>) -> usize {
        if heard_ms < self.next_ms {
            return 0;
        }
        let before = out.len();
        let has_arrived_late = !self.arrived_late.is_empty();
        out.append(&mut self.arrived_late);
        let retry_at_ms = now_ms.saturating_add(RETRY_MS);
        self.missing.retain_mut(|m| {
            let due = heard_ms >= m.ask_at_ms;
            if due && m.tries < MAX_TRIES {
                out.push(m.sequence);
                m.tries += 1;
                m.ask_at_ms = retry_at_ms;
                return true;
            }
            !due
        });
        self.next_ms = self.missing.iter().map(|m| m.ask_at_ms).min().unwrap_or(u32::MAX);
        let requested = out.get_mut(before..).unwrap_or_default();
        if has_arrived_late && let Some(&one) = requested.first() {
            // All are within half of the numbers of each other.
            requested.sort_unstable_by_key(|sequence| sequence.wrapping_sub(one).cast_signed());
        }
        out.len() - before
    }

    /// When [`Self::take`] has something to do.
    #[must_use]
    pub fn next_timeout_ms(&self) -> Option<u32> {
        (self.next_ms != u32::MAX).then_some(self.next_ms)
    }

    /// A key frame that begins with `first` was decoded: earlier packets are not needed.
    pub fn forget_before(&mut self, first: u16) {
        while self.missing.front().is_some_and(|m| first.wrapping_sub(m.sequence).cast_signed() > 0)
        {
            self.missing.pop_front();
        }
        self.forget_time_if_empty();
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.missing.clear();
        self.arrived_late.clear();
        self.next_ms = u32::MAX;
        self.overflowed = false;
    }

    /// Whether packets were dropped from the full list since the previous call: they are never
    /// requested again.
    pub fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflowed)
    }

    /// Most memory outside of this struct, bytes.
    #[cfg(test)]
    pub(super) fn memory_max(&self) -> usize {
        self.missing_max * size_of::<Missing>() + ARRIVED_LATE_MAX * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(list: &mut NackList, now_ms: u32) -> Vec<u16> {
        let mut out = Vec::new();
        assert_eq!(list.take(now_ms, now_ms, &mut out), out.len());
        out
    }

    #[test]
    fn reordering_asks_for_nothing() {
        let mut list = NackList::new(8);
        list.missing(5, 1, 0);
        assert_eq!(list.next_timeout_ms(), Some(10));
        assert_eq!(take(&mut list, 9), [0_u16; 0]);
        assert!(!list.arrived(5, 9), "it had not been asked for");
        assert_eq!((take(&mut list, 10), list.next_timeout_ms()), (vec![], None));
    }

    #[test]
    fn what_arrives_after_its_request_was_due_is_asked_for_whenever_both_are_known() {
        let mut list = NackList::new(8);
        list.missing(5, 2, 0);
        // Both come to be known at 14 ms.
        assert!(list.arrived(6, 10) && !list.arrived(5, 9));
        assert_eq!(list.next_timeout_ms(), Some(10));
        assert_eq!((take(&mut list, 14), list.next_timeout_ms()), (vec![6], None));
        list.missing(8, 1, 20);
        assert_eq!(take(&mut list, 31), [8]);
        assert!(list.arrived(8, 140));
        assert_eq!(take(&mut list, 141), [8], "it was due again at 131 ms");
    }

    #[test]
    fn requests_ascend_and_what_has_no_room_is_not_said_to_be_requested() {
        let mut list = NackList::new(64);
        list.missing(65_533, 5, 0);
        assert!(list.arrived(0, 12) && list.arrived(65_534, 12));
        assert_eq!(take(&mut list, 14), [65_533, 65_534, 65_535, 0, 1]);
        list.clear();
        list.missing(100, 40, 0);
        let requested = (100..140).filter(|sequence| list.arrived(*sequence, 12)).count();
        assert_eq!((requested, take(&mut list, 14).len()), (ARRIVED_LATE_MAX, ARRIVED_LATE_MAX));
    }

    #[test]
    fn what_arrived_and_is_not_known_yet_is_not_asked_for_and_an_answer_has_its_time_from_the_request()
     {
        let mut list = NackList::new(8);
        list.missing(5, 2, 0);
        let take = |list: &mut NackList, now_ms, heard_ms| {
            let mut out = Vec::new();
            list.take(now_ms, heard_ms, &mut out);
            out
        };
        assert_eq!(take(&mut list, 20, 9), [0_u16; 0]);
        assert!(!list.arrived(5, 8), "it arrived at 8 ms, and comes now");
        assert_eq!(take(&mut list, 25, 14), [6]);
        assert_eq!((take(&mut list, 130, 119), list.next_timeout_ms()), (vec![], Some(125)));
        assert_eq!(take(&mut list, 136, 125), [6]);
    }

    #[test]
    fn a_packet_is_asked_for_ten_times_a_tenth_of_a_second_apart() {
        let mut list = NackList::new(8);
        list.missing(65535, 2, 0);
        let mut asked_at = Vec::new();
        for now_ms in 0..2000 {
            let out = take(&mut list, now_ms);
            if !out.is_empty() {
                assert_eq!(out, [65535, 0]);
                asked_at.push(now_ms);
            }
        }
        assert_eq!(asked_at, [10, 110, 210, 310, 410, 510, 610, 710, 810, 910]);
        assert_eq!(list.next_timeout_ms(), None);
    }

    #[test]
    fn an_answer_is_known_as_one() {
        let mut list = NackList::new(8);
        list.missing(5, 3, 0);
        assert_eq!(take(&mut list, 10), [5, 6, 7]);
        assert!(list.arrived(6, 12));
        assert!(!list.arrived(6, 12), "only once");
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
