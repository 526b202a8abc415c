//! What users see of media at the smallest crowd already: the pattern of a path that loses packets,
//! of a source that sends in bursts, or of the server itself. It is no limit of load. A search that
//! finds even its smallest crowd badly served by it judges larger ones by what they see beyond it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::run::SeriesRow;
use crate::units::{duration_ms, percent};
use crate::{BadIf, Clause};

/// A load fails by what exceeds its bound and this much of what is there without load: path loss of
/// 10 % is 5 to 17 % in a second of a hundred packets.
const GROWTH: f64 = 2.0;
/// Beyond these a bound raised by [`GROWTH`] could not be broken, or only by what nobody calls
/// served: half of the packets lost, a fifth of the frames shown, delays of four seconds.
const RAISED_MAX: Unloaded = Unloaded {
    delay_us: 2_000_000,
    jitter_us: 2_000_000,
    loss_ppm: 250_000,
    frames_missing_ppm: 500_000,
};
/// Of two halves of a load whose figures differ by no more than this share of the larger one, none
/// grows while the load lasts.
const CONSTANT_WITHIN: f64 = 0.3;

/// The worst that tracks were in a second, or the median of that over the seconds of a load.
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
        }
    }

    /// Whether bounds [beyond](BadIf::beyond) it can still be broken.
    #[must_use]
    pub fn leaves_room(&self) -> bool {
        self.worst(RAISED_MAX) == RAISED_MAX
    }

    /// Whether each figure is about the same as that of `other`.
    #[must_use]
    pub fn is_about(&self, other: &Self) -> bool {
        let is_near = |one: u32, other: u32| {
            f64::from(one.abs_diff(other)) <= CONSTANT_WITHIN * f64::from(one.max(other))
        };
        is_near(self.delay_us, other.delay_us)
            && is_near(self.jitter_us, other.jitter_us)
            && is_near(self.loss_ppm, other.loss_ppm)
            && is_near(self.frames_missing_ppm, other.frames_missing_ppm)
    }

    /// The median of each figure; all 0 without seconds.
    #[must_use]
    pub fn median(seconds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> u32| {
            let mut figures: Vec<u32> = seconds.iter().map(figure).collect();
            figures.sort_unstable();
            figures.get(figures.len() / 2).copied().unwrap_or(0)
        };
        Self {
            delay_us: of(|second| second.delay_us),
            jitter_us: of(|second| second.jitter_us),
            loss_ppm: of(|second| second.loss_ppm),
            frames_missing_ppm: of(|second| second.frames_missing_ppm),
        }
    }
}

/// As "delay 290 ms, jitter 48 ms, 10.0 % of the packets lost".
impl fmt::Display for Unloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |ppm: u32| percent(f64::from(ppm) / 1e6);
        let mut parts = vec![
            format!("delay {}", duration_ms(f64::from(self.delay_us) / 1e3)),
            format!("jitter {}", duration_ms(f64::from(self.jitter_us) / 1e3)),
        ];
        if self.loss_ppm > 0 {
            parts.push(format!("{} of the packets lost", share(self.loss_ppm)));
        }
        if self.frames_missing_ppm > 0 {
            parts.push(format!("{} of the frames missing", share(self.frames_missing_ppm)));
        }
        f.write_str(&parts.join(", "))
    }
}

impl BadIf {
    /// These bounds, above what users see without load. A bound that it does not break stays;
    /// raised bounds stay as they are.
    #[must_use]
    pub fn beyond(self, unloaded: &Unloaded) -> Self {
        let raised =
            |bound: f64, seen: f64| if seen > bound { bound + GROWTH * seen } else { bound };
        let delay_ms = f64::from(unloaded.delay_us) / 1e3;
        let shown_ratio = 1.0 - f64::from(unloaded.frames_missing_ppm) / 1e6;
        let is_short = shown_ratio < self.fps_ratio_min;
        Self {
            loss_ratio_max: raised(self.loss_ratio_max, f64::from(unloaded.loss_ppm) / 1e6),
            delay_ms_max: raised(self.delay_ms_max, delay_ms),
            recorded_delay_ms_max: raised(self.recorded_delay_ms_max, delay_ms),
            jitter_ms_max: raised(self.jitter_ms_max, f64::from(unloaded.jitter_us) / 1e3),
            fps_ratio_min: self.fps_ratio_min * if is_short { shown_ratio / GROWTH } else { 1.0 },
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Distribution;
    use crate::run::SourceFps;

    const BURSTY: Unloaded =
        Unloaded { delay_us: 290_000, jitter_us: 48_000, loss_ppm: 0, frames_missing_ppm: 0 };

    #[test]
    fn a_bound_that_is_broken_without_load_is_raised_and_no_other() {
        let usual = BadIf::default();
        let bursty = usual.beyond(&BURSTY);
        assert_eq!(bursty, BadIf { delay_ms_max: 150.0 + 580.0, ..usual });
        assert_eq!(bursty.beyond(&BURSTY), bursty, "once");
        let lossy =
            Unloaded { loss_ppm: 100_000, frames_missing_ppm: 500_000, ..Unloaded::default() };
        let lossy = usual.beyond(&lossy);
        assert!(
            (lossy.loss_ratio_max - 0.21).abs() < 1e-9 && (lossy.fps_ratio_min - 0.2).abs() < 1e-9
        );
        assert_eq!(usual.beyond(&Unloaded::default()), usual);
    }

    #[test]
    fn bounds_beyond_a_pattern_can_be_broken_or_there_is_none() {
        let none = Unloaded::default();
        for beyond in [0, 1] {
            let most = [
                Unloaded { loss_ppm: 250_000 + beyond, ..none },
                Unloaded { frames_missing_ppm: 500_000 + beyond, ..none },
                Unloaded { delay_us: 2_000_000 + beyond, ..none },
            ];
            assert!(most.iter().all(|seen| seen.leaves_room() == (beyond == 0)), "{most:?}");
        }
        let worst = BadIf::default().beyond(&RAISED_MAX);
        assert!(worst.loss_ratio_max < 1.0 && worst.fps_ratio_min > 0.0, "{worst:?}");
    }

    #[test]
    fn figures_of_clauses_that_made_nobody_bad_are_none_of_the_pattern() {
        let delayed = Unloaded { jitter_us: 0, ..BURSTY };
        assert_eq!(BURSTY.of_clauses(|clause| clause == Clause::Delay), delayed);
        assert_eq!(BURSTY.of_clauses(|_| false), Unloaded::default());
        assert!(delayed.is_about(&Unloaded { delay_us: 210_000, ..delayed }));
        assert!(!delayed.is_about(&Unloaded { delay_us: 200_000, ..delayed }));
        assert!(!delayed.is_about(&BURSTY));
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
            ..SeriesRow::default()
        };
        let seen = Unloaded::of(&row);
        assert_eq!((seen.delay_us, seen.jitter_us, seen.loss_ppm), (8, 5, 64));
        assert_eq!(seen.frames_missing_ppm, 500_000);
        assert_eq!(Unloaded::of(&SeriesRow::default()), Unloaded::default());
        let delayed = |delay_us| Unloaded { delay_us, ..Unloaded::default() };
        assert_eq!(Unloaded::median(&[delayed(9), delayed(1), delayed(5)]), delayed(5));
        assert_eq!(Unloaded::median(&[]), Unloaded::default());
        assert_eq!(delayed(9).worst(BURSTY), BURSTY);
        assert_eq!(BURSTY.to_string(), "delay 290 ms, jitter 48 ms");
    }
}
