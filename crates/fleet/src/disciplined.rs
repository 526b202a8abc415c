//! What the time services of two hosts say about their clocks, against what exchanges say.
//!
//! A service that disciplines a clock knows how far that can be from true time (UTC). Of two such
//! clocks, within `a` and `b` of it, one is no further than `a + b` from the other. So the offset
//! lies in two intervals: that of the exchanges, and `0 ± (a + b)`. Where both are right it lies
//! where they meet (Marzullo's algorithm, as in RFC 5905 section 11.2.1); where they do not meet,
//! one of the services is wrong, and only the exchanges are known to be right.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Offset;

/// How much the error of a disciplined clock may grow, parts per million: PHI of RFC 5905 (section
/// 7.1).
const GROWTH_PPM: u64 = 15;

/// A service that is more than this off true time, seconds, disciplines nothing.
const CHRONY_S_MAX: f64 = 3600.0;

/// chrony's reference for its own clock (`local` in its configuration): it then reports errors of 0
/// without knowing any time but that of its host.
const LOCAL_REFERENCE: &str = "7F7F0101";

/// Who says how far a host's clock is from true time.
///
/// The kernel is not asked (`maxerror` of adjtimex): systemd-timesyncd writes 0 there whenever it
/// corrects the clock, whatever the error is, so that a bound made of it would not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WordSource {
    /// chronyd on the host.
    Chrony,
    /// The host's owner, such as of a clock that PTP keeps: ptp4l and phc2sys tell no bound.
    Declared,
}

/// The word of a host about its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockWord {
    /// The clock is within so many microseconds of true time.
    pub bound_us: u64,
    /// Who says so.
    pub source: WordSource,
}

impl ClockWord {
    /// What it is worth so long after it was said. What an owner declares holds at any time.
    #[must_use]
    pub fn aged(self, age: Duration) -> Self {
        let grown_us = match self.source {
            WordSource::Declared => 0,
            // A microsecond a second is one part per million.
            WordSource::Chrony => age.as_secs().saturating_add(1).saturating_mul(GROWTH_PPM),
        };
        self.wider(grown_us)
    }

    /// The same with a bound that is larger by so much.
    #[must_use]
    pub fn wider(self, by_us: u64) -> Self {
        Self { bound_us: self.bound_us.saturating_add(by_us), ..self }
    }
}

/// What an offset was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockBasis {
    /// The exchanges alone: half of the round trip.
    #[default]
    Exchanges,
    /// The words of both hosts make it narrower.
    HostClocks,
    /// The words contradict the exchanges, which count alone.
    Contradicted,
}

/// The offset by the exchanges and the words of both hosts.
#[must_use]
pub fn combined(exchanges: Offset, words: Option<(ClockWord, ClockWord)>) -> (Offset, ClockBasis) {
    let Some((ours, theirs)) = words else { return (exchanges, ClockBasis::Exchanges) };
    let signed = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
    let apart = signed(ours.bound_us.saturating_add(theirs.bound_us));
    let half = signed(exchanges.bound_us);
    let (from, to) =
        (exchanges.offset_us.saturating_sub(half), exchanges.offset_us.saturating_add(half));
    let (low, high) = (from.max(-apart), to.min(apart));
    if low > high {
        return (exchanges, ClockBasis::Contradicted);
    }
    if (low, high) == (from, to) {
        return (exchanges, ClockBasis::Exchanges);
    }
    // Rounded up, so that the middle, which is rounded, is within it of both ends.
    let both =
        Offset { offset_us: i64::midpoint(low, high), bound_us: high.abs_diff(low).div_ceil(2) };
    (both, ClockBasis::HostClocks)
}

/// What `chronyc -c tracking` says, if chronyd follows a source: by its manual the clock is off by
/// no more than the correction that is still to be made, half the delay to the primary source, and
/// the dispersion.
#[must_use]
pub fn chrony_word(csv: &str) -> Option<ClockWord> {
    let fields: Vec<&str> = csv.lines().next()?.trim().split(',').collect();
    let number =
        |at: usize| fields.get(at)?.parse::<f64>().ok().filter(|number| number.is_finite());
    let (correction_s, delay_s, dispersion_s) = (number(4)?, number(10)?, number(11)?);
    // What else chrony says there is that it is not synchronised.
    let follows = matches!(*fields.get(13)?, "Normal" | "Insert second" | "Delete second");
    let bound_s = correction_s.abs() + delay_s / 2.0 + dispersion_s;
    let is_possible = delay_s >= 0.0 && dispersion_s >= 0.0 && bound_s <= CHRONY_S_MAX;
    (follows && is_possible && fields.first() != Some(&LOCAL_REFERENCE)).then(|| ClockWord {
        // One more, as the figures are rounded.
        bound_us: (bound_s * 1e6).ceil() as u64 + 1,
        source: WordSource::Chrony,
    })
}

#[cfg(test)]
#[path = "disciplined_tests.rs"]
mod tests;
