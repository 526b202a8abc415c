//! What participants of all protocols over RTP share: the timing fields of receiver reports,
//! canonical names, the seconds in which intervals end, and tapped frames.

use std::time::{Duration, Instant};

use throng_media::assemble::AssembledFrame;
use throng_media::quality::WallClock;
use throng_media::rtp::NtpTime;
use throng_observation::{Codec, CodedFrame, Observation, TrackId};

/// The words of the anomaly of a source whose RTP time jumps.
pub(crate) const TIME_JUMP: &str = "the RTP time of the video jumped by more than a second with \
                                    no packet missing: browsers hold such frames back or drop \
                                    them, which no freeze here shows";

/// The last sender report of a source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastSenderReport {
    /// The middle 32 bits of its NTP time, and when it arrived.
    report: Option<(u32, Instant)>,
}

impl LastSenderReport {
    /// A sender report with this NTP time arrived.
    pub(crate) fn arrived(&mut self, ntp: NtpTime, arrived_at: Instant) {
        self.report = Some((ntp.compact(), arrived_at));
    }

    /// LSR and DLSR (RFC 3550 section 6.4.1) at `now`; both zero before the first sender report.
    pub(crate) fn lsr_and_dlsr(&self, now: Instant) -> (u32, u32) {
        let Some((compact, at)) = self.report else { return (0, 0) };
        let units =
            now.saturating_duration_since(at).as_micros().saturating_mul(65_536) / 1_000_000;
        (compact, u32::try_from(units).unwrap_or(u32::MAX))
    }
}

/// A canonical name: random (RFC 7022 section 4.2), sixteen characters as in browsers, so that
/// packets have the same length; its fixed prefix identifies the load generator in packet captures.
pub(crate) fn cname(rng: &mut fastrand::Rng) -> String {
    "throng-".chars().chain((0..9).map(|_| rng.alphanumeric())).collect()
}

/// The first moment after `now` that is a whole number of seconds after `origin`.
pub(crate) fn next_second(origin: Instant, now: Instant) -> Instant {
    let passed = now.saturating_duration_since(origin).as_secs();
    origin + Duration::from_secs(passed.saturating_add(1))
}

/// The observation of a tapped frame.
pub(crate) fn coded_frame(
    track: TrackId,
    codec: Codec,
    clock: &WallClock,
    frame: AssembledFrame,
) -> Observation {
    Observation::Frame(Box::new(CodedFrame {
        track,
        codec,
        key_frame: frame.key_frame,
        after_break: frame.after_break,
        arrived_unix_ns: clock.unix_ns(frame.arrived_at),
        captured: frame.captured.map(|captured| (captured.unix_ns, captured.basis)),
        bytes: frame.bytes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canonical_name_names_throng_and_is_as_long_as_a_browsers() {
        let names: Vec<_> =
            (0..100).map(|seed| cname(&mut fastrand::Rng::with_seed(seed))).collect();
        for name in &names {
            assert!(name.starts_with("throng-") && name.len() == 16, "{name}");
        }
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
    }
}
