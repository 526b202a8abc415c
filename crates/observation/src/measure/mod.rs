//! The sums that are measured: each is declared once, by `counters!`. Its field, how it adds up,
//! its form between machines, its column in `run.db` with what older folders have instead, its
//! column in a CSV and its chart follow from there. Beside each family are its figures: ratios and
//! rates of its sums, the same of a second, a participant and a run.

use std::ops::AddAssign;

mod chat;
mod playback;
mod requests;
mod sent;
mod track;

pub use chat::ChatCounters;
pub use playback::PlaybackCounters;
pub use requests::HttpRequestCounters;
pub use sent::SentCounters;
pub use track::TrackCounters;

/// `part` ÷ `whole`; `None` where that is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Bits per second of `bytes` in `us` microseconds; `None` in none.
pub(crate) fn bps(bytes: u64, us: u64) -> Option<f64> {
    (us > 0).then(|| bytes as f64 * 8e6 / us as f64)
}

/// In what a sum is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumUnit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Microseconds,
}

/// A sum of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its field, and its column in `run.db`.
    pub name: &'static str,
    /// In what it is kept.
    pub unit: SumUnit,
    /// Its name in a standard, or the place that defines it; empty without one.
    pub standard: &'static str,
    /// With what it came, if that was later than its family; empty otherwise.
    pub since: &'static str,
    /// Its column in older folders, where it had another name; empty otherwise.
    pub was: &'static str,
    /// Whether the sum over an interval can be negative, so that the sum over a run can fall.
    pub can_fall: bool,
    /// The head of its column in a CSV where that does not follow from its name; empty otherwise.
    csv: &'static str,
    /// The title and the unit of its chart; empty without one.
    chart: (&'static str, &'static str),
    meaning: &'static str,
}

impl Counter {
    /// What it counts.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        // A comment has a space before its first word.
        self.meaning.trim_start()
    }

    /// Whether folders of earlier versions lack it, which reads as 0.
    #[must_use]
    pub fn came_later(&self) -> bool {
        !self.since.is_empty()
    }

    /// The head of its column in a CSV, which has times in seconds.
    #[must_use]
    pub fn csv(&self) -> String {
        match (self.csv, self.name.strip_suffix("_us")) {
            ("", Some(time)) => format!("{time}_s"),
            ("", None) => self.name.to_owned(),
            (own, _) => own.to_owned(),
        }
    }

    /// The head that the declaration says: of received tracks, whose table has more figures than
    /// sums, only sums with one have a column.
    #[must_use]
    pub fn declared_csv(&self) -> Option<&'static str> {
        (!self.csv.is_empty()).then_some(self.csv)
    }

    /// The title and the unit of its chart on the page, which shows how much of it video has a
    /// second; `None` without one. Only sums of received tracks have charts.
    #[must_use]
    pub fn chart(&self) -> Option<(&'static str, &'static str)> {
        (!self.chart.0.is_empty()).then_some(self.chart)
    }
}

/// The sums of a family. `counters!` implements it.
pub trait Counters: Copy + Default + AddAssign + 'static {
    /// In the order of their columns; new ones come at the end.
    const COUNTERS: &'static [Counter];

    /// What was added since `before`.
    #[must_use]
    fn since(&self, before: &Self) -> Self;

    /// Each with its sum. SQLite's integers are signed, so that a sum that is larger than any of
    /// them (none occurs) is the largest.
    fn sums(&self) -> impl Iterator<Item = (&'static Counter, i64)>;

    /// The sums that `next` gives, asked for in order. A negative one of a damaged file is 0 where
    /// none can be.
    ///
    /// # Errors
    /// Those of `next`.
    fn read<E>(next: impl FnMut() -> Result<i64, E>) -> Result<Self, E>;
}

/// The types of sums.
trait Number: Copy {
    /// Whether one of them can be negative.
    const IS_SIGNED: bool;

    fn stored(self) -> i64;
    fn of_stored(stored: i64) -> Self;
}

impl Number for u64 {
    const IS_SIGNED: bool = false;

    fn stored(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }

    fn of_stored(stored: i64) -> Self {
        u64::try_from(stored).unwrap_or(0)
    }
}

impl Number for i64 {
    const IS_SIGNED: bool = true;

    fn stored(self) -> i64 {
        self
    }

    fn of_stored(stored: i64) -> Self {
        stored
    }
}

/// Declares a family: what each sum means (its comment), its field and type, its unit; `as` its
/// name in a standard, `since` what it came with if that was later, `was` its earlier name, `csv`
/// the head of its column there where it is no other form of its name, `chart` the title of its
/// chart and `of` what that shows a second of. Sums stay at their largest value.
macro_rules! counters {
    (
        $(#[doc = $about:literal])+
        $family:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident: $number:ident = $unit:ident
                    $(as $standard:literal)? $(since $since:literal)? $(was $was:literal)?
                    $(csv $csv:literal)? $(chart $chart:literal of $charted:literal)?;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize,
        )]
        pub struct $family {
            $( $(#[doc = $meaning])+ pub $field: $number, )+
        }

        impl ::std::ops::AddAssign for $family {
            fn add_assign(&mut self, other: Self) {
                $( self.$field = self.$field.saturating_add(other.$field); )+
            }
        }

        impl $crate::measure::Counters for $family {
            const COUNTERS: &'static [$crate::measure::Counter] = &[
                $(
                    $crate::measure::Counter {
                        name: stringify!($field),
                        unit: $crate::measure::SumUnit::$unit,
                        standard: concat!($($standard)?),
                        since: concat!($($since)?),
                        was: concat!($($was)?),
                        can_fall: <$number as $crate::measure::Number>::IS_SIGNED,
                        csv: concat!($($csv)?),
                        chart: (concat!($($chart)?), concat!($($charted, " per second")?)),
                        meaning: concat!($($meaning),+),
                    },
                )+
            ];

            fn since(&self, before: &Self) -> Self {
                Self { $( $field: self.$field.saturating_sub(before.$field), )+ }
            }

            fn sums(&self) -> impl Iterator<Item = (&'static $crate::measure::Counter, i64)> {
                let sums = [$( $crate::measure::Number::stored(self.$field) ),+];
                Self::COUNTERS.iter().zip(sums)
            }

            fn read<E>(mut next: impl FnMut() -> Result<i64, E>) -> Result<Self, E> {
                Ok(Self { $( $field: $crate::measure::Number::of_stored(next()?), )+ })
            }
        }
    };
}
pub(crate) use counters;

#[cfg(test)]
mod tests;
