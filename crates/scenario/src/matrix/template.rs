//! Texts with `{{name}}` where a matrix has values that differ by cell.
//!
//! Double braces, so that `{stream}` of a URL, the blocks of nginx and JSON stay as they are in the
//! same text.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location, Origin, ScenarioError};
use crate::masked::Mask;
use crate::suggestion::nearest;

/// A text whose variables are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(String),
}

/// What is wrong with a template, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    /// Bytes of the text.
    pub(crate) at: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: String,
}

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
/// Longer names are not variables; an opening without an end is found near its place.
const NAME_BYTES_MAX: usize = 64;

impl Template {
    /// The template of a configuration file, with all its errors, each with its line.
    ///
    /// # Errors
    /// Unknown variables, and braces that are not closed.
    pub fn of_file(text: &str, known: &BTreeSet<String>) -> Result<Self, ScenarioError> {
        let (template, errors) = Self::parse(text, known);
        if errors.is_empty() {
            return Ok(template);
        }
        let mask = Mask::of_toml(text);
        let diagnostic = |error: TemplateError| Diagnostic {
            location: Some(Location::of(Origin::File, (text, &mask), error.at.start, error.at.end)),
            message: error.message,
            help: Some(error.help),
        };
        Err(ScenarioError { diagnostics: errors.into_iter().map(diagnostic).collect() })
    }

    /// Finds the variables of `text`: `{{name}}`, blanks allowed around the name; `{{{{` is a
    /// literal `{{`.
    pub(crate) fn parse(text: &str, known: &BTreeSet<String>) -> (Self, Vec<TemplateError>) {
        let (mut parts, mut errors) = (Vec::new(), Vec::new());
        let mut literal = String::new();
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find(OPEN)) {
            let open = at + found;
            let inside = open + OPEN.len();
            literal.push_str(text.get(at..open).unwrap_or_default());
            let rest = text.get(inside..).unwrap_or_default();
            if rest.starts_with(OPEN) {
                literal.push_str(OPEN);
                at = inside + OPEN.len();
                continue;
            }
            let Some(length) = rest.find(CLOSE).filter(|length| *length <= NAME_BYTES_MAX) else {
                errors.push(TemplateError {
                    at: open..inside,
                    message: "`{{` is not closed".into(),
                    help: "write {{name}}, or {{{{ for two braces".into(),
                });
                at = inside;
                continue;
            };
            let name = rest.get(..length).unwrap_or_default().trim();
            at = inside + length + CLOSE.len();
            if known.contains(name) {
                parts.push(Part::Text(std::mem::take(&mut literal)));
                parts.push(Part::Variable(name.to_owned()));
            } else {
                errors.push(unknown(name, open..at, known));
            }
        }
        literal.push_str(text.get(at..).unwrap_or_default());
        parts.push(Part::Text(literal));
        parts.retain(|part| *part != Part::Text(String::new()));
        (Self { parts }, errors)
    }

    /// A text without variables.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self { parts: vec![Part::Text(text.to_owned())] }
    }

    /// The text, with the value of each variable in its place.
    #[must_use]
    pub fn render(&self, value: &dyn Fn(&str) -> String) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Variable(name) => value(name),
        };
        self.parts.iter().map(part).collect()
    }
}

fn unknown(name: &str, at: Range<usize>, known: &BTreeSet<String>) -> TemplateError {
    let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
    let help = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
        None => {
            format!("known variables: {}", known.iter().cloned().collect::<Vec<_>>().join(", "))
        }
    };
    TemplateError { at, message: format!("unknown variable `{{{{{shown}}}}}`"), help }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeSet<String> {
        ["files", "dir"].map(str::to_owned).into()
    }

    fn rendered(text: &str) -> Result<String, Vec<String>> {
        let (template, errors) = Template::parse(text, &known());
        if errors.is_empty() {
            Ok(template.render(&|name| format!("<{name}>")))
        } else {
            Err(errors
                .into_iter()
                .map(|error| format!("{} ({})", error.message, error.help))
                .collect())
        }
    }

    #[test]
    fn variables_are_replaced_and_all_other_braces_stay() {
        for (text, expect) in [
            ("", ""),
            ("{{files}}", "<files>"),
            ("{{ dir }}/{{files}}.conf", "<dir>/<files>.conf"),
            ("rtsp://h/{stream}-{{files}}", "rtsp://h/{stream}-<files>"),
            ("server { listen 80; }", "server { listen 80; }"),
            ("{{{{files}}", "{{files}}"),
            ("ü{{dir}}ü", "ü<dir>ü"),
        ] {
            assert_eq!(rendered(text).as_deref(), Ok(expect), "{text}");
        }
    }

    #[test]
    fn what_is_no_variable_is_an_error_with_a_hint() {
        for (text, expect) in [
            ("{{file}}", "unknown variable `{{file}}` (did you mean `{{files}}`?)"),
            ("{{zzzzzzz}}", "unknown variable `{{zzzzzzz}}` (known variables: dir, files)"),
            ("a {{files", "`{{` is not closed (write {{name}}, or {{{{ for two braces)"),
            ("{{}}", "unknown variable `{{}}` (known variables: dir, files)"),
        ] {
            assert_eq!(rendered(text), Err(vec![expect.to_owned()]), "{text}");
        }
    }

    #[test]
    fn an_error_of_a_file_has_its_line() {
        let error = Template::of_file("a\nb {{flies}}\n", &known()).unwrap_err().to_string();
        assert!(
            error.contains("line 2, column 3") && error.contains("did you mean `{{files}}`?"),
            "{error}"
        );
    }

    #[test]
    fn no_text_panics() {
        let mut text = String::new();
        for seed in 0..3_000_u64 {
            let mut random = fastrand::Rng::with_seed(seed);
            text.clear();
            for _ in 0..random.usize(..24) {
                text.push_str(
                    ["{", "}", "{{", "}}", "files", " ", "ü", "\n", "{{files}}"][random.usize(..9)],
                );
            }
            let _ = rendered(&text);
        }
    }
}
