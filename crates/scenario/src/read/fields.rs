//! Takes typed values out of the tree and collects every problem with its place.

use super::nearest;
use super::tree::{Entry, Node, Sources, Span, Value};
use crate::problem::Problem;
use crate::units::UnitError;

/// Collects problems while the scenario is read.
pub(super) struct Reader {
    pub(super) sources: Sources,
    problems: Vec<(Option<Span>, Problem)>,
    /// Whether this is a stored scenario, where `…` stands for a token.
    pub(super) may_lack_secrets: bool,
}

/// The entries of one table, and which of them were asked for.
pub(super) struct Fields<'t> {
    /// The dotted path, empty at the top.
    pub(super) path: String,
    pub(super) span: Option<Span>,
    entries: &'t [Entry],
    known: Vec<&'static str>,
}

impl<'t> Fields<'t> {
    pub(super) fn new(path: impl Into<String>, span: Option<Span>, entries: &'t [Entry]) -> Self {
        Self { path: path.into(), span, entries, known: Vec::new() }
    }

    /// The value of `key`, which this table may have.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'t Node> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Whether `key` is absent and nothing here looks like a misspelling of it, which would be the better message.
    pub(super) fn lacks(&self, key: &'static str) -> bool {
        !self.entries.iter().any(|entry| nearest(&entry.key, std::iter::once(key)).is_some())
    }

    /// The dotted path of `key`.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl Reader {
    pub(super) fn new(sources: Sources) -> Self {
        Self { sources, problems: Vec::new(), may_lack_secrets: false }
    }

    pub(super) fn fail(&mut self, span: Option<Span>, message: impl Into<String>, help: impl Into<String>) {
        let place = span.and_then(|span| self.sources.place(span));
        let problem = Problem { place, message: message.into(), help: Some(help.into()) };
        self.problems.push((span, problem));
    }

    /// All problems in the order of their places; what is missing altogether comes last.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|(span, _)| (span.is_none(), *span));
        self.problems.into_iter().map(|(_, problem)| problem).collect()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Reports the keys that nobody asked for.
    pub(super) fn finish(&mut self, fields: &Fields<'_>) {
        for entry in fields.entries.iter().filter(|entry| !fields.known.contains(&entry.key.as_str())) {
            let place = if fields.path.is_empty() { String::new() } else { format!(" in `{}`", fields.path) };
            let shown: String = entry.key.chars().take(60).collect();
            let help = if let Some(near) = nearest(&entry.key, fields.known.iter().copied()) {
                format!("did you mean `{near}`?")
            } else if super::TOP_KEYS.contains(&entry.key.as_str()) && !fields.path.is_empty() {
                format!("`{shown}` belongs at the top of the file, before the first [table]")
            } else {
                format!("known here: {}", fields.known.join(", "))
            };
            self.fail(Some(entry.key_span), format!("unknown key `{shown}`{place}"), help);
        }
    }

    fn expected(&mut self, node: &Node, path: &str, expected: &str) {
        self.fail(Some(node.span), format!("`{path}` is not {expected}"), format!("write {expected}"));
    }

    pub(super) fn table<'t>(&mut self, node: &'t Node, path: &str, expected: &str) -> Option<Fields<'t>> {
        match &node.value {
            Value::Table(entries) => Some(Fields::new(path, Some(node.span), entries)),
            _ => {
                self.expected(node, path, expected);
                None
            }
        }
    }

    /// A table of the file, empty when it is absent.
    pub(super) fn section<'t>(&mut self, fields: &mut Fields<'t>, key: &'static str) -> Fields<'t> {
        let path = fields.path_of(key);
        let empty = Fields::new(path.clone(), None, &[]);
        match fields.get(key) {
            Some(node) => self.table(node, &path, &format!("a table `[{path}]`")).unwrap_or(empty),
            None => empty,
        }
    }

    /// Text; a bare word or number of `--set` is text too where text is expected.
    pub(super) fn text(&mut self, node: &Node, path: &str, expected: &str) -> Option<String> {
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

    /// A quantity with its unit.
    pub(super) fn quantity<T>(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        example: &str,
        parse: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let path = fields.path_of(key);
        let node = fields.get(key)?;
        let text = self.text(node, &path, &format!("text with a unit such as \"{example}\""))?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(
                    Some(node.span),
                    format!("`{path}`: {error}"),
                    format!("write {key} = \"{example}\""),
                );
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Option<bool> {
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
    pub(super) fn integer(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        least: u64,
        most: u64,
    ) -> Option<u64> {
        let path = fields.path_of(key);
        let node = fields.get(key)?;
        let expected = format!("a whole number from {least} to {most}");
        if let Value::Integer(value) = node.value
            && let Ok(value) = u64::try_from(value)
            && (least..=most).contains(&value)
        {
            return Some(value);
        }
        self.expected(node, &path, &expected);
        None
    }

    /// A number above 0.
    pub(super) fn positive(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Option<f64> {
        let path = fields.path_of(key);
        let node = fields.get(key)?;
        let number = match node.value {
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
            _ => f64::NAN,
        };
        if number.is_finite() && number > 0.0 {
            return Some(number);
        }
        self.expected(node, &path, "a number above 0");
        None
    }

    /// A list of texts, each with its place.
    pub(super) fn texts<'t>(
        &mut self,
        fields: &mut Fields<'t>,
        key: &'static str,
        expected: &str,
    ) -> Vec<(String, &'t Node)> {
        let path = fields.path_of(key);
        let Some(node) = fields.get(key) else { return Vec::new() };
        let items: &[Node] = match &node.value {
            Value::List(items) => items,
            // One is a list of one.
            Value::Text(_) => std::slice::from_ref(node),
            _ => {
                self.expected(node, &path, expected);
                return Vec::new();
            }
        };
        items.iter().filter_map(|item| self.text(item, &path, expected).map(|text| (text, item))).collect()
    }
}
