//! The schema of `[[watch]]`, and how it is written.

use schemars::JsonSchema;
use serde::Serialize;

use super::written::duration;
use super::{Duration, OneOrMany};
use crate::keys::NameOf;
use crate::masked::masked_words;
use crate::watch::{Moment, ProfileRequest, Watch, WatchTarget};

/// Processes to monitor, selected by exactly one of `process`, `unit`, `cgroup`, `pid`, `port`,
/// `command`, `target`, `agent`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct WatchFile {
    /// Its name in reports; default: the host name.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
    /// All processes of this name, such as `janus`.
    process: Option<String>,
    /// The processes of a systemd unit, such as `nginx.service`.
    unit: Option<String>,
    /// The processes of a control group, such as `/system.slice/janus.service`.
    cgroup: Option<String>,
    /// One process.
    #[schemars(range(min = 1, max = i32::MAX.unsigned_abs()))]
    pid: Option<u32>,
    /// The processes that listen on this port.
    #[schemars(range(min = 1))]
    port: Option<u16>,
    /// A command that the watcher starts with the run and ends with it: program and arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    command: Vec<String>,
    /// `true`: the processes that listen on the target's port.
    target: Option<bool>,
    /// The agent on the server's host: `tls://HOST:PORT`, on loopback also `tcp://`. Its own flags
    /// set what it reads, so `every`, `logs`, `access_log` and `metrics` cannot be combined with
    /// it.
    #[schemars(regex(pattern = r"^(tls|tcp)://.+:\d+/?$"))]
    agent: Option<String>,
    /// The agent's token: `env:NAME`, `file:PATH`, or the token itself.
    token: Option<String>,
    /// SHA-256 of the agent's certificate, as the agent prints it.
    fingerprint: Option<String>,
    /// Sampling interval, 100 ms to 60 s; default 1 s.
    every: Option<Duration>,
    /// Log files of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    logs: Vec<String>,
    /// Access logs of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    access_log: Vec<String>,
    /// Endpoints to scrape, such as `http://127.0.0.1:9090/metrics`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    metrics: Vec<String>,
    /// When stacks are sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<ProfileFile>")]
    profile: Vec<ProfileFile>,
    /// The knowledge pack, such as `janus`; default: chosen from the processes.
    pack: Option<String>,
}

/// When stacks are sampled.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ProfileFile {
    /// A named moment.
    Named(NameOf<Moment>),
    /// A moment and a duration.
    Table(ProfileTable),
}

/// A moment and a duration.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ProfileTable {
    /// `baseline`, `full`, `fail`, or a time after the first intended join, such as `30s`.
    at: String,
    /// Duration, 1 s to 5 min; default 10 s, for `baseline` 3 s.
    #[serde(rename = "for")]
    duration: Option<Duration>,
}

pub(super) fn watch_file(watch: &Watch) -> WatchFile {
    let mut file = WatchFile {
        name: watch.name.clone(),
        every: watch.agent.is_none().then(|| duration(watch.every)),
        logs: watch.logs.clone(),
        access_log: watch.access_logs.clone(),
        metrics: watch.shown_metrics(),
        profile: watch.profile.iter().map(profile_file).collect(),
        pack: watch.pack.clone(),
        ..WatchFile::default()
    };
    match watch.target.clone() {
        WatchTarget::Process(name) => file.process = Some(name),
        WatchTarget::Unit(name) => file.unit = Some(name),
        WatchTarget::Cgroup(path) => file.cgroup = Some(path),
        WatchTarget::Pid(pid) => file.pid = Some(pid),
        WatchTarget::Port(port) => file.port = Some(port),
        WatchTarget::TargetPort(_) => file.target = Some(true),
        WatchTarget::Command(words) => file.command = masked_words(&words),
        WatchTarget::ByAgent => {}
    }
    if let Some(agent) = &watch.agent {
        file.agent = Some(agent.to_string());
        file.fingerprint.clone_from(&agent.fingerprint);
        // The token itself is left out: an agent refuses connections without it.
        file.token =
            agent.token.as_ref().filter(|token| !token.is_secret()).map(ToString::to_string);
    }
    file
}

fn profile_file(request: &ProfileRequest) -> ProfileFile {
    let ProfileRequest { moment, duration: lasts } = *request;
    if lasts == moment.usual_duration() && !matches!(moment, Moment::At(_)) {
        return ProfileFile::Named(NameOf(moment));
    }
    ProfileFile::Table(ProfileTable { at: moment.name(), duration: Some(duration(lasts)) })
}
