//! Reads the `[[watch]]` tables: the monitored processes, the agent, logs and endpoints, profiles.

use std::collections::HashSet;
use std::time::Duration;

use throng_observation::Url;

use super::fields::{Fields, Reader};
use super::target::token;
use super::tree::{Node, Span, Value};
use crate::keys::Named as _;
use crate::masked::has_masked_words;
use crate::scenario::Scenario;
use crate::secret::HIDDEN;
use crate::suggestion::nearest;
use crate::units;
use crate::watch::{Agent, Moment, ProfileRequest, Watch, WatchTarget};

/// Most `[[watch]]` tables.
const WATCHES_MAX: usize = 16;
/// Most entries of each list: logs, endpoints, profiles, words of a command.
const LIST_MAX: usize = 64;
/// The longest text.
const TEXT_BYTES_MAX: usize = 4096;
/// The shortest and the longest sampling interval.
const EVERY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// The shortest and the longest profile.
const PROFILE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// SHA-256 in hexadecimal.
const FINGERPRINT_DIGITS: usize = 64;

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
        let name = name(reader, &mut fields, &mut names);
        watches.extend(watch(reader, &mut fields, name, port));
        reader.finish(&fields);
    }
    watches
}

fn name(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    taken: &mut HashSet<String>,
) -> Option<String> {
    let (name, path, node) = reader.text_at(fields, "name", "text")?;
    let is_short = (1..=64).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if is_short && taken.insert(name.clone()) {
        return Some(name);
    }
    let message = format!("`{path}` must be unique and have 1 to 64 characters");
    reader.fail(node.span, message, "give each [[watch]] its own name, or none");
    None
}

fn watch(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    name: Option<String>,
    port: Option<u16>,
) -> Option<Watch> {
    let is_remote = fields.get("agent").is_some();
    let agent = agent(reader, fields);
    let target = if is_remote { by_agent(reader, fields) } else { watched(reader, fields, port) };
    let every_span = fields.span_of("every");
    let every = reader.quantity(fields, "every", "1s", units::duration).unwrap_or(Watch::EVERY);
    if !(EVERY.0..=EVERY.1).contains(&every) {
        let message = format!("`{}` must be from 100 ms to 60 s", fields.path_of("every"));
        reader.fail(every_span, message, "write every = \"1s\"");
    }
    Some(Watch {
        name,
        every,
        logs: texts(reader, fields, "logs", "[\"/var/log/janus.log\"]"),
        access_logs: texts(reader, fields, "access_log", "\"/var/log/nginx/access.log\""),
        metrics: metrics(reader, fields),
        profile: profile(reader, fields),
        pack: text(reader, fields, "pack", "text such as \"janus\""),
        agent: agent?,
        target: target?,
    })
}

/// The agent's own flags decide what it watches and reads: a run must not be able to make it read
/// arbitrary files.
fn by_agent(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<WatchTarget> {
    let owners = WatchTarget::KEYS.into_iter().chain(["every", "logs", "access_log", "metrics"]);
    let wrong = owners.filter_map(|key| fields.get(key).map(|node| (key, node.span))).next();
    let Some((key, span)) = wrong else { return Some(WatchTarget::ByAgent) };
    let flag = match key {
        "command" => "`-- COMMAND`".to_owned(),
        "target" => "`--port`".to_owned(),
        "logs" => "`--log`".to_owned(),
        _ => format!("`--{}`", key.replace('_', "-")),
    };
    let message = format!("`{}` is a setting of the agent", fields.path_of(key));
    let help = format!("remove it here, and give {flag} to `throng watch --listen`");
    reader.fail(span, message, help);
    None
}

fn watched(reader: &mut Reader, fields: &mut Fields<'_>, port: Option<u16>) -> Option<WatchTarget> {
    let present: Vec<(&'static str, &Node)> = WatchTarget::KEYS
        .into_iter()
        .filter_map(|key| fields.get(key).map(|node| (key, node)))
        .collect();
    let [(key, node)] = present.as_slice() else {
        // A misspelt key is reported as unknown.
        if !present.is_empty() || WatchTarget::KEYS.iter().all(|key| fields.lacks(key)) {
            let span = present.get(1).map(|(_, node)| node.span).or(fields.span);
            let keys = WatchTarget::KEYS.join(", ");
            let message = format!("`{}` must have exactly one of {keys} or agent", fields.path);
            reader.fail(span, message, "write for example process = \"janus\"");
        }
        return None;
    };
    let path = fields.path_of(key);
    match *key {
        "pid" | "port" => {
            let most = if *key == "pid" {
                u64::from(i32::MAX.unsigned_abs())
            } else {
                u64::from(u16::MAX)
            };
            match *key {
                "pid" => reader.integer(fields, key, 1, most).map(WatchTarget::Pid),
                _ => reader.integer(fields, key, 1, most).map(WatchTarget::Port),
            }
        }
        "target" => match reader.boolean(fields, key)? {
            true => port.map(WatchTarget::TargetPort),
            false => {
                let message = format!("`{path}` is false, so that nothing is watched");
                reader.fail(node.span, message, "write target = true, or remove the table");
                None
            }
        },
        "command" => {
            let words =
                texts(reader, fields, "command", "[\"/usr/sbin/nginx\", \"-g\", \"daemon off;\"]");
            if words.is_empty() && reader.is_clean() {
                reader.fail(
                    node.span,
                    format!("`{path}` is empty"),
                    "write the program and its arguments",
                );
            }
            check_secrets(reader, &path, has_masked_words(&words), node.span);
            (!words.is_empty()).then_some(WatchTarget::Command(words))
        }
        _ => named(reader, key, &path, node),
    }
}

fn named(reader: &mut Reader, key: &str, path: &str, node: &Node) -> Option<WatchTarget> {
    let text = reader.text(node, path, "text")?;
    let has_path = text.contains('/');
    let problem = match key {
        _ if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.contains('\0') => {
            Some(("is empty or too long", "write the name"))
        }
        "process" if has_path => Some(("is a path", "write the process's name, such as \"janus\"")),
        "unit" if has_path => {
            Some(("is a path", "write the unit's name, such as \"nginx.service\""))
        }
        "cgroup" if !text.starts_with('/') => Some((
            "is not a path",
            "write it as /proc/PID/cgroup does, such as \"/system.slice/janus.service\"",
        )),
        _ => None,
    };
    if let Some((what, help)) = problem {
        reader.fail(node.span, format!("`{path}` {what}"), help);
        return None;
    }
    Some(match key {
        "unit" => WatchTarget::Unit(text),
        "cgroup" => WatchTarget::Cgroup(text),
        _ => WatchTarget::Process(text),
    })
}

/// The agent: the inner `None` for a local watch, the outer `None` for an error.
#[expect(clippy::option_option, reason = "absent and wrong values differ")]
fn agent(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Option<Agent>> {
    const HELP: &str = "write agent = \"tls://HOST:PORT\", as `throng watch --listen` prints it";
    let (path, token_path) = (fields.path_of("agent"), fields.path_of("token"));
    let token_node = fields.get("token");
    let token = match token_node {
        Some(node) => Some(token(reader, node, &token_path)?),
        None => None,
    };
    let fingerprint_span = fields.span_of("fingerprint");
    let fingerprint = fingerprint(reader, fields)?;
    let Some(node) = fields.get("agent") else {
        if let Some(span) = token_node.map(|node| node.span).or(fingerprint_span) {
            reader.fail(span, "`token` and `fingerprint` have no effect without `agent`", HELP);
            return None;
        }
        return Some(None);
    };
    let text = reader.text(node, &path, "text such as \"tls://10.0.0.5:7081\"")?;
    let parts = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "tls" | "tcp"));
    let address = parts.as_ref().and_then(|url| Some((url.host_str()?.to_owned(), url.port()?)));
    let (Some(url), Some((host, port))) = (&parts, address) else {
        reader.fail(node.span, format!("`{path}` is not an agent's address"), HELP);
        return None;
    };
    if !url.is_of_server() {
        reader.fail(node.span, format!("`{path}` has more than a host and a port"), HELP);
        return None;
    }
    let is_tls = url.scheme() == "tls";
    if !is_tls && !is_loopback(&host) {
        let message = format!("`{path}` is not on loopback and must use TLS");
        reader.fail(node.span, message, HELP);
        return None;
    }
    if is_tls && fingerprint.is_none() {
        let message =
            format!("`{path}` needs `fingerprint`: the agent's certificate is self-signed");
        let help = "write fingerprint = \"sha256:…\" as `throng watch --listen` prints it";
        reader.fail(node.span, message, help);
        return None;
    }
    Some(Some(Agent { host, port, is_tls, token, fingerprint }))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The digits of the fingerprint: the inner `None` if there is none, the outer `None` for an error.
#[expect(clippy::option_option, reason = "absent and wrong values differ")]
fn fingerprint(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Option<String>> {
    let path = fields.path_of("fingerprint");
    let Some(node) = fields.get("fingerprint") else { return Some(None) };
    let text = reader.text(node, &path, "text such as \"sha256:…\"")?;
    let digits = text.trim().to_ascii_lowercase();
    let digits: String =
        digits.strip_prefix("sha256:").unwrap_or(&digits).chars().filter(|c| *c != ':').collect();
    if digits.len() == FINGERPRINT_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Some(Some(digits));
    }
    let message = format!("`{path}` is not a SHA-256 of {FINGERPRINT_DIGITS} hexadecimal digits");
    reader.fail(node.span, message, "copy it from what `throng watch --listen` prints");
    None
}

fn metrics(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<String> {
    let path = fields.path_of("metrics");
    let expected = "a list of URLs such as [\"http://127.0.0.1:9090/metrics\"]";
    let mut urls = Vec::new();
    for (text, node) in reader.texts(fields, "metrics", expected) {
        // The part before `+` names the kind of endpoint, as in a target's URL.
        let is_http = Url::parse(&text).is_ok_and(|url| {
            let scheme = url.scheme().rsplit('+').next().unwrap_or_default();
            matches!(scheme, "http" | "https" | "ws" | "wss")
        });
        if is_http && text.len() <= TEXT_BYTES_MAX && urls.len() < LIST_MAX {
            check_secrets(reader, &path, text.contains(HIDDEN), node.span);
            urls.push(text);
        } else {
            let message = format!(
                "`{path}` has an entry that is not an HTTP URL, or more than {LIST_MAX} entries"
            );
            reader.fail(node.span, message, format!("write {expected}"));
        }
    }
    urls
}

/// What is to be run has its secrets.
fn check_secrets(reader: &mut Reader, path: &str, has_hidden: bool, span: Span) {
    if !reader.is_redacted() && has_hidden {
        let message = format!("`{path}` was redacted when this scenario was stored");
        reader.fail(span, message, format!("write each secret of it in place of its `{HIDDEN}`"));
    }
}

fn texts(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
) -> Vec<String> {
    let path = fields.path_of(key);
    let mut texts = Vec::new();
    for (text, node) in
        reader.texts(fields, key, &format!("text or a list of texts such as {example}"))
    {
        if text.is_empty()
            || text.len() > TEXT_BYTES_MAX
            || text.contains('\0')
            || texts.len() >= LIST_MAX
        {
            let message =
                format!("`{path}` has an empty or overlong text, or more than {LIST_MAX} entries");
            reader.fail(node.span, message, format!("write {key} = {example}"));
        } else {
            texts.push(text);
        }
    }
    texts
}

fn text(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    expected: &str,
) -> Option<String> {
    let (text, path, node) = reader.text_at(fields, key, expected)?;
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.contains('\0') {
        reader.fail(
            node.span,
            format!("`{path}` is empty or too long"),
            format!("write {expected}"),
        );
        return None;
    }
    Some(text)
}

const PROFILE_EXAMPLE: &str =
    "\"baseline\", \"full\", \"fail\", { at = \"30s\", for = \"10s\" }, or a list of them";

fn profile(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<ProfileRequest> {
    let path = fields.path_of("profile");
    let Some(node) = fields.get("profile") else { return Vec::new() };
    let items = node.one_or_many();
    if items.len() > LIST_MAX {
        let message = format!("`{path}` has more than {LIST_MAX} profiles");
        reader.fail(node.span, message, "remove some");
        return Vec::new();
    }
    items.iter().filter_map(|item| profile_request(reader, item, &path)).collect()
}

fn profile_request(reader: &mut Reader, node: &Node, path: &str) -> Option<ProfileRequest> {
    if matches!(node.value, Value::Text(_)) {
        let text = reader.text(node, path, PROFILE_EXAMPLE)?;
        let moment = moment(reader, node, path, &text)?;
        return Some(ProfileRequest { duration: moment.usual_duration(), moment });
    }
    let mut fields = reader.table(node, path, PROFILE_EXAMPLE)?;
    let at_node = fields.get("at");
    let duration_span = fields.span_of("for").unwrap_or(node.span);
    let duration = reader.quantity(&mut fields, "for", "10s", units::duration);
    reader.finish(&fields);
    reader.require(&fields, "at", format!("write {PROFILE_EXAMPLE}"));
    let at_node = at_node?;
    let at = reader.text(
        at_node,
        &format!("{path}.at"),
        "a time such as \"30s\", or one of \"baseline\", \"full\", \"fail\"",
    )?;
    let moment = match units::duration(&at) {
        Ok(at) => Moment::At(at),
        Err(_) => moment(reader, at_node, &format!("{path}.at"), &at)?,
    };
    let duration = duration.unwrap_or_else(|| moment.usual_duration());
    if !(PROFILE.0..=PROFILE.1).contains(&duration) {
        let message = format!("`{path}.for` must be from 1 s to 5 min");
        reader.fail(duration_span, message, "write for = \"10s\"");
        return None;
    }
    Some(ProfileRequest { moment, duration })
}

fn moment(reader: &mut Reader, node: &Node, path: &str, text: &str) -> Option<Moment> {
    let named = Moment::of_name(text);
    if named.is_none() {
        let help = match nearest(text, Moment::names().into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write {PROFILE_EXAMPLE}"),
        };
        let shown: String = text.chars().take(60).collect();
        reader.fail(node.span, format!("`{path}`: unknown moment `{shown}`"), help);
    }
    named
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
