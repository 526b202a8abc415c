//! The two text formats.

use super::exposition::{Exposition, Labels, Value};
use super::family::{Family, Kind};
use super::histogram::{BOUNDS, Buckets};

/// A format that Prometheus reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics 1.0.
    #[default]
    OpenMetrics,
    /// The text format 0.0.4 of Prometheus, which has no units and no end.
    Prometheus,
}

impl TextFormat {
    /// The value of `Content-Type`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The one that an `Accept` header (RFC 9110 section 12.5.1) wants more, and OpenMetrics where
    /// it wants neither more.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let wanted = |kinds: &[&str]| {
            accept.split(',').filter_map(|item| weight(item, kinds)).fold(0.0, f64::max)
        };
        let plain = wanted(&["text/plain", "text/*"]);
        let open = wanted(&["application/openmetrics-text", "application/*", "*/*"]);
        if plain > open { Self::Prometheus } else { Self::OpenMetrics }
    }
}

/// The weight of an item of `Accept`, if it is one of these kinds.
fn weight(item: &str, kinds: &[&str]) -> Option<f64> {
    let mut parts = item.split(';').map(str::trim);
    let kind = parts.next()?;
    kinds.iter().find(|known| known.eq_ignore_ascii_case(kind))?;
    let weight = parts.find_map(|part| part.strip_prefix("q="));
    Some(weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
}

impl Exposition {
    /// All of it as text.
    #[must_use]
    pub fn text(&self, format: TextFormat) -> String {
        let mut out = String::new();
        for (family, series) in self.families() {
            head(&mut out, family, format);
            for (labels, value) in series {
                match value {
                    Value::Number(number) => {
                        let ending = family.kind.endings().first().copied().unwrap_or_default();
                        line(&mut out, (&family.name, ending), labels, None, &written(*number));
                    }
                    Value::Histogram(times) => histogram(&mut out, &family.name, labels, times),
                }
            }
        }
        if format == TextFormat::OpenMetrics {
            out += "# EOF\n";
        }
        out
    }
}

fn head(out: &mut String, family: &Family, format: TextFormat) {
    let Family { name, kind, unit, help } = family;
    match format {
        TextFormat::OpenMetrics => {
            *out += &format!("# TYPE {name} {}\n", kind.key());
            if !unit.is_empty() {
                *out += &format!("# UNIT {name} {unit}\n");
            }
            *out += &format!("# HELP {name} {}\n", escaped(help));
        }
        TextFormat::Prometheus => {
            // A family is called as its series; of what has no such type, a gauge.
            let (ending, key) = match kind {
                Kind::Counter => ("_total", kind.key()),
                Kind::Info => ("_info", Kind::Gauge.key()),
                Kind::Gauge | Kind::Histogram => ("", kind.key()),
            };
            // A quote is not escaped there.
            let help = escaped(help).replace("\\\"", "\"");
            *out += &format!("# HELP {name}{ending} {help}\n# TYPE {name}{ending} {key}\n");
        }
    }
}

fn histogram(out: &mut String, name: &str, labels: &Labels, times: &Buckets) {
    let unbounded = ("+Inf", times.count);
    let buckets = BOUNDS.iter().zip(times.up_to).map(|((_, bound), count)| (*bound, count));
    for (bound, count) in buckets.chain([unbounded]) {
        line(out, (name, "_bucket"), labels, Some(("le", bound)), &count.to_string());
    }
    line(out, (name, "_count"), labels, None, &times.count.to_string());
    line(out, (name, "_sum"), labels, None, &written(times.sum_us / 1e6));
}

fn line(
    out: &mut String,
    (name, ending): (&str, &str),
    labels: &Labels,
    bound: Option<(&str, &str)>,
    value: &str,
) {
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound);
    let labels: Vec<String> =
        labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    *out += &format!("{name}{ending}{labels} {value}\n");
}

/// Text as both formats want it in quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn written(number: f64) -> String {
    if number == f64::INFINITY {
        "+Inf".into()
    } else if number == f64::NEG_INFINITY {
        "-Inf".into()
    } else {
        // `NaN` is written so in both.
        number.to_string()
    }
}
