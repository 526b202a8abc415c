//! The source's frame rate, from the steps between RTP timestamps: what was sent, received or not.

/// Frames averaged: about a second, so that a change of rate shows within a second or two.
const FRAMES: usize = 32;

/// Steps needed for a rate.
const MIN_STEPS: usize = 5;

/// Timestamps of the last frames.
#[derive(Clone, Debug)]
pub struct SourceRateMeter {
    clock_hz: f32,
    timestamps: [u32; FRAMES],
    frames: usize,
}

impl SourceRateMeter {
    /// A meter for an RTP clock of `clock_rate_hz`.
    #[must_use]
    pub fn new(clock_rate_hz: u32) -> Self {
        Self { clock_hz: clock_rate_hz as f32, timestamps: [0; FRAMES], frames: 0 }
    }

    /// A frame, complete or not, with this timestamp was sent.
    pub fn frame(&mut self, timestamp: u32) {
        if let Some(slot) = self.timestamps.get_mut(self.frames % FRAMES) {
            *slot = timestamp;
        }
        self.frames += 1;
    }

    /// The next frame belongs to another timeline.
    pub fn restart(&mut self) {
        self.frames = 0;
    }

    /// Clock rate over the mean of the steps between half and one and a half of their median.
    ///
    /// Timestamps are sorted first, because those of frames sent in decoding order (B-frames) go
    /// back and forth; the median shows which steps are outliers (over lost frames); the mean turns
    /// 33, 33, 34 ms into thirty frames a second.
    #[must_use]
    pub fn frames_per_second(&self) -> Option<f32> {
        let known = self.frames.min(FRAMES);
        let newest = *self.timestamps.get(self.frames.checked_sub(1)? % FRAMES)?;
        let mut ages = self.timestamps.map(|t| super::timestamp::step(t, newest));
        let ages = ages.get_mut(..known)?;
        ages.sort_unstable();
        let mut steps = [0_i64; FRAMES];
        let mut count = 0;
        for (slot, pair) in steps.iter_mut().zip(ages.windows(2)) {
            if let [a, b] = pair {
                *slot = i64::from(*b) - i64::from(*a);
                count += 1;
            }
        }
        let steps = steps.get_mut(..count)?;
        if steps.len() < MIN_STEPS {
            return None;
        }
        steps.sort_unstable();
        let median = *steps.get(steps.len() / 2)?;
        let usual = steps.iter().filter(|&&s| 2 * s > median && 2 * s < 3 * median);
        let (sum, usual) = usual.fold((0_i64, 0_u32), |(sum, n), s| (sum + s, n + 1));
        (sum > 0).then(|| self.clock_hz * usual as f32 / sum as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(timestamps: impl IntoIterator<Item = u32>) -> Option<f32> {
        let mut meter = SourceRateMeter::new(90_000);
        timestamps.into_iter().for_each(|t| meter.frame(t));
        meter.frames_per_second()
    }

    #[test]
    fn the_rate_is_the_source_s_whatever_was_lost_and_in_which_order_it_came() {
        for (what, timestamps, expect) in [
            ("25 fps", (0..40).map(|i| i * 3600).collect::<Vec<_>>(), Some(25.0)),
            ("29.97 fps", (0..40).map(|i| i * 3003).collect(), Some(29.97)),
            ("milliseconds", (0..40).map(|i| i * 100 / 3 * 90).collect(), Some(30.0)),
            (
                "every third lost",
                (0..40).filter(|i| i % 3 != 0).map(|i| i * 1500).collect(),
                Some(60.0),
            ),
            (
                "a gap of a minute",
                (0..40).map(|i| i * 3000 + i / 20 * 5_400_000).collect(),
                Some(30.0),
            ),
            (
                "B-frames",
                [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11].map(|i| i * 3000).to_vec(),
                Some(30.0),
            ),
            (
                "over the wrap",
                (0..40).map(|i: u32| (u32::MAX - 9000).wrapping_add(i * 3000)).collect(),
                Some(30.0),
            ),
            ("too few", (0..5).map(|i| i * 3000).collect(), None),
            ("standing still", vec![7; 40], None),
        ] {
            match (rate(timestamps), expect) {
                (Some(got), Some(expect)) => assert!((got - expect).abs() < 0.35, "{what}: {got}"),
                (got, expect) => assert_eq!(got, expect, "{what}"),
            }
        }
    }

    #[test]
    fn a_change_from_25_to_30_shows_when_the_window_has_turned_over() {
        let mut meter = SourceRateMeter::new(90_000);
        (0..50).for_each(|i| meter.frame(i * 3600));
        assert_eq!(meter.frames_per_second(), Some(25.0));
        (1..=32).for_each(|i| meter.frame(49 * 3600 + i * 3000));
        assert_eq!(meter.frames_per_second(), Some(30.0));
    }
}
