//! Reads the `[[watch]]` tables, whose keys are in `watch/keys.rs`, and checks their values against
//! each other.

use std::collections::HashSet;

use super::fields::{Fields, Reader};
use super::tree::{Span, Value};
use crate::keys::{self, Keyed as _, is_name};
use crate::scenario::Scenario;
use crate::units;
use crate::watch::{AGENT_HELP, Agent, Moment, Watch, WatchTable, WatchTarget};

/// Most `[[watch]]` tables.
const WATCHES_MAX: usize = 16;

const WATCH: &str = "a table `[[watch]]` such as { process = \"janus\" }";

/// Reads all `[[watch]]`; `port` is that of the target.
pub(super) fn watches<'t>(
    reader: &mut Reader,
    top: &mut Fields<'t>,
    port: Option<u16>,
) -> Vec<Watch> {
    let Some(node) = top.get("watch") else { return Vec::new() };
    let (items, is_list) = (node.one_or_many(), matches!(node.value, Value::List(_)));
    if items.len() > WATCHES_MAX {
        let message = format!("`watch` has {} tables", items.len());
        reader.fail(node.span, message, format!("write at most {WATCHES_MAX} [[watch]] tables"));
        return Vec::new();
    }
    let mut names = HashSet::new();
    let mut watches = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = if is_list { format!("watch.{index}") } else { "watch".into() };
        let Some(mut fields) = reader.table(item, &path, WATCH) else { continue };
        let table = keys::read(reader, &mut fields, WatchTable::usual());
        if let Some(name) = &table.watch.name
            && !(is_name(name) && names.insert(name.clone()))
        {
            let message = format!("`{path}.name` must be unique and have 1 to 64 characters");
            let help = "give each [[watch]] its own name, or none";
            reader.fail(fields.span_of("name"), message, help);
        }
        watches.extend(watch(reader, &mut fields, table, port));
    }
    watches
}

/// `None`: it has an error.
fn watch(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    table: WatchTable,
    port: Option<u16>,
) -> Option<Watch> {
    let is_remote = fields.get("agent").is_some();
    if is_remote {
        check_remote(reader, fields, &table);
    } else {
        check_local(reader, fields);
    }
    let here = table
        .process
        .map(WatchTarget::Process)
        .or(table.unit.map(WatchTarget::Unit))
        .or(table.cgroup.map(WatchTarget::Cgroup))
        .or(table.pid.map(WatchTarget::Pid))
        .or(table.port.map(WatchTarget::Port))
        .or(port.filter(|_| table.target).map(WatchTarget::TargetPort))
        .or((!table.command.is_empty()).then_some(WatchTarget::Command(table.command)));
    let (token, fingerprint) = (table.token, table.fingerprint);
    Some(Watch {
        target: if is_remote { WatchTarget::ByAgent } else { here? },
        agent: table.watch.agent.map(|agent| Agent { token, fingerprint, ..agent }),
        every: table.every.unwrap_or(Watch::EVERY),
        ..table.watch
    })
}

/// The agent's own flags decide what it watches and reads: a run must not be able to make it read
/// arbitrary files.
fn check_remote(reader: &mut Reader, fields: &mut Fields<'_>, table: &WatchTable) {
    for key in WatchTarget::KEYS.into_iter().chain(["every", "logs", "access_log", "metrics"]) {
        let Some(span) = fields.span_of(key) else { continue };
        let flag = match key {
            "command" => "`-- COMMAND`".to_owned(),
            "target" => "`--port`".to_owned(),
            "logs" => "`--log`".to_owned(),
            _ => format!("`--{}`", key.replace('_', "-")),
        };
        let message = format!("`{}` is a setting of the agent", fields.path_of(key));
        let help = format!("remove it here, and give {flag} to `throng watch --listen`");
        reader.fail(span, message, help);
    }
    let is_tls = table.watch.agent.as_ref().is_some_and(|agent| agent.is_tls);
    if is_tls && fields.get("fingerprint").is_none() {
        let path = fields.path_of("agent");
        let message =
            format!("`{path}` needs `fingerprint`: the agent's certificate is self-signed");
        let help = "write fingerprint = \"sha256:…\" as `throng watch --listen` prints it";
        reader.fail(fields.span_of("agent"), message, help);
    }
}

/// One key selects the processes of this host, and none is of an agent.
fn check_local(reader: &mut Reader, fields: &mut Fields<'_>) {
    if let Some(span) = fields.span_of("token").or(fields.span_of("fingerprint")) {
        let message = "`token` and `fingerprint` have no effect without `agent`";
        reader.fail(span, message, AGENT_HELP);
    }
    let present: Vec<Span> =
        WatchTarget::KEYS.into_iter().filter_map(|key| fields.span_of(key)).collect();
    let is_none = present.is_empty() && WatchTarget::KEYS.iter().all(|key| fields.lacks(key));
    // A misspelt key is reported as unknown.
    if present.len() > 1 || is_none {
        let span = present.get(1).copied().or(fields.span);
        let keys = WatchTarget::KEYS.join(", ");
        let message = format!("`{}` must have exactly one of {keys} or agent", fields.path);
        reader.fail(span, message, "write for example process = \"janus\"");
    }
}

/// A profile must begin before the end of the run.
pub(super) fn check(reader: &mut Reader, scenario: &Scenario, span: Option<Span>) {
    for request in scenario.watch.iter().flat_map(|watch| &watch.profile) {
        if let Moment::At(at) = request.moment
            && at >= scenario.run.duration
        {
            let message = format!(
                "a profile at {} would begin after the run has ended",
                units::write_duration(at)
            );
            reader.fail(span, message, "write an earlier time, or increase run.duration");
        }
    }
}
