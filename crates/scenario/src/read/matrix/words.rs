//! Texts with variables, lists of words, tables of any keys, overrides and commands of a matrix
//! file.

use std::collections::BTreeSet;

use super::super::fields::{Fields, Reader};
use super::super::tree::{Node, Value};
use crate::matrix::{SetTo, SetValue, Step, Template};

/// Most words of a command, entries of a table, commands of a setup.
const LIST_MAX: usize = 256;

/// The names of all variables.
pub(super) struct Known {
    pub(super) names: BTreeSet<String>,
}

/// A text in which variables are allowed. A variable in single braces is reported: it would stay as
/// it is.
pub(super) fn template(reader: &mut Reader, node: &Node, text: &str, known: &Known) -> Template {
    let (template, errors) = Template::parse(text, &known.names);
    for error in errors {
        reader.fail(reader.span_within(node, text, error.at), error.message, error.help);
    }
    for name in &known.names {
        let single = format!("{{{name}}}");
        for (at, found) in text.match_indices(&single) {
            let is_double = text.get(..at).is_some_and(|before| before.ends_with('{'));
            if !is_double {
                let span = reader.span_within(node, text, at..at + found.len());
                let message =
                    format!("`{single}` is not replaced: variables of a matrix have double braces");
                reader.fail(span, message, format!("write {{{{{name}}}}}"));
            }
        }
    }
    template
}

/// The text `key` with variables.
pub(super) fn template_of(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    expected: &str,
    known: &Known,
) -> Option<Template> {
    let (text, _, node) = reader.text_at(fields, key, expected)?;
    Some(template(reader, node, &text, known))
}

/// Program and arguments.
pub(super) fn command(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
    known: &Known,
) -> Option<Vec<Template>> {
    let (path, span) = (fields.path_of(key), fields.span_of(key)?);
    let texts = reader.texts(fields, key, &format!("a list such as {example}"));
    if texts.is_empty()
        || texts.len() > LIST_MAX
        || texts.first().is_some_and(|(word, _)| word.is_empty())
    {
        if reader.is_clean() {
            let message = format!("`{path}` must have a program and at most {LIST_MAX} words");
            reader.fail(span, message, format!("write {key} = {example}"));
        }
        return None;
    }
    Some(texts.into_iter().map(|(text, node)| template(reader, node, &text, known)).collect())
}

/// The entries of a table with any keys.
pub(super) fn pairs<'t>(
    reader: &mut Reader,
    fields: &mut Fields<'t>,
    key: &'static str,
) -> Vec<(String, &'t Node)> {
    let path = fields.path_of(key);
    let Some(node) = fields.get(key) else { return Vec::new() };
    match &node.value {
        Value::Table(entries) if entries.len() <= LIST_MAX => {
            entries.iter().map(|entry| (entry.key.clone(), &entry.node)).collect()
        }
        _ => {
            let message = format!("`{path}` is not a table of at most {LIST_MAX} values");
            reader.fail(node.span, message, format!("write {key} = {{ name = \"value\" }}"));
            Vec::new()
        }
    }
}

/// A text, number, `true` or `false` as text.
pub(super) fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) if !text.chars().any(char::is_control) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(boolean) => Some(boolean.to_string()),
        _ => None,
    }
}

/// The overrides `set`: dotted keys, quoted or as tables.
pub(super) fn set(reader: &mut Reader, fields: &mut Fields<'_>, known: &Known) -> Vec<SetValue> {
    let entries = pairs(reader, fields, "set");
    entries
        .into_iter()
        .map(|(path, node)| SetValue { value: set_to(reader, node, known), path })
        .collect()
}

/// The value of an override.
pub(super) fn set_to(reader: &mut Reader, node: &Node, known: &Known) -> SetTo {
    if let Value::Text(text) = &node.value {
        return SetTo::Text(template(reader, node, text, known));
    }
    // As written; an override is one line.
    let toml = reader.sources.slice(node.span).replace(['\n', '\r'], " ");
    SetTo::Toml(template(reader, node, &toml, known))
}

/// The commands `setup`, with what undoes them.
pub(super) fn setup(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    known: &Known,
) -> Vec<Step<Template>> {
    const STEP: &str = "a table such as { run = [\"mount\", …], undo = [\"umount\", …] }";
    let path = fields.path_of("setup");
    let Some(node) = fields.get("setup") else { return Vec::new() };
    let items = match &node.value {
        Value::List(items) if items.len() <= LIST_MAX => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut steps = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut fields) = reader.table(item, &format!("{path}.{index}"), STEP) else {
            continue;
        };
        let run =
            command(reader, &mut fields, "run", "[\"sh\", \"{{base}}/disk.sh\", \"up\"]", known);
        let undo =
            command(reader, &mut fields, "undo", "[\"sh\", \"{{base}}/disk.sh\", \"down\"]", known);
        if run.is_none() && fields.lacks("run") {
            reader.fail(
                item.span,
                format!("`{path}.{index}` has no `run`"),
                format!("write {STEP}"),
            );
        }
        reader.finish(&fields);
        steps.extend(run.map(|run| Step { run, undo: undo.unwrap_or_default() }));
    }
    steps
}
