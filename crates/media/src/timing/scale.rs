//! From ticks of a clock to microseconds.

const US_PER_S: i128 = 1_000_000;

/// `ticks` of a clock of `hz` in microseconds, rounded to the nearest; saturates.
#[inline]
pub(super) fn us(ticks: i64, hz: u32) -> i64 {
    let hz = i64::from(hz.max(1));
    // The usual case fits 64 bits, which divide several times faster.
    if let Some(scaled) =
        ticks.checked_mul(US_PER_S as i64).and_then(|scaled| scaled.checked_add(hz / 2))
    {
        return scaled.div_euclid(hz);
    }
    let scaled = (i128::from(ticks) * US_PER_S + i128::from(hz) / 2).div_euclid(i128::from(hz));
    scaled.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The same for a duration, which is not negative.
#[inline]
pub(super) fn duration_us(ticks: u64, hz: u32) -> u64 {
    us(i64::try_from(ticks).unwrap_or(i64::MAX), hz).unsigned_abs()
}

/// Microseconds in ticks of a clock of `hz`, rounded down; saturates.
pub(super) fn ticks(us: i64, hz: u32) -> i64 {
    let scaled = (i128::from(us) * i128::from(hz)).div_euclid(US_PER_S);
    scaled.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_rounded_to_the_nearest_microsecond() {
        for (ticks, hz, expect) in [
            (90_000, 90_000, 1_000_000),
            (1, 90_000, 11),
            (1_024, 44_100, 23_220),
            (-1_024, 48_000, -21_333),
            (-1, 90_000, -11),
            (i64::MAX, 1, i64::MAX),
            (i64::MIN, 1, i64::MIN),
            (1 << 60, 1 << 30, 1_073_741_824_000_000),
            (5, 0, 5_000_000),
        ] {
            assert_eq!(us(ticks, hz), expect, "{ticks} at {hz}");
        }
        assert_eq!(duration_us(u64::MAX, 1), i64::MAX as u64);
        assert_eq!(ticks(1_000_001, 90_000), 90_000);
        assert_eq!(ticks(i64::MIN, u32::MAX), i64::MIN);
    }
}
