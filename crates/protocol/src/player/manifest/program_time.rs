//! The dates of a live playlist (`EXT-X-PROGRAM-DATE-TIME`) beside the time axis that its media is
//! played on.
//!
//! The axis follows the dates, whose errors do not add up as those of rounded durations do. Where a
//! date does not continue the one before, because the encoder began anew or its clock was set,
//! media goes on all the same, as with hls.js. The axis goes on with it, and from that segment on
//! the dates are so much ahead of the axis.

use std::collections::VecDeque;

use throng_media::manifest::hls::Segment;

/// Dates that differ by more from what durations say have jumped, where no discontinuity says so.
pub(in crate::player) const JUMP_US: i64 = 500_000;

/// Jumps that are kept: playlists have fewer.
const JUMPS_MAX: usize = 256;

/// How far dates are ahead of the axis.
#[derive(Clone, Debug, Default)]
pub(in crate::player) struct ProgramTime {
    /// From which segment on, and by how much, microseconds; in order.
    ahead: VecDeque<(u64, i64)>,
    /// The date of the segment before was off as well.
    was_off: bool,
    /// By how much dates jumped last.
    jumped_us: i64,
    /// The last jump that was not reported: its segment, and by how much.
    jump: Option<(u64, i64)>,
}

impl ProgramTime {
    /// How far the date of segment `number` is ahead of the axis.
    pub(in crate::player) fn ahead_us(&self, number: u64) -> i64 {
        let after = self.ahead.partition_point(|(from, _)| *from <= number);
        let known = after.checked_sub(1).and_then(|at| self.ahead.get(at)).or(self.ahead.front());
        known.map_or(0, |(_, ahead_us)| *ahead_us)
    }

    /// Begins anew, with dates that are so far ahead.
    pub(in crate::player) fn begin(&mut self, ahead_us: i64) {
        *self = Self { ahead: [(0, ahead_us)].into(), ..Self::default() };
    }

    /// Moves the axis: all dates are so much further ahead of it.
    pub(in crate::player) fn shift(&mut self, by_us: i64) {
        if self.ahead.is_empty() {
            self.ahead.push_back((0, 0));
        }
        self.ahead.iter_mut().for_each(|(_, ahead_us)| *ahead_us = ahead_us.saturating_add(by_us));
    }

    /// What comes before segment `number` has left the playlist.
    pub(in crate::player) fn forget_before(&mut self, number: u64) {
        while self.ahead.get(1).is_some_and(|(from, _)| *from <= number) {
            self.ahead.pop_front();
        }
    }

    /// Learns the dates of `segments`, the first of which is due at `due_us` on the axis.
    pub(in crate::player) fn follow(&mut self, mut due_us: i64, segments: &[Segment]) {
        let mut before_us = segments.first().map_or(0, |segment| segment.duration_us);
        for segment in segments {
            let Some(date_us) = segment.program_time_us else { continue };
            let ahead_us = self.ahead_us(segment.number);
            let off_us = date_us.saturating_sub(ahead_us).saturating_sub(due_us);
            let is_off = off_us.saturating_abs() > JUMP_US;
            // Where the dates of two segments are off, it is the durations that are wrong, unless
            // the date before was the only wrong one, or they are more wrong than a duration can
            // be.
            let returns = off_us.saturating_add(self.jumped_us).saturating_abs() <= JUMP_US;
            let is_far = off_us.unsigned_abs() > before_us;
            let is_jump = segment.is_discontinuity && off_us != 0
                || is_off && (!self.was_off || returns || is_far);
            before_us = segment.duration_us;
            if is_jump {
                self.jumped_us = off_us;
                if self.ahead.is_empty() {
                    self.ahead.push_back((0, 0));
                }
                self.ahead.push_back((segment.number, ahead_us.saturating_add(off_us)));
                self.jump = Some((segment.number, off_us)).filter(|_| is_off).or(self.jump);
            }
            self.was_off = is_off;
            let starts_us = if is_jump { due_us } else { due_us.saturating_add(off_us) };
            due_us = starts_us.saturating_add_unsigned(segment.duration_us);
        }
        while self.ahead.len() > JUMPS_MAX {
            self.ahead.pop_front();
        }
    }

    /// Takes the last jump: its segment, and by how much dates went ahead.
    pub(in crate::player) fn take_jump(&mut self) -> Option<(u64, i64)> {
        self.jump.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    /// Segments of 4 s with these dates, numbered from 10 on; `!` is a discontinuity.
    fn dated(dates: &[(i64, bool)]) -> Vec<Segment> {
        let of = |(number, (date_us, is_discontinuity)): (u64, &(i64, bool))| Segment {
            number,
            duration_us: 4_000_000,
            program_time_us: Some(*date_us),
            is_discontinuity: *is_discontinuity,
            ..Segment::default()
        };
        (10..).zip(dates).map(of).collect()
    }

    /// Where segments with these dates are on an axis that begins with the first date.
    fn placed(dates: &[(i64, bool)]) -> Vec<i64> {
        let (segments, mut time) = (dated(dates), ProgramTime::default());
        time.follow(dates[0].0, &segments);
        segments
            .iter()
            .map(|segment| segment.program_time_us.unwrap() - time.ahead_us(segment.number))
            .collect()
    }

    #[test]
    fn dates_are_followed_where_they_go_on_and_media_where_they_jump() {
        let on = |us: i64| (us, false);
        for (dates, expect) in [
            (vec![on(100 * S), on(104 * S), on(108 * S)], [100, 104, 108].map(|s| s * S)),
            (
                vec![on(100 * S), on(104_200_000), on(108_400_000)],
                [100_000_000, 104_200_000, 108_400_000],
            ),
            (vec![on(100 * S), on(44 * S), on(48 * S)], [100, 104, 108].map(|s| s * S)),
            (vec![on(100 * S), on(9_104 * S), on(9_108 * S)], [100, 104, 108].map(|s| s * S)),
            (
                vec![on(100 * S), (104_200_000, true), on(108_200_000)],
                [100, 104, 108].map(|s| s * S),
            ),
            (vec![on(100 * S), (60 * S, true), (50 * S, true)], [100, 104, 108].map(|s| s * S)),
            // One date is wrong.
            (
                vec![on(100 * S), on(104 * S), on(48 * S), on(112 * S)],
                [100, 104, 108].map(|s| s * S),
            ),
            (
                vec![on(100 * S), on(9_000 * S), on(108 * S), on(112 * S)],
                [100, 104, 108].map(|s| s * S),
            ),
            (
                vec![on(100 * S), on(106 * S), on(108 * S), on(112 * S)],
                [100, 104, 108].map(|s| s * S),
            ),
            // Segments of 3 s that are said to last 4 s.
            (vec![on(100 * S), on(103 * S), on(106 * S)], [100, 104, 107].map(|s| s * S)),
        ] {
            assert_eq!(placed(&dates)[..3], expect, "{dates:?}");
        }
    }

    #[test]
    fn a_jump_is_told_once_and_outlives_its_segment() {
        let segments = dated(&[(100 * S, false), (44 * S, false), (48 * S, false)]);
        let mut time = ProgramTime::default();
        time.follow(100 * S, &segments);
        assert_eq!((time.take_jump(), time.take_jump()), (Some((11, -60 * S)), None));
        time.forget_before(12);
        assert_eq!((time.ahead_us(12), time.ahead_us(10)), (-60 * S, -60 * S));
        time.shift(60 * S);
        assert_eq!(time.ahead_us(12), 0);
    }

    #[test]
    fn dates_without_bounds_are_survived() {
        let mut time = ProgramTime::default();
        let extremes: Vec<_> =
            (0..1_000).map(|at| (if at % 2 == 0 { i64::MAX } else { i64::MIN }, true)).collect();
        time.follow(i64::MAX, &dated(&extremes));
        assert!(time.ahead.len() <= JUMPS_MAX);
    }
}
