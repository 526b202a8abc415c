//! The expiry of a proof: a date or a time in UTC.

use super::ConsentProofError;
use crate::calendar::{days_in_month, days_since_epoch};

/// `2026-12-31` (its end, UTC) or `2026-12-31T18:00:00Z`, as seconds since the Unix epoch.
pub(super) fn read_expiry(value: &str) -> Result<u64, ConsentProofError> {
    let wrong = || {
        ConsentProofError::Malformed(
            "expires is not `2026-12-31` or `2026-12-31T18:00:00Z` (UTC)".into(),
        )
    };
    let (date, time) = match value.split_once('T') {
        Some((date, time)) => (date, Some(time.strip_suffix('Z').ok_or_else(wrong)?)),
        None => (value, None),
    };
    let [year, month, day] = fields(date, '-').ok_or_else(wrong)?;
    let [hour, minute, second] = match time {
        Some(time) => fields(time, ':').ok_or_else(wrong)?,
        None => [24, 0, 0],
    };
    let days_in_month = days_in_month(year, month).ok_or_else(wrong)?;
    let in_range = (1970..=9999).contains(&year) && (1..=days_in_month).contains(&day);
    if !in_range || (time.is_some() && hour > 23) || minute > 59 || second > 59 {
        return Err(wrong());
    }
    Ok(days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn fields(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let digits =
            !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    });
    let all = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_counted_with_their_leap_days() {
        for (text, expect) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01", 86_400),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2024-12-31T23:59:59Z", 1_735_689_599),
            ("2026-03-01T00:00:00Z", 1_772_323_200),
        ] {
            assert_eq!(read_expiry(text), Ok(expect), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(T|Z|:|-|[0-9]{1,20}|\\PC){0,12}") {
            let _ = read_expiry(&text);
        }
    }
}
