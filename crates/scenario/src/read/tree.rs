//! The scenario as a tree of values, each with its location, and the overrides applied to it.

use std::cell::OnceCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Location, Origin};
use crate::flags::Override;
use crate::masked::Mask;

/// A range of bytes of one of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    /// 0 is the file, `n` is override number `n - 1`.
    pub(crate) source: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A value and its location.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// A date, which no scenario contains, or a value nested too deeply.
    Other,
}

impl Node {
    /// The value of `key`, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => value_of(entries, key),
            _ => None,
        }
    }

    /// The text that it is.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; another value is the only item.
    pub(crate) fn one_or_many(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }
}

/// The value of `key` among the entries of a table.
pub(crate) fn value_of<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Node> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
}

impl Value {
    /// The number that it is; NaN if it is none.
    pub(crate) fn number(&self) -> f64 {
        match self {
            Self::Integer(value) => *value as f64,
            Self::Float(value) => *value,
            _ => f64::NAN,
        }
    }
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// The texts that spans refer to: the file, then each override as `path = value`.
pub(crate) struct Sources {
    texts: Vec<Text>,
}

struct Text {
    origin: Origin,
    text: String,
    /// The length of the path of an override.
    path: Option<usize>,
    /// What errors do not show of it; made for the first one.
    mask: OnceCell<Mask>,
}

/// A scenario has three levels; deeper values are not read.
const DEPTH_MAX: usize = 16;
/// Between path and value of an override, in errors.
const IS: &str = " = ";
/// Longer files are refused.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Longer dotted keys are refused: the TOML parser recurses once for each part.
const KEY_PARTS_MAX: usize = 64;

impl Sources {
    pub(crate) fn new(file: &str, overrides: &[Override]) -> Self {
        let text = |origin, text, path| Text { origin, text, path, mask: OnceCell::new() };
        let file = text(Origin::File, file.to_owned(), None);
        let overrides = overrides.iter().map(|over| {
            let words = format!("{}{IS}{}", over.path, over.value);
            text(Origin::Override(over.origin.clone()), words, Some(over.path.len()))
        });
        Self { texts: std::iter::once(file).chain(overrides).collect() }
    }

    pub(crate) fn location(&self, span: Span) -> Option<Location> {
        let Text { origin, text, path, mask } = self.texts.get(span.source)?;
        let mask = mask.get_or_init(|| match path {
            None => Mask::of_toml(text),
            Some(end) => {
                let (path, value) = text.split_at_checked(*end).unwrap_or_default();
                Mask::of_value_at(end + IS.len(), path, value.get(IS.len()..).unwrap_or_default())
            }
        });
        Some(Location::of(origin.clone(), (text, mask), span.start, span.end))
    }

    pub(crate) fn slice(&self, span: Span) -> &str {
        self.texts
            .get(span.source)
            .and_then(|source| source.text.get(span.start..span.end))
            .unwrap_or_default()
    }
}

/// The tree of the file, or its syntax errors.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, Vec<Diagnostic>> {
    let mask = OnceCell::new();
    let diagnostic = |range: Range<usize>, message: String, help: Option<&str>| {
        let mask = mask.get_or_init(|| Mask::of_toml(text));
        Diagnostic {
            location: Some(Location::of(Origin::File, (text, mask), range.start, range.end)),
            message,
            help: help.map(str::to_owned),
        }
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(vec![diagnostic(
            0..0,
            format!("the file has more than {TEXT_BYTES_MAX} bytes"),
            None,
        )]);
    }
    if let Some(at) = overlong_key(text) {
        let message = format!("the dotted key has more than {KEY_PARTS_MAX} parts");
        return Err(vec![diagnostic(at..at, message, None)]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(entries(table.get_ref(), 0, 0, 0));
    }
    let help = Some("the file is TOML: quote text, and write tables as [table]");
    Err(errors
        .iter()
        .map(|e| diagnostic(e.span().unwrap_or(0..0), e.message().trim().to_owned(), help))
        .collect())
}

/// Whether the parser may be given a text: longer ones, and those with longer keys, are refused.
pub(crate) fn may_be_parsed(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && overlong_key(text).is_none()
}

/// The offset at which a dotted key `name.name.name…` exceeds [`KEY_PARTS_MAX`].
fn overlong_key(text: &str) -> Option<usize> {
    let mut parts = 0;
    for (at, c) in text.char_indices() {
        match c {
            '.' => parts += 1,
            // The end of a key; quotes and blanks may separate its parts.
            '=' | ']' | '\n' | '[' | '{' | '}' | ',' => parts = 0,
            _ => {}
        }
        if parts > KEY_PARTS_MAX {
            return Some(at);
        }
    }
    None
}

fn entries(table: &DeTable<'_>, source: usize, shift: usize, depth: usize) -> Vec<Entry> {
    let mut all: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: shifted(key.span(), source, shift),
            node: node(value, source, shift, depth + 1),
        })
        .collect();
    // In the order of the source: the parser's table is sorted by key.
    all.sort_by_key(|entry| entry.key_span);
    all
}

fn node(value: &Spanned<DeValue<'_>>, source: usize, shift: usize, depth: usize) -> Node {
    let span = shifted(value.span(), source, shift);
    let value = match value.get_ref() {
        _ if depth > DEPTH_MAX => Value::Other,
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Value::Other, Value::Integer),
        DeValue::Float(float) => float.as_str().parse().map_or(Value::Other, Value::Float),
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(_) => Value::Other,
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| node(item, source, shift, depth + 1)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, source, shift, depth)),
    };
    Node { span, value }
}

fn shifted(range: Range<usize>, source: usize, shift: usize) -> Span {
    Span { source, start: range.start + shift, end: range.end + shift }
}

/// Applies one override to the tree.
pub(crate) fn apply(
    root: &mut Vec<Entry>,
    over: &Override,
    source: usize,
) -> Result<(), (Span, String, String)> {
    let path_span = Span { source, start: 0, end: over.path.len() };
    let parts: Vec<&str> = over.path.split('.').map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) || parts.len() > DEPTH_MAX {
        let help = "write a dotted path such as `crowd.size`".into();
        return Err((path_span, format!("`{}` is not a path", over.path), help));
    }
    set(root, &parts, override_node(over, source), path_span, false)
}

/// The value of the override: parsed as TOML, else as plain text.
fn override_node(over: &Override, source: usize) -> Node {
    const PREFIX: &str = "v = ";
    let start = over.path.len() + IS.len();
    let span = Span { source, start, end: start + over.value.len() };
    let text = Node { span, value: Value::Text(over.value.clone()) };
    if over.is_text || over.value.contains('\n') || overlong_key(&over.value).is_some() {
        return text;
    }
    let document = format!("{PREFIX}{}", over.value);
    match DeTable::parse(&document) {
        Ok(table) => table.get_ref().iter().next().map_or(text, |(_, value)| {
            // Its span is relative to the document, which begins with PREFIX instead of the path.
            let mut value = node(value, source, start, 0);
            unshift(&mut value, PREFIX.len());
            value
        }),
        Err(_) => text,
    }
}

fn unshift(node: &mut Node, by: usize) {
    let back = |span: &mut Span| {
        span.start = span.start.saturating_sub(by);
        span.end = span.end.saturating_sub(by);
    };
    back(&mut node.span);
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| unshift(item, by)),
        Value::Table(entries) => {
            for entry in entries {
                back(&mut entry.key_span);
                unshift(&mut entry.node, by);
            }
        }
        _ => {}
    }
}

/// Whether a kind of arrival that is set leaves another key of the arrival in place: its own, and
/// those of the jitter that it has too.
fn goes_with(set: &str, key: &str) -> bool {
    match set {
        "burst" | "poisson" => key == set,
        "every" | "ramp" => [set, "jitter", "seed"].contains(&key),
        _ => true,
    }
}

/// Sets the value at path `parts` below `table`. With `is_choice` (kinds of arrival), it replaces
/// the keys of other kinds.
fn set(
    table: &mut Vec<Entry>,
    parts: &[&str],
    value: Node,
    path_span: Span,
    is_choice: bool,
) -> Result<(), (Span, String, String)> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    if is_choice {
        table.retain(|entry| goes_with(first, &entry.key));
    }
    let index = table.iter().position(|entry| entry.key == *first).unwrap_or_else(|| {
        let node = Node { span: path_span, value: Value::Table(Vec::new()) };
        table.push(Entry { key: (*first).to_owned(), key_span: path_span, node });
        table.len() - 1
    });
    let Some(entry) = table.get_mut(index) else { return Ok(()) };
    if rest.is_empty() {
        entry.node = value;
        entry.key_span = path_span;
        return Ok(());
    }
    match &mut entry.node.value {
        Value::Table(inner) => set(inner, rest, value, path_span, *first == "arrival"),
        Value::List(items) => {
            let names = names(items);
            let (item, rest) = choose(items, rest).ok_or_else(|| {
                let (message, key) = match rest {
                    [name, key @ ..] if !key.is_empty() => {
                        (format!("unknown {} `{name}`", kind_of(first)), key)
                    }
                    key => (format!("`{first}` has several entries; the path must name one"), key),
                };
                let paths = names.iter().map(|name| format!("`{first}.{name}.{}`", key.join(".")));
                (path_span, message, format!("write {}", paths.collect::<Vec<_>>().join(" or ")))
            })?;
            match &mut item.value {
                Value::Table(inner) if !rest.is_empty() => {
                    set(inner, rest, value, path_span, false)
                }
                other => {
                    *other = value.value;
                    item.span = value.span;
                    Ok(())
                }
            }
        }
        // The table that the path implies replaces a short form (`stay = "30s"`).
        scalar => {
            let mut inner = Vec::new();
            set(&mut inner, rest, value, path_span, false)?;
            *scalar = Value::Table(inner);
            entry.node.span = path_span;
            Ok(())
        }
    }
}

/// The name of an item of the list `key` in errors.
fn kind_of(key: &str) -> &str {
    if key == "crowd" { "cohort" } else { key }
}

/// The name of each item of a list in a path: its `name`, or its index.
fn names(items: &[Node]) -> Vec<String> {
    let name = |node: &Node| Some(node.get("name")?.as_text()?.chars().take(64).collect());
    items
        .iter()
        .enumerate()
        .map(|(index, node)| name(node).unwrap_or_else(|| index.to_string()))
        .collect()
}

/// The item of a list that a path refers to: by its `name`, by its index, or because it is the only
/// one.
fn choose<'n, 'p>(
    items: &'n mut [Node],
    parts: &'p [&'p str],
) -> Option<(&'n mut Node, &'p [&'p str])> {
    let (first, rest) = parts.split_first()?;
    let is_named = |node: &Node| node.get("name").and_then(Node::as_text) == Some(*first);
    if let Some(at) = items.iter().position(is_named).or_else(|| first.parse().ok()) {
        return items.get_mut(at).map(|item| (item, rest));
    }
    match items {
        [only] => Some((only, parts)),
        _ => None,
    }
}
