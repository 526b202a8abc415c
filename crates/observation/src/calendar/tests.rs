use super::*;

#[test]
fn dates_of_iso_8601_are_microseconds_since_1970() {
    for (text, expect) in [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2026-11-24T10:00:00.040Z", Some(1_795_514_400_040_000)),
        ("2026-11-24T10:00:00,04z", Some(1_795_514_400_040_000)),
        ("2024-02-29T23:59:59.9999999", Some(1_709_251_199_999_999)),
        ("2026-11-25T18:30:00.123456789012Z", Some(1_795_631_400_123_456)),
        ("2000-03-01T00:00Z", Some(951_868_800_000_000)),
        ("1969-12-31T23:59:59Z", Some(-1_000_000)),
        ("1969-12-31T23:59:59.5Z", Some(-500_000)),
        ("2026-11-25t18:30:00", Some(1_795_631_400_000_000)),
        (" 2026-11-25 18:30:00\n", Some(1_795_631_400_000_000)),
        ("2026-13-24T10:00:00Z", None),
        ("2026-00-24T10:00:00Z", None),
        ("2026-11-24", None),
        ("2026-11-24T24:00:00Z", None),
        ("2026-11-24T10:60:00Z", None),
        ("2026-11-24T10:00:61Z", None),
        ("2026-11-24T10:00:00Zx", None),
        ("2026-11-25T18:30:00.1x", None),
        ("2026-11-24T+1:00:00", None),
        ("2026-1-24T10:00:00Z", None),
        ("+2026-11-24T10:00:00Z", None),
        ("yesterday", None),
        ("", None),
    ] {
        assert_eq!(iso_us(text), expect, "{text}");
    }
}

#[test]
fn what_no_month_has_is_no_date() {
    for (day, log) in [
        ("2026-02-31", "31/Feb/2026"),
        ("2026-02-29", "29/Feb/2026"),
        ("2026-04-31", "31/Apr/2026"),
        ("2100-02-29", "29/Feb/2100"),
        ("2026-01-00", "00/Jan/2026"),
        ("2026-01-32", "32/Jan/2026"),
    ] {
        assert_eq!(day_begin_us(day), None, "{day}");
        assert_eq!(iso_us(&format!("{day}T10:00:00Z")), None, "{day}");
        assert_eq!(common_log_us(&format!("{log}:10:00:00 +0000")), None, "{log}");
    }
    assert_eq!(http_us("Tue, 31 Feb 2026 10:00:00 GMT"), None);
    assert_eq!(day_begin_us("2000-02-29"), Some(951_782_400_000_000));
    assert_eq!(day_begin_us("2024-02-29"), Some(1_709_164_800_000_000));
}

#[test]
fn a_leap_second_is_the_first_second_of_the_next_minute() {
    let new_year_us = 1_483_228_800_000_000;
    for us in [
        iso_us("2016-12-31T23:59:60Z"),
        iso_us("2017-01-01T00:59:60+01:00"),
        common_log_us("31/Dec/2016:23:59:60 +0000"),
        http_us("Sat, 31 Dec 2016 23:59:60 GMT"),
        http_us("Sat Dec 31 23:59:60 2016"),
    ] {
        assert_eq!(us, Some(new_year_us));
    }
    assert_eq!(iso_us("2016-12-31T23:59:60.25Z"), Some(new_year_us + 250_000));
}

#[test]
fn offsets_are_subtracted_in_all_their_forms() {
    let (at, clock) = (Some(1_795_514_400_000_000), "2026-11-24T");
    for (time, expect) in [
        ("10:00:00", at),
        ("10:00:00+00:00", at),
        ("10:00:00-00:00", at),
        ("12:00:00+02:00", at),
        ("12:00:00+0200", at),
        ("12:00:00+02", at),
        ("05:30:00-04:30", at),
        ("09:15:00-00:45", at),
        ("15:45:00+0545", at),
        ("10:00:00+", None),
        ("10:00:00+1", None),
        ("10:00:00+99:00", None),
        ("10:00:00+01:60", None),
        ("10:00:00+01:", None),
        ("10:00:00 +01:00", None),
    ] {
        assert_eq!(iso_us(&format!("{clock}{time}")), expect, "{time}");
    }
}

#[test]
fn times_of_access_logs_are_read_with_either_name_of_the_month() {
    let at = Some(1_795_632_000_000_000);
    for (text, expect) in [
        ("25/Nov/2026:18:40:00 +0000", at),
        ("25/november/2026:17:40:00 -0100", at),
        ("25/Nov/2026:18:40:00", at),
        ("25/NOV/2026:18:40:00 Z", at),
        ("25/Nov/2026:19:40:00.000 +01:00", at),
        ("5/May/2026:00:00:00 +0000", Some(1_777_939_200_000_000)),
        ("25/Nov/2026", None),
        ("25/Nox/2026:18:40:00 +0000", None),
        ("25/Novem/2026:18:40:00 +0000", None),
        ("25/Nov/99999:18:40:00 +0000", None),
        ("25/Nov/2026:24:00:00 +0000", None),
        ("25/Nov/2026:18:40:00 +99x", None),
        ("25/\u{fc}/2026:18:40:00 +0000", None),
        ("", None),
    ] {
        assert_eq!(common_log_us(text), expect, "{text}");
    }
}

#[test]
fn dates_of_http_are_read_in_their_three_forms() {
    let at = Some(784_111_777_000_000);
    for (text, expect) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", at),
        ("Sunday, 06-Nov-94 08:49:37 GMT", at),
        ("Sun Nov  6 08:49:37 1994", at),
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 6 Nov 1994 08:49:37 GMT", at),
        ("Sunday, 06 Nov 1994 08:49:37 GMT", at),
        ("Mon, 06 Nov 1994 08:49:37 GMT", at),
        (" Sun, 06 Nov 1994 08:49:37 GMT\r", at),
        ("Wed, 31 Dec 1969 23:59:59 GMT", None),
        ("06 Nov 1994 08:49:37 GMT", None),
        ("Sun, 006 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT+1", None),
        ("Sun, 06 Non 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37+99:99 GMT", None),
        ("0", None),
        ("-1", None),
        ("", None),
    ] {
        assert_eq!(http_us(text), expect, "{text}");
    }
}

#[test]
fn dates_are_shown_to_the_minute_across_leap_years() {
    for (unix_us, expect) in [
        (0, "1970-01-01 00:00 UTC"),
        (-1, "1969-12-31 23:59 UTC"),
        (1_709_208_000_000_000, "2024-02-29 12:00 UTC"),
        (1_795_219_440_000_000, "2026-11-21 00:04 UTC"),
        (i64::MAX, "?"),
    ] {
        assert_eq!(shown(unix_us), expect);
    }
}
