//! The expiry of a proof: a date or a time in UTC.

use throng_observation::calendar::{day_begin_us, iso_us};

use super::ConsentProofError;

const SECOND_US: u64 = 1_000_000;
const DAY_S: u64 = 86_400;

/// `2026-12-31` (its end, UTC) or `2026-12-31T18:00:00Z`, as seconds since the Unix epoch.
pub(super) fn read_expiry(value: &str) -> Result<u64, ConsentProofError> {
    // What a person signs has one form: no offset, no fraction, all seconds.
    let is_time = value.len() == "2026-12-31T18:00:00Z".len()
        && value.as_bytes().get(10) == Some(&b'T')
        && value.ends_with('Z');
    let (unix_us, left_s) = if is_time { (iso_us(value), 0) } else { (day_begin_us(value), DAY_S) };
    unix_us
        .and_then(|unix_us| u64::try_from(unix_us).ok())
        .map(|unix_us| unix_us / SECOND_US + left_s)
        .ok_or_else(|| {
            ConsentProofError::Malformed(
                "expires is not `2026-12-31` or `2026-12-31T18:00:00Z` (UTC)".into(),
            )
        })
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
