//! Notes on the last seconds of a track or participant.

/// Seconds kept: intervals come at most two seconds after the second in which they lie.
const SECONDS_KEPT: usize = 4;

/// A note on a second: violated clauses, and how long video was frozen or paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SecondNote {
    /// Bits of [`throng_observation::Clause::bit`].
    pub(super) bits: u16,
    /// Hundredths of a second; 255 means that long or longer.
    still_cs: u8,
}

impl SecondNote {
    /// Longest freeze that can be noted, microseconds.
    pub(super) const STILL_US_MAX: u64 = 2_550_000;

    pub(super) fn new(bits: u16, still_us: u64) -> Self {
        Self { bits, still_cs: u8::try_from(still_us.div_ceil(10_000)).unwrap_or(u8::MAX) }
    }

    /// How long video was frozen or paused, microseconds.
    pub(super) fn still_us(self) -> u64 {
        u64::from(self.still_cs) * 10_000
    }
}

/// The last seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSeconds([(i32, SecondNote); SECONDS_KEPT]);

impl Default for LastSeconds {
    fn default() -> Self {
        Self([(i32::MIN, SecondNote::default()); SECONDS_KEPT])
    }
}

impl LastSeconds {
    /// Merges a note into those of its second.
    pub(super) fn add(&mut self, second: i64, noted: SecondNote) {
        let second = in_range(second);
        let place = &mut self.0[second.rem_euclid(SECONDS_KEPT as i32) as usize];
        let before = if place.0 == second { place.1 } else { SecondNote::default() };
        let together = SecondNote {
            bits: before.bits | noted.bits,
            still_cs: before.still_cs.max(noted.still_cs),
        };
        *place = (second, together);
    }

    /// The note on `second`; `None` without one.
    pub(super) fn of(&self, second: i64) -> Option<SecondNote> {
        let second = in_range(second);
        let (kept, noted) = self.0[second.rem_euclid(SECONDS_KEPT as i32) as usize];
        (kept == second).then_some(noted)
    }
}

/// Saturates: no run lasts 68 years.
fn in_range(second: i64) -> i32 {
    i32::try_from(second).unwrap_or(if second < 0 { i32::MIN + 1 } else { i32::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::Clause;

    #[test]
    fn a_second_keeps_what_any_of_its_intervals_broke_and_forgets_what_is_long_past() {
        let mut seconds = LastSeconds::default();
        seconds.add(7, SecondNote::new(Clause::Loss.bit(), 0));
        seconds.add(7, SecondNote::new(Clause::Fps.bit(), 204_000));
        let kept = seconds.of(7).expect("the second");
        assert_eq!((kept.bits, kept.still_us()), (Clause::Loss.bit() | Clause::Fps.bit(), 210_000));
        assert_eq!((seconds.of(3), seconds.of(11)), (None, None));
        seconds.add(11, SecondNote::default());
        assert_eq!((seconds.of(7), seconds.of(11)), (None, Some(SecondNote::default())));
        assert_eq!(SecondNote::new(0, 9_000_000).still_us(), 2_550_000);
    }
}
