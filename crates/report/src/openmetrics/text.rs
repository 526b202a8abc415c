//! The two text formats.

use super::exposition::{Exposition, Labels, Value};
use super::family::Family;
use super::histogram::Buckets;

/// A text format that Prometheus reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
            let (name, key) = (family.called(), kind.older().key());
            // A quote is not escaped there.
            let help = escaped(help).replace("\\\"", "\"");
            *out += &format!("# HELP {name} {help}\n# TYPE {name} {key}\n");
        }
    }
}

fn histogram(out: &mut String, name: &str, labels: &Labels, times: &Buckets) {
    for (_, bound, count) in times.up_to_each() {
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
