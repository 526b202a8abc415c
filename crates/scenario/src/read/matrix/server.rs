//! Reads `[server]`, and what a level changes of it.

use std::time::Duration;

use throng_observation::Url;

use super::super::fields::{Fields, Reader};
use super::super::tree::{Node, Value};
use super::words::{Known, command, pairs, template, template_of};
use crate::matrix::{DiskLimit, Ready, ReadyWhen, Server, ServerFile, Stop, Template};
use crate::units::{self, UnitError};

const READY: [&str; 3] = ["port", "url", "log"];
const FILES_MAX: usize = 64;

pub(super) fn server(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    known: &Known,
) -> Server<Template> {
    let command =
        command(reader, fields, "command", "[\"nginx\", \"-c\", \"{{dir}}/nginx.conf\"]", known);
    let env = env(reader, fields, known);
    let cwd = template_of(reader, fields, "cwd", "the path of a folder", known);
    let ready = ready(reader, fields);
    let stop = stop(reader, fields);
    let files = files(reader, fields, known);
    let cpus = template_of(reader, fields, "cpus", "text such as \"0\" or \"0-3,8\"", known);
    let cpu_quota = reader.positive(fields, "cpu_quota");
    let memory_bytes = reader.quantity(fields, "memory", "200MB", byte_count);
    let disk = disk(reader, fields, known);
    let nofile = reader.integer(fields, "nofile", 16, 1 << 30);
    let watch =
        template_of(reader, fields, "watch", "text such as \"profile=full,every=500ms\"", known);
    Server {
        command,
        env,
        cwd,
        ready,
        stop,
        files,
        cpus,
        cpu_quota,
        memory_bytes,
        disk,
        nofile,
        watch,
    }
}

fn env(reader: &mut Reader, fields: &mut Fields<'_>, known: &Known) -> Vec<(String, Template)> {
    let mut env = Vec::new();
    for (name, node) in pairs(reader, fields, "env") {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        match super::words::scalar(node).filter(|_| is_name) {
            Some(value) => env.push((name, template(reader, node, &value, known))),
            None => {
                let message =
                    format!("`{}.{name}` is no environment variable", fields.path_of("env"));
                reader.fail(node.span, message, "write for example env = { GST_DEBUG = \"2\" }");
            }
        }
    }
    env
}

fn ready(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Ready> {
    top.get("ready")?;
    let mut fields = reader.section(top, "ready");
    let within = reader.quantity(&mut fields, "within", "10s", units::duration);
    let port = reader.integer(&mut fields, "port", 1, u64::from(u16::MAX));
    let url = url(reader, &mut fields);
    let log = reader.text_of(&mut fields, "log", "a regular expression such as \"listening on\"");
    let present = READY.into_iter().filter(|key| fields.get(key).is_some()).count();
    if present != 1 {
        let message = format!("`{}` must have exactly one of {}", fields.path, READY.join(", "));
        reader.fail(
            fields.span,
            message,
            "write for example ready = { port = 8554, within = \"10s\" }",
        );
    }
    reader.finish(&fields);
    let when = port.map(ReadyWhen::Port).or(url.map(ReadyWhen::Url)).or(log.map(ReadyWhen::Log))?;
    Some(Ready { when, within: within.unwrap_or(Duration::from_secs(10)) })
}

fn url(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<String> {
    let text = reader.text_of(fields, "url", "a URL such as \"http://127.0.0.1:8080/health\"")?;
    let is_http = Url::parse(&text).is_ok_and(|url| url.scheme() == "http" && url.host().is_some());
    if is_http {
        return Some(text);
    }
    let message = format!("`{}` is no http:// URL", fields.path_of("url"));
    reader.fail(
        fields.span_of("url"),
        message,
        "write http://127.0.0.1:PORT/PATH, or use port or log",
    );
    None
}

fn stop(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Stop> {
    top.get("stop")?;
    let mut fields = reader.section(top, "stop");
    let usual = Stop::default();
    let signal = reader.word(&mut fields, "signal", &Stop::SIGNALS).unwrap_or(usual.signal);
    let within =
        reader.quantity(&mut fields, "within", "5s", units::duration).unwrap_or(usual.within);
    reader.finish(&fields);
    Some(Stop { signal, within })
}

fn files(reader: &mut Reader, top: &mut Fields<'_>, known: &Known) -> Vec<ServerFile<Template>> {
    const FILE: &str =
        "a table such as { template = \"nginx.conf.in\", path = \"{{dir}}/nginx.conf\" }";
    let path = top.path_of("file");
    let Some(node) = top.get("file") else { return Vec::new() };
    let items: &[Node] = match &node.value {
        Value::List(items) if items.len() <= FILES_MAX => items,
        _ => std::slice::from_ref(node),
    };
    let mut files = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut fields) = reader.table(item, &format!("{path}.{index}"), FILE) else {
            continue;
        };
        let template =
            template_of(reader, &mut fields, "template", "the path of a template", known);
        let to = template_of(reader, &mut fields, "path", "the path of the file to make", known);
        for key in ["template", "path"] {
            if fields.get(key).is_none() && fields.lacks(key) {
                reader.fail(
                    item.span,
                    format!("`{path}.{index}` has no `{key}`"),
                    format!("write {FILE}"),
                );
            }
        }
        reader.finish(&fields);
        files.extend(template.zip(to).map(|(template, path)| ServerFile { template, path }));
    }
    files
}

fn disk(reader: &mut Reader, top: &mut Fields<'_>, known: &Known) -> Option<DiskLimit<Template>> {
    top.get("disk")?;
    let mut fields = reader.section(top, "disk");
    let path = template_of(reader, &mut fields, "path", "a path on the disk", known);
    let read = reader.quantity(&mut fields, "read", "80Mbit/s", units::bit_rate);
    for key in ["path", "read"] {
        let help = "write disk = { path = \"/mnt/disk\", read = \"80Mbit/s\" }";
        reader.require(&fields, key, help);
    }
    reader.finish(&fields);
    Some(DiskLimit { path: path?, read_bytes_per_s: (read? / 8.0).round().max(1.0) as u64 })
}

/// A number of bytes: `200MB` (10^6), `200MiB` (2^20), kB, KiB, GB, GiB.
fn byte_count(text: &str) -> Result<u64, UnitError> {
    let units =
        [("KiB", 1u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("kB", 1_000), ("MB", 1_000_000)];
    let found = units.into_iter().chain([("GB", 1_000_000_000)]).find_map(|(unit, size)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        let bytes = number * size as f64;
        (1.0..1e18).contains(&bytes).then_some(bytes.round() as u64)
    });
    found.ok_or_else(|| UnitError {
        got: text.chars().take(40).collect(),
        expected: "a size such as `200MB` or `1GiB`",
    })
}
