//! Dates of recordings and of HTTP.

use crate::calendar::{days_in_month, days_since_epoch};

/// Microseconds since 1970 of a date of HAR (ISO 8601), `2026-11-25T18:30:00.123Z` or with an
/// offset such as `+01:00`.
pub(super) fn iso_us(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(['T', 't'])?;
    let [year, month, day] = numbers(date, '-')?;
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at_checked(zone_at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [hour, minute, second] = numbers(clock, ':')?;
    let seconds = seconds([year, month, day], [hour, minute, second])?;
    let digits = fraction.get(..fraction.len().min(6))?;
    let fraction_us = match digits {
        "" => 0,
        _ if fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{digits:0<6}").parse().ok()?
        }
        _ => return None,
    };
    let offset_s = match zone {
        "" | "Z" | "z" => 0,
        zone => {
            let (hours, minutes) = match zone.get(1..)?.split_once(':') {
                Some((hours, minutes)) => (hours, minutes),
                None => zone.get(1..)?.split_at_checked(2)?,
            };
            let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
            if !(0..=23).contains(&hours) || !(0..=59).contains(&minutes) {
                return None;
            }
            let ahead_s = hours * 3_600 + minutes * 60;
            if zone.starts_with('-') { -ahead_s } else { ahead_s }
        }
    };
    Some((seconds - offset_s) * 1_000_000 + fraction_us)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since 1970 of a date of HTTP, `Sun, 06 Nov 1994 08:49:37 GMT` (IMF-fixdate, RFC 9110
/// section 5.6.7); `None` for everything else, the two obsolete forms too, which no server of today
/// sends.
pub(super) fn http_s(text: &str) -> Option<i64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let [hour, minute, second] = numbers(words.next()?, ':')?;
    let is_gmt = words.next() == Some("GMT") && words.next().is_none();
    let month = MONTHS.iter().position(|known| *known == month)? as u64 + 1;
    seconds([number(year)?, month, number(day)?], [hour, minute, second]).filter(|_| is_gmt)
}

fn seconds([year, month, day]: [u64; 3], [hour, minute, second]: [u64; 3]) -> Option<i64> {
    let is_date = (1970..=9999).contains(&year) && (1..=days_in_month(year, month)?).contains(&day);
    // 60 is a leap second.
    let is_time = hour <= 23 && minute <= 59 && second <= 60;
    let seconds =
        || days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    if is_date && is_time { i64::try_from(seconds()).ok() } else { None }
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let all = [number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?];
    parts.next().is_none().then_some(all)
}

fn number(text: &str) -> Option<u64> {
    let is_short = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_recordings_are_read_to_the_microsecond_with_their_offset() {
        for (text, expect) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-25T18:30:00.123Z", Some(1_795_631_400_123_000)),
            ("2026-11-25T19:30:00.123456789+01:00", Some(1_795_631_400_123_456)),
            ("2026-11-25T13:30:00.1-0500", Some(1_795_631_400_100_000)),
            ("2026-11-25T18:30:00", Some(1_795_631_400_000_000)),
            ("2026-02-29T00:00:00Z", None),
            ("2026-11-25T24:00:00Z", None),
            ("2026-11-25 18:30:00", None),
            ("2026-11-25T18:30:00.1x", None),
            ("2026-11-25T18:30:00+99:00", None),
            ("", None),
        ] {
            assert_eq!(iso_us(text), expect, "{text}");
        }
    }

    #[test]
    fn dates_of_http_are_read_and_others_are_none() {
        for (text, expect) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun Nov  6 08:49:37 1994", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("0", None),
            ("-1", None),
        ] {
            assert_eq!(http_s(text), expect, "{text}");
        }
    }
}
