//! The users' experience in the three windows.

use std::collections::BTreeMap;
use std::ops::Range;

use throng_observation::host::measured::Window;
use throng_observation::run::{CrowdRow, SeriesRow};
use throng_observation::{
    Clause, Distribution, MediaKind, PlaybackCounters, Received, SecondRow as _, TrackCounters,
};

use super::{Context, Reading, middle};
use crate::findings::{Evidence, FRAME_DELAY, NOT_DELIVERED, PACKETS_LOST, WAITING};
use crate::windows::{SecondQuality, quality_by_second, second_range, sources, whole_seconds};

/// The users' experience.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Users {
    /// Share of user-seconds that were bad.
    pub(crate) bad_ratio: Reading,
    /// Share of the bad user-seconds that are of users that were not connected or had no media.
    pub(crate) not_served: Reading,
    /// Median of the frames' delay above the minimum of their track, milliseconds.
    pub(crate) delay_ms: Reading,
    /// Packets lost for good, of those expected.
    pub(crate) loss_ratio: Reading,
    /// Packets missing at first, of those expected: lost for good or retransmitted.
    pub(crate) missed_ratio: Reading,
    /// Decodable frames a second of a video track.
    pub(crate) fps: Reading,
    /// Time that players stalled or waited for playback to begin, of the time in which they were
    /// meant to play.
    pub(crate) waiting_ratio: Reading,
    /// Media time that players lacked, of the time in which they wanted it: what delivery lacks to
    /// the media's bit rate.
    pub(crate) shortfall_ratio: Reading,
    /// Connected participants.
    pub(crate) connected: Reading,
    /// Users without a bad second, the median second.
    pub(crate) served: Reading,
    /// Received by all ([`Received`]), bytes a second.
    pub(crate) received: Reading,
}

impl Context<'_> {
    pub(super) fn users(&self) -> Users {
        let not_served = |quality: &SecondQuality| {
            let of = |clause: Clause| quality.clauses[clause as usize];
            ((of(Clause::NotConnected) + of(Clause::NoMedia)).min(quality.bad), quality.bad)
        };
        Users {
            bad_ratio: self.share_of_users(|quality| (quality.bad, quality.users)),
            not_served: self.share_of_users(not_served),
            delay_ms: self.delay_ms(),
            loss_ratio: self.of_tracks(|_| true, TrackCounters::packet_loss_ratio),
            missed_ratio: self.of_tracks(|_| true, TrackCounters::missed_ratio),
            fps: self.of_tracks(
                |row| row.kind == Some(MediaKind::Video),
                |sums| sums.fps_of_active().filter(|fps| *fps > 0.0),
            ),
            waiting_ratio: self.of_players(PlaybackCounters::waiting_ratio),
            shortfall_ratio: self.of_players(shortfall_ratio),
            connected: self.connected(),
            served: self.served(),
            received: self.received(),
        }
    }

    pub(super) fn rows(&self, window: Window) -> impl Iterator<Item = &SeriesRow> {
        let seconds = at_least_one(window);
        self.run.series.iter().filter(move |row| seconds.contains(&row.second))
    }

    /// The ratio of the sums of what `of` gives for each second.
    fn share_of_users(&self, of: impl Fn(&SecondQuality) -> (u64, u64)) -> Reading {
        let quality_by_second = quality_by_second(self.run);
        self.reading(|window| {
            let (part, whole) = quality_by_second
                .range(at_least_one(window))
                .map(|(_, quality)| of(quality))
                .fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
            (whole > 0).then(|| part as f64 / whole as f64)
        })
    }

    /// A figure of the sums of the tracks that count.
    fn of_tracks(
        &self,
        counts: impl Fn(&SeriesRow) -> bool,
        figure: impl Fn(&TrackCounters) -> Option<f64>,
    ) -> Reading {
        self.reading(|window| figure(&self.sums_of_tracks(window, &counts)))
    }

    /// The sums of the tracks that count. A packet that came late makes the loss of its own row
    /// negative, and of another one too high: what is derived from sums is derived from all rows.
    pub(super) fn sums_of_tracks(
        &self,
        window: Window,
        counts: impl Fn(&SeriesRow) -> bool,
    ) -> TrackCounters {
        let mut sums = TrackCounters::default();
        self.rows(window).filter(|row| counts(row)).for_each(|row| sums += row.counters);
        sums
    }

    /// A figure of the sums of all players.
    fn of_players(&self, figure: impl Fn(&PlaybackCounters) -> Option<f64>) -> Reading {
        self.reading(|window| {
            let (mut sums, seconds) = (PlaybackCounters::default(), at_least_one(window));
            let rows = self.run.playback.iter().filter(|row| seconds.contains(&row.second));
            rows.for_each(|row| sums += row.counters);
            figure(&sums)
        })
    }

    /// Of video, or of audio in a run without video.
    fn delay_ms(&self) -> Reading {
        let is_video = |row: &SeriesRow| row.kind == Some(MediaKind::Video) && row.tracks > 0;
        let has_video = self.run.series.iter().any(is_video);
        let kind = if has_video { MediaKind::Video } else { MediaKind::Audio };
        self.reading(|window| {
            let mut all = Distribution::new();
            let of_kind = self.rows(window).filter(|row| row.kind == Some(kind));
            of_kind.for_each(|row| all.merge(&row.relative_delay_us));
            all.quantile_in(0.5, 1e3)
        })
    }

    fn received(&self) -> Reading {
        let received = Received::of_run(self.run);
        self.reading(|window| {
            let bytes = received.bytes(at_least_one(window));
            // Over the whole window: it is compared with what a card sent in all of it.
            (bytes > 0).then(|| bytes as f64 / whole_seconds(window).seconds())
        })
    }

    /// Without the sources of the run itself: a publisher beside viewers is no user that is served.
    fn served(&self) -> Reading {
        let sources = sources(self.run);
        let users = self.run.experience.iter().filter(|row| !sources.contains(&row.cohort));
        let mut by_second: BTreeMap<i64, u32> = BTreeMap::new();
        for row in users {
            *by_second.entry(row.second).or_default() += row.users.saturating_sub(row.bad);
        }
        self.reading(|window| {
            let rows = by_second.range(at_least_one(window));
            middle(rows.map(|(_, served)| f64::from(*served)).collect())
        })
    }

    fn connected(&self) -> Reading {
        let by_second = CrowdRow::by_second(&self.run.crowd);
        self.reading(|window| {
            let rows = by_second.range(at_least_one(window));
            middle(rows.map(|(_, row)| f64::from(row.connected)).collect())
        })
    }
}

impl Users {
    /// The lines of evidence of what the users have: delay and loss of media that comes as packets,
    /// stalls and delivery of players. Only what was measured.
    pub(crate) fn evidence(&self) -> Vec<Evidence> {
        let lines = [
            (Evidence::milliseconds(FRAME_DELAY, self.delay_ms), self.delay_ms),
            (Evidence::ratio(PACKETS_LOST, self.loss_ratio), self.loss_ratio),
            (Evidence::ratio(NOT_DELIVERED, self.shortfall_ratio), self.shortfall_ratio),
            (Evidence::ratio(WAITING, self.waiting_ratio), self.waiting_ratio),
        ];
        let is_measured = |reading: &Reading| {
            reading.base.is_some() || reading.pass.is_some() || reading.fail.is_some()
        };
        lines
            .into_iter()
            .filter(|(_, reading)| is_measured(reading))
            .map(|(line, _)| line)
            .collect()
    }

    /// The first of them: what the users have of a full resource.
    pub(crate) fn first_evidence(&self) -> Evidence {
        let first = self.evidence().into_iter().next();
        first.unwrap_or_else(|| Evidence::milliseconds(FRAME_DELAY, self.delay_ms))
    }

    /// Whether their media comes as packets: not where all are players that fetch it.
    pub(crate) fn have_packets(&self) -> bool {
        self.loss_ratio.fail.is_some()
            || self.shortfall_ratio.fail.is_none() && self.waiting_ratio.fail.is_none()
    }
}

/// What delivery lacks to the media's bit rate. Players with full buffers, or at the end of a live
/// stream, hardly want media, so that nothing is lacking: that is what a shortfall grows from.
fn shortfall_ratio(sums: &PlaybackCounters) -> Option<f64> {
    let lacks = sums.delivery_ratio().map(|ratio| (1.0 - ratio).max(0.0));
    lacks.or((sums.active_us > 0).then_some(0.0))
}

/// The whole seconds of a window, at least one.
fn at_least_one(window: Window) -> Range<i64> {
    second_range(whole_seconds(window))
}
