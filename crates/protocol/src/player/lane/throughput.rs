//! The download rate of a player, and the rendition that it allows: two exponentially weighted
//! means, the lower of which counts, as in hls.js (`EwmaBandWidthEstimator`, `AbrController`).

use std::time::Duration;

use throng_scenario::RenditionPolicy;

use crate::player::manifest::presentation::Rendition;

/// Estimate before the first segment, bits per second (hls.js `abrEwmaDefaultEstimate`).
const DEFAULT_BPS: f64 = 500_000.0;
/// The most that it is raised to (hls.js `abrEwmaDefaultEstimateMax`).
const DEFAULT_MAX_BPS: f64 = 5_000_000.0;
/// Half-lives of the two means, seconds of download (hls.js `abrEwmaFastVoD`, `abrEwmaSlowVoD`).
const FAST_S: f64 = 3.0;
const SLOW_S: f64 = 9.0;
/// Share of the estimate that a rendition may need to be kept, and to be switched up to (hls.js
/// `abrBandWidthFactor`, `abrBandWidthUpFactor`).
const KEEP: f64 = 0.95;
const UP: f64 = 0.7;
/// Shorter downloads and smaller ones say nothing of the rate.
const DURATION_MIN: Duration = Duration::from_millis(50);
const BYTES_MIN: u64 = 16_000;

/// An exponentially weighted mean of rates, weighted by the time that each took.
#[derive(Clone, Copy, Debug, Default)]
struct Ewma {
    estimate: f64,
    weight: f64,
}

impl Ewma {
    fn add(&mut self, half_life_s: f64, seconds: f64, bps: f64) {
        let keeps = 0.5_f64.powf(seconds / half_life_s);
        self.estimate = bps * (1.0 - keeps) + keeps * self.estimate;
        self.weight += seconds;
    }

    /// The mean; the beginning at zero is taken out of it.
    fn get(&self, half_life_s: f64) -> Option<f64> {
        let sum = 1.0 - 0.5_f64.powf(self.weight / half_life_s);
        (sum > 0.0).then(|| self.estimate / sum)
    }
}

/// The download rate.
#[derive(Clone, Copy, Debug)]
pub(in crate::player) struct Throughput {
    fast: Ewma,
    slow: Ewma,
    default_bps: f64,
}

impl Throughput {
    /// Before the first segment the rate is taken for that of the rendition that the manifest lists
    /// first, within bounds (hls.js `level-controller.ts`, `abrEwmaDefaultEstimateMax`).
    pub(in crate::player) fn new(renditions: &[Rendition]) -> Self {
        let first = renditions.iter().find(|rendition| rendition.listed_at == Some(0));
        let first_bps = first.map_or(0.0, |first| first.bandwidth_bps as f64);
        let default_bps = first_bps.clamp(DEFAULT_BPS, DEFAULT_MAX_BPS);
        Self { fast: Ewma::default(), slow: Ewma::default(), default_bps }
    }

    /// The rendition to begin with: the best one that the rate allows without reserve (hls.js
    /// `firstAutoLevel`).
    pub(in crate::player) fn first(
        &self,
        policy: RenditionPolicy,
        renditions: &[Rendition],
    ) -> usize {
        if policy != RenditionPolicy::Adaptive {
            return self.choose(policy, renditions, 0);
        }
        let fits = |rendition: &Rendition| rendition.bandwidth_bps as f64 <= self.default_bps;
        renditions.iter().rposition(fits).unwrap_or(0)
    }

    /// So many bytes came in this time.
    pub(in crate::player) fn add(&mut self, bytes: u64, time: Duration) {
        if bytes < BYTES_MIN {
            return;
        }
        let seconds = time.max(DURATION_MIN).as_secs_f64();
        let bps = bytes as f64 * 8.0 / seconds;
        self.fast.add(FAST_S, seconds, bps);
        self.slow.add(SLOW_S, seconds, bps);
    }

    /// A segment was given up for one of this bitrate: where the rate would allow more, what is
    /// known of it is forgotten (hls.js `resetEstimator`).
    pub(in crate::player) fn gave_up_for(&mut self, bandwidth_bps: u64) {
        let bandwidth_bps = bandwidth_bps as f64;
        if self.estimate_bps() * UP > bandwidth_bps {
            *self =
                Self { fast: Ewma::default(), slow: Ewma::default(), default_bps: bandwidth_bps };
        }
    }

    /// Whether a segment has come.
    pub(in crate::player) fn is_known(&self) -> bool {
        self.fast.weight > 0.0
    }

    /// Bits per second.
    pub(in crate::player) fn estimate_bps(&self) -> f64 {
        let lower =
            self.fast.get(FAST_S).zip(self.slow.get(SLOW_S)).map(|(fast, slow)| fast.min(slow));
        lower.unwrap_or(self.default_bps)
    }

    /// The rendition to play next; they are sorted by bitrate.
    pub(in crate::player) fn choose(
        &self,
        policy: RenditionPolicy,
        renditions: &[Rendition],
        current: usize,
    ) -> usize {
        let last = renditions.len().saturating_sub(1);
        match policy {
            RenditionPolicy::Lowest => 0,
            RenditionPolicy::Highest => last,
            // Before the first segment nothing is known that was not known at the beginning.
            RenditionPolicy::Adaptive if self.fast.weight == 0.0 => current.min(last),
            RenditionPolicy::Adaptive => {
                let estimate_bps = self.estimate_bps();
                let fits = |(at, rendition): &(usize, &Rendition)| {
                    let share = if *at > current { UP } else { KEEP };
                    rendition.bandwidth_bps as f64 <= share * estimate_bps
                };
                renditions.iter().enumerate().filter(fits).map(|(at, _)| at).max().unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Vec<Rendition> {
        let of = |bandwidth_bps| Rendition {
            bandwidth_bps,
            listed_at: (bandwidth_bps == 1_000_000).then_some(0),
            resolution: None,
            playlist: None,
            variables: std::sync::Arc::default(),
            segments: None,
        };
        [400_000, 1_000_000, 3_000_000].map(of).to_vec()
    }

    #[test]
    fn the_estimate_is_that_of_constant_downloads_and_falls_faster_than_it_rises() {
        let second = Duration::from_secs(1);
        let mut throughput = Throughput::new(&[]);
        assert_eq!(throughput.estimate_bps(), DEFAULT_BPS);
        for _ in 0..5 {
            throughput.add(500_000, second);
        }
        assert!((throughput.estimate_bps() / 4e6 - 1.0).abs() < 1e-9);
        let mut rising = throughput;
        (0..3).for_each(|_| throughput.add(125_000, second));
        (0..3).for_each(|_| rising.add(2_000_000, second));
        let fallen = 4e6 - throughput.estimate_bps();
        assert!(
            (1.5e6..1.9e6).contains(&fallen),
            "more than half of the way in the half-life of the fast mean, which is young: {fallen}"
        );
        assert!(rising.estimate_bps() < 4e6 + 0.5 * 12e6, "{}", rising.estimate_bps());
        throughput.add(100, second);
        assert!((4e6 - throughput.estimate_bps() - fallen).abs() < 1.0, "too small to count");
    }

    #[test]
    fn playback_begins_with_what_is_listed_first_if_that_is_no_more_than_the_bound() {
        let ladder = ladder();
        let first =
            |ladder: &[Rendition]| Throughput::new(ladder).first(RenditionPolicy::Adaptive, ladder);
        assert_eq!(first(&ladder), 1);
        let none: Vec<_> =
            ladder.iter().cloned().map(|r| Rendition { listed_at: None, ..r }).collect();
        assert_eq!(first(&none), 0, "the default estimate");
        let high = [500_000, 9_000_000].map(|bandwidth_bps| Rendition {
            bandwidth_bps,
            listed_at: (bandwidth_bps > 5_000_000).then_some(0),
            ..ladder[0].clone()
        });
        assert_eq!(first(&high), 0);
    }

    #[test]
    fn going_up_needs_more_room_than_staying() {
        let ladder = ladder();
        let mut throughput = Throughput::new(&[]);
        let choose = |throughput: &Throughput, current| {
            throughput.choose(RenditionPolicy::Adaptive, &ladder, current)
        };
        assert_eq!(choose(&throughput, 0), 0, "the default estimate");
        throughput.add(137_500, Duration::from_secs(1));
        assert_eq!((choose(&throughput, 0), choose(&throughput, 1)), (0, 1), "1.1 Mbit/s");
        let mut fast = Throughput::new(&[]);
        fast.add(1_000_000, Duration::from_secs(1));
        assert_eq!((choose(&fast, 0), choose(&fast, 2)), (2, 2));
        assert_eq!(throughput.choose(RenditionPolicy::Highest, &ladder, 0), 2);
        assert_eq!(fast.choose(RenditionPolicy::Lowest, &ladder, 2), 0);
    }
}
