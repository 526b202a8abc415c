//! Times of access logs: `25/Nov/2026:18:40:00 +0000`, RFC 3339, and seconds since 1970.

/// Seconds since 1970 of a time in any of the forms; `None` if it has none of them.
pub(super) fn unix_s(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return plausible(seconds);
    }
    if text.as_bytes().get(4) == Some(&b'-') { rfc_3339(text) } else { common(text) }
}

/// Logs of servers that stream media over HTTP were not written before 1990, nor by clocks that far
/// ahead; JSON has milliseconds at times.
pub(super) fn plausible(number: f64) -> Option<f64> {
    const FROM: f64 = 631_152_000.0;
    const TO: f64 = 32_503_680_000.0;
    [number, number / 1e3, number / 1e6].into_iter().find(|seconds| (FROM..TO).contains(seconds))
}

/// `25/Nov/2026:18:40:00 +0000`; the month may be written out, as versitygw does.
fn common(text: &str) -> Option<f64> {
    let (moment, zone) = text.split_once(' ').unwrap_or((text, "+0000"));
    let (date, clock) = moment.split_once(':')?;
    let mut parts = date.split('/');
    let (day, name, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS
        .iter()
        .position(|month| name.get(..3).is_some_and(|name| name.eq_ignore_ascii_case(month)))?;
    seconds((number(year)?, month as i64 + 1, number(day)?), clock, zone)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `2026-11-25T18:40:00.5+01:00`.
fn rfc_3339(text: &str) -> Option<f64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = (rest.get(..at)?, rest.get(at..)?);
    let mut parts = date.split('-');
    let date = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    seconds(date, clock, zone)
}

fn seconds((year, month, day): (i64, i64, i64), clock: &str, zone: &str) -> Option<f64> {
    let valid =
        (1990..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second: f64 = parts.next()?.parse().ok()?;
    // A leap second is 60.
    let valid = valid
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&second);
    let whole = (days(year, month, day) * 24 + hour) * 3600 + minute * 60 - offset_s(zone)?;
    valid.then_some(whole as f64 + second)
}

/// Days from 1970-01-01 in the Gregorian calendar: years begin in March, so that the leap day is
/// the last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// `+0100`, `+01:00`, `Z`, or nothing, which is UTC.
fn offset_s(zone: &str) -> Option<i64> {
    let zone = zone.trim();
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.strip_prefix(['+', '-'])?.chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = (number(digits.get(..2)?)?, number(digits.get(2..4)?)?);
    (digits.len() == 4 && hours < 24 && minutes < 60)
        .then_some(sign * (hours * 3600 + minutes * 60))
}

fn number(text: &str) -> Option<i64> {
    (text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
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
        ] {
            assert_eq!(unix_s(text), None, "{text}");
        }
    }
}
