//! Cost of CPU seconds, and the formatting of figures.

use crate::Assumptions;

/// Hours per year.
pub(crate) const HOURS: f64 = 8760.0;

/// Cores that one stream keeps busy: CPU seconds per gigabyte times gigabytes a second.
pub(crate) fn cores_per_stream(cpu_s_per_gb: f64, frame_bytes: f64, assumed: &Assumptions) -> f64 {
    cpu_s_per_gb * frame_bytes * assumed.fps / 1e9
}

/// Cost of all streams per year, in the currency of the price.
pub(crate) fn per_year(cores_per_stream: f64, assumed: &Assumptions) -> f64 {
    cores_per_stream * f64::from(assumed.streams) * HOURS * assumed.price_core_hour
}

/// The formula in words, with its numbers.
pub(crate) fn formula(frame_bytes: f64, assumed: &Assumptions) -> String {
    format!(
        "a year = CPU s/GB x {} GB/s a stream ({} B x {} fps) x {} streams x {HOURS:.0} h x {} a \
         core-hour",
        figure(frame_bytes * assumed.fps / 1e9),
        grouped(frame_bytes),
        figure(assumed.fps),
        grouped(f64::from(assumed.streams)),
        assumed.price_core_hour,
    )
}

/// A figure with about three digits.
pub(crate) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        a if a >= 99.95 => return grouped(value),
        a if a >= 9.995 => 1,
        a if a >= 0.9995 => 2,
        a if a >= 0.01 || a == 0.0 => 3,
        a if a >= 0.001 => 4,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// An amount of money: whole units, unless it is small.
pub(crate) fn money(value: f64) -> String {
    if value.abs() < 99.95 { figure(value) } else { grouped(value) }
}

/// A whole number with thousands separators.
pub(crate) fn grouped(value: f64) -> String {
    throng_observation::units::grouped(value, 0)
}

/// A duration in the unit that fits.
pub(crate) fn duration_us(us: f64) -> String {
    match us {
        us if us < 1.0 => format!("{:.0} ns", us * 1e3),
        us if us < 999.5 => format!("{} us", figure(us)),
        us if us < 999_500.0 => format!("{} ms", figure(us / 1e3)),
        us => format!("{} s", figure(us / 1e6)),
    }
}

/// A rate in MB/s or GB/s.
pub(crate) fn byte_rate(bytes_per_second: f64) -> String {
    match bytes_per_second {
        rate if rate >= 999.5e6 => format!("{} GB/s", figure(rate / 1e9)),
        rate => format!("{} MB/s", figure(rate / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_follows_the_formula_that_is_shown() {
        let assumed = Assumptions { price_core_hour: 0.05, streams: 1000, fps: 30.0 };
        // 1080p30 I420 is 93.312 MB/s; at 1 CPU second per GB that is 0.093312 cores, of 438 a year
        // each.
        let cores = cores_per_stream(1.0, 3_110_400.0, &assumed);
        assert!((cores - 0.093_312).abs() < 1e-12);
        assert!((per_year(cores, &assumed) - 40_870.656).abs() < 1e-6);
        assert_eq!(
            formula(3_110_400.0, &assumed),
            "a year = CPU s/GB x 0.093 GB/s a stream (3,110,400 B x 30 fps) x 1,000 streams x 8760 h x 0.05 a core-hour"
        );
    }

    #[test]
    fn figures_have_about_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_012_3, "1.2e-5"),
            (0.00123, "0.0012"),
            (0.0761, "0.076"),
            (0.5, "0.5"),
            (1.256, "1.26"),
            (14.14, "14.1"),
            (99.96, "100"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!((grouped(-0.2), grouped(-1234.0)), ("0".into(), "-1,234".into()));
        for (us, text) in [
            (0.51, "510 ns"),
            (12.34, "12.3 us"),
            (1500.0, "1.5 ms"),
            (2e6, "2 s"),
            (999.9, "1 ms"),
        ] {
            assert_eq!(duration_us(us), text);
        }
        assert_eq!(
            (byte_rate(93.312e6), byte_rate(12.4e9)),
            ("93.3 MB/s".into(), "12.4 GB/s".into())
        );
    }
}
