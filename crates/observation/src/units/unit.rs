//! The unit of a value, and how the value reads with it.

use super::{bit_rate, bytes, duration_ms, number, percent};

/// The unit of a value that people read. What hosts, objectives and reports measure in has a type
/// of its own where only some of these can be; each leads here to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    #[default]
    Count,
    /// Things a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes a second over a line, which people count in bits.
    BytesPerSecond,
    /// Bytes a second of a disk, which people count in bytes.
    DiskBytesPerSecond,
    /// A share of one.
    Ratio,
    /// Milliseconds.
    Milliseconds,
    /// Bits a second.
    BitsPerSecond,
    /// Frames a second.
    FramesPerSecond,
    /// Pixels of the shorter side of a picture.
    Lines,
    /// CPU cores.
    Cores,
    /// People served.
    Users,
    /// A frame rate as a share of the source's.
    OfSource,
    /// A multiple of the media's bit rate.
    OfBitRate,
    /// Milliseconds of CPU time a second.
    MillisecondsPerSecond,
}

impl Unit {
    /// Those whose symbol is another's come after it.
    const ALL: [Self; 15] = [
        Self::Count,
        Self::PerSecond,
        Self::Bytes,
        Self::BytesPerSecond,
        Self::DiskBytesPerSecond,
        Self::Ratio,
        Self::Milliseconds,
        Self::BitsPerSecond,
        Self::FramesPerSecond,
        Self::Lines,
        Self::Cores,
        Self::Users,
        Self::OfSource,
        Self::OfBitRate,
        Self::MillisecondsPerSecond,
    ];

    /// Its symbol in JSON.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::PerSecond => "1/s",
            Self::Bytes => "B",
            Self::BytesPerSecond | Self::DiskBytesPerSecond => "B/s",
            Self::Ratio | Self::OfSource | Self::OfBitRate => "ratio",
            Self::Milliseconds => "ms",
            Self::BitsPerSecond => "bit/s",
            Self::FramesPerSecond => "fps",
            Self::Lines => "lines",
            Self::Cores => "cores",
            Self::Users => "users",
            Self::MillisecondsPerSecond => "ms/s",
        }
    }

    /// The unit with a symbol, in what was stored.
    #[must_use]
    pub fn of_symbol(symbol: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.symbol() == symbol)
    }

    /// A value with its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Count | Self::Users => number(value),
            Self::PerSecond => format!("{}/s", number(value)),
            Self::Bytes => bytes(value),
            Self::BytesPerSecond => bit_rate(value * 8.0),
            Self::DiskBytesPerSecond => format!("{}/s", bytes(value)),
            Self::Ratio => percent(value),
            Self::Milliseconds => duration_ms(value),
            Self::BitsPerSecond => bit_rate(value),
            Self::FramesPerSecond => format!("{value:.1} fps"),
            Self::Lines => format!("{value:.0}p"),
            Self::Cores => format!("{} cores", number(value)),
            Self::OfSource => format!("{value:.2} of source"),
            Self::OfBitRate => format!("{value:.3}"),
            Self::MillisecondsPerSecond => format!("{value:.2} ms/s"),
        }
    }

    /// A difference with its sign and unit; of shares in percentage points.
    #[must_use]
    pub fn show_difference(self, value: f64) -> String {
        if value == 0.0 {
            return "0".into();
        }
        let sign = if value < 0.0 { "−" } else { "+" };
        if self == Self::Ratio {
            let points = value.abs() * 100.0;
            let digits = if points < 0.1 { 3 } else { usize::from(points < 10.0) + 1 };
            return format!("{sign}{points:.digits$} points");
        }
        let shown = self.show(value.abs());
        match shown.strip_prefix('<') {
            Some(least) if value < 0.0 => format!(">{sign}{least}"),
            Some(least) => format!("<{sign}{least}"),
            None => format!("{sign}{shown}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_leads_to_the_unit_that_is_written_for_it() {
        for unit in Unit::ALL {
            let found = Unit::of_symbol(unit.symbol()).expect("it is one of them");
            assert_eq!(found.symbol(), unit.symbol());
        }
        assert_eq!(Unit::of_symbol("B/s"), Some(Unit::BytesPerSecond));
        assert_eq!(Unit::of_symbol("ratio"), Some(Unit::Ratio));
        assert_eq!(Unit::of_symbol("furlongs"), None);
    }

    #[test]
    fn a_value_reads_the_same_wherever_it_is_written() {
        for (unit, value, expect) in [
            (Unit::Count, 2.0, "2"),
            (Unit::Users, 27.5, "27.5"),
            (Unit::PerSecond, 3.0, "3/s"),
            (Unit::BytesPerSecond, 1.25e8, "1.00 Gbit/s"),
            (Unit::DiskBytesPerSecond, 5e7, "50.0 MB/s"),
            (Unit::Ratio, 0.0268, "2.68 %"),
            (Unit::FramesPerSecond, 29.97, "30.0 fps"),
            (Unit::Lines, 720.0, "720p"),
            (Unit::Cores, 0.24, "0.24 cores"),
            (Unit::Cores, 0.004, "<0.01 cores"),
            (Unit::OfBitRate, 0.9333, "0.933"),
        ] {
            assert_eq!(unit.show(value), expect, "{unit:?}");
        }
    }

    #[test]
    fn a_difference_has_its_sign_and_one_of_shares_is_in_points() {
        for (unit, value, expect) in [
            (Unit::Ratio, 0.034, "+3.40 points"),
            (Unit::Ratio, -0.169, "−16.9 points"),
            (Unit::Ratio, 0.0, "0"),
            (Unit::OfSource, -0.1, "−0.10 of source"),
            (Unit::Cores, -0.5, "−0.50 cores"),
            (Unit::Cores, 0.004, "<+0.01 cores"),
            (Unit::PerSecond, -0.004, ">−0.01/s"),
        ] {
            assert_eq!(unit.show_difference(value), expect);
        }
    }
}
