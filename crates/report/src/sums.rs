//! The parts of `summary.json` that are sums of a family. A sum is only named there: what it means,
//! and how it is counted, its family declares.

use throng_observation::{Counter, Counters};

/// Declares such a part. A key without a type is the counter of its name or, after `=`, of that
/// name; one with a type is a figure of the sums. What has a comment means that, and not what the
/// counter does. New ones come at the end, and have `#[serde(default)]`, as earlier summaries lack
/// them.
macro_rules! summed {
    (
        $(#[$($about:tt)+])+
        $name:ident of $family:ident {
            $(
                $(#[doc = $meaning:literal])* $(#[serde($($serde:tt)+)])?
                $key:ident $(= $counter:ident)? $(: $type:ty = $figure:expr)?;
            )+
        }
    ) => {
        $(#[$($about)+])+
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize,
            ::schemars::JsonSchema,
        )]
        pub struct $name {
            $(
                $(#[doc = $meaning])*
                #[doc = concat!(" Of [`", stringify!($family), "`].")]
                $(#[serde($($serde)+)])?
                #[schemars(description = crate::sums::meaning::<$family>(
                    concat!($($meaning, "\n"),*),
                    stringify!($key),
                    concat!($(stringify!($counter))?)
                ))]
                pub $key: crate::sums::Sum $(<$type>)?,
            )+
        }

        impl $name {
            pub(crate) fn of(sums: &$family) -> Self {
                Self { $( $key: summed!(@value sums, $key $(= $counter)? $(: $figure)?), )+ }
            }
        }
    };
    (@value $sums:ident, $key:ident) => { crate::sums::unsigned($sums.$key) };
    (@value $sums:ident, $key:ident = $counter:ident) => { crate::sums::unsigned($sums.$counter) };
    (@value $sums:ident, $key:ident: $figure:expr) => { crate::sums::figure($sums, $figure) };
}
pub(crate) use summed;

/// The type of a sum, or that of a figure.
pub(crate) type Sum<T = u64> = T;

/// What is negative, as packets lost may be within an interval, is none.
pub(crate) fn unsigned(sum: impl Into<i128>) -> u64 {
    u64::try_from(sum.into()).unwrap_or(0)
}

pub(crate) fn figure<C, T>(sums: &C, of: fn(&C) -> T) -> T {
    of(sums)
}

/// What a key means: what is said of it, or what its counter does.
pub(crate) fn meaning<C: Counters>(said: &str, key: &str, counter: &str) -> String {
    if !said.is_empty() {
        return said.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    }
    let name = if counter.is_empty() { key } else { counter };
    let counter = C::COUNTERS.iter().find(|counter| counter.name == name);
    counter.map_or("", Counter::meaning).to_owned()
}

#[cfg(test)]
mod tests {
    use throng_observation::{ChatCounters, PlaybackCounters};

    use super::*;

    #[test]
    fn a_sum_means_what_its_counter_does_and_a_figure_what_is_said_of_it() {
        let said = [
            meaning::<ChatCounters>("", "messages_sent", ""),
            meaning::<PlaybackCounters>("", "seeks", "seek_count"),
            meaning::<ChatCounters>(" Missing,\n of all.\n", "missing_ratio", ""),
        ];
        let expected = ["Messages said.", "Seeks that users made.", "Missing,\nof all."];
        assert_eq!(said, expected);
    }

    #[test]
    fn each_key_of_the_summary_says_what_it_means() {
        let schema = crate::json_schema();
        let shapes = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        let keys = shapes.filter_map(|shape| shape["properties"].as_object()).flatten();
        for (key, property) in keys {
            assert!(property["description"].is_string(), "{key}: {property}");
        }
    }
}
