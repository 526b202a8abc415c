//! Video that paused in its sender: the server did not cause the resulting freeze at the receivers.

use throng_observation::{MediaKind, SentInterval};

use super::last_seconds::SecondNote;

/// A freeze is an interval between frames of at least `max(3 δ, δ + 150 ms)` (W3C webrtc-stats;
/// `quality/freeze.rs`).
const FREEZE_MEANS: u64 = 3;
const FREEZE_EXTRA_US: u64 = 150_000;
/// A sender's pause of this share of that bound easily becomes a freeze, …
const SHARE: (u64, u64) = (2, 3);
/// … but a freeze of more than this many times the pause has another cause.
const LONGER: (u64, u64) = (3, 2);

/// How long video paused in its sender, microseconds, if that may become a freeze and the sender
/// itself caused it. `None` otherwise, and if its receiver or the path made it send less.
pub(super) fn own_pause_us(interval: &SentInterval) -> Option<u64> {
    let frames = interval.counters.frames_sent;
    let is_asked = interval.allowed_bps < interval.wanted_bps;
    if interval.kind != MediaKind::Video || frames == 0 || is_asked {
        return None;
    }
    let length_us = u64::try_from(interval.length.as_micros()).unwrap_or(u64::MAX);
    // The pause itself is not part of the mean.
    let mean_us = length_us.saturating_sub(u64::from(interval.pause_us_max)) / (frames - 1).max(1);
    let bound_us = (FREEZE_MEANS * mean_us).max(mean_us + FREEZE_EXTRA_US);
    let pause_us = u64::from(interval.pause_us_max);
    (pause_us * SHARE.1 >= bound_us * SHARE.0).then_some(pause_us)
}

/// Whether a sender's pause explains a freeze of this length. A freeze longer than can be noted is
/// not explained by any pause.
pub(super) fn explains(pause_us: u64, still_us: u64) -> bool {
    still_us < SecondNote::STILL_US_MAX && still_us * LONGER.1 <= pause_us * LONGER.0
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use throng_observation::{Codec, SentCounters, TrackId};

    use super::*;

    fn sent(pause_us_max: u32, allowed_bps: f64) -> SentInterval {
        SentInterval {
            track: TrackId(0),
            kind: MediaKind::Video,
            codec: Codec::Vp8,
            ended_at: Instant::now(),
            length: Duration::from_secs(1),
            counters: SentCounters { frames_sent: 20, ..SentCounters::default() },
            round_trip_s: None,
            remote_loss_ratio: None,
            allowed_bps,
            wanted_bps: 273e3,
            pause_us_max,
        }
    }

    #[test]
    fn a_pause_close_to_a_freeze_is_the_senders_own_unless_it_was_limited() {
        assert_eq!(own_pause_us(&sent(50_000, 273e3)), None, "its own rhythm");
        assert_eq!(own_pause_us(&sent(120_000, 273e3)), None);
        assert_eq!(own_pause_us(&sent(134_000, 273e3)), Some(134_000), "of 196 ms");
        let mut long = sent(950_000, 273e3);
        long.counters.frames_sent = 2;
        assert_eq!(own_pause_us(&long), Some(950_000), "nearly all of the second");
        assert_eq!(own_pause_us(&sent(300_000, 200e3)), None, "it was limited");
        let sound = SentInterval { kind: MediaKind::Audio, ..sent(300_000, 273e3) };
        assert_eq!(own_pause_us(&sound), None);
    }

    #[test]
    fn a_picture_that_stands_still_for_much_longer_has_another_reason() {
        assert!(explains(140_000, 210_000) && !explains(140_000, 220_000));
        assert!(!explains(1_900_000, SecondNote::STILL_US_MAX), "or for longer");
    }
}
