//! Dates as others write them, and as reports show them. The calendar is that of `time` and
//! `httpdate`: what no month has, such as 31 February, is no date.

use std::time::UNIX_EPOCH;

use time::format_description::StaticFormatDescription;
use time::macros::format_description;
use time::parsing::Parsed;
use time::{Date, OffsetDateTime, Time, UtcOffset};

#[cfg(test)]
mod tests;

const SECOND_US: i64 = 1_000_000;

/// `2026-11-24`.
const DAY: StaticFormatDescription = format_description!(version = 2, "[year]-[month]-[day]");

/// `2026-11-24T10:00:00.040Z`. Packagers leave seconds out, write a comma before the fraction, a
/// space for the `T`, and offsets without the colon or the minutes.
const ISO: StaticFormatDescription = format_description!(
    version = 2,
    "[year]-[month]-[day][first [T][t][ ]][hour]:[minute]\
     [optional [:[second][optional [[first [.][,]][subsecond]]]]]\
     [optional [[first [Z][z][[offset_hour sign:mandatory]\
     [optional [[optional [:]][offset_minute]]]]]]]"
);

/// `25/Nov/2026:18:40:00 +0000`; versitygw writes the month in full.
const COMMON_LOG: StaticFormatDescription = format_description!(
    version = 2,
    "[day padding:none]/[first [[month repr:long case_sensitive:false]]\
     [[month repr:short case_sensitive:false]]]/[year]:[hour]:[minute]:[second]\
     [optional [.[subsecond]]]\
     [optional [ [first [Z][[offset_hour sign:mandatory][optional [:]][offset_minute]]]]]"
);

/// What follows the day of the week in `Sun, 06 Nov 1994 08:49:37 GMT`, also without the `0`.
const IMF_REST: StaticFormatDescription = format_description!(
    version = 2,
    "[day padding:none] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// Microseconds since 1970 at the begin of a day in UTC, `2026-11-24`. `None` when it is none.
#[must_use]
pub fn day_begin_us(text: &str) -> Option<i64> {
    read(text, DAY)
}

/// Microseconds since 1970 of a date and time of ISO 8601 with an offset, `Z`, or none, which is
/// read as UTC. `None` when it is none.
#[must_use]
pub fn iso_us(text: &str) -> Option<i64> {
    read(text.trim(), ISO)
}

/// The same of a time of the Common Log Format.
#[must_use]
pub fn common_log_us(text: &str) -> Option<i64> {
    read(text.trim(), COMMON_LOG)
}

/// The same of a date of HTTP (RFC 9110 section 5.6.7), also in its two obsolete forms. As in
/// browsers, the day of the week may be any. `None` before 1970.
#[must_use]
pub fn http_us(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(us) = text.split_once(", ").and_then(|(_, rest)| read(rest, IMF_REST)) {
        return Some(us).filter(|us| *us >= 0);
    }
    // The RFC has leap seconds, httpdate has none.
    let leap_s = u64::from(text.contains(":60 "));
    let date = httpdate::parse_http_date(&text.replacen(":60 ", ":59 ", 1)).ok()?;
    let since_s = date.duration_since(UNIX_EPOCH).ok()?.as_secs() + leap_s;
    i64::try_from(since_s).ok().map(|since_s| since_s * SECOND_US)
}

/// `2026-11-21 00:04 UTC`; `?` beyond the year 9999.
#[must_use]
pub fn shown(unix_us: i64) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(unix_us.div_euclid(SECOND_US)) else {
        return "?".to_owned();
    };
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", at.hour(), at.minute())
}

/// Reads the whole text by a form.
fn read(text: &str, form: StaticFormatDescription) -> Option<i64> {
    // A form takes a sign before the year.
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let mut parsed = Parsed::new();
    let rest = parsed.parse_items(text.as_bytes(), form).ok()?;
    if !rest.is_empty() {
        return None;
    }
    // Unix time has no leap seconds: one is the first second of the next minute, as in POSIX.
    let is_leap = parsed.second() == Some(60);
    if is_leap {
        parsed.set_second(59)?;
    }
    let date = Date::try_from(parsed).ok()?;
    let time = match parsed.hour_24() {
        Some(_) => Time::try_from(parsed).ok()?,
        None => Time::MIDNIGHT,
    };
    let offset = match parsed.offset_hour() {
        Some(_) => UtcOffset::try_from(parsed).ok()?,
        None => UtcOffset::UTC,
    };
    let at = OffsetDateTime::new_in_offset(date, time, offset);
    let unix_s = at.unix_timestamp() + i64::from(is_leap);
    Some(unix_s * SECOND_US + i64::from(at.microsecond()))
}
