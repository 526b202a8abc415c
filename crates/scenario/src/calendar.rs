//! Dates as days.

/// Days from 1970-01-01 in the Gregorian calendar, counting years from March so that the leap day
/// comes last. `year` is at least 1970.
pub(crate) fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

/// Days of a month; `None` if there is none of this number.
pub(crate) fn days_in_month(year: u64, month: u64) -> Option<u64> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => Some(29),
        2 => Some(28),
        4 | 6 | 9 | 11 => Some(30),
        1..=12 => Some(31),
        _ => None,
    }
}
