//! Whether the time stamps of a lane go on from one segment to the next. Where they jump and the
//! playlist says nothing of a discontinuity, media is played on as if it did: what it would wait
//! for, or drop, never was there.

use crate::player::manifest::presentation::Cursor;

/// Time stamps that are further from where they should go on have jumped: audio is interleaved with
/// video, and renditions overlap, by less.
const JUMP_US: i64 = 1_000_000;

/// More than this between two segments is a gap of the playlist, and no rounding of durations.
const GAP_US: i64 = 100_000;

/// Time stamps of MPEG-TS begin anew after this, which is no jump: 33 bits at 90 kHz.
const WRAP_US: i64 = (1 << 33) / 9 * 100;

/// What is known of the last segment.
#[derive(Debug, Default)]
pub(in crate::player) struct Continuity {
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    /// The place behind it.
    after: Cursor,
    /// Where its playlist says that it ends.
    due_us: i64,
    /// Where its frames end on the time axis.
    ends_us: i64,
    /// How much later it began than its playlist says.
    late_us: i64,
    /// By how much all segments were moved since, so that the next one begins where it ended.
    moved_us: i64,
}

impl Continuity {
    /// By how much the time stamps jumped before the first frame, at `frame_us`, of the segment at
    /// `place`, which should begin at `starts_us`. What the playlist knows of, such as a hole in
    /// the program or in its last segment, is no jump; what the playlist has wrong and the time
    /// stamps right, such as durations, is none either.
    pub(in crate::player) fn jump_us(
        &self,
        place: Cursor,
        starts_us: i64,
        frame_us: i64,
    ) -> Option<i64> {
        let last = self.last.as_ref().filter(|last| last.after == place)?;
        let said_us = starts_us.saturating_sub(last.moved_us);
        let since_said_us = frame_us.saturating_sub(said_us).saturating_sub(last.late_us);
        let since_last_us = frame_us.saturating_sub(last.ends_us);
        let is_jump = |us: i64| us.saturating_abs() > JUMP_US;
        let jump_us = if last.moved_us == 0 { since_said_us } else { since_last_us };
        (is_jump(since_said_us) && is_jump(since_last_us)).then_some(jump_us)
    }

    /// How much later than its playlist says the segment at `place` begins, if it goes on like the
    /// one before.
    pub(in crate::player) fn late_us(&self, place: Cursor) -> i64 {
        let last = self.last.as_ref().filter(|last| last.after == place && last.moved_us == 0);
        last.map_or(0, |last| last.late_us)
    }

    /// Whether the segment at `place`, which should begin at `starts_us`, is the next one: none was
    /// left out, nor does the playlist have a gap before it.
    pub(in crate::player) fn follows(&self, place: Cursor, starts_us: i64) -> bool {
        let last = self.last.as_ref().filter(|last| last.after == place);
        last.is_some_and(|last| starts_us.saturating_sub(last.due_us) <= GAP_US)
    }

    /// A segment was received: the place behind it, where its playlist says that it begins and
    /// ends, where its frames do, and by how much segments were moved for that.
    pub(in crate::player) fn received(
        &mut self,
        after: Cursor,
        (starts_us, due_us): (i64, i64),
        (first_us, ends_us): (i64, i64),
        moved_us: i64,
    ) {
        let late_us = first_us.saturating_sub(starts_us);
        let due_us = due_us.saturating_add(moved_us);
        self.last = Some(Last { after, due_us, ends_us, late_us, moved_us });
    }
}

/// Whether time stamps that jumped by this only began anew.
pub(in crate::player) fn is_wrap(jump_us: i64) -> bool {
    jump_us.saturating_abs().saturating_sub(WRAP_US).saturating_abs() <= JUMP_US
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    #[test]
    fn time_stamps_jump_when_neither_media_nor_playlist_goes_on_with_them() {
        // The last one ended at 100 s, and began 0.2 s later than its playlist says.
        let mut known = Continuity::default();
        assert_eq!(known.jump_us(Cursor::at(0), 0, 500 * S), None, "the first one");
        assert_eq!(known.late_us(Cursor::at(0)), 0);
        known.received(Cursor::at(7), (96 * S, 100 * S), (96_200_000, 100_200_000), 0);
        for (place, starts_us, expect) in
            [(7, 100 * S, true), (7, 100_050_000, true), (7, 102 * S, false), (8, 100 * S, false)]
        {
            assert_eq!(known.follows(Cursor::at(place), starts_us), expect, "{place} {starts_us}");
        }
        assert_eq!((known.late_us(Cursor::at(7)), known.late_us(Cursor::at(8))), (200_000, 0));
        for (place, starts_us, frame_us, expect) in [
            (7, 100 * S, 100_200_000, None),
            (7, 100 * S, 160_200_000, Some(60 * S)),
            (7, 100 * S, 40_200_000, Some(-60 * S)),
            (8, 104 * S, 164_200_000, None), // one was left out
            (7, 102 * S, 102_200_000, None), // a hole of which the playlist knows
            (7, 102 * S, 100_200_000, None), // a duration that was wrong
            (7, i64::MIN, i64::MAX, Some(i64::MAX - 200_000)),
        ] {
            let jump_us = known.jump_us(Cursor::at(place), starts_us, frame_us);
            assert_eq!(jump_us, expect, "{place} {starts_us} {frame_us}");
        }
    }

    #[test]
    fn what_is_missing_at_the_end_of_a_segment_is_no_jump_and_a_wrong_duration_is_none() {
        // The playlist said 96 to 100 s, the frames were from 96 to 97 s, and the segments behind
        // it were moved by as much.
        let mut known = Continuity::default();
        known.received(Cursor::at(7), (96 * S, 100 * S), (96 * S, 97 * S), -3 * S);
        let next = Cursor::at(7);
        assert!(known.follows(next, 97 * S) && known.late_us(next) == 0);
        for (frame_us, expect) in [
            (97 * S, None),          // the duration was wrong
            (100 * S, None),         // the media was missing
            (157 * S, Some(60 * S)), // its time stamps jumped
        ] {
            assert_eq!(known.jump_us(next, 97 * S, frame_us), expect, "{frame_us}");
        }
    }

    #[test]
    fn thirty_three_bits_wrap() {
        assert!(is_wrap(-95_443_717_688) && is_wrap(95_443_700_000));
        assert!(!is_wrap(60 * S) && !is_wrap(i64::MIN) && !is_wrap(i64::MAX));
    }
}
