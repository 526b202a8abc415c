//! NTP timestamps (RFC 5905 section 6) as in RTCP and header extensions, and their conversion to
//! the Unix epoch.

/// Seconds from 1900-01-01 (NTP era 0) to 1970-01-01 (Unix).
const UNIX_EPOCH_IN_NTP_SECONDS: u64 = 2_208_988_800;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A 64-bit NTP timestamp, UQ32.32: seconds since 1900 and their binary fraction.
///
/// Some senders use another clock here (time since boot); the reader has to decide whether it is
/// wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// The NTP time of a moment in nanoseconds since the Unix epoch, rounded to the nearest 2⁻³² s.
    #[inline]
    #[must_use]
    pub fn from_unix_ns(unix_ns: u64) -> Self {
        let seconds = unix_ns / NANOS_PER_SECOND + UNIX_EPOCH_IN_NTP_SECONDS;
        let fraction =
            (((unix_ns % NANOS_PER_SECOND) << 32) + NANOS_PER_SECOND / 2) / NANOS_PER_SECOND;
        // The seconds wrap in 2036 and later: the era is not part of the timestamp.
        Self((seconds << 32) | fraction)
    }

    /// Nanoseconds since the Unix epoch, rounded to the nearest.
    ///
    /// The era follows RFC 4330 section 3: seconds with the top bit set are in 1968–2036, others in
    /// 2036–2104. Moments before 1970 become 0.
    #[inline]
    #[must_use]
    pub fn to_unix_ns(self) -> u64 {
        let seconds = self.0 >> 32;
        let era = if seconds & 0x8000_0000 == 0 { 1 << 32 } else { 0 };
        let nanos = ((self.0 & 0xffff_ffff) * NANOS_PER_SECOND + (1 << 31)) >> 32;
        match (seconds + era).checked_sub(UNIX_EPOCH_IN_NTP_SECONDS) {
            Some(unix_seconds) => unix_seconds * NANOS_PER_SECOND + nanos,
            None => 0,
        }
    }

    /// The middle 32 bits (UQ16.16), as LSR, LRR and their delays use (RFC 3550 section 6.4.1).
    #[inline]
    #[must_use]
    pub fn compact(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// Whether the time is unset: RFC 3550 lets a sender without a clock write zero.
    #[inline]
    #[must_use]
    pub fn is_unknown(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        for (unix_ns, ntp) in [
            (0, 2_208_988_800 << 32),
            (500_000_000, (2_208_988_800 << 32) | 0x8000_0000),
            // 2036-02-07 06:28:16 UTC: the first second of era 1.
            (2_085_978_496 * NANOS_PER_SECOND, 0),
        ] {
            assert_eq!(NtpTime::from_unix_ns(unix_ns), NtpTime(ntp));
            assert_eq!(NtpTime(ntp).to_unix_ns(), unix_ns);
        }
        assert_eq!(NtpTime(0x8000_0000 << 32).to_unix_ns(), 0); // 1968
        assert_eq!(NtpTime(0x1122_3344_5566_7788).compact(), 0x3344_5566);
    }

    proptest! {
        #[test]
        fn nanoseconds_survive_the_round_trip(unix_ns in 0..4_294_967_296_u64 * 900_000_000) {
            prop_assert_eq!(NtpTime::from_unix_ns(unix_ns).to_unix_ns(), unix_ns);
        }
    }
}
