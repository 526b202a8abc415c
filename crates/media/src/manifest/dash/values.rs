//! Values of attributes: durations, frame rates, byte ranges.

use std::borrow::Cow;
use std::str::FromStr;

use throng_observation::calendar;

use super::xml::Element;
use crate::manifest::{ByteRange, ManifestError, excerpt};

const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;

impl Element {
    /// A number, if the attribute is there.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ManifestError> {
        self.read(name, "a number", |text| text.parse().ok())
    }

    /// A duration of XML Schema, microseconds.
    pub(super) fn duration_us(&self, name: &str) -> Result<Option<u64>, ManifestError> {
        self.read(name, "a duration such as PT1.5S", duration_us)
    }

    /// A date, microseconds since 1970.
    pub(super) fn date_us(&self, name: &str) -> Result<Option<i64>, ManifestError> {
        self.read(name, "a date", date_us)
    }

    /// `first-last`, both of them included.
    pub(super) fn range(&self, name: &str) -> Result<Option<ByteRange>, ManifestError> {
        self.read(name, "a byte range such as 0-799", |text| {
            let (first, last) = text.split_once('-')?;
            let (first, last) =
                (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
            Some(ByteRange { offset: first, bytes: last.checked_sub(first)?.checked_add(1)? })
        })
    }

    /// `25` or `30000/1001`.
    pub(super) fn frame_rate_hz(&self, name: &str) -> Result<Option<f64>, ManifestError> {
        self.read(name, "a frame rate", |text| {
            let (above, below) = text.split_once('/').unwrap_or((text, "1"));
            let rate = above.trim().parse::<f64>().ok()? / below.trim().parse::<f64>().ok()?;
            (rate.is_finite() && rate > 0.0).then_some(rate)
        })
    }

    /// Seconds that may be `INF`, as microseconds; `u64::MAX`: always.
    pub(super) fn offset_us(&self, name: &str) -> Result<Option<u64>, ManifestError> {
        self.read(name, "seconds or INF", |text| match text {
            "INF" | "+INF" => Some(u64::MAX),
            _ => text
                .parse::<f64>()
                .ok()
                .filter(|s| (0.0..=1e9).contains(s))
                .map(|s| (s * 1e6).round() as u64),
        })
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ManifestError> {
        let Some(text) = self.attribute(name) else { return Ok(None) };
        let problem =
            || Cow::from(format!("has {name}=\"{}\", which is not {kind}", excerpt(text)));
        read(text.trim()).map(Some).ok_or_else(|| self.error(problem()))
    }
}

/// A date of XML Schema, where midnight may be the end of a day: `2026-12-31T24:00:00Z`.
pub(super) fn date_us(text: &str) -> Option<i64> {
    let Some((day, rest)) = text.split_once("T24:00:00") else { return calendar::iso_us(text) };
    let begin_us = calendar::iso_us(&format!("{day}T00:00:00{rest}"))?;
    // Nothing of that hour is in the day.
    (begin_us % SECOND_US == 0).then_some(begin_us + DAY_US)
}

/// `PnYnMnDTnHnMn.nS`; a year has 365 days and a month 30.
fn duration_us(text: &str) -> Option<u64> {
    let (date, time) =
        text.strip_prefix('P')?.split_once('T').unwrap_or((text.strip_prefix('P')?, ""));
    let sum = |text: &str, units: &[(char, f64)]| {
        let (mut rest, mut seconds, mut parts) = (text, 0.0, 0);
        for (unit, of_unit) in units {
            if let Some((value, after)) = rest.split_once(*unit) {
                seconds += value.parse::<f64>().ok().filter(|value| *value >= 0.0)? * of_unit;
                (rest, parts) = (after, parts + 1);
            }
        }
        rest.is_empty().then_some((seconds, parts))
    };
    let (days, date_parts) = sum(date, &[('Y', 365.0), ('M', 30.0), ('W', 7.0), ('D', 1.0)])?;
    let (seconds, time_parts) = sum(time, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)])?;
    let us = (days * 86_400.0 + seconds) * 1e6;
    (date_parts + time_parts > 0 && us <= 1e18).then(|| us.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_day_is_the_midnight_of_the_next() {
        let new_year_us = 1_798_761_600_000_000;
        for (text, expect) in [
            ("2026-12-31T24:00:00Z", Some(new_year_us)),
            ("2026-12-31T24:00:00.000+00:00", Some(new_year_us)),
            ("2027-01-01T00:00:00Z", Some(new_year_us)),
            ("2026-12-31T24:00:00+01:00", Some(new_year_us - 3_600 * SECOND_US)),
            ("1969-12-31T24:00:00", Some(0)),
            ("2026-12-31T24:00:00.5Z", None),
            ("2026-12-31T24:00:01Z", None),
            ("2026-12-31T24:01:00Z", None),
            ("2026-12-31T25:00:00Z", None),
            ("2026-02-31T24:00:00Z", None),
        ] {
            assert_eq!(date_us(text), expect, "{text}");
        }
    }

    #[test]
    fn durations_are_those_of_xml_schema() {
        for (text, expect) in [
            ("PT1.5S", Some(1_500_000)),
            ("PT2H3M4.005S", Some(7_384_005_000)),
            ("P1DT1S", Some(86_401_000_000)),
            ("P1Y2M", Some(425 * 86_400_000_000)),
            ("PT0S", Some(0)),
            ("PT10M", Some(600_000_000)),
            ("PT", None),
            ("P", None),
            ("1.5S", None),
            ("PT1.5", None),
            ("PT-1S", None),
            ("PT1e99S", None),
        ] {
            assert_eq!(duration_us(text), expect, "{text}");
        }
    }
}
