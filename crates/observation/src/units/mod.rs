//! Figures with their units as text: one place, so that the terminal, the page and the tables
//! agree.

mod unit;
pub use unit::Unit;

/// Bytes of the UDP and IP headers of a datagram on the wire (RFC 768, RFC 791, RFC 8200).
#[must_use]
pub const fn udp_header_bytes(is_ipv4: bool) -> u32 {
    if is_ipv4 { 28 } else { 48 }
}

/// `1.25 Mbit/s` from bits per second (SI prefixes, as for every line rate).
#[must_use]
pub fn bit_rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, "bit/s")
}

/// `1.3 MB` from bytes (SI prefixes).
#[must_use]
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, "B")
}

/// `12.3 ms`, `1.20 s` or `3 min 05 s` from milliseconds.
#[must_use]
pub fn duration_ms(ms: f64) -> String {
    match ms.abs() {
        a if a < 10.0 => format!("{ms:.1} ms"),
        a if a < 1_000.0 => format!("{ms:.0} ms"),
        a if a < 60_000.0 => format!("{:.2} s", ms / 1e3),
        _ => format!("{} min {:02} s", (ms / 60_000.0).trunc(), (ms / 1e3) as i64 % 60),
    }
}

/// As [`duration_ms`].
#[must_use]
pub fn duration(duration: std::time::Duration) -> String {
    duration_ms(duration.as_secs_f64() * 1e3)
}

/// `0.42 %` from a ratio.
#[must_use]
pub fn percent(ratio: f64) -> String {
    match ratio.abs() * 100.0 {
        0.0 => "0 %".into(),
        p if p < 0.01 => "<0.01 %".into(),
        p if p < 10.0 => format!("{:.2} %", ratio * 100.0),
        _ => format!("{:.1} %", ratio * 100.0),
    }
}

/// About three digits; a whole number has all of its own: `3.14`, `27.5`, `12,345`. What is nearly
/// 0 is `<0.01` or `>-0.01`.
#[must_use]
pub fn number(value: f64) -> String {
    // Digits are those of the rounded value: 9.996 is `10.0`.
    match value.abs() {
        a if a >= 99.95 || value.fract() == 0.0 => grouped(value, 0),
        a if a >= 9.995 => format!("{value:.1}"),
        a if a < 0.01 && value < 0.0 => ">-0.01".into(),
        a if a < 0.01 => "<0.01".into(),
        _ => format!("{value:.2}"),
    }
}

/// `12,345.60`: the integer part in groups of three digits, then so many decimals.
#[must_use]
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    // What rounds to 0 has no sign.
    let is_nothing = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut out = String::new();
    if value < 0.0 && !is_nothing {
        out.push('-');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            out.push(',');
        }
        out.push(digit);
    }
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// `1 viewer`, `2 viewers`, from the plural; of `participants in rooms of 3` its first word.
#[must_use]
pub fn count(count: u64, plural: &str) -> String {
    let end = plural.find(' ').unwrap_or(plural.len());
    let (nouns, rest) = plural.split_at(end);
    format!("{count} {}{rest}", noun(count, nouns))
}

/// The noun alone, `viewer` or `viewers`, where the number is elsewhere or is written otherwise.
#[must_use]
pub fn noun(count: u64, plural: &str) -> &str {
    if count == 1 { plural.strip_suffix('s').unwrap_or(plural) } else { plural }
}

fn scaled(value: f64, unit: &str) -> String {
    let (value, prefix) = match value.abs() {
        a if a >= 1e9 => (value / 1e9, "G"),
        a if a >= 1e6 => (value / 1e6, "M"),
        a if a >= 1e3 => (value / 1e3, "k"),
        _ => return format!("{value:.0} {unit}"),
    };
    let digits = if value.abs() < 10.0 {
        2
    } else if value.abs() < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thing_is_no_plural() {
        assert_eq!(count(1, "viewers"), "1 viewer");
        assert_eq!(count(0, "viewers"), "0 viewers");
        assert_eq!((noun(1, "viewers"), noun(2, "viewers")), ("viewer", "viewers"));
        assert_eq!(count(1, "participants in rooms of 3"), "1 participant in rooms of 3");
    }

    #[test]
    fn figures_read_as_people_write_them() {
        for (got, expect) in [
            (bit_rate(1_254_000.0), "1.25 Mbit/s"),
            (bit_rate(999.0), "999 bit/s"),
            (bit_rate(2.5e9), "2.50 Gbit/s"),
            (bytes(76_000.0), "76.0 kB"),
            (duration_ms(4.25), "4.2 ms"),
            (duration_ms(1204.0), "1.20 s"),
            (duration_ms(185_000.0), "3 min 05 s"),
            (percent(0.0), "0 %"),
            (percent(0.000_01), "<0.01 %"),
            (percent(0.0042), "0.42 %"),
            (percent(0.5), "50.0 %"),
            (number(0.0), "0"),
            (number(-0.0), "0"),
            (number(0.004), "<0.01"),
            (number(-0.004), ">-0.01"),
            (number(0.01), "0.01"),
            (number(-3.2), "-3.20"),
            (number(3.267_59), "3.27"),
            (number(9.994), "9.99"),
            (number(9.996), "10.0"),
            (number(27.5), "27.5"),
            (number(99.94), "99.9"),
            (number(99.96), "100"),
            (number(1_234.5), "1,234"),
            (number(f64::NAN), "NaN"),
            (number(f64::NEG_INFINITY), "-inf"),
            (grouped(0.0, 0), "0"),
            (grouped(-0.2, 0), "0"),
            (grouped(999.0, 0), "999"),
            (grouped(-1_234.0, 0), "-1,234"),
            (grouped(1_234_567.891, 2), "1,234,567.89"),
            (grouped(f64::INFINITY, 0), "inf"),
        ] {
            assert_eq!(got, expect);
        }
    }
}
