//! A series of an endpoint: the sum over its sessions, which differ only in labels that are
//! dropped. Hundreds of series for ten viewers say no more than their sum.
//!
//! Counters become rates, each of its own session, before they are added up, so that a session
//! that ends is no counter that went back. A sum that lacks a session is no value: it would read as
//! a server that does no more, however many sessions it has.

use std::collections::HashMap;

use throng_observation::RunTime;
use throng_observation::host::Unit;

/// A series ends after this many scrapes without it, and so does a session.
pub(super) const MISSING_MAX: u32 = 3;

/// The value of a session's counter at a scrape.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastValue {
    /// The value.
    pub(super) value: f64,
    /// When it was read.
    pub(super) at: RunTime,
    /// The number of the scrape.
    pub(super) round: u32,
}

/// A series, and what is needed of its sessions.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Unit of the value.
    pub(super) unit: Unit,
    /// The last scrape with a sample of it.
    seen_in: u32,
    /// The last scrape that lacked one of its sessions.
    cut_in: Option<u32>,
    /// Whether it has samples of sessions.
    is_sum: bool,
    /// The value at this scrape, as far as its samples were added.
    value: Option<f64>,
    /// The last value of each session's counter.
    counters: HashMap<u64, LastValue>,
}

impl Series {
    /// Processes a sample: that of a session, if there is one.
    pub(super) fn see(&mut self, round: u32, session: Option<u64>, unit: Unit) {
        self.seen_in = round;
        self.is_sum |= session.is_some();
        self.unit = unit;
    }

    /// Adds the level of a session. What is no sum has one level: its last.
    pub(super) fn level(&mut self, value: f64) {
        let before = self.value.filter(|_| self.is_sum).unwrap_or(0.0);
        self.value = Some(before + value);
    }

    /// Adds the rate of a session's counter since its last value. Of a new session only the value
    /// is kept, if there `is_room`. Returns whether one more is kept.
    ///
    /// A counter that went back was reset by a restart of the server (or a part of it): its value
    /// is the least it grew by.
    pub(super) fn count(&mut self, session: u64, now: LastValue, is_room: bool) -> bool {
        let Some(kept) = self.counters.get_mut(&session) else {
            if is_room {
                self.counters.insert(session, now);
            } else {
                self.cut_in = Some(now.round);
            }
            return is_room;
        };
        let last = std::mem::replace(kept, now);
        let seconds = now.at.millis_since(last.at) / 1e3;
        if seconds > 0.0 {
            let grown = if now.value < last.value { now.value } else { now.value - last.value };
            self.value = Some(self.value.unwrap_or(0.0) + grown / seconds);
        }
        false
    }

    /// Notes that this scrape may lack samples of its sessions.
    pub(super) fn cut(&mut self, round: u32) {
        if self.is_sum {
            self.cut_in = Some(round);
        }
    }

    /// Ends a scrape. The value; NaN where the series has ended or is partial; `None` where there
    /// is none yet.
    pub(super) fn end(&mut self, round: u32) -> Option<f64> {
        self.counters.retain(|_, last| round.wrapping_sub(last.round) < MISSING_MAX);
        let value = self.value.take();
        if self.is_over(round) || self.is_partial(round) { Some(f64::NAN) } else { value }
    }

    /// Whether it has been missing for a while.
    pub(super) fn is_over(&self, round: u32) -> bool {
        round.wrapping_sub(self.seen_in) >= MISSING_MAX
    }

    /// Whether it lacks a session: a counter also in the scrape after, which has no rate of it yet.
    pub(super) fn is_partial(&self, round: u32) -> bool {
        self.cut_in.is_some_and(|cut_in| round.wrapping_sub(cut_in) <= 1)
    }

    /// Number of counters of which a value is kept.
    pub(super) fn counters(&self) -> usize {
        self.counters.len()
    }
}
