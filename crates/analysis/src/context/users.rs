//! How the users fared in the three windows.

use throng_observation::host::measured::Window;
use throng_observation::{Clause, Distribution, MediaKind, RunTime};

use super::{Context, Reading, middle, whole_seconds};
use crate::windows::{SecondQuality, quality_by_second};

/// How the users fared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Users {
    /// Share of user-seconds that were bad.
    pub(crate) bad_ratio: Reading,
    /// Those who were not connected or without media, of the user-seconds that were bad.
    pub(crate) not_served: Reading,
    /// Median of the delay above the tracks' floors, milliseconds.
    pub(crate) delay_ms: Reading,
    /// Packets lost for good, of those expected.
    pub(crate) loss_ratio: Reading,
    /// Packets that did not come at first, of those expected: lost for good, or sent again.
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
        let quality_by_second = quality_by_second(self.run);
        let in_window = |window: Window| {
            let whole = whole_seconds(window);
            RunTime(whole.from_us).second()..RunTime(whole.until_us).second()
        };
        let mean = |of: &dyn Fn(&SecondQuality) -> (u64, u64)| {
            self.reading(|window| {
                let (part, whole) = quality_by_second
                    .range(in_window(window))
                    .map(|(_, quality)| of(quality))
                    .fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
                (whole > 0).then(|| part as f64 / whole as f64)
            })
        };
        let not_served = |quality: &SecondQuality| {
            let of = |clause: Clause| quality.clauses[clause as usize];
            ((of(Clause::NotConnected) + of(Clause::NoMedia)).min(quality.bad), quality.bad)
        };
        let rows = |window: Window| {
            let range = in_window(window);
            self.run.series.iter().filter(move |row| range.contains(&row.second))
        };
        let has_video =
            self.run.series.iter().any(|row| row.kind == Some(MediaKind::Video) && row.tracks > 0);
        let kind = if has_video { MediaKind::Video } else { MediaKind::Audio };
        let delay = self.reading(|window| {
            let mut all = Distribution::new();
            rows(window)
                .filter(|row| row.kind == Some(kind))
                .for_each(|row| all.merge(&row.relative_delay_us));
            all.quantile(0.5).map(|us| us as f64 / 1e3)
        });
        let loss = |is_missing: bool| {
            self.reading(|window| {
                let (mut lost, mut expected) = (0.0, 0.0);
                for counters in rows(window).map(|row| &row.counters) {
                    let for_good = counters.packets_lost.max(0) as f64;
                    lost += if is_missing { for_good + counters.packets_recovered as f64 } else { for_good };
                    expected += counters.packets_expected() as f64;
                }
                (expected > 0.0).then(|| lost / expected)
            })
        };
        let fps = self.reading(|window| {
            let (mut frames, mut active_us) = (0.0, 0.0);
            for row in rows(window).filter(|row| row.kind == Some(MediaKind::Video)) {
                frames += row.counters.frames_decodable as f64;
                active_us += row.counters.active_us as f64;
            }
            (active_us > 0.0 && frames > 0.0).then(|| frames / active_us * 1e6)
        });
        let received = self.reading(|window| {
            let bytes: f64 = rows(window).map(|row| row.counters.wire_bytes as f64).sum();
            (bytes > 0.0).then(|| bytes / whole_seconds(window).seconds())
        });
        let connected = self.reading(|window| {
            let mut by_second = std::collections::BTreeMap::new();
            let range = in_window(window);
            for row in self.run.crowd.iter().filter(|row| range.contains(&row.second)) {
                *by_second.entry(row.second).or_insert(0.0) += f64::from(row.connected);
            }
            middle(by_second.into_values().collect())
        });
        Users {
            bad_ratio: mean(&|quality| (quality.bad, quality.users)),
            not_served: mean(&not_served),
            delay_ms: delay,
            loss_ratio: loss(false),
            missing_ratio: loss(true),
            fps,
            connected,
            received,
        }
    }
}
