//! When a segment is given up in the middle for a smaller one: when its rest would come later than
//! playback needs it, and a smaller one would come sooner (hls.js `_abandonRulesCheck` of
//! `abr-controller.ts`).

use std::time::Duration;

use crate::player::manifest::presentation::Rendition;

/// Time to the first byte before any was measured (hls.js `EwmaBandWidthEstimator`, default of
/// `getEstimateTTFB`).
const FIRST_BYTE: Duration = Duration::from_millis(100);

/// How often a player looks (hls.js: a timer of 100 ms).
pub(in crate::player) const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// A segment that would take so many times its own duration is not worth the switch.
const UNREASONABLE: f64 = 10.0;

/// A segment under way.
#[derive(Clone, Copy, Debug)]
pub(in crate::player) struct Loading {
    /// Since its request.
    pub(in crate::player) elapsed: Duration,
    /// From its request to the first byte of its body.
    pub(in crate::player) first_byte: Option<Duration>,
    pub(in crate::player) received_bytes: u64,
    pub(in crate::player) total_bytes: Option<u64>,
    pub(in crate::player) duration_us: u64,
}

impl Loading {
    /// When it is looked at first: half of its duration after its request.
    pub(in crate::player) fn looked_at_after(
        duration_us: u64,
        first_byte: Option<Duration>,
    ) -> Duration {
        Duration::from_micros(duration_us / 2).max(first_byte.unwrap_or(FIRST_BYTE))
    }

    /// Bytes a second since the first one.
    fn rate(&self) -> Option<f64> {
        let streaming = self.elapsed.saturating_sub(self.first_byte?).max(Duration::from_millis(1));
        (self.received_bytes > 0).then(|| self.received_bytes as f64 / streaming.as_secs_f64())
    }
}

/// The rendition to go on with in place of this segment of rendition `current`; `None` to let it
/// come. `buffer` is the media ahead of playback, `estimate_bps` the download rate so far.
/// `renditions` are sorted by bitrate.
pub(in crate::player) fn better(
    loading: &Loading,
    buffer: Duration,
    estimate_bps: f64,
    (renditions, current): (&[Rendition], usize),
    is_live: bool,
) -> Option<usize> {
    let first_byte_s = loading.first_byte.unwrap_or(FIRST_BYTE).as_secs_f64();
    let duration_s = loading.duration_us as f64 / 1e6;
    let bits = |rendition: &Rendition| rendition.bandwidth_bps as f64 * duration_s;
    let by_bitrate = bits(renditions.get(current)?) / 8.0;
    let expected_bytes = loading.total_bytes.map_or(by_bitrate, |total| total as f64);
    let missing_bytes = (expected_bytes - loading.received_bytes as f64).max(0.0);
    let rest_s = match loading.rate() {
        Some(rate) => missing_bytes / rate,
        None => expected_bytes * 8.0 / estimate_bps + first_byte_s,
    };
    if rest_s <= buffer.as_secs_f64() {
        return None;
    }
    let rate_bps = loading.rate().map_or(estimate_bps, |rate| rate * 8.0);
    // Its playlist must be loaded first.
    let playlist_s = if is_live { first_byte_s } else { 0.0 };
    let takes_s = |rendition: &Rendition| bits(rendition) / rate_bps + first_byte_s + playlist_s;
    let in_time_s = buffer.as_secs_f64().min(duration_s + first_byte_s);
    let lower = renditions.get(..current)?;
    let fits = lower.iter().rposition(|rendition| takes_s(rendition) < in_time_s);
    let chosen = fits.unwrap_or(0);
    let chosen_s = takes_s(lower.get(chosen)?);
    (chosen_s < rest_s && chosen_s <= duration_s * UNREASONABLE).then_some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Vec<Rendition> {
        let of = |bandwidth_bps| Rendition {
            bandwidth_bps,
            listed_at: None,
            resolution: None,
            playlist: None,
            variables: std::sync::Arc::default(),
            segments: None,
        };
        [400_000, 1_000_000, 3_000_000].map(of).to_vec()
    }

    #[test]
    fn a_segment_is_given_up_when_its_rest_comes_too_late_and_a_smaller_one_would_not() {
        let seconds = Duration::from_secs_f64;
        // 4 s at 3 Mbit/s are 1.5 MB.
        let loading = |received_bytes| Loading {
            elapsed: seconds(2.1),
            first_byte: Some(seconds(0.1)),
            received_bytes,
            total_bytes: Some(1_500_000),
            duration_us: 4_000_000,
        };
        let ladder = ladder();
        for (received_bytes, buffer_s, expect) in [
            // 2 Mbit/s: the rest takes 4 s.
            (500_000, 5.0, None),
            (500_000, 3.0, Some(1)),
            // The middle one takes 2.1 s, the smallest 0.9 s.
            (500_000, 2.0, Some(0)),
            // Nothing would come in time, and the smallest comes soonest.
            (500_000, 0.5, Some(0)),
            // The rest takes 0.2 s, which no other does.
            (1_360_000, 0.1, None),
            // 40 kbit/s: not even the smallest is worth it.
            (10_000, 0.5, None),
        ] {
            let of = better(&loading(received_bytes), seconds(buffer_s), 2e6, (&ladder, 2), false);
            assert_eq!(of, expect, "{received_bytes} bytes, {buffer_s} s");
        }
        let silent =
            Loading { first_byte: None, received_bytes: 0, total_bytes: None, ..loading(0) };
        assert_eq!(
            better(&silent, seconds(1.0), 1e6, (&ladder, 2), false),
            Some(0),
            "by the estimate: 12 s"
        );
        assert_eq!(better(&loading(500_000), seconds(2.15), 2e6, (&ladder, 2), false), Some(1));
        assert_eq!(
            better(&loading(500_000), seconds(2.15), 2e6, (&ladder, 2), true),
            Some(0),
            "a playlist more"
        );
        assert_eq!(better(&loading(500_000), seconds(0.1), 2e6, (&ladder, 0), false), None);
    }

    #[test]
    fn half_of_its_duration_passes_before_a_segment_is_looked_at() {
        let after = |ms| Loading::looked_at_after(4_000_000, Some(Duration::from_millis(ms)));
        assert_eq!(
            (after(100), after(2_500)),
            (Duration::from_secs(2), Duration::from_millis(2_500))
        );
        assert_eq!(Loading::looked_at_after(100_000, None), FIRST_BYTE);
    }
}
