//! The formats, and which of them a scraper gets.

use super::exposition::Exposition;
use super::text::TextFormat;

/// A format that Prometheus reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Text, which everybody gets who does not ask for protobuf.
    Text(TextFormat),
    /// Messages of protobuf, a family each with its length before it: the only format that has
    /// native histograms.
    Protobuf,
}

impl Format {
    /// The value of `Content-Type`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text(format) => format.content_type(),
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }

    /// The one that an `Accept` header (RFC 9110 section 12.5.1) wants most. Where it wants several
    /// as much: protobuf, which only who reads it names, then OpenMetrics, which is also for those
    /// who want neither.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let of = |kinds: &[&str]| weight(accept, |range| range.is_one_of(kinds));
        let plain = of(&["text/plain", "text/*"]);
        let open = of(&["application/openmetrics-text", "application/*", "*/*"]);
        let protobuf = weight(accept, MediaRange::is_protobuf);
        if protobuf > 0.0 && protobuf >= plain.max(open) {
            Self::Protobuf
        } else if plain > open {
            Self::Text(TextFormat::Prometheus)
        } else {
            Self::Text(TextFormat::OpenMetrics)
        }
    }
}

impl Exposition {
    /// All of it in a format.
    #[must_use]
    pub fn written(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Text(format) => self.text(format).into_bytes(),
            Format::Protobuf => self.protobuf(),
        }
    }
}

/// The largest weight of those ranges of an `Accept` header that are meant; 0 without one.
fn weight<'a>(accept: &'a str, is_meant: impl Fn(&MediaRange<'a>) -> bool) -> f64 {
    let ranges = accept.split(',').map(MediaRange).filter(is_meant);
    ranges.map(|range| range.weight()).fold(0.0, f64::max)
}

/// An item of `Accept`: what is accepted, by its kind and parameters, and how much it is wanted.
struct MediaRange<'a>(&'a str);

impl MediaRange<'_> {
    fn is_one_of(&self, kinds: &[&str]) -> bool {
        let kind = self.0.split(';').next().unwrap_or_default().trim();
        kinds.iter().any(|known| known.eq_ignore_ascii_case(kind))
    }

    fn is_protobuf(&self) -> bool {
        self.is_one_of(&["application/vnd.google.protobuf"])
            && self.parameter("proto") == Some("io.prometheus.client.MetricFamily")
            && self.parameter("encoding") == Some("delimited")
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.0.split(';').skip(1).find_map(|part| {
            let (key, value) = part.split_once('=')?;
            let is_it = key.trim().eq_ignore_ascii_case(name);
            is_it.then_some(value.trim().trim_matches('"'))
        })
    }

    fn weight(&self) -> f64 {
        self.parameter("q").and_then(|weight| weight.parse().ok()).unwrap_or(1.0)
    }
}
