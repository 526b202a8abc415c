//! Where a player gets the time of the server from (`UTCTiming`, ISO/IEC 23009-1 section 5.8.5.7).

use throng_observation::calendar;

use super::values::date_us;
use super::xml::Element;

const SCHEMES: &str = "urn:mpeg:dash:utc:";

/// The unit of times without a fraction.
const SECOND_US: i64 = 1_000_000;

/// A source of the server's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UtcTiming {
    /// Which protocol.
    pub scheme: String,
    /// Its addresses, or the time itself.
    pub value: String,
}

/// How the time is got from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtcMethod {
    /// The manifest says it.
    Direct,
    /// It is the body of a response.
    Body,
    /// It is the `Date` of a response to HEAD.
    Head,
}

/// A time as a source told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldTime {
    /// Microseconds since 1970.
    pub unix_us: i64,
    /// It may have been later by less than this: times are cut to seconds.
    pub unit_us: i64,
}

impl UtcTiming {
    pub(super) fn read(element: &Element) -> Self {
        let text = |name: &str| element.attribute(name).unwrap_or_default().trim().to_owned();
        Self { scheme: text("schemeIdUri"), value: text("value") }
    }

    /// How the time is got; `None` for what is not HTTP (NTP), and for schemes that are not known.
    #[must_use]
    pub fn method(&self) -> Option<UtcMethod> {
        let (name, year) = self.scheme.strip_prefix(SCHEMES)?.rsplit_once(':')?;
        // The drafts of the standard have 2012, and some manifests have it to this day.
        match name {
            _ if !matches!(year, "2014" | "2012") => None,
            "direct" => Some(UtcMethod::Direct),
            "http-xsdate" | "http-iso" => Some(UtcMethod::Body),
            "http-head" => Some(UtcMethod::Head),
            _ => None,
        }
    }

    /// The addresses, which are tried one after the other.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.value.split_whitespace()
    }
}

impl ToldTime {
    /// Reads a date of XML Schema or ISO 8601.
    #[must_use]
    pub fn of_date(text: &str) -> Option<Self> {
        let unit_us = if text.contains(['.', ',']) { 0 } else { SECOND_US };
        Some(Self { unix_us: date_us(text)?, unit_us })
    }

    /// Reads the header `Date`.
    #[must_use]
    pub fn of_header(text: &str) -> Option<Self> {
        Some(Self { unix_us: calendar::http_us(text)?, unit_us: SECOND_US })
    }

    /// How far the source's clock is ahead of another that showed `unix_us`, as dash.js has it;
    /// none where the time told is too coarse to say that they differ.
    #[must_use]
    pub fn ahead_us(self, unix_us: i64) -> i64 {
        let ahead_us = self.unix_us.saturating_sub(unix_us);
        if ahead_us <= 0 && ahead_us.saturating_add(self.unit_us) > 0 { 0 } else { ahead_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_says_how_the_time_is_got() {
        let method =
            |scheme: &str| UtcTiming { scheme: scheme.to_owned(), value: String::new() }.method();
        for (name, expect) in [
            ("direct:2014", Some(UtcMethod::Direct)),
            ("http-xsdate:2014", Some(UtcMethod::Body)),
            ("http-iso:2012", Some(UtcMethod::Body)),
            ("http-head:2014", Some(UtcMethod::Head)),
            ("http-head:2033", None),
            ("http-ntp:2014", None),
            ("ntp:2014", None),
            ("sntp:2014", None),
            ("direct", None),
        ] {
            assert_eq!(method(&format!("{SCHEMES}{name}")), expect, "{name}");
        }
        assert_eq!(method("http-head:2014"), None);
        assert_eq!(method(""), None);
    }

    #[test]
    fn a_clock_is_ahead_by_no_more_than_the_time_told_can_say() {
        for (time, here_us, expect) in [
            (ToldTime::of_date("1970-01-01T00:00:10.250Z"), 10_000_000, 250_000),
            (ToldTime::of_date("1970-01-01T00:00:10.250Z"), 10_500_000, -250_000),
            (ToldTime::of_date("1970-01-01T00:00:10Z"), 10_999_999, 0),
            (ToldTime::of_date("1970-01-01T00:00:10Z"), 11_000_000, -1_000_000),
            (ToldTime::of_date("1970-01-01T00:00:10Z\n"), 9_900_000, 100_000),
            (ToldTime::of_header("Thu, 01 Jan 1970 00:00:10 GMT"), 10_500_000, 0),
            (ToldTime::of_header("Thu, 01 Jan 1970 00:00:10 GMT"), 13_000_000, -3_000_000),
        ] {
            assert_eq!(time.map(|time| time.ahead_us(here_us)), Some(expect), "{time:?} {here_us}");
        }
        assert_eq!(
            (ToldTime::of_date("soon"), ToldTime::of_header("1970-01-01T00:00:10Z")),
            (None, None)
        );
    }
}
