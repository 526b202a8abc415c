//! The keys of a `[[watch]]`; `read/watch.rs` checks their values against each other.

use std::time::Duration;

use super::agent::{AGENT, FINGERPRINT};
use super::forms::{CGROUP, COMMAND, METRICS, PROCESS, TARGET, UNIT, texts};
use super::profile::PROFILE;
use super::{Watch, WatchTarget};
use crate::keys::Usual::Said;
use crate::keys::{Keyed, Maybe, NAME, SECRET_LEFT_OUT, Whole, keys, text, time};
use crate::masked::has_masked_words;
use crate::read::{Fields, Reader};
use crate::secret::{HIDDEN, TokenSource};

/// The shortest and the longest sampling interval.
const EVERY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// `[[watch]]` as a file has it.
#[derive(Default)]
pub(crate) struct WatchTable {
    /// Without what other keys say.
    pub(crate) watch: Watch,
    pub(crate) process: Option<String>,
    pub(crate) unit: Option<String>,
    pub(crate) cgroup: Option<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) port: Option<u16>,
    pub(crate) target: bool,
    pub(crate) command: Vec<String>,
    pub(crate) token: Option<TokenSource>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) every: Option<Duration>,
}

impl Keyed for WatchTable {
    const NAME: &'static str = "WatchFile";
    const MEANING: &'static str = "Processes to monitor, selected by exactly one of `process`, \
        `unit`, `cgroup`, `pid`, `port`, `target`, `command`, `agent`.";

    keys! {
        /// all processes of this name, also after a restart: `"janus"`
        "process": process = Maybe(PROCESS), Said("none");
        /// the processes of a systemd unit, `"nginx.service"`
        "unit": unit = Maybe(UNIT), Said("none");
        /// the processes of a control group, `"/system.slice/janus.service"`
        "cgroup": cgroup = Maybe(CGROUP), Said("none");
        /// one process
        "pid": pid = Maybe(Whole(1, u64::from(i32::MAX.unsigned_abs()))), Said("none");
        /// the processes that listen on this port, TCP or UDP
        "port": port = Maybe(Whole(1, u64::from(u16::MAX))), Said("none");
        /// `true`: those that listen on the target's port; `--watch target`. Refused where the
        /// target is no known address of this host: there an `agent` watches; a container or
        /// network namespace of this machine by `port`
        "target": target = TARGET, Said("none");
        /// a command that the watcher starts with the run and ends with it: `["/usr/sbin/nginx",
        /// "-g", "daemon off;"]`
        "command": command = COMMAND, Said("none");
        /// its name in reports, 1 to 64 characters
        "name": watch.name = Maybe(NAME),
            Said("the host name; where several have the same, each with its number, from 0");
        /// the `throng watch` on the server's host
        /// ([watch.md](watch.md#next-to-a-server-on-another-machine)), `"tls://HOST:PORT"`; without
        /// TLS only on loopback, `"tcp://127.0.0.1:PORT"`. The agent's own flags set what it reads,
        /// so only `token`, `fingerprint`, `name`, `profile` and `pack` can be combined with it
        "agent": watch.agent = Maybe(AGENT), Said("none: this process watches this host");
        /// the agent's token: `"env:NAME"`, `"file:PATH"`, or the token itself
        "token": token = Maybe(SECRET_LEFT_OUT), Said("none");
        /// SHA-256 of the agent's certificate, as the agent prints it; required with TLS
        "fingerprint": fingerprint = Maybe(FINGERPRINT), Said("none");
        /// sampling interval, 100 ms to 60 s
        "every": every = Maybe(time("1s")), Said("`\"1s\"`");
        /// log files; their lines are counted by pattern
        "logs": watch.logs = texts("files", "/var/log/janus.log"), Said("none");
        /// access logs (nginx, Caddy, lighttpd); their requests are counted by URI
        "access_log": watch.access_logs = texts("files", "/var/log/nginx/access.log"), Said("none");
        /// endpoints to scrape, `"http://127.0.0.1:9090/metrics"`
        "metrics": watch.metrics = METRICS, Said("none");
        /// when stacks are sampled, see below
        "profile": watch.profile = PROFILE, Said("never");
        /// the knowledge pack, such as `"janus"`
        "pack": watch.pack = Maybe(text("text", "janus")), Said("chosen from the processes");
    }

    fn usual() -> Self {
        Self::default()
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if self.every.is_some_and(|every| !(EVERY.0..=EVERY.1).contains(&every)) {
            let message = format!("`{}` must be from 100 ms to 60 s", fields.path_of("every"));
            reader.fail(fields.span_of("every"), message, "write every = \"1s\"");
        }
        // What is to be run has its secrets.
        for (key, has_hidden) in [
            ("command", has_masked_words(&self.command)),
            ("metrics", self.watch.metrics.iter().any(|url| url.contains(HIDDEN))),
        ] {
            if has_hidden && !reader.is_redacted() {
                let path = fields.path_of(key);
                let message = format!("`{path}` was redacted when this scenario was stored");
                let help = format!("write each secret of it in place of its `{HIDDEN}`");
                reader.fail(fields.span_of(key), message, help);
            }
        }
    }
}

impl WatchTable {
    /// That of a watch. An agent refuses connections without its token, so a secret one is left
    /// out.
    pub(crate) fn of(watch: &Watch) -> Self {
        let agent = watch.agent.as_ref();
        let table = Self {
            watch: watch.clone(),
            token: agent.and_then(|agent| agent.token.clone()),
            fingerprint: agent.and_then(|agent| agent.fingerprint.clone()),
            every: agent.is_none().then_some(watch.every),
            ..Self::default()
        };
        match watch.target.clone() {
            WatchTarget::Process(name) => Self { process: Some(name), ..table },
            WatchTarget::Unit(name) => Self { unit: Some(name), ..table },
            WatchTarget::Cgroup(path) => Self { cgroup: Some(path), ..table },
            WatchTarget::Pid(pid) => Self { pid: Some(pid), ..table },
            WatchTarget::Port(port) => Self { port: Some(port), ..table },
            WatchTarget::TargetPort(_) => Self { target: true, ..table },
            WatchTarget::Command(command) => Self { command, ..table },
            WatchTarget::ByAgent => table,
        }
    }
}
