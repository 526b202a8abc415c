//! Dates of ISO 8601 as both kinds of manifests have them, and of HTTP.

const US: i64 = 1_000_000;

/// Microseconds since 1970 of a date like `2026-11-24T10:00:00.040Z`, with `Z`, an offset such as
/// `+02:00`, or none, which is read as UTC. `None` when it is none.
pub(super) fn unix_us(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(['T', ' '])?;
    let mut fields = date.splitn(3, '-');
    let (year, month, day) =
        (number(fields.next()?, 4)?, number(fields.next()?, 2)?, number(fields.next()?, 2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at_checked(zone_at)?;
    let mut fields = time.splitn(3, ':');
    let (hour, minute) = (number(fields.next()?, 2)?, number(fields.next()?, 2)?);
    let second = fields.next().unwrap_or("00");
    let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, ""));
    let (second, fraction) = (number(second, 2)?, micros(fraction)?);
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds =
        days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - zone_s(zone)?;
    Some(seconds * US + fraction)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Microseconds since 1970 of a date of HTTP, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section
/// 5.6.7, without its obsolete forms).
pub(super) fn http_us(text: &str) -> Option<i64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    let date = format!("{year}-{month:02}-{day}T{}Z", words.next()?);
    unix_us(&date).filter(|_| words.next() == Some("GMT") && words.next().is_none())
}

/// Seconds east of Greenwich.
fn zone_s(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') => return Some(0),
        Some('-') => -1,
        _ => 1,
    };
    let digits: String = zone.chars().skip(1).filter(|c| *c != ':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { 0 } else { number(minutes, 2)? };
    Some(sign * (number(hours, 2)? * 3_600 + minutes * 60))
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// A decimal fraction in microseconds.
fn micros(fraction: &str) -> Option<i64> {
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let is_number = fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// Days from 1970-01-01 in the Gregorian calendar, with years that begin in March so that the leap
/// day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_microseconds_since_1970() {
        for (text, expect) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-24T10:00:00.040Z", Some(1_795_514_400_040_000)),
            ("2026-11-24T12:00:00.04+02:00", Some(1_795_514_400_040_000)),
            ("2026-11-24T12:00:00.04+0200", Some(1_795_514_400_040_000)),
            ("2026-11-24T05:30:00-04:30", Some(1_795_514_400_000_000)),
            ("2024-02-29T23:59:59.9999999", Some(1_709_251_199_999_999)),
            ("2000-03-01T00:00Z", Some(951_868_800_000_000)),
            ("1969-12-31T23:59:59Z", Some(-1_000_000)),
            ("2026-13-24T10:00:00Z", None),
            ("2026-11-24", None),
            ("2026-11-24T10:00:00+", None),
            ("2026-11-24T+1:00:00", None),
            ("", None),
        ] {
            assert_eq!(unix_us(text), expect, "{text}");
        }
    }

    #[test]
    fn dates_of_http_are_read_in_their_one_form() {
        for (text, expect) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777_000_000)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Non 1994 08:49:37 GMT", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37+99:99 GMT", None),
            ("", None),
        ] {
            assert_eq!(http_us(text), expect, "{text}");
        }
    }
}
