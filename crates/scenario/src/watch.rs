//! What is watched while the crowd is in: which processes, by which agent, which logs and endpoints, and when to profile.

use std::fmt;
use std::time::Duration;

use throng_observation::units;

use crate::target::TokenSource;

/// One `[[watch]]`: a server's processes and what is read beside them. Its index is its `HostId`.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// Its name in reports; the host's own when absent.
    pub name: Option<String>,
    /// Whose processes; with an agent always [`WatchTarget::ByAgent`].
    pub target: WatchTarget,
    /// The agent (`throng watch`) that does it on another host; this process does when absent.
    pub agent: Option<Agent>,
    /// From one reading to the next; an agent's owner has said it to the agent.
    pub every: Duration,
    /// Log files of the server, whose lines are counted by pattern; paths on this host.
    pub logs: Vec<String>,
    /// Access logs (nginx, Caddy, lighttpd), whose requests are accounted by URI; paths on this host.
    pub access_logs: Vec<String>,
    /// Endpoints that are scraped; URLs as seen from this host.
    pub metrics: Vec<String>,
    /// When stacks are sampled.
    pub profile: Vec<ProfileRequest>,
    /// The knowledge pack of the server, by name; chosen by the processes when absent.
    pub pack: Option<String>,
}

/// Whose processes are watched. Their descendants are too, except with [`WatchTarget::Pid`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchTarget {
    /// All processes of this name.
    Process(String),
    /// Those of a systemd unit.
    Unit(String),
    /// Those of a control group, by its path below the hierarchy's root.
    Cgroup(String),
    /// One process.
    Pid(u32),
    /// Who listens on this port, TCP or UDP.
    Port(u16),
    /// A command that the watcher starts, and ends with the run: program and arguments.
    Command(Vec<String>),
    /// Whatever the agent was told to watch by whoever started it.
    ByAgent,
}

impl WatchTarget {
    /// The keys of a `[[watch]]` that name whom to watch on this host.
    pub const KEYS: [&'static str; 6] = ["process", "unit", "cgroup", "pid", "port", "command"];

    /// The key that stands for it in a scenario.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Process(_) => "process",
            Self::Unit(_) => "unit",
            Self::Cgroup(_) => "cgroup",
            Self::Pid(_) => "pid",
            Self::Port(_) => "port",
            Self::Command(_) => "command",
            Self::ByAgent => "agent",
        }
    }
}

impl fmt::Display for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(name) => write!(f, "process {name}"),
            Self::Unit(name) => write!(f, "unit {name}"),
            Self::Cgroup(path) => write!(f, "cgroup {path}"),
            Self::Pid(pid) => write!(f, "pid {pid}"),
            Self::Port(port) => write!(f, "port {port}"),
            Self::Command(words) => write!(f, "command {}", words.join(" ")),
            Self::ByAgent => write!(f, "what its agent was told to watch"),
        }
    }
}

/// Where an agent listens and how it is known to be the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether it speaks TLS; without it only on loopback.
    pub is_tls: bool,
    /// What it asks of whoever connects.
    pub token: Option<TokenSource>,
    /// SHA-256 of its certificate, 64 lower-case hexadecimal digits, as it prints them when it starts.
    pub fingerprint: Option<String>,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "tls" } else { "tcp" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// A profile that is wanted: when and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRequest {
    /// When it begins.
    pub moment: Moment,
    /// For how long stacks are sampled.
    pub duration: Duration,
}

/// When a profile begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the first join, while the server is idle.
    Baseline,
    /// When everybody has joined, as planned.
    Full,
    /// When an objective is missed for the first time.
    Fail,
    /// So long after the first intended join.
    At(Duration),
}

impl Moment {
    /// The moments that have a name.
    pub const NAMED: [(&'static str, Self); 3] =
        [("baseline", Self::Baseline), ("full", Self::Full), ("fail", Self::Fail)];

    /// How long its profile lasts when the scenario does not say.
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
            Self::Baseline => "baseline".into(),
            Self::Full => "full".into(),
            Self::Fail => "fail".into(),
            Self::At(at) => crate::units::write_duration(*at),
        }
    }
}

impl Watch {
    /// How long a profile lasts when the scenario does not say.
    pub const PROFILE_DURATION: Duration = Duration::from_secs(10);
    /// How long a profile of the idle server lasts: the crowd waits for it.
    pub const BASELINE_DURATION: Duration = Duration::from_secs(3);
    /// How often counters are read when the scenario does not say.
    pub const EVERY: Duration = Duration::from_secs(1);

    /// What to call it where the host's own name is not known yet.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.name, &self.agent) {
            (Some(name), _) => name.clone(),
            (None, Some(agent)) => format!("the agent at {agent}"),
            (None, None) => self.target.to_string(),
        }
    }

    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        let time = |time: Duration| units::duration_ms(time.as_secs_f64() * 1e3);
        let mut line = match &self.name {
            Some(name) => format!("{name}: {}", self.target),
            None => self.target.to_string(),
        };
        line += &match &self.agent {
            Some(agent) => format!(", {agent}"),
            None => format!(" on this host, each {}", time(self.every)),
        };
        let lists = [("logs", &self.logs), ("access logs", &self.access_logs), ("metrics", &self.metrics)];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            line += &format!(", {name} {}", list.join(" "));
        }
        for wish in &self.profile {
            let when = match &wish.moment {
                Moment::At(at) => format!("after {}", time(*at)),
                named => format!("at {}", named.name()),
            };
            line += &format!(", a profile {when} for {}", time(wish.duration));
        }
        if let Some(pack) = &self.pack {
            line += &format!(", pack {pack}");
        }
        line
    }
}

/// `--watch process=janus,every=100ms` as the inline table that a file would hold. A text without `=` is left to be
/// refused where it is read.
pub(crate) fn inline_table(text: &str) -> String {
    let quoted = |text: &str| toml::Value::String(text.trim().to_owned()).to_string();
    let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
    for part in text.split(',') {
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
            ("pid" | "port", [number]) if number.trim().parse::<u32>().is_ok() => number.trim().to_owned(),
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
