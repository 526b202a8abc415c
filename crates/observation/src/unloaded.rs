//! What users see of media at the smallest crowd already: the pattern of a path that loses packets,
//! of a source that sends in bursts, or of the server itself. It is no limit of load. A search that
//! finds even its smallest crowd badly served by it judges larger ones by what they see beyond it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::run::SeriesRow;
use crate::units::{duration_ms, percent};
use crate::{BadIf, Clause};

/// A load fails by what exceeds its bound and this much of what is there without load, or by less
/// than one part in so many of what is shown without it.
const GROWTH: f64 = 2.0;
/// Packets of a track in a second, at least: audio in frames of 20 ms.
const PACKETS: f64 = 50.0;
/// Losses differ by so many standard deviations by chance: of 10 % of fifty packets up to 23 %.
const DEVIATIONS: f64 = 3.0;
/// Beyond these a bound raised by [`GROWTH`] could not be broken, or only by what nobody calls
/// served: most of the packets lost, a fifth of the frames shown, pictures that stand still for
/// three quarters of the time, delays of four seconds.
const RAISED_MAX: Unloaded = Unloaded {
    delay_us: 2_000_000,
    jitter_us: 2_000_000,
    loss_ppm: 250_000,
    frames_missing_ppm: 500_000,
    frozen_ppm: 500_000,
};
/// Of two halves of a load whose figures differ by no more than this share of the larger one, none
/// grows while the load lasts.
const CONSTANT_WITHIN: f64 = 0.3;
/// So do shares of some hundred packets or frames that differ by no more than this, parts per
/// million: that is chance.
const SHARE_WITHIN_PPM: u32 = 50_000;
/// The same of the share of time in freezes, of which there are few.
const FROZEN_WITHIN_PPM: u32 = 250_000;

/// The worst that tracks were in a second, or what that usually is in the seconds of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unloaded {
    /// Median of the relative delay of frames, microseconds.
    pub delay_us: u32,
    /// Interarrival jitter, microseconds.
    pub jitter_us: u32,
    /// Packets lost ÷ packets expected, parts per million.
    pub loss_ppm: u32,
    /// Part of the source's frames that could not be decoded, parts per million.
    pub frames_missing_ppm: u32,
    /// Time in which video was frozen ÷ time, of all tracks together, parts per million.
    #[serde(default)]
    pub frozen_ppm: u32,
}

impl Unloaded {
    /// That of the tracks of a second.
    #[must_use]
    pub fn of(row: &SeriesRow) -> Self {
        let fitting = |value: Option<u64>| u32::try_from(value.unwrap_or(0)).unwrap_or(u32::MAX);
        let fps = row
            .source_fps
            .mean_milli()
            .filter(|source| *source > 0)
            .zip(row.fps_milli.quantile(0.0));
        let missing =
            fps.map_or(0.0, |(source, fps)| (1.0 - fps as f64 / f64::from(source)).max(0.0));
        Self {
            delay_us: fitting(row.relative_delay_us.quantile(0.5)),
            jitter_us: fitting(row.jitter_us.quantile(1.0)),
            loss_ppm: fitting(row.loss_ppm.quantile(1.0)),
            frames_missing_ppm: (missing * 1e6) as u32,
            frozen_ppm: (row.counters.freeze_ratio().unwrap_or(0.0) * 1e6) as u32,
        }
    }

    /// The worse of both in each figure.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        Self {
            delay_us: self.delay_us.max(other.delay_us),
            jitter_us: self.jitter_us.max(other.jitter_us),
            loss_ppm: self.loss_ppm.max(other.loss_ppm),
            frames_missing_ppm: self.frames_missing_ppm.max(other.frames_missing_ppm),
            frozen_ppm: self.frozen_ppm.max(other.frozen_ppm),
        }
    }

    /// Only the figures whose clause `is_counted`; the others are 0.
    #[must_use]
    pub fn of_clauses(self, is_counted: impl Fn(Clause) -> bool) -> Self {
        let counted = |clause, figure| if is_counted(clause) { figure } else { 0 };
        Self {
            delay_us: counted(Clause::Delay, self.delay_us),
            jitter_us: counted(Clause::Jitter, self.jitter_us),
            loss_ppm: counted(Clause::Loss, self.loss_ppm),
            frames_missing_ppm: counted(Clause::Fps, self.frames_missing_ppm),
            frozen_ppm: counted(Clause::Freeze, self.frozen_ppm),
        }
    }

    /// Whether bounds [beyond](BadIf::beyond) it can still be broken.
    #[must_use]
    pub fn leaves_room(&self) -> bool {
        self.worst(RAISED_MAX) == RAISED_MAX
    }

    /// Whether it breaks none of these bounds, those of a live track.
    #[must_use]
    pub fn is_within(&self, bounds: &BadIf) -> bool {
        let ratio = |ppm: u32| f64::from(ppm) / 1e6;
        f64::from(self.delay_us) <= bounds.delay_us_max(false)
            && f64::from(self.jitter_us) / 1e3 <= bounds.jitter_ms_max
            && ratio(self.loss_ppm) <= bounds.loss_ratio_max
            && 1.0 - ratio(self.frames_missing_ppm) >= bounds.fps_ratio_min
            && ratio(self.frozen_ppm) <= bounds.freeze_ratio_max
    }

    /// Whether each figure is about the same as that of `other`.
    #[must_use]
    pub fn is_about(&self, other: &Self) -> bool {
        let is_near = |one: u32, other: u32, by_chance: u32| {
            let within = CONSTANT_WITHIN * f64::from(one.max(other));
            f64::from(one.abs_diff(other)) <= within.max(f64::from(by_chance))
        };
        is_near(self.delay_us, other.delay_us, 0)
            && is_near(self.jitter_us, other.jitter_us, 0)
            && is_near(self.loss_ppm, other.loss_ppm, SHARE_WITHIN_PPM)
            && is_near(self.frames_missing_ppm, other.frames_missing_ppm, SHARE_WITHIN_PPM)
            && is_near(self.frozen_ppm, other.frozen_ppm, FROZEN_WITHIN_PPM)
    }

    /// The median of each figure, but the mean of freezes, which come now and then; all 0 without
    /// seconds.
    #[must_use]
    pub fn usual(seconds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> u32| {
            let mut figures: Vec<u32> = seconds.iter().map(figure).collect();
            figures.sort_unstable();
            figures.get(figures.len() / 2).copied().unwrap_or(0)
        };
        let frozen: u64 = seconds.iter().map(|second| u64::from(second.frozen_ppm)).sum();
        let frozen_ppm = frozen.checked_div(seconds.len() as u64).unwrap_or(0);
        Self {
            delay_us: of(|second| second.delay_us),
            jitter_us: of(|second| second.jitter_us),
            loss_ppm: of(|second| second.loss_ppm),
            frames_missing_ppm: of(|second| second.frames_missing_ppm),
            frozen_ppm: u32::try_from(frozen_ppm).unwrap_or(u32::MAX),
        }
    }
}

/// As "delay 290 ms, 10.0 % of the packets lost, frozen 4.00 % of the time": what there is.
impl fmt::Display for Unloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |ppm: u32| percent(f64::from(ppm) / 1e6);
        let mut parts = Vec::new();
        for (what, us) in [("delay", self.delay_us), ("jitter", self.jitter_us)] {
            if us > 0 {
                parts.push(format!("{what} {}", duration_ms(f64::from(us) / 1e3)));
            }
        }
        if self.loss_ppm > 0 {
            parts.push(format!("{} of the packets lost", share(self.loss_ppm)));
        }
        if self.frames_missing_ppm > 0 {
            parts.push(format!("{} of the frames missing", share(self.frames_missing_ppm)));
        }
        if self.frozen_ppm > 0 {
            parts.push(format!("frozen {} of the time", share(self.frozen_ppm)));
        }
        f.write_str(&parts.join(", "))
    }
}

impl BadIf {
    /// These bounds, above what users see without load. A bound that it does not break stays, but
    /// where packets are lost frames may be missing and freeze, which a short look need not have
    /// shown; raised bounds stay as they are.
    #[must_use]
    pub fn beyond(self, unloaded: &Unloaded) -> Self {
        let raised =
            |bound: f64, seen: f64| if seen > bound { bound + GROWTH * seen } else { bound };
        let delay_ms = f64::from(unloaded.delay_us) / 1e3;
        let loss_ratio = f64::from(unloaded.loss_ppm) / 1e6;
        let is_lossy = loss_ratio > self.loss_ratio_max;
        let by_chance = DEVIATIONS * (loss_ratio / PACKETS).sqrt();
        let shown_ratio = 1.0 - f64::from(unloaded.frames_missing_ppm) / 1e6;
        let fps_part = if shown_ratio < self.fps_ratio_min {
            shown_ratio / GROWTH
        } else if is_lossy {
            1.0 / GROWTH
        } else {
            1.0
        };
        let frozen_ratio = f64::from(unloaded.frozen_ppm) / 1e6;
        let is_frozen = is_lossy || frozen_ratio > self.freeze_ratio_max;
        let freeze_ratio = if is_frozen { 1.0 - (1.0 - frozen_ratio) / GROWTH } else { 0.0 };
        Self {
            loss_ratio_max: raised(self.loss_ratio_max, loss_ratio)
                + if is_lossy { by_chance } else { 0.0 },
            delay_ms_max: raised(self.delay_ms_max, delay_ms),
            recorded_delay_ms_max: raised(self.recorded_delay_ms_max, delay_ms),
            jitter_ms_max: raised(self.jitter_ms_max, f64::from(unloaded.jitter_us) / 1e3),
            fps_ratio_min: self.fps_ratio_min * fps_part,
            freeze_ratio_max: self.freeze_ratio_max.max(freeze_ratio),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::SourceFps;
    use crate::{Distribution, TrackCounters};

    const BURSTY: Unloaded = Unloaded {
        delay_us: 290_000,
        jitter_us: 48_000,
        loss_ppm: 0,
        frames_missing_ppm: 0,
        frozen_ppm: 0,
    };

    #[test]
    fn a_bound_that_is_broken_without_load_is_raised_and_no_other() {
        let usual = BadIf::default();
        let bursty = usual.beyond(&BURSTY);
        assert_eq!(bursty, BadIf { delay_ms_max: 150.0 + 580.0, ..usual });
        assert_eq!(bursty.beyond(&BURSTY), bursty, "once");
        let lossy =
            Unloaded { loss_ppm: 100_000, frames_missing_ppm: 500_000, ..Unloaded::default() };
        let beyond = usual.beyond(&lossy);
        assert!((beyond.loss_ratio_max - (0.21 + 3.0 * 0.002_f64.sqrt())).abs() < 1e-9);
        assert!((beyond.fps_ratio_min - 0.2).abs() < 1e-9, "{beyond:?}");
        assert!((beyond.freeze_ratio_max - 0.5).abs() < 1e-9, "{beyond:?}");
        assert_eq!(beyond.beyond(&lossy), beyond, "once");
        assert_eq!(usual.beyond(&Unloaded::default()), usual);
    }

    #[test]
    fn frames_may_freeze_and_be_missing_where_packets_are_lost_and_more_where_they_do() {
        let usual = BadIf::default();
        let lossy = Unloaded { loss_ppm: 100_000, ..Unloaded::default() };
        let frozen = Unloaded { frozen_ppm: 200_000, ..lossy };
        for (seen, expected) in [(lossy, 0.5), (frozen, 0.6)] {
            let beyond = usual.beyond(&seen);
            assert!((beyond.freeze_ratio_max - expected).abs() < 1e-9, "{beyond:?}");
            assert!((beyond.fps_ratio_min - 0.4).abs() < 1e-9, "{beyond:?}");
            assert_eq!(beyond.beyond(&seen), beyond, "once");
        }
        let frozen = Unloaded { loss_ppm: 0, ..frozen };
        let beyond = usual.beyond(&frozen);
        assert_eq!(
            beyond,
            BadIf { freeze_ratio_max: beyond.freeze_ratio_max, ..usual },
            "and nothing but freezes where nothing is lost"
        );
        assert_eq!(frozen.to_string(), "frozen 20.0 % of the time");
    }

    #[test]
    fn bounds_beyond_a_pattern_can_be_broken_or_there_is_none() {
        let none = Unloaded::default();
        for beyond in [0, 1] {
            let most = [
                Unloaded { loss_ppm: 250_000 + beyond, ..none },
                Unloaded { frames_missing_ppm: 500_000 + beyond, ..none },
                Unloaded { frozen_ppm: 500_000 + beyond, ..none },
                Unloaded { delay_us: 2_000_000 + beyond, ..none },
            ];
            assert!(most.iter().all(|seen| seen.leaves_room() == (beyond == 0)), "{most:?}");
        }
        let worst = BadIf::default().beyond(&RAISED_MAX);
        assert!(worst.loss_ratio_max < 1.0 && worst.freeze_ratio_max < 1.0, "{worst:?}");
        assert!(worst.fps_ratio_min > 0.0, "{worst:?}");
    }

    #[test]
    fn figures_of_clauses_that_made_nobody_bad_are_none_of_the_pattern() {
        let delayed = Unloaded { jitter_us: 0, ..BURSTY };
        assert_eq!(BURSTY.of_clauses(|clause| clause == Clause::Delay), delayed);
        assert_eq!(BURSTY.of_clauses(|_| false), Unloaded::default());
        assert!(!delayed.is_within(&BadIf::default()));
        assert!(delayed.is_within(&BadIf::default().beyond(&delayed)));
        assert!(delayed.is_about(&Unloaded { delay_us: 210_000, ..delayed }));
        assert!(!delayed.is_about(&Unloaded { delay_us: 200_000, ..delayed }));
        assert!(!delayed.is_about(&BURSTY));
        // Of fifty packets one more or less is chance, and so is a freeze.
        let lossy = |loss_ppm, frozen_ppm| Unloaded { loss_ppm, frozen_ppm, ..BURSTY };
        assert!(lossy(80_000, 250_000).is_about(&lossy(120_000, 0)));
        assert!(!lossy(80_000, 0).is_about(&lossy(140_000, 0)));
        assert!(!lossy(0, 0).is_about(&lossy(0, 300_000)));
    }

    #[test]
    fn the_figures_of_a_second_are_those_of_its_worst_track_and_of_a_load_their_median() {
        let samples = |values: &[u64]| {
            let mut samples = Distribution::new();
            values.iter().for_each(|value| samples.record(*value));
            samples
        };
        let row = SeriesRow {
            relative_delay_us: samples(&[1, 8, 9]),
            jitter_us: samples(&[3, 5]),
            loss_ppm: samples(&[0, 64]),
            fps_milli: samples(&[64, 128]),
            source_fps: SourceFps { tracks: 2, sum_milli: 256 },
            counters: TrackCounters {
                freeze_us: 500_000,
                active_us: 2_000_000,
                ..TrackCounters::default()
            },
            ..SeriesRow::default()
        };
        let seen = Unloaded::of(&row);
        assert_eq!((seen.delay_us, seen.jitter_us, seen.loss_ppm), (8, 5, 64));
        assert_eq!((seen.frames_missing_ppm, seen.frozen_ppm), (500_000, 250_000));
        assert_eq!(Unloaded::of(&SeriesRow::default()), Unloaded::default());
        let delayed = |delay_us| Unloaded { delay_us, ..Unloaded::default() };
        assert_eq!(Unloaded::usual(&[delayed(9), delayed(1), delayed(5)]), delayed(5));
        assert_eq!(Unloaded::usual(&[]), Unloaded::default());
        let frozen = |frozen_ppm| Unloaded { frozen_ppm, ..Unloaded::default() };
        assert_eq!(Unloaded::usual(&[frozen(0), frozen(0), frozen(300_000)]), frozen(100_000));
        assert_eq!(delayed(9).worst(BURSTY), BURSTY);
        assert_eq!(BURSTY.to_string(), "delay 290 ms, jitter 48 ms");
    }
}
