//! Rows of a second that add up: those of the shares of a crowd, and those of a window, so that the
//! last second, a hold and a run have the same figures. A row with a field that is not named here
//! does not compile.

use std::collections::BTreeMap;

use crate::run::{CohortId, CrowdRow, SentRow, SeriesRow, SourceFps};
use crate::{
    ChatCounters, ChatRow, Distribution, ExperienceRow, MediaKind, OneWayDelay, PlaybackCounters,
    PlaybackRow, SentCounters, TrackCounters,
};

/// A row of a second that adds up.
pub trait SecondRow {
    /// What rows of a second have in common that add up; the order of keys is that of the rows of
    /// one machine.
    type Key: Ord;

    /// Its second, since the start of the run.
    #[must_use]
    fn second(&self) -> i64;

    /// Makes it a row of this second.
    fn set_second(&mut self, second: i64);

    /// Its key within the second.
    #[must_use]
    fn key(&self) -> Self::Key;

    /// Adds the row of another share, of the same second and key, or another row of the same window
    /// of seconds and cohorts. Sums stay at their largest value.
    fn add(&mut self, other: &Self);

    /// Adds the samples of another second; counts and sums do not change.
    fn add_samples(&mut self, other: &Self);

    /// The rows of a window of seconds and cohorts, added up: it has the figures of that window.
    /// Its second and its key, such as the cohort, have no meaning.
    #[must_use]
    fn sum<'a>(rows: impl IntoIterator<Item = &'a Self>) -> Self
    where
        Self: Default + 'a,
    {
        let mut sum = Self::default();
        rows.into_iter().for_each(|row| sum.add(row));
        sum
    }

    /// The rows of each second, added up: its key, such as the cohort, has no meaning.
    #[must_use]
    fn by_second<'a>(rows: impl IntoIterator<Item = &'a Self>) -> BTreeMap<i64, Self>
    where
        Self: Default + 'a,
    {
        let mut by_second: BTreeMap<i64, Self> = BTreeMap::new();
        for row in rows {
            let sum = by_second.entry(row.second()).or_default();
            sum.set_second(row.second());
            sum.add(row);
        }
        by_second
    }
}

/// A field of such a row.
trait Adds {
    fn add(&mut self, other: &Self);

    /// What is no sample stays.
    fn add_samples(&mut self, _other: &Self) {}
}

/// People and tracks: each belongs to one share.
macro_rules! counts {
    ($($type:ident),+) => {$(
        impl Adds for $type {
            fn add(&mut self, other: &Self) {
                *self = self.saturating_add(*other);
            }
        }
    )+};
}

counts! { u32, u64 }

impl Adds for Option<u32> {
    fn add(&mut self, other: &Self) {
        if let Some(other) = other {
            Adds::add(self.get_or_insert(0), other);
        }
    }
}

impl<T: Adds, const N: usize> Adds for [T; N] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(sum, count)| Adds::add(sum, count));
    }
}

macro_rules! sums {
    ($($type:ident),+) => {$(
        impl Adds for $type {
            fn add(&mut self, other: &Self) {
                *self += *other;
            }
        }
    )+};
}

sums! { TrackCounters, SentCounters, PlaybackCounters, ChatCounters, SourceFps }

macro_rules! samples {
    ($($type:ident),+) => {$(
        impl Adds for $type {
            fn add(&mut self, other: &Self) {
                self.merge(other);
            }
            fn add_samples(&mut self, other: &Self) {
                self.merge(other);
            }
        }
    )+};
}

samples! { Distribution, OneWayDelay }

/// Implements [`SecondRow`]: the key of a row, its fields that add up, and those of which the
/// largest counts.
macro_rules! second_rows {
    ($(
        $row:ident by ($($key:ident: $type:ty),+) {
            $($field:ident),+ $(; largest $($largest:ident),+)?
        }
    )+) => {$(
        impl SecondRow for $row {
            type Key = ($($type,)+);

            fn second(&self) -> i64 {
                self.second
            }

            fn set_second(&mut self, second: i64) {
                self.second = second;
            }

            fn key(&self) -> Self::Key {
                ($(self.$key,)+)
            }

            fn add(&mut self, other: &Self) {
                let Self { second: _, $($key: _,)+ $($field,)+ $($($largest,)+)? } = other;
                $( Adds::add(&mut self.$field, $field); )+
                $( $( self.$largest = self.$largest.max(*$largest); )+ )?
            }

            fn add_samples(&mut self, other: &Self) {
                $( Adds::add_samples(&mut self.$field, &other.$field); )+
            }
        }
    )+};
}

second_rows! {
    CrowdRow by (cohort: CohortId) {
        intended, started, connected, playing, failed, left, ice
    }
    SeriesRow by (cohort: CohortId, kind: Option<MediaKind>) {
        tracks, tracks_below_source_fps, counters, relative_delay_us, absolute_delay, jitter_us,
        fps_milli, loss_ppm, oven_rtc_tester_delay_us, picture_lines, source_fps
    }
    SentRow by (cohort: CohortId, kind: MediaKind) { tracks, counters }
    PlaybackRow by (cohort: CohortId) {
        players, stalled, starting, counters, buffer_us, shortfall_ppm, dates_ahead, latency_us,
        edge_latency_us, capture_latency_us
    }
    ChatRow by (cohort: CohortId) { members, joined, counters, delay_us; largest occupants_max }
    ExperienceRow by (cohort: CohortId) { users, bad, uncounted_milli, clauses }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(members: u32, occupants_max: u32, delay_us: u64) -> ChatRow {
        let mut row = ChatRow { second: 3, members, occupants_max, ..ChatRow::default() };
        row.counters.messages_due = u64::from(members);
        row.delay_us.record(delay_us);
        row
    }

    #[test]
    fn counts_sums_and_samples_add_up_and_the_largest_stays() {
        let mut row = chat(u32::MAX, 9, 5);
        row.add(&chat(2, 4, 7));
        assert_eq!((row.second(), row.members, row.occupants_max), (3, u32::MAX, 9));
        assert_eq!((row.counters.messages_due, row.delay_us.count()), (u64::from(u32::MAX) + 2, 2));
        row.add_samples(&chat(2, 40, 7));
        assert_eq!((row.members, row.occupants_max, row.delay_us.count()), (u32::MAX, 9, 3));
        assert_eq!(row.counters.messages_due, u64::from(u32::MAX) + 2);
    }

    #[test]
    fn a_window_is_the_sum_of_its_rows_and_each_second_of_its_own() {
        let rows = [(3, 2, 5), (3, 4, 7), (4, 1, 9)]
            .map(|(second, members, delay_us)| ChatRow { second, ..chat(members, 0, delay_us) });
        let window = ChatRow::sum(&rows);
        assert_eq!((window.members, window.delay_us.count()), (7, 3));
        let by_second = ChatRow::by_second(&rows);
        let members: Vec<_> =
            by_second.iter().map(|(second, row)| (*second, row.second, row.members)).collect();
        assert_eq!(members, [(3, 3, 6), (4, 4, 1)]);
        assert_eq!(ChatRow::sum(&[]).members, 0);
    }

    #[test]
    fn a_count_that_no_share_has_stays_absent() {
        let row = |dates_ahead| PlaybackRow { dates_ahead, ..PlaybackRow::default() };
        for (one, other, expect) in
            [(None, None, None), (Some(3), None, Some(3)), (None, Some(4), Some(4))]
        {
            let mut sum = row(one);
            sum.add(&row(other));
            assert_eq!(sum.dates_ahead, expect);
        }
    }
}
