//! Times of access logs: `25/Nov/2026:18:40:00 +0000`, RFC 3339, and seconds since 1970.

use std::ops::Range;

use throng_observation::calendar::{common_log_us, iso_us};

/// Logs of servers that stream media over HTTP were not written before 1990, nor by clocks that far
/// ahead (3000), seconds since 1970.
const PLAUSIBLE: Range<f64> = 631_152_000.0..32_503_680_000.0;

/// Seconds since 1970 of a time in any of the forms; `None` if it has none of them.
pub(super) fn unix_s(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return plausible(seconds);
    }
    let is_iso = text.as_bytes().get(4) == Some(&b'-');
    let unix_us = if is_iso { iso_us(text) } else { common_log_us(text) }?;
    Some(unix_us as f64 / 1e6).filter(|seconds| PLAUSIBLE.contains(seconds))
}

/// A number as seconds since 1970, if it can be a time: JSON has milliseconds or microseconds, too.
pub(super) fn plausible(number: f64) -> Option<f64> {
    [number, number / 1e3, number / 1e6].into_iter().find(|seconds| PLAUSIBLE.contains(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_forms_are_seconds_since_1970() {
        for (text, expect) in [
            ("25/Nov/2026:18:40:00 +0000", 1_795_632_000.0),
            ("25/November/2026:17:40:00 -0100", 1_795_632_000.0),
            ("01/Jan/2000:00:00:00 +0000", 946_684_800.0),
            ("29/Feb/2028:23:59:60 +0000", 1_835_481_600.0),
            ("2026-11-25T19:40:00.250+01:00", 1_795_632_000.25),
            ("2026-11-25 18:40:00Z", 1_795_632_000.0),
            ("2028-03-01T00:59:60+01:00", 1_835_481_600.0),
            ("1795632000.125", 1_795_632_000.125),
            ("1795632000125", 1_795_632_000.125),
        ] {
            assert_eq!(unix_s(text), Some(expect), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "t",
            "inf",
            "NaN",
            "-1",
            "25/Nov/2026",
            "99/Nov/2026:18:40:00 +0000",
            "25/Nox/2026:18:40:00 +0000",
            "25/Nov/99999:18:40:00 +0000",
            "25/Nov/2026:24:00:00 +0000",
            "25/Nov/2026:18:40:00 +99x",
            "2026-11-25",
            "25/ü/2026:18:40:00 +0000",
            "2026-13-01T00:00:00Z",
            "31/Feb/2026:18:40:00 +0000",
            "2026-02-31T18:40:00Z",
            "25/Nov/1989:18:40:00 +0000",
            "3000-01-01T00:00:00Z",
        ] {
            assert_eq!(unix_s(text), None, "{text}");
        }
    }
}
