//! Monitoring during the run: processes, agent, logs, endpoints and profiles.

use std::fmt;
use std::time::Duration;

use crate::keys::Named;
use crate::masked::masked_words;
use crate::secret::TokenSource;
use crate::units::shown;

mod agent;
pub(crate) use agent::AGENT_HELP;
mod forms;
mod keys;
pub(crate) use keys::WatchTable;
mod profile;

/// One `[[watch]]`: processes of a server, its logs and endpoints. Its index is its `HostId`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// Its name in reports; `None`: the host name.
    pub name: Option<String>,
    /// The processes; with an agent always [`WatchTarget::ByAgent`].
    pub target: WatchTarget,
    /// The agent (`throng watch`) on another host; `None`: this process watches this host.
    pub agent: Option<Agent>,
    /// Sampling interval; for an agent, its own flag applies.
    pub every: Duration,
    /// Log files of the server on this host; their lines are counted by pattern.
    pub logs: Vec<String>,
    /// Access logs (nginx, Caddy, lighttpd) on this host; their requests are counted by URI.
    pub access_logs: Vec<String>,
    /// URLs of endpoints that this host scrapes.
    pub metrics: Vec<String>,
    /// When stacks are sampled.
    pub profile: Vec<ProfileRequest>,
    /// The knowledge pack of the server, by name; `None`: chosen from the processes.
    pub pack: Option<String>,
}

/// The monitored processes. Their descendants are included, except with [`WatchTarget::Pid`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchTarget {
    /// All processes of this name.
    Process(String),
    /// The processes of a systemd unit.
    Unit(String),
    /// The processes of a control group, by its path below the root of the hierarchy.
    Cgroup(String),
    /// One process.
    Pid(u32),
    /// The processes that listen on this port, TCP or UDP.
    Port(u16),
    /// The processes that listen on this port, that of the target, which must be on this host.
    TargetPort(u16),
    /// A command that the watcher starts with the run and ends with it: program and arguments.
    Command(Vec<String>),
    /// The target that the agent was started with.
    #[default]
    ByAgent,
}

impl WatchTarget {
    /// The keys of a `[[watch]]` that select processes of this host.
    pub const KEYS: [&'static str; 7] =
        ["process", "unit", "cgroup", "pid", "port", "command", "target"];

    /// Its key in a scenario.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Process(_) => "process",
            Self::Unit(_) => "unit",
            Self::Cgroup(_) => "cgroup",
            Self::Pid(_) => "pid",
            Self::Port(_) => "port",
            Self::TargetPort(_) => "target",
            Self::Command(_) => "command",
            Self::ByAgent => "agent",
        }
    }
}

impl fmt::Display for WatchTarget {
    /// Without the secrets of a command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(name) => write!(f, "process {name}"),
            Self::Unit(name) => write!(f, "unit {name}"),
            Self::Cgroup(path) => write!(f, "cgroup {path}"),
            Self::Pid(pid) => write!(f, "pid {pid}"),
            Self::Port(port) | Self::TargetPort(port) => write!(f, "port {port}"),
            Self::Command(words) => write!(f, "command {}", masked_words(words).join(" ")),
            Self::ByAgent => write!(f, "the target of its agent"),
        }
    }
}

/// The address of an agent and its authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// TLS; without it only on loopback.
    pub is_tls: bool,
    /// The token that it requires.
    pub token: Option<TokenSource>,
    /// SHA-256 of its certificate, 64 lower-case hexadecimal digits, as the agent prints them.
    pub fingerprint: Option<String>,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "tls" } else { "tcp" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// A requested profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRequest {
    /// When it begins.
    pub moment: Moment,
    /// How long stacks are sampled.
    pub duration: Duration,
}

/// The time at which a profile begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the first join, while the server is idle.
    Baseline,
    /// After the last planned join.
    Full,
    /// When an objective is missed for the first time.
    Fail,
    /// At this time after the first intended join.
    At(Duration),
}

/// Those that have a name.
impl Named for Moment {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Baseline, "baseline"), (Self::Full, "full"), (Self::Fail, "fail")];
}

impl Moment {
    /// The default duration of its profile.
    #[must_use]
    pub fn usual_duration(&self) -> Duration {
        match self {
            Self::Baseline => Watch::BASELINE_DURATION,
            _ => Watch::PROFILE_DURATION,
        }
    }

    /// Its name in reports: `baseline`, `full`, `fail`, or the time, such as `30s`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Baseline | Self::Full | Self::Fail => self.named().into(),
            Self::At(at) => crate::units::write_duration(*at),
        }
    }
}

impl Watch {
    /// The default duration of a profile.
    pub const PROFILE_DURATION: Duration = Duration::from_secs(10);
    /// The default duration of a profile of the idle server; the first join waits for it.
    pub const BASELINE_DURATION: Duration = Duration::from_secs(3);
    /// The default sampling interval.
    pub const EVERY: Duration = Duration::from_secs(1);

    /// Its name as long as the host name is unknown.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.name, &self.agent) {
            (Some(name), _) => name.clone(),
            (None, Some(agent)) => format!("the agent at {agent}"),
            (None, None) => self.target.to_string(),
        }
    }

    /// One line for the plan.
    pub(crate) fn describe(&self) -> String {
        let mut line = match &self.name {
            Some(name) => format!("{name}: {}", self.target),
            None => self.target.to_string(),
        };
        line += &match &self.agent {
            Some(agent) => format!(", {agent}"),
            None => format!(" on this host, every {}", shown(self.every)),
        };
        let metrics: Vec<String> = self.metrics.iter().map(forms::METRICS.of.write).collect();
        let lists =
            [("logs", &self.logs), ("access logs", &self.access_logs), ("metrics", &metrics)];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            line += &format!(", {name} {}", list.join(" "));
        }
        for request in &self.profile {
            let when = match &request.moment {
                Moment::At(at) => format!("after {}", shown(*at)),
                named => format!("at {}", named.name()),
            };
            line += &format!(", a profile {when} for {}", shown(request.duration));
        }
        if let Some(pack) = &self.pack {
            line += &format!(", pack {pack}");
        }
        line
    }
}

/// `--watch process=janus,every=100ms` as an inline table. A text without `=` becomes a string,
/// which the reader refuses.
pub(crate) fn inline_table(text: &str) -> String {
    let quoted = |text: &str| toml::Value::String(text.trim().to_owned()).to_string();
    let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
    for part in text.split(',') {
        // `--watch target` is short for target=true.
        let part = if part.trim() == "target" { "target=true" } else { part };
        let Some((key, value)) = part.split_once('=') else { return quoted(text) };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let key = key.trim();
        if key.is_empty() || !key.chars().all(is_plain) {
            return quoted(text);
        }
        match pairs.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(value.to_owned()),
            None => pairs.push((key.to_owned(), vec![value.to_owned()])),
        }
    }
    let value = |(key, values): (String, Vec<String>)| {
        let written = match (key.as_str(), values.as_slice()) {
            ("pid" | "port", [number]) if number.trim().parse::<u32>().is_ok() => {
                number.trim().to_owned()
            }
            ("target", [flag]) if ["true", "false"].contains(&flag.trim()) => {
                flag.trim().to_owned()
            }
            ("command", [words]) => list(words.split_whitespace().map(quoted)),
            (_, [one]) => quoted(one),
            (_, several) => list(several.iter().map(|text| quoted(text))),
        };
        format!("{key} = {written}")
    };
    format!("{{ {} }}", pairs.into_iter().map(value).collect::<Vec<_>>().join(", "))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
