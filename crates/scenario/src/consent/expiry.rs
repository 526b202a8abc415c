//! The expiry of a proof: a date or a time in UTC.

use throng_observation::calendar::{day_begin_us, iso_us};

use super::ConsentProofError;

const SECOND_US: u64 = 1_000_000;
const DAY_S: u64 = 86_400;

/// `2026-12-31` (its end, UTC) or `2026-12-31T18:00:00Z`, as seconds since the Unix epoch. Zeros
/// before a digit may be left out: `2026-6-1`.
pub(super) fn read_expiry(value: &str) -> Result<u64, ConsentProofError> {
    expiry_s(value).ok_or_else(|| {
        ConsentProofError::Malformed(
            "expires is not `2026-12-31` or `2026-12-31T18:00:00Z` (UTC)".into(),
        )
    })
}

/// What a person signs has no offset, no fraction and no leap second.
fn expiry_s(value: &str) -> Option<u64> {
    let (date, time) = match value.split_once('T') {
        Some((date, time)) => (date, Some(time.strip_suffix('Z')?)),
        None => (value, None),
    };
    let [year, month, day] = numbers(date, '-')?;
    let date = format!("{year:04}-{month:02}-{day:02}");
    let (unix_us, left_s) = match time.map(|time| numbers(time, ':')) {
        Some(time) => {
            let [hour, minute, second] = time.filter(|[_, _, second]| *second < 60)?;
            (iso_us(&format!("{date}T{hour:02}:{minute:02}:{second:02}Z"))?, 0)
        }
        None => (day_begin_us(&date)?, DAY_S),
    };
    Some(u64::try_from(unix_us).ok()? / SECOND_US + left_s)
}

/// Three numbers of one to four digits.
fn numbers(text: &str, separator: char) -> Option<[u16; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let is_number = part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u16>().ok().filter(|_| is_number)
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
            ("2026-3-1T0:0:0Z", 1_772_323_200),
            ("2026-6-1", 1_780_358_400),
            ("2026-6-1T9:00:00Z", 1_780_304_400),
        ] {
            assert_eq!(read_expiry(text), Ok(expect), "{text}");
        }
    }

    #[test]
    fn other_forms_and_days_that_no_month_has_are_refused() {
        for text in [
            "2026-02-31",
            "2026-02-31T18:00:00Z",
            "2026-12-31T18:00:00",
            "2026-12-31T18:00Z",
            "2026-12-31 18:00:00Z",
            "2026-12-31T18:00:00+00:00",
            "2026-12-31T18:00:00.5Z",
            "2026-12-31T23:59:60Z",
            "2026-12-31T24:00:00Z",
            "2026-12-31T18:60:00Z",
            "2026-13-1",
            "2026-0-1",
            "2026-6-+1",
            "2026-6-",
            "2026-6-1-1",
            "02026-6-1",
            "2026-6-100",
            "1969-12-31T18:00:00Z",
            "2026-12-31 ",
            "",
        ] {
            assert!(read_expiry(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(T|Z|:|-|[0-9]{1,20}|\\PC){0,12}") {
            let _ = read_expiry(&text);
        }
    }
}
