//! Parses the text formats of Prometheus (0.0.4) and OpenMetrics (1.0) leniently: an invalid line
//! is skipped, and memory is bounded whatever the length and number of lines.

use std::borrow::Cow;
use std::collections::HashMap;

use super::query::NUMBER_MAX;

/// Maximum length of a line, bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of samples in one answer.
pub const SAMPLES_MAX: usize = 50_000;
/// Maximum number of labels of a sample.
const LABELS_MAX: usize = 32;
/// Maximum length of a metric or label name, bytes.
const NAME_BYTES_MAX: usize = 200;
/// Maximum length of a label value, bytes; longer ones are cut.
const LABEL_BYTES_MAX: usize = 128;
/// Maximum number of metrics whose type is remembered.
const TYPES_MAX: usize = 10_000;

/// The type of a metric, as far as it matters for rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Monotonic until the server restarts.
    Counter,
    /// A current value.
    Gauge,
}

/// A sample of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The metric's name, including the suffix of its type (`_total`, `_sum`, …).
    pub name: &'a str,
    /// The labels, in the order of the text.
    pub labels: Vec<(&'a str, Cow<'a, str>)>,
    /// The value.
    pub value: f64,
    /// Counter or gauge.
    pub kind: Kind,
}

/// A parsed answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exposition<'a> {
    /// The samples, in the order of the text.
    pub samples: Vec<Sample<'a>>,
    /// Number of invalid lines.
    pub bad_lines: usize,
    /// The first invalid line, shortened.
    pub first_bad_line: Option<String>,
    /// Number of samples beyond [`SAMPLES_MAX`].
    pub samples_over_limit: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Counter,
    Gauge,
    /// Histogram or summary: `_sum`, `_count` and `_bucket` are counters, the rest are gauges.
    Distribution,
    Unknown,
}

/// Parses an answer. `keep` is called for each name before its labels are parsed, so that thousands
/// of unwanted series cost next to nothing.
pub fn parse<'a>(text: &'a str, mut keep: impl FnMut(&str) -> bool) -> Exposition<'a> {
    let mut types: HashMap<&'a str, Type> = HashMap::new();
    let mut read = Exposition::default();
    for line in text.split('\n') {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            if let Some((name, kind)) = type_of(comment)
                && types.len() < TYPES_MAX
            {
                types.insert(name, kind);
            }
            continue;
        }
        let kept = |name: &str| keep(name);
        match sample(line, &types, kept) {
            Ok(Some(sample)) if read.samples.len() < SAMPLES_MAX => read.samples.push(sample),
            Ok(Some(_)) => read.samples_over_limit += 1,
            Ok(None) => {}
            Err(()) => {
                read.bad_lines += 1;
                read.first_bad_line.get_or_insert_with(|| line.chars().take(80).collect());
            }
        }
    }
    read
}

/// `# TYPE name kind`.
fn type_of(comment: &str) -> Option<(&str, Type)> {
    let mut words = comment.split_ascii_whitespace();
    if words.next() != Some("TYPE") {
        return None;
    }
    let name = words.next().filter(|name| is_name(name))?;
    let kind = match words.next()? {
        "counter" => Type::Counter,
        "gauge" | "stateset" | "info" => Type::Gauge,
        "histogram" | "summary" => Type::Distribution,
        _ => Type::Unknown,
    };
    Some((name, kind))
}

/// `name{label="value",…} value [time] [# exemplar]`; `None` if it is not kept or has no value
/// (NaN).
fn sample<'a>(
    line: &'a str,
    types: &HashMap<&'a str, Type>,
    keep: impl FnOnce(&str) -> bool,
) -> Result<Option<Sample<'a>>, ()> {
    if line.len() > LINE_BYTES_MAX {
        return Err(());
    }
    let name_ends = line.find(['{', ' ', '\t']).ok_or(())?;
    let (name, rest) = line.split_at_checked(name_ends).ok_or(())?;
    if !is_name(name) {
        return Err(());
    }
    if !keep(name) {
        return Ok(None);
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inner) => labels(inner)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_ascii_whitespace().next().ok_or(())?;
    // Rust parses the formats' spellings of infinity, in any case.
    let value: f64 = value.parse().map_err(|_| ())?;
    let kind = kind_of(name, types);
    // Negative counters are invalid.
    let makes_sense = value.abs() <= NUMBER_MAX && (kind == Kind::Gauge || value >= 0.0);
    Ok(makes_sense.then_some(Sample { name, labels, value, kind }))
}

/// OpenMetrics names the type after the family (`x`) and the sample `x_total`; Prometheus names
/// both alike.
fn kind_of(name: &str, types: &HashMap<&str, Type>) -> Kind {
    let family = |suffix| name.strip_suffix(suffix).and_then(|family| types.get(family).copied());
    let of_distribution = ["_sum", "_count", "_bucket"].into_iter().find_map(family);
    let declared = types.get(name).copied().filter(|kind| *kind != Type::Unknown);
    let counts = match (declared, of_distribution) {
        (Some(Type::Counter), _) | (_, Some(Type::Distribution)) => true,
        (Some(_), _) => false,
        _ => family("_total") == Some(Type::Counter) || name.ends_with("_total"),
    };
    if counts { Kind::Counter } else { Kind::Gauge }
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// The labels after the opening brace, and the text after the closing one.
fn labels(mut rest: &str) -> Result<(Labels<'_>, &str), ()> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        let (name, after) = rest.split_once('=').ok_or(())?;
        let name = name.trim();
        if !is_name(name) || labels.len() >= LABELS_MAX {
            return Err(());
        }
        let quoted = after.trim_start().strip_prefix('"').ok_or(())?;
        let (value, after) = quoted_value(quoted)?;
        labels.push((name, value));
        rest = after;
    }
}

/// A label's value up to its closing quote; the escapes are `\\`, `\"` and `\n`.
fn quoted_value(text: &str) -> Result<(Cow<'_, str>, &str), ()> {
    let mut escaped = false;
    let mut has_escapes = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        has_escapes |= escaped;
        ends
    });
    let (value, after) = text.split_at_checked(end.ok_or(())?).ok_or(())?;
    let after = after.strip_prefix('"').ok_or(())?;
    let value = cut(value);
    if !has_escapes {
        return Ok((Cow::Borrowed(value), after));
    }
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => plain.push(' '),
                Some(other) => plain.push(other),
                None => {}
            },
            (letter, false) => plain.push(letter),
        }
    }
    Ok((Cow::Owned(plain), after))
}

fn cut(value: &str) -> &str {
    let mut end = value.len().min(LABEL_BYTES_MAX);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    value.get(..end).unwrap_or_default()
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(fits)
}

#[cfg(test)]
#[path = "openmetrics_tests.rs"]
mod tests;
