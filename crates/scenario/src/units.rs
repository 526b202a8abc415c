//! Quantities of a scenario: `100ms`, `1m30s`, `256kbit/s`, `30/min`, `1%`.

use std::time::Duration;

use throng_observation::units;

/// A text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{got}` is not {expected}")]
pub struct UnitError {
    /// The text (cut when very long).
    pub got: String,
    /// The expected quantity, with examples.
    pub expected: &'static str,
}

const DURATION: &str = "a duration such as `100ms`, `1.5s`, `2m` or `1h30m`";
const BIT_RATE: &str = "a bit rate such as `256kbit/s` or `1.5Mbit/s`";
const RATE: &str = "a rate such as `5/s`, `30/min` or `100/h`";
const RATE_ABOVE_0: &str = "a rate above 0 such as `5/s`, `30/min` or `100/h`";
const PERCENT: &str = "a percentage such as `1%` or `0.1%`";

const DURATION_UNITS_NS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
];

/// A duration: the sum of one or more numbers with unit (`ns`, `us`, `ms`, `s`, `m` or `min`, `h`).
///
/// # Errors
/// When the text is not a duration; every number needs its unit.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    let wrong = || error(text, DURATION);
    let mut rest = text.trim();
    let mut total_ns = 0.0_f64;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = leading_number(rest).ok_or_else(wrong)?;
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let (_, unit_ns) =
            DURATION_UNITS_NS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        total_ns += number * unit_ns;
        rest = next.trim_start();
    }
    // More than u64 nanoseconds (584 years) is out of range.
    if total_ns < u64::MAX as f64 {
        Ok(Duration::from_nanos(total_ns.round() as u64))
    } else {
        Err(wrong())
    }
}

/// Bits per second from `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s` (or `bps`, `kbps` …), SI prefixes.
///
/// # Errors
/// When the text is not a bit rate.
pub fn bit_rate(text: &str) -> Result<f64, UnitError> {
    let wrong = || error(text, BIT_RATE);
    let (number, unit) = leading_number(text.trim()).ok_or_else(wrong)?;
    let unit = unit.trim();
    let prefix =
        unit.strip_suffix("bit/s").or_else(|| unit.strip_suffix("bps")).ok_or_else(wrong)?;
    let scale = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return Err(wrong()),
    };
    finite(number * scale).ok_or_else(wrong)
}

/// Events per second from `/s`, `/min` or `/h`.
///
/// # Errors
/// When the text is not a rate.
pub fn rate_per_s(text: &str) -> Result<f64, UnitError> {
    let wrong = || error(text, RATE);
    let (number, unit) = leading_number(text.trim()).ok_or_else(wrong)?;
    let seconds = match unit.trim() {
        "/s" => 1.0,
        "/m" | "/min" => 60.0,
        "/h" => 3600.0,
        _ => return Err(wrong()),
    };
    finite(number / seconds).ok_or_else(wrong)
}

/// The same, more than none.
pub(crate) fn rate_above_0(text: &str) -> Result<f64, UnitError> {
    rate_per_s(text).ok().filter(|per_s| *per_s > 0.0).ok_or_else(|| error(text, RATE_ABOVE_0))
}

/// A ratio from `1%`.
///
/// # Errors
/// When the text is not a percentage.
pub fn percent(text: &str) -> Result<f64, UnitError> {
    let wrong = || error(text, PERCENT);
    let (number, unit) = leading_number(text.trim()).ok_or_else(wrong)?;
    if unit.trim() == "%" { finite(number / 100.0).ok_or_else(wrong) } else { Err(wrong()) }
}

/// A decimal number without sign, and the text after it.
pub(crate) fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    // `f64` would also accept `inf`, `1e9` and signs.
    let number = if number.starts_with(|c: char| c.is_ascii_digit()) {
        number.parse().ok()?
    } else {
        return None;
    };
    Some((finite(number)?, rest))
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn error(text: &str, expected: &'static str) -> UnitError {
    UnitError { got: text.chars().take(60).collect(), expected }
}

/// `duration` as text that [`duration`] parses exactly, in the largest unit without a fraction.
#[must_use]
pub fn write_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    for (unit, unit_ns) in [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ] {
        if ns >= unit_ns && ns.is_multiple_of(unit_ns) {
            return format!("{}{unit}", ns / unit_ns);
        }
    }
    if ns == 0 { "0s".into() } else { format!("{ns}ns") }
}

/// `time` for people: `1 min 30 s`.
pub(crate) fn shown(time: Duration) -> String {
    if time.is_zero() { "0 s".into() } else { units::duration_ms(time.as_secs_f64() * 1e3) }
}

/// A bit rate as text that [`bit_rate`] parses exactly.
#[must_use]
pub fn write_bit_rate(bits_per_s: f64) -> String {
    for (unit, scale) in [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)] {
        let scaled = bits_per_s / scale;
        if scaled >= 1.0 && scaled * scale == bits_per_s {
            return format!("{scaled}{unit}");
        }
    }
    format!("{bits_per_s}bit/s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_written() {
        for (text, ms) in [
            ("100ms", 100.0),
            ("1.5s", 1500.0),
            ("2m", 120_000.0),
            ("2 min", 120_000.0),
            ("1h30m", 5_400_000.0),
            (" 1m 30s ", 90_000.0),
            ("250us", 0.25),
            ("0s", 0.0),
        ] {
            assert_eq!(duration(text).unwrap().as_secs_f64() * 1e3, ms, "{text}");
        }
        for text in [
            "",
            "100",
            "ms",
            "-1s",
            "1e3s",
            "infs",
            "1..5s",
            "1s2",
            "1 fortnight",
            "99999999999999h",
            "1S",
        ] {
            let error = duration(text).expect_err(text).to_string();
            assert!(error.contains("is not a duration such as `100ms`"), "{error}");
        }
    }

    #[test]
    fn rates_and_shares_are_read_as_written() {
        for (text, expect) in
            [("256kbit/s", 256e3), ("1.5Mbit/s", 1.5e6), ("2 Gbps", 2e9), ("800bit/s", 800.0)]
        {
            assert_eq!(bit_rate(text), Ok(expect), "{text}");
        }
        for (text, expect) in [("5/s", 5.0), ("30/min", 0.5), ("36 /h", 0.01)] {
            assert_eq!(rate_per_s(text), Ok(expect), "{text}");
        }
        for (text, expect) in [("1%", 0.01), ("0.1 %", 0.001), ("100%", 1.0)] {
            assert_eq!(percent(text), Ok(expect), "{text}");
        }
        for text in ["1", "1MB/s", "1mbit/s", "Mbit/s", "-1kbit/s"] {
            assert!(bit_rate(text).is_err(), "{text}");
        }
        for text in ["5", "5/d", "/s", "-5/s"] {
            assert!(rate_per_s(text).is_err(), "{text}");
        }
        for text in ["1", "1ms", "%", "-1%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(ns in 0_u64..(1 << 52), bits in 0.0_f64..1e12) {
            let written = Duration::from_nanos(ns);
            prop_assert_eq!(duration(&write_duration(written)), Ok(written));
            prop_assert_eq!(bit_rate(&write_bit_rate(bits)), Ok(bits));
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,12}") {
            let _ = (duration(&text), bit_rate(&text), rate_per_s(&text), percent(&text));
        }
    }
}
