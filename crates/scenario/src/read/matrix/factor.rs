//! Reads `[[factor]]`: its levels, and what each changes.

use std::collections::HashSet;

use throng_observation::Relief;
use throng_observation::pack::THREAD_NAME_BYTES_MAX;

use super::super::fields::{Fields, Reader};
use super::super::tree::{Entry, Node, Value};
use super::server;
use super::words::{self, Known, pairs, scalar};
use crate::matrix::{Factor, Level, RESOURCES, Server, SetValue, Template};

const FACTORS_MAX: usize = 12;
const LEVELS_MAX: usize = 64;
/// Names are parts of file names and of the terminal's table.
pub(super) const NAME_CHARS_MAX: usize = 40;

const LEVELS: &str =
    "a list such as [1, 10, 30] or [{ name = \"disk\", … }, { name = \"tmpfs\", … }]";

/// What the plain values of a factor's levels set.
struct Shorthand {
    /// A path of the scenario.
    set: Option<String>,
    /// An environment variable of the server.
    env: Option<String>,
    /// A key of `[server]`.
    server: Option<String>,
}

pub(super) fn factors(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    known: &Known,
    defaults: &[(String, String)],
) -> Vec<Factor> {
    let Some(node) = top.get("factor") else { return Vec::new() };
    let items: &[Node] = match &node.value {
        Value::List(items) if items.len() <= FACTORS_MAX => items,
        Value::List(items) => {
            let message = format!("there are {} factors", items.len());
            reader.fail(node.span, message, format!("write at most {FACTORS_MAX}"));
            return Vec::new();
        }
        _ => std::slice::from_ref(node),
    };
    let (mut factors, mut names) = (Vec::new(), HashSet::new());
    for (index, item) in items.iter().enumerate() {
        let path = format!("factor.{index}");
        let Some(mut fields) =
            reader.table(item, &path, "a table `[[factor]]` with name and levels")
        else {
            continue;
        };
        let factor = factor(reader, &mut fields, known, &mut names);
        reader.finish(&fields);
        if let Some(factor) = factor {
            check_variables(reader, item, &factor, defaults);
            factors.push(factor);
        }
    }
    factors
}

fn factor(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    known: &Known,
    names: &mut HashSet<String>,
) -> Option<Factor> {
    let name = reader.text_of(fields, "name", "text such as \"files\"");
    let name = name.filter(|name| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let is_good = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_plain);
        let is_free =
            !crate::matrix::BUILT_IN.contains(&name.as_str()) && names.insert(name.clone());
        if !is_good || !is_free {
            let message =
                format!("`{}` must be unique, of letters, digits, _ and -", fields.path_of("name"));
            reader.fail(fields.span_of("name"), message, "write for example name = \"files\"");
        }
        is_good && is_free
    });
    if name.is_none() && fields.lacks("name") {
        reader.fail(
            fields.span,
            format!("`{}` has no name", fields.path),
            "write name = \"files\"",
        );
    }
    let shorthand = Shorthand {
        set: reader.text_of(fields, "set", "a path of the scenario such as \"crowd.streams\""),
        env: reader.text_of(fields, "env", "the name of an environment variable"),
        server: reader.text_of(fields, "server", "a key of [server] such as \"cpu_quota\""),
    };
    let relieves = relieves(reader, fields);
    let levels = levels(reader, fields, &shorthand, known);
    Some(Factor { name: name?, levels, relieves })
}

/// What a level has more of: a resource, or a table with the part of it.
fn relieves(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Relief> {
    let node = fields.get("relieves")?;
    if !matches!(node.value, Value::Table(_)) {
        return reader
            .word(fields, "relieves", &RESOURCES)
            .map(|resource| Relief::of_resource(&resource));
    }
    let mut table = reader.section(fields, "relieves");
    let resource = reader.word(&mut table, "resource", &RESOURCES);
    let thread = reader.text_of(&mut table, "thread", "the name of threads such as \"SW-WebRTC*\"");
    let setting = reader.text_of(
        &mut table,
        "setting",
        "the name of a setting such as \"StreamWorkerCount\"",
    );
    let finding = reader.text_of(&mut table, "finding", "a finding such as \"one_thread_full\"");
    reader.finish(&table);
    let is_named = |name: &String| {
        name.chars().any(|c| !"*?".contains(c)) && !name.chars().any(char::is_control)
    };
    if [&thread, &setting, &finding].into_iter().flatten().any(|name| !is_named(name)) {
        let help = "write for example { thread = \"SW-WebRTC*\", setting = \"StreamWorkerCount\" }";
        reader.fail(node.span, format!("`{}` has a name without letters", table.path), help);
    }
    // A longer name matches no thread.
    if thread.as_ref().is_some_and(|name| {
        name.bytes().filter(|byte| *byte != b'*').count() > THREAD_NAME_BYTES_MAX
    }) {
        let message = format!(
            "`{}.thread` is longer than the {THREAD_NAME_BYTES_MAX} bytes that the kernel keeps",
            table.path
        );
        reader.fail(node.span, message, "write what `top -H` shows, such as \"SW-WebRTC*\"");
    }
    if thread.is_none() && setting.is_none() && finding.is_none() && reader.is_clean() {
        let help = "write { thread = \"SW-WebRTC*\" }, or relieves = \"cpu\" for all of a resource";
        reader.fail(
            node.span,
            format!("`{}` names no thread, setting or finding", table.path),
            help,
        );
    }
    // More threads are more CPU time; a finding has its own resource.
    let is_of_cpu = finding.is_none() || thread.is_some();
    let resource = resource.or_else(|| is_of_cpu.then(|| "cpu".to_owned()));
    Some(Relief { resource, thread, setting, finding })
}

fn levels(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    shorthand: &Shorthand,
    known: &Known,
) -> Vec<Level> {
    let path = fields.path_of("levels");
    let Some(node) = fields.get("levels") else {
        if fields.lacks("levels") {
            reader.fail(
                fields.span,
                format!("`{}` has no levels", fields.path),
                format!("write {LEVELS}"),
            );
        }
        return Vec::new();
    };
    let items: &[Node] = match &node.value {
        Value::List(items) if (1..=LEVELS_MAX).contains(&items.len()) => items,
        _ => {
            reader.fail(
                node.span,
                format!("`{path}` is not {LEVELS}"),
                format!("write levels = {LEVELS}"),
            );
            return Vec::new();
        }
    };
    let mut levels: Vec<Level> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}.{index}");
        let Some(level) = level(reader, item, &path, shorthand, known) else { continue };
        let is_short = (1..=NAME_CHARS_MAX).contains(&level.name.chars().count());
        if !is_short || levels.iter().any(|other| other.name == level.name) {
            let message = format!("`{path}`: the name of a level must be unique and short");
            reader.fail(item.span, message, "give each level its own name");
        }
        levels.push(level);
    }
    levels
}

fn level(
    reader: &mut Reader,
    item: &Node,
    path: &str,
    shorthand: &Shorthand,
    known: &Known,
) -> Option<Level> {
    if let Some(name) = scalar(item) {
        let (set, server) = of_value(reader, item, shorthand, known);
        return Some(Level { name, set, server, ..Level::default() });
    }
    let mut fields = reader.table(item, path, "a value, or a table { name = \"disk\", … }")?;
    let value = fields.get("value");
    let of_value = value.map(|value| of_value(reader, value, shorthand, known)).unwrap_or_default();
    let level = level_of(reader, &mut fields, of_value, known);
    reader.finish(&fields);
    level
}

/// A level that is a table, on top of what its value sets.
pub(super) fn level_of(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    (mut set, mut server): (Vec<SetValue>, Server<Template>),
    known: &Known,
) -> Option<Level> {
    let path = fields.path.clone();
    let name = reader.text_of(fields, "name", "text such as \"disk\"");
    if name.is_none() && fields.lacks("name") {
        reader.fail(fields.span, format!("`{path}` has no name"), "write { name = \"disk\", … }");
    }
    let mut variables = Vec::new();
    for (variable, node) in pairs(reader, fields, "variables") {
        match scalar(node) {
            Some(text) => variables.push((variable, text)),
            None => {
                let message = format!("`{path}.variables.{variable}` is not text or a number");
                reader.fail(node.span, message, "write variables = { folder = \"/srv/media\" }");
            }
        }
    }
    set.extend(words::set(reader, fields, known));
    let mut of_server = reader.section(fields, "server");
    server = server.with(&server::server(reader, &mut of_server, known));
    reader.finish(&of_server);
    let setup = words::setup(reader, fields, known);
    let relieves = relieves(reader, fields);
    Some(Level { name: name?, variables, set, server, setup, relieves, ..Level::default() })
}

/// What a plain value sets.
fn of_value(
    reader: &mut Reader,
    node: &Node,
    shorthand: &Shorthand,
    known: &Known,
) -> (Vec<SetValue>, Server<Template>) {
    let set = shorthand.set.as_ref();
    let set =
        set.map(|path| SetValue { path: path.clone(), value: words::set_to(reader, node, known) });
    let mut of_server = Server::default();
    if let Some(key) = &shorthand.server {
        let entries = [Entry { key: key.clone(), key_span: node.span, node: node.clone() }];
        let mut fields = Fields::new("server", Some(node.span), &entries);
        of_server = server::server(reader, &mut fields, known);
        reader.finish(&fields);
    }
    if let (Some(name), Some(value)) = (&shorthand.env, scalar(node)) {
        let value = words::template(reader, node, &value, known);
        of_server.env.push((name.clone(), value));
    }
    (set.into_iter().collect(), of_server)
}

/// A variable of one level must have a value in the others too.
pub(super) fn check_variables(
    reader: &mut Reader,
    item: &Node,
    factor: &Factor,
    defaults: &[(String, String)],
) {
    let names = factor.levels.iter().flat_map(|level| &level.variables).map(|(name, _)| name);
    let names: std::collections::BTreeSet<&String> = names.collect();
    for name in names {
        let has = |level: &&Level| level.variables.iter().any(|(known, _)| known == name);
        let missing = factor.levels.iter().find(|level| !has(level));
        if let Some(level) = missing.filter(|_| defaults.iter().all(|(known, _)| known != name)) {
            let message = format!(
                "level `{}` of factor `{}` has no variable `{name}`",
                level.name, factor.name
            );
            reader.fail(
                item.span,
                message,
                format!("write it there, or its default in [variables]: {name}"),
            );
        }
    }
}
