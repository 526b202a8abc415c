//! Reads typed values from the tree and collects every error with its location.

use std::ops::Range;

use super::tree::{Entry, Node, Sources, Span, Value, value_of};
use crate::diagnostic::Diagnostic;
use crate::keys::Named;
use crate::suggestion::nearest;
use crate::units::UnitError;

/// The keys at the top of the file.
pub(crate) const TOP_KEYS: [&str; 12] = [
    "objectives",
    "target",
    "crowd",
    "run",
    "stream",
    "conversation",
    "room",
    "watch",
    "tap",
    "canary",
    "output",
    "caps",
];

/// Collects the errors of a scenario.
pub(crate) struct Reader {
    pub(crate) sources: Sources,
    diagnostics: Vec<(Option<Span>, Diagnostic)>,
    /// What has written the scenario.
    pub(crate) form: Form,
}

/// What has written a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A person.
    Asked,
    /// A person, and its secrets are hidden (`…`).
    Masked,
    /// [`crate::Scenario::to_toml`] of this or an earlier version, with hidden secrets.
    Written,
}

/// The entries of one table, and the keys that have been read.
pub(crate) struct Fields<'t> {
    /// The dotted path of the table; empty at the top.
    pub(crate) path: String,
    pub(crate) span: Option<Span>,
    entries: &'t [Entry],
    known: Vec<&'static str>,
}

impl<'t> Fields<'t> {
    pub(crate) fn new(path: impl Into<String>, span: Option<Span>, entries: &'t [Entry]) -> Self {
        Self { path: path.into(), span, entries, known: Vec::new() }
    }

    /// The value of `key`; the key becomes a known one.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'t Node> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        value_of(self.entries, key)
    }

    /// The location of the value of `key`; the key becomes a known one.
    pub(crate) fn span_of(&mut self, key: &'static str) -> Option<Span> {
        self.get(key).map(|node| node.span)
    }

    /// The location of `table.key`, seen from the top of the file.
    pub(crate) fn span_at(&self, table: &str, key: &str) -> Option<Span> {
        Some(value_of(self.entries, table)?.get(key)?.span)
    }

    /// These keys become known ones, before they are read.
    pub(crate) fn know(&mut self, keys: &[&'static str]) {
        for key in keys.iter().copied() {
            self.get(key);
        }
    }

    /// No key of this table is `key` or a misspelling of it, as no known key is. A misspelling is
    /// reported as an unknown key.
    pub(crate) fn lacks(&self, key: &'static str) -> bool {
        let is_misspelt = |entry: &Entry| {
            !self.known.contains(&entry.key.as_str())
                && nearest(&entry.key, std::iter::once(key)).is_some()
        };
        !self.entries.iter().any(|entry| entry.key == key || is_misspelt(entry))
    }

    /// The dotted path of `key`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl Reader {
    pub(crate) fn new(sources: Sources) -> Self {
        Self { sources, diagnostics: Vec::new(), form: Form::Asked }
    }

    /// Whether a secret may be hidden (`…`).
    pub(crate) fn is_redacted(&self) -> bool {
        self.form != Form::Asked
    }

    /// Whether it was stored, by this or an earlier version.
    pub(crate) fn is_stored(&self) -> bool {
        self.form == Form::Written
    }

    /// Adds an error.
    pub(crate) fn fail(
        &mut self,
        span: impl Into<Option<Span>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let span = span.into();
        let location = span.and_then(|span| self.sources.location(span));
        let diagnostic = Diagnostic { location, message: message.into(), help: Some(help.into()) };
        self.diagnostics.push((span, diagnostic));
    }

    /// Reports that `key` is missing, if it is.
    pub(crate) fn require(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        help: impl Into<String>,
    ) {
        if fields.lacks(key) {
            self.fail(fields.span, format!("`{}` is missing", fields.path_of(key)), help);
        }
    }

    /// All errors in the order of their locations; those without a location come last.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|(span, _)| (span.is_none(), *span));
        self.diagnostics.into_iter().map(|(_, diagnostic)| diagnostic).collect()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Whether an error is about this value.
    pub(crate) fn has_error_at(&self, span: Span) -> bool {
        self.diagnostics.iter().any(|(at, _)| *at == Some(span))
    }

    /// Reports the keys that have not been read.
    pub(crate) fn finish(&mut self, fields: &Fields<'_>) {
        for entry in
            fields.entries.iter().filter(|entry| !fields.known.contains(&entry.key.as_str()))
        {
            let table = if fields.path.is_empty() {
                String::new()
            } else {
                format!(" in `{}`", fields.path)
            };
            let shown: String = entry.key.chars().take(60).collect();
            let help = if let Some(near) = nearest(&entry.key, fields.known.iter().copied()) {
                format!("did you mean `{near}`?")
            } else if TOP_KEYS.contains(&entry.key.as_str()) && !fields.path.is_empty() {
                format!("`{shown}` belongs at the top of the file, before the first [table]")
            } else {
                format!("known keys: {}", fields.known.join(", "))
            };
            self.fail(entry.key_span, format!("unknown key `{shown}`{table}"), help);
        }
    }

    fn expected(&mut self, node: &Node, path: &str, expected: &str) {
        self.fail(node.span, format!("`{path}` is not {expected}"), format!("write {expected}"));
    }

    /// The fields of a table.
    pub(crate) fn table<'t>(
        &mut self,
        node: &'t Node,
        path: &str,
        expected: &str,
    ) -> Option<Fields<'t>> {
        match &node.value {
            Value::Table(entries) => Some(Fields::new(path, Some(node.span), entries)),
            _ => {
                self.expected(node, path, expected);
                None
            }
        }
    }

    /// The fields of the table `key`; empty if it is absent.
    pub(crate) fn section<'t>(&mut self, fields: &mut Fields<'t>, key: &'static str) -> Fields<'t> {
        let path = fields.path_of(key);
        let empty = Fields::new(path.clone(), None, &[]);
        match fields.get(key) {
            Some(node) => self.table(node, &path, &format!("a table `[{path}]`")).unwrap_or(empty),
            None => empty,
        }
    }

    /// Text. The value of a `--set` needs no quotes: a bare word or number is text where text is
    /// expected.
    pub(crate) fn text(&mut self, node: &Node, path: &str, expected: &str) -> Option<String> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) if node.span.source > 0 => {
                Some(self.sources.slice(node.span).to_owned())
            }
            _ => {
                self.expected(node, path, expected);
                None
            }
        }
    }

    /// The text of `key`, its path and its node.
    pub(crate) fn text_at<'t>(
        &mut self,
        fields: &mut Fields<'t>,
        key: &'static str,
        expected: &str,
    ) -> Option<(String, String, &'t Node)> {
        let path = fields.path_of(key);
        let node = fields.get(key)?;
        Some((self.text(node, &path, expected)?, path, node))
    }

    /// The text of `key` alone.
    pub(crate) fn text_of(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        expected: &str,
    ) -> Option<String> {
        self.text_at(fields, key, expected).map(|(text, ..)| text)
    }

    /// A quantity with its unit, such as `100ms`.
    pub(crate) fn quantity<T>(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        example: &str,
        parse: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let expected = format!("text with a unit such as \"{example}\"");
        let (text, path, node) = self.text_at(fields, key, &expected)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(
                    node.span,
                    format!("`{path}`: {error}"),
                    format!("write {key} = \"{example}\""),
                );
                None
            }
        }
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Option<bool> {
        let path = fields.path_of(key);
        let node = fields.get(key)?;
        match node.value {
            Value::Boolean(boolean) => Some(boolean),
            _ => {
                self.expected(node, &path, "true or false");
                None
            }
        }
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn integer<T: TryFrom<u64>>(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        least: u64,
        most: u64,
    ) -> Option<T> {
        let path = fields.path_of(key);
        self.whole(fields.get(key)?, &path, least, most)
    }

    /// The same of a value that is there.
    pub(crate) fn whole<T: TryFrom<u64>>(
        &mut self,
        node: &Node,
        path: &str,
        least: u64,
        most: u64,
    ) -> Option<T> {
        let expected = format!("a whole number from {least} to {most}");
        if let Value::Integer(value) = node.value
            && let Ok(value) = u64::try_from(value)
            && (least..=most).contains(&value)
        {
            return T::try_from(value).ok();
        }
        self.expected(node, path, &expected);
        None
    }

    /// A number that `is_one`; what is expected, and what to write.
    pub(crate) fn number(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        is_one: impl Fn(f64) -> bool,
        (expected, help): (&str, &str),
    ) -> Option<f64> {
        let node = fields.get(key)?;
        let number = Some(node.value.number()).filter(|number| is_one(*number));
        if number.is_none() {
            self.fail(node.span, format!("`{}` is not {expected}", fields.path_of(key)), help);
        }
        number
    }

    /// A number above 0.
    pub(crate) fn positive(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Option<f64> {
        let is_one = |number: f64| number.is_finite() && number > 0.0;
        self.number(fields, key, is_one, ("a number above 0", "write a number above 0"))
    }

    /// A share from 0 to 1.
    pub(crate) fn share(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        example: &str,
    ) -> Option<f64> {
        let is_one = |number: f64| (0.0..=1.0).contains(&number);
        let help = format!("write {key} = {example}");
        self.number(fields, key, is_one, ("a share from 0 to 1", help.as_str()))
    }

    /// The same in thousandths.
    pub(crate) fn share_milli(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        example: &str,
    ) -> Option<u32> {
        self.share(fields, key, example).map(|share| (share * 1e3).round() as u32)
    }

    /// One of `words`.
    pub(crate) fn word(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        words: &[&str],
    ) -> Option<String> {
        let expected = format!("one of \"{}\"", words.join("\", \""));
        let (text, path, node) = self.text_at(fields, key, &expected)?;
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        let help = match nearest(&text, words.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("write {expected}"),
        };
        self.fail(node.span, format!("`{path}` is not {expected}"), help);
        None
    }

    /// The value with the name that is written.
    pub(crate) fn named<T: Named>(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<T> {
        self.word(fields, key, &T::names()).and_then(|name| T::of_name(&name))
    }

    /// The span of a part of a text value, where the source contains the text literally (plain
    /// quotes, no escapes); else the span of the value.
    pub(crate) fn span_within(&self, node: &Node, text: &str, part: Range<usize>) -> Span {
        let Some(quote) = self.sources.slice(node.span).find(text) else { return node.span };
        let start = node.span.start + quote;
        Span { source: node.span.source, start: start + part.start, end: start + part.end }
    }

    /// A list of texts, each with its node. A single text is a list of one.
    pub(crate) fn texts<'t>(
        &mut self,
        fields: &mut Fields<'t>,
        key: &'static str,
        expected: &str,
    ) -> Vec<(String, &'t Node)> {
        let path = fields.path_of(key);
        let Some(node) = fields.get(key) else { return Vec::new() };
        let items: &[Node] = match &node.value {
            Value::List(items) => items,
            Value::Text(_) => std::slice::from_ref(node),
            _ => {
                self.expected(node, &path, expected);
                return Vec::new();
            }
        };
        items
            .iter()
            .filter_map(|item| self.text(item, &path, expected).map(|text| (text, item)))
            .collect()
    }
}
