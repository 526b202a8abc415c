//! The parts of a run whose figures give an interval within it.

use std::ops::Range;

/// The shortest part of time, seconds. Queues, retransmissions and key frame intervals last a few
/// seconds, so the means of parts this long depend little on each other.
pub const PART_S_MIN: i64 = 10;

/// Most parts. More make an interval hardly shorter (t of both sides falls from 2.10 to at best
/// 1.96), and longer parts depend less on each other (Schmeiser 1982, batch size effects).
pub const PARTS_MAX: i64 = 10;

/// The seconds from `from` to `until` in parts of equal length (±1 s), each at least
/// [`PART_S_MIN`]; empty if there is no room for two.
#[must_use]
pub fn of_seconds(from: i64, until: i64) -> Vec<Range<i64>> {
    let length = until.saturating_sub(from);
    split(length, (length / PART_S_MIN).min(PARTS_MAX))
        .map(|part| from + part.start..from + part.end)
        .collect()
}

fn split(length: i64, parts: i64) -> impl Iterator<Item = Range<i64>> {
    let parts = if parts < 2 { 0 } else { parts };
    let at = move |part: i64| {
        i64::try_from(i128::from(length) * i128::from(part) / i128::from(parts.max(1)))
    };
    (0..parts).map(move |part| at(part).unwrap_or(0)..at(part + 1).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_time_once_and_none_is_too_short() {
        for (from, until) in
            [(0, 19), (5, 25), (0, 20), (7, 69), (0, 3_600), (-3, 86_400), (9, 3), (0, i64::MAX)]
        {
            let parts = of_seconds(from, until);
            assert_eq!(parts.is_empty(), until - from < 20, "{from} {until}");
            assert!(parts.len() != 1 && parts.len() <= PARTS_MAX as usize);
            assert!(parts.iter().all(|part| part.end - part.start >= PART_S_MIN), "{parts:?}");
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            if let (Some(first), Some(last)) = (parts.first(), parts.last()) {
                assert_eq!((first.start, last.end), (from, until));
            }
        }
    }
}
