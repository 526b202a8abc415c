//! What participants received from the target: defined here, and nowhere else.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::run::{RunData, SeriesRow};
use crate::{ChatRow, PlaybackRow};

/// Bytes that participants received, by second: packets on the wire (with RTP header, SRTP tag, UDP
/// and IP header), of players the bodies of responses, of chats the frames. What other viewers sent
/// is no part of it: the target did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// A second is here where it has a row of anybody who could receive, even if nothing came.
    by_second: BTreeMap<i64, u64>,
}

impl Received {
    /// What these rows say.
    #[must_use]
    pub fn of<'a>(
        series: impl IntoIterator<Item = &'a SeriesRow>,
        playback: impl IntoIterator<Item = &'a PlaybackRow>,
        chat: impl IntoIterator<Item = &'a ChatRow>,
    ) -> Self {
        let packets = series.into_iter().map(|row| (row.second, row.counters.wire_bytes));
        let bodies = playback.into_iter().map(|row| {
            (row.second, row.counters.media_bytes.saturating_add(row.counters.other_bytes))
        });
        let frames = chat.into_iter().map(|row| (row.second, row.counters.bytes_received));
        let mut by_second: BTreeMap<i64, u64> = BTreeMap::new();
        for (second, bytes) in packets.chain(bodies).chain(frames) {
            let sum = by_second.entry(second).or_default();
            *sum = sum.saturating_add(bytes);
        }
        Self { by_second }
    }

    /// What all rows of a run say.
    #[must_use]
    pub fn of_run(run: &RunData) -> Self {
        Self::of(&run.series, &run.playback, &run.chat)
    }

    /// Whether no second has a row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_second.is_empty()
    }

    /// The bytes of each second that has a row, in order.
    pub fn by_second(&self) -> impl Iterator<Item = (i64, u64)> {
        self.by_second.iter().map(|(second, bytes)| (*second, *bytes))
    }

    /// Bytes in `seconds`.
    #[must_use]
    pub fn bytes(&self, seconds: Range<i64>) -> u64 {
        self.within(seconds).fold(0, |sum, (_, bytes)| sum.saturating_add(bytes))
    }

    /// Bits per second of `seconds`, each of which counts: one without a row is an outage, or comes
    /// after the crowd has failed. `None` where none has a row.
    #[must_use]
    pub fn bps(&self, seconds: Range<i64>) -> Option<f64> {
        self.within(seconds.clone()).next()?;
        let length = seconds.end.abs_diff(seconds.start);
        Some(self.bytes(seconds) as f64 * 8.0 / length as f64)
    }

    /// The same from the first of `seconds` that has a row to their end: the time before the first
    /// join does not count.
    #[must_use]
    pub fn bps_since_first(&self, seconds: Range<i64>) -> Option<f64> {
        let (first, _) = self.within(seconds.clone()).next()?;
        self.bps(first..seconds.end)
    }

    /// Bits in the busiest of `seconds`; 0 where none has a row.
    #[must_use]
    pub fn bps_max(&self, seconds: Range<i64>) -> f64 {
        self.within(seconds).map(|(_, bytes)| bytes).max().unwrap_or(0) as f64 * 8.0
    }

    fn within(&self, seconds: Range<i64>) -> impl Iterator<Item = (i64, u64)> {
        // A map has no range that ends before it begins.
        let seconds = seconds.start..seconds.end.max(seconds.start);
        self.by_second.range(seconds).map(|(second, bytes)| (*second, *bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatCounters, PlaybackCounters, TrackCounters};

    fn packets(second: i64, wire_bytes: u64) -> SeriesRow {
        let counters = TrackCounters { wire_bytes, ..TrackCounters::default() };
        SeriesRow { second, tracks: 1, counters, ..SeriesRow::default() }
    }

    fn bodies(second: i64, media_bytes: u64, other_bytes: u64) -> PlaybackRow {
        let counters = PlaybackCounters {
            media_bytes,
            other_bytes,
            peer_bytes: 1 << 30,
            ..PlaybackCounters::default()
        };
        PlaybackRow { second, players: 1, counters, ..PlaybackRow::default() }
    }

    fn frames(second: i64, bytes_received: u64) -> ChatRow {
        let counters = ChatCounters { bytes_received, ..ChatCounters::default() };
        ChatRow { second, members: 1, counters, ..ChatRow::default() }
    }

    #[test]
    fn packets_bodies_and_frames_count_and_what_viewers_sent_does_not() {
        let received = Received::of(
            &[packets(3, 1_000), packets(3, 200)],
            &[bodies(3, 30, 4), bodies(4, 50, 0)],
            &[frames(5, 7)],
        );
        assert_eq!(received.by_second().collect::<Vec<_>>(), [(3, 1_234), (4, 50), (5, 7)]);
        assert_eq!((received.bytes(3..5), received.bps_max(0..9)), (1_284, 1_234.0 * 8.0));
    }

    #[test]
    fn an_outage_counts_with_recovery_and_without_and_the_time_before_the_first_join_does_not() {
        let series = [packets(4, 500), packets(5, 500), packets(9, 200)];
        let received = Received::of(&series, &[], &[]);
        for (seconds, of_all, since_first) in [
            (4..10, 1_200.0 / 6.0, 1_200.0 / 6.0),
            (0..60, 1_200.0 / 60.0, 1_200.0 / 56.0),
            (0..9, 1_000.0 / 9.0, 1_000.0 / 5.0),
            (5..9, 500.0 / 4.0, 500.0 / 4.0),
        ] {
            assert_eq!(received.bps(seconds.clone()), Some(of_all * 8.0), "{seconds:?}");
            let since = received.bps_since_first(seconds.clone());
            assert_eq!(since, Some(since_first * 8.0), "{seconds:?}");
        }
        assert_eq!((received.bps(6..9), received.bps_since_first(6..9)), (None, None));
        assert_eq!(received.bps_max(6..9), 0.0);
        let reversed = std::ops::Range { start: 60, end: 0 };
        assert_eq!((received.bps(reversed.clone()), received.bytes(reversed)), (None, 0));
        let silent = Received::of(&[packets(0, 0)], &[], &[]);
        assert_eq!((silent.bps(0..9), silent.is_empty()), (Some(0.0), false), "all was lost");
        assert!(Received::of_run(&RunData::default()).is_empty());
    }
}
