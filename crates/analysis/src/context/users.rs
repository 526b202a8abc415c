//! The users' experience in the three windows.

use std::collections::BTreeMap;
use std::ops::Range;

use throng_observation::host::measured::Window;
use throng_observation::run::SeriesRow;
use throng_observation::{Clause, Distribution, MediaKind, TrackCounters};

use super::{Context, Reading, middle};
use crate::windows::{SecondQuality, quality_by_second, second_range, whole_seconds};

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
    pub(crate) missing_ratio: Reading,
    /// Decodable frames a second of a video track.
    pub(crate) fps: Reading,
    /// Connected participants.
    pub(crate) connected: Reading,
    /// Received on the wire by all, bytes a second.
    pub(crate) received: Reading,
}

impl Context<'_> {
    pub(super) fn users(&self) -> Users {
        let not_served = |quality: &SecondQuality| {
            let of = |clause: Clause| quality.clauses[clause as usize];
            ((of(Clause::NotConnected) + of(Clause::NoMedia)).min(quality.bad), quality.bad)
        };
        let lost = |counters: &TrackCounters| counters.packets_lost.max(0) as f64;
        Users {
            bad_ratio: self.share_of_users(|quality| (quality.bad, quality.users)),
            not_served: self.share_of_users(not_served),
            delay_ms: self.delay_ms(),
            loss_ratio: self.share_of_packets(lost),
            missing_ratio: self
                .share_of_packets(|counters| lost(counters) + counters.packets_recovered as f64),
            fps: self.fps(),
            connected: self.connected(),
            received: self.received(),
        }
    }

    fn rows(&self, window: Window) -> impl Iterator<Item = &SeriesRow> {
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

    fn share_of_packets(&self, of: impl Fn(&TrackCounters) -> f64) -> Reading {
        self.reading(|window| {
            let (mut packets, mut expected) = (0.0, 0.0);
            for counters in self.rows(window).map(|row| &row.counters) {
                packets += of(counters);
                expected += counters.packets_expected() as f64;
            }
            (expected > 0.0).then(|| packets / expected)
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
            all.quantile(0.5).map(|us| us as f64 / 1e3)
        })
    }

    fn fps(&self) -> Reading {
        self.reading(|window| {
            let (mut frames, mut active_us) = (0.0, 0.0);
            for row in self.rows(window).filter(|row| row.kind == Some(MediaKind::Video)) {
                frames += row.counters.frames_decodable as f64;
                active_us += row.counters.active_us as f64;
            }
            (active_us > 0.0 && frames > 0.0).then(|| frames / active_us * 1e6)
        })
    }

    fn received(&self) -> Reading {
        self.reading(|window| {
            let bytes: f64 = self.rows(window).map(|row| row.counters.wire_bytes as f64).sum();
            (bytes > 0.0).then(|| bytes / whole_seconds(window).seconds())
        })
    }

    fn connected(&self) -> Reading {
        self.reading(|window| {
            let seconds = at_least_one(window);
            let mut by_second = BTreeMap::new();
            for row in self.run.crowd.iter().filter(|row| seconds.contains(&row.second)) {
                *by_second.entry(row.second).or_insert(0.0) += f64::from(row.connected);
            }
            middle(by_second.into_values().collect())
        })
    }
}

/// The whole seconds of a window, at least one.
fn at_least_one(window: Window) -> Range<i64> {
    second_range(whole_seconds(window))
}
