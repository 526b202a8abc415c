//! What the latency of live streams is measured by: one basis a run, for all its players and
//! renditions, so that figures of two seconds or two players are of one kind.

use crate::keyed::keyed;
use crate::{Distribution, PlaybackRow};

/// Dates may be ahead of this host's clock by as much as two synchronised clocks differ, and
/// packagers round. Microseconds.
pub const DATES_AHEAD_US_MAX: i64 = 500_000;

/// Share of the player-seconds that may be without dates, or find them ahead of the clock, where
/// latency is measured by dates: a switch of the rendition, a correction of a clock.
const EXCEPTIONS_RATIO_MAX: f64 = 0.01;

keyed! {
    /// What the latency of a live stream was measured by.
    LatencyBasis {
        /// This host's wall clock minus the date that the playlist gives to what is played
        /// (`EXT-X-PROGRAM-DATE-TIME`, the availability times of DASH): its error is that of the
        /// two clocks against each other.
        ProgramDateTime = "program_date_time",
        /// The end of the playlist, which moves on from when it was received, minus the position
        /// (hls.js `latency`): without the time that encoder, packager and caches took. No clock
        /// but this host's is involved.
        PlaylistEdge = "playlist_edge",
    }
}

/// Player-seconds of live streams, which decide the basis of their run. How far dates are ahead
/// hangs on how soon after its segment a playlist is loaded: viewers of one stream, each by its own
/// playlists, would disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyVote {
    /// All of them.
    live: u64,
    /// Those of playlists with dates.
    dated: u64,
    /// Of `dated`, those whose dates were more than [`DATES_AHEAD_US_MAX`] ahead of the clock.
    ahead: u64,
}

impl LatencyVote {
    /// That of all these seconds.
    #[must_use]
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a PlaybackRow>) -> Self {
        let mut vote = Self::default();
        rows.into_iter().for_each(|row| vote.add(row));
        vote
    }

    /// Adds a second.
    pub fn add(&mut self, row: &PlaybackRow) {
        let (edge, dated) = (row.edge_latency_us.count(), row.latency_us.count());
        // Of versions that measured each player by one basis these are the others.
        let live = if row.dates_ahead.is_some() { edge } else { edge.saturating_add(dated) };
        self.live = self.live.saturating_add(live);
        self.dated = self.dated.saturating_add(dated);
        self.ahead = self.ahead.saturating_add(row.dates_ahead.unwrap_or(0).into());
    }

    /// The basis: dates where all players have them and they are not in the future, else the ends
    /// of playlists, which all players know.
    #[must_use]
    pub fn basis(&self) -> LatencyBasis {
        let are_usual = [self.undated_ratio(), self.dates_ahead_ratio()]
            .into_iter()
            .all(|exceptions| exceptions <= EXCEPTIONS_RATIO_MAX);
        if self.dated > 0 && are_usual {
            LatencyBasis::ProgramDateTime
        } else {
            LatencyBasis::PlaylistEdge
        }
    }

    /// Share of the player-seconds without dates.
    #[must_use]
    pub fn undated_ratio(&self) -> f64 {
        self.live.saturating_sub(self.dated) as f64 / self.live.max(1) as f64
    }

    /// Share of the player-seconds with dates whose dates were ahead of this host's clock.
    #[must_use]
    pub fn dates_ahead_ratio(&self) -> f64 {
        self.ahead as f64 / self.dated.max(1) as f64
    }
}

impl PlaybackRow {
    /// The latency of its players by `basis`, microseconds.
    #[must_use]
    pub fn latency_us_by(&self, basis: LatencyBasis) -> &Distribution {
        match basis {
            LatencyBasis::ProgramDateTime => &self.latency_us,
            LatencyBasis::PlaylistEdge => &self.edge_latency_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of `live` players, of which `dated` have dates and `dates_ahead` find them ahead of
    /// the clock.
    fn second(live: u32, dated: u32, dates_ahead: u32) -> PlaybackRow {
        let dates_ahead = Some(dates_ahead);
        let mut row = PlaybackRow { players: live, dates_ahead, ..PlaybackRow::default() };
        (0..live).for_each(|_| row.edge_latency_us.record(12_000_000));
        (0..dated).for_each(|_| row.latency_us.record(14_000_000));
        row
    }

    #[test]
    fn a_run_has_one_basis_that_its_seconds_together_decide() {
        use LatencyBasis::{PlaylistEdge, ProgramDateTime};
        for (what, seconds, expect) in [
            ("all dated", vec![second(10, 10, 0); 30], ProgramDateTime),
            ("none dated", vec![second(10, 0, 0); 30], PlaylistEdge),
            (
                "a third is ahead",
                vec![second(10, 10, 0), second(10, 10, 10), second(10, 10, 0)],
                PlaylistEdge,
            ),
            (
                "one in twenty is ahead",
                [vec![second(10, 10, 0); 19], vec![second(10, 10, 10)]].concat(),
                PlaylistEdge,
            ),
            (
                "one in two hundred is",
                [vec![second(10, 10, 0); 19], vec![second(10, 10, 1)]].concat(),
                ProgramDateTime,
            ),
            ("one stream of two has none", vec![second(10, 5, 0); 30], PlaylistEdge),
            (
                "all dated, of a version that measured each by one basis",
                vec![PlaybackRow { dates_ahead: None, ..second(0, 10, 0) }; 30],
                ProgramDateTime,
            ),
            (
                "a third without, of such a version",
                vec![PlaybackRow { dates_ahead: None, ..second(5, 10, 0) }; 30],
                PlaylistEdge,
            ),
        ] {
            assert_eq!(LatencyVote::of(&seconds).basis(), expect, "{what}");
        }
        let vote = LatencyVote::of(&[second(10, 8, 2)]);
        assert_eq!((vote.undated_ratio(), vote.dates_ahead_ratio()), (0.2, 0.25));
        let old = PlaybackRow { dates_ahead: None, ..second(2, 8, 0) };
        assert_eq!(LatencyVote::of(&[old]).undated_ratio(), 0.2);
        assert_eq!(LatencyVote::default().basis(), PlaylistEdge);
    }
}
