//! A knowledge pack of a server: what its threads do and which setting changes them, what its log
//! lines mean, which of its metrics matter. Data, read from a file by `watch` and kept with the
//! run; the lookup is pure.

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;

/// The fact of a host ([`HostInfo::facts`](crate::host::HostInfo)) that holds its packs, a JSON
/// list.
pub const PACKS_FACT: &str = "packs";

/// The kernel keeps this many bytes of a thread's name (`TASK_COMM_LEN` less its NUL,
/// include/linux/sched.h).
pub const THREAD_NAME_BYTES_MAX: usize = 15;

/// The knowledge of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// Its name, as its file's: `janus`.
    pub pack: String,
    /// The server's display name.
    #[serde(default)]
    pub title: String,
    /// Origin of the knowledge: server versions, documents.
    #[serde(default)]
    pub source: String,
    /// Names of the processes that it describes: [globs](glob_matches) on the name of a process or
    /// of its program.
    #[serde(default)]
    pub processes: Vec<String>,
    /// What threads do; the first that matches a name counts.
    #[serde(default, rename = "thread")]
    pub threads: Vec<ThreadMeaning>,
    /// Log lines with a known meaning.
    #[serde(default, rename = "log")]
    pub logs: Vec<LogPattern>,
    /// Endpoints that report its metrics.
    #[serde(default, rename = "endpoint")]
    pub endpoints: Vec<KnownEndpoint>,
    /// How requests in an access log are grouped; the first that matches counts.
    #[serde(default, rename = "uri_group")]
    pub uri_groups: Vec<UriGroupRule>,
}

/// What the threads of a name do, and what changes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadMeaning {
    /// A [glob](thread_name_matches) on the thread's name, of which the kernel keeps
    /// [`THREAD_NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The pool they belong to: threads of one group share the same work.
    pub group: String,
    /// What they do, in a sentence.
    pub meaning: String,
    /// The setting that gives them more room, and the unit of the change.
    #[serde(default)]
    pub setting: Option<Setting>,
    /// What to do where no setting helps, in a sentence.
    #[serde(default)]
    pub remedy: Option<String>,
    /// The runtime that runs any task on any of these threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
}

keyed! {
    /// A runtime that runs any task on any of its threads: the load of one of them means nothing,
    /// that of all together does.
    Runtime {
        /// Go: goroutines on as many threads at once as `GOMAXPROCS` allows.
        Go = "go",
        /// Tokio (Rust): tasks on its workers.
        Tokio = "tokio",
        /// A pool of the Java virtual machine.
        Jvm = "jvm",
        /// The Erlang virtual machine: processes on its schedulers.
        Beam = "beam",
        /// The pool of libuv (Node.js); its event loop is a thread of its own.
        Libuv = "libuv",
    }
}

impl Runtime {
    /// Its display name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Go => "Go",
            Self::Tokio => "Tokio",
            Self::Jvm => "Java",
            Self::Beam => "Erlang",
            Self::Libuv => "libuv",
        }
    }

    /// The environment variable that sets its number of threads.
    #[must_use]
    pub fn variable(self) -> Option<&'static str> {
        match self {
            Self::Go => Some("GOMAXPROCS"),
            Self::Tokio => Some("TOKIO_WORKER_THREADS"),
            Self::Libuv => Some("UV_THREADPOOL_SIZE"),
            Self::Jvm | Self::Beam => None,
        }
    }

    /// How to give it more threads, in a sentence.
    #[must_use]
    pub fn change(self) -> &'static str {
        match self {
            Self::Go => {
                "GOMAXPROCS (environment, or runtime.GOMAXPROCS in the program; a CPU quota lowers \
                 it since Go 1.25): as many as cores"
            }
            Self::Tokio => {
                "worker_threads of the runtime's Builder, or TOKIO_WORKER_THREADS: as many as \
                 cores; its current_thread flavour has one"
            }
            Self::Jvm => {
                "The size of the server's thread pools; -XX:ActiveProcessorCount where the Java \
                 machine sees too few cores"
            }
            Self::Beam => "Schedulers of the Erlang machine (+S, in ERL_FLAGS): as many as cores",
            Self::Libuv => {
                "UV_THREADPOOL_SIZE for the pool, or several processes (cluster) where the event \
                 loop is full"
            }
        }
    }
}

/// A setting of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name as the server spells it.
    pub name: String,
    /// Its place: the file and the section within.
    pub place: String,
    /// What one more of it is: `thread`, `process`, `connection`.
    pub unit: String,
    /// The value that the server uses without it.
    #[serde(default)]
    pub default: Option<String>,
    /// When to change it and how far, in a sentence.
    #[serde(default)]
    pub advice: Option<String>,
}

/// How bad a log line is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Normal operation.
    #[default]
    Info,
    /// Users may notice.
    Warning,
    /// Users notice.
    Error,
}

/// Log lines with a known meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPattern {
    /// Its name; the label `pattern` of its series.
    pub id: String,
    /// A regular expression (crate `regex`: linear time, no look-around) on the line.
    pub pattern: String,
    /// How bad it is.
    #[serde(default)]
    pub severity: Severity,
    /// What it means, in a sentence.
    pub meaning: String,
    /// The bottleneck that it points to.
    #[serde(default)]
    pub hint: Option<String>,
    /// The threads that it speaks of, a [glob](thread_name_matches) on their names: where one of
    /// them is the limit, the lines and their values are evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Values in the line.
    #[serde(default, rename = "value")]
    pub values: Vec<LogValue>,
}

/// A value in a log line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogValue {
    /// The named group of the pattern that holds it.
    pub group: String,
    /// The metric of the value.
    pub metric: String,
    /// Its unit.
    pub unit: crate::host::Unit,
    /// What it means, in a sentence.
    pub meaning: String,
}

/// The protocol of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointKind {
    /// The text formats of Prometheus and OpenMetrics.
    #[default]
    OpenMetrics,
    /// The admin API of Janus, over HTTP or WebSocket.
    JanusAdmin,
    /// The posts of Janus's event handler `sampleevh`: received at this address, not requested.
    JanusEvents,
    /// The REST API of OvenMediaEngine.
    OvenMediaEngine,
    /// nginx's `stub_status`.
    NginxStatus,
    /// lighttpd's `server-status?auto`.
    LighttpdStatus,
}

/// An endpoint that reports metrics of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownEndpoint {
    /// Its protocol.
    pub kind: EndpointKind,
    /// Where it usually is, on the server's own host.
    pub url: String,
    /// How to enable it.
    pub switch_on: String,
    /// [Globs](glob_matches) on the names of metrics that are never kept; they have precedence over
    /// [`Self::series`].
    #[serde(default)]
    pub deny: Vec<String>,
    /// [Globs](glob_matches) on the names of metrics that only grow, where the endpoint says
    /// neither by `# TYPE` nor by `_total` that they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<String>,
    /// [Globs](glob_matches) on the names of metrics that count the bytes that the server receives
    /// from the sources of its media.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingest: Vec<String>,
    /// Labels that name single sessions: series that differ in nothing else are added up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop_labels: Vec<String>,
    /// The metrics that are kept; empty: all.
    #[serde(default)]
    pub series: Vec<KnownSeries>,
}

/// A relevant metric of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownSeries {
    /// A [glob](glob_matches) on its name.
    pub name: String,
    /// What it means, in a sentence.
    pub meaning: String,
}

/// Requests that belong together. All given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UriGroupRule {
    /// The group's name; the label `uri_group`.
    pub group: String,
    /// The path begins with it.
    #[serde(default)]
    pub prefix: Option<String>,
    /// The path matches this regular expression.
    #[serde(default)]
    pub regex: Option<String>,
    /// The answer has this status.
    #[serde(default)]
    pub status: Option<u16>,
    /// What they are, in a sentence.
    pub meaning: String,
}

impl Pack {
    /// What the threads of this name do. A longer name is cut as the kernel cuts it.
    #[must_use]
    pub fn thread_meaning(&self, name: &str) -> Option<&ThreadMeaning> {
        let name = as_the_kernel_cuts(name);
        self.threads.iter().find(|meaning| thread_name_matches(&meaning.name, name))
    }

    /// Whether the process of this name (its `comm`, or its program's file name) is such a server.
    #[must_use]
    pub fn is_of_process(&self, name: &str) -> bool {
        self.processes.iter().any(|glob| glob_matches(glob, name))
    }

    /// The log pattern of that name.
    #[must_use]
    pub fn log_pattern(&self, id: &str) -> Option<&LogPattern> {
        self.logs.iter().find(|pattern| pattern.id == id)
    }

    /// What a scraped metric means.
    #[must_use]
    pub fn series_meaning(&self, metric: &str) -> Option<&str> {
        let mut series = self.endpoints.iter().flat_map(|endpoint| &endpoint.series);
        series
            .find(|series| glob_matches(&series.name, metric))
            .map(|series| series.meaning.as_str())
    }

    /// Whether a scraped metric counts the bytes that the server receives from the sources of its
    /// media.
    #[must_use]
    pub fn is_ingest(&self, metric: &str) -> bool {
        let mut globs = self.endpoints.iter().flat_map(|endpoint| &endpoint.ingest);
        globs.any(|glob| glob_matches(glob, metric))
    }

    /// What a value read from the log means.
    #[must_use]
    pub fn log_value(&self, metric: &str) -> Option<&LogValue> {
        self.logs.iter().flat_map(|pattern| &pattern.values).find(|value| value.metric == metric)
    }
}

impl Setting {
    /// The setting in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = format!("{} ({})", self.name, self.place);
        if let Some(default) = &self.default {
            text += &format!(", default {default}");
        }
        if let Some(advice) = &self.advice {
            text += &format!(": {advice}");
        }
        text
    }
}

impl ThreadMeaning {
    /// What to change, in a sentence; empty where no remedy is known.
    #[must_use]
    pub fn help(&self) -> String {
        let setting = self.setting.as_ref().map(Setting::sentence);
        [setting, self.remedy.clone()].into_iter().flatten().collect::<Vec<_>>().join(". ")
    }
}

/// The packs of a process, followed by those for any process (their `processes` is `*`).
pub fn packs_of_process<'a, 'n>(
    packs: &'a [Pack],
    name: &'n str,
) -> impl Iterator<Item = &'a Pack> + use<'a, 'n> {
    let of_any = |pack: &&Pack| pack.processes.iter().any(|glob| glob == "*");
    let special = packs.iter().filter(move |pack| !of_any(pack) && pack.is_of_process(name));
    special.chain(packs.iter().filter(of_any))
}

fn as_the_kernel_cuts(name: &str) -> &str {
    let mut end = name.len().min(THREAD_NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}

/// Whether `glob` matches all of `text`: `*` matches any run of bytes, `?` one byte, anything else
/// itself. Its time is bounded by the product of both lengths.
#[must_use]
pub fn glob_matches(glob: &str, text: &str) -> bool {
    glob_matches_by(glob, text, |a, b| a == b)
}

/// Whether `glob` matches the name of a thread: the case of ASCII letters is ignored, as servers
/// change it from version to version.
#[must_use]
pub fn thread_name_matches(glob: &str, name: &str) -> bool {
    glob_matches_by(glob, name, |a, b| a.eq_ignore_ascii_case(&b))
}

/// The same with another equality of bytes.
fn glob_matches_by(glob: &str, text: &str, is_same: impl Fn(u8, u8) -> bool) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut g, mut t) = (0, 0);
    // Where to resume when the rest after the last star does not match: the star takes one more
    // byte.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(t) {
        match glob.get(g) {
            Some(b'*') => {
                retry = Some((g + 1, t + 1));
                g += 1;
            }
            Some(b'?') => (g, t) = (g + 1, t + 1),
            Some(wanted) if is_same(*wanted, *byte) => (g, t) = (g + 1, t + 1),
            _ => match retry {
                Some((after_star, next)) => {
                    (g, t) = (after_star, next);
                    retry = Some((after_star, next + 1));
                }
                None => return false,
            },
        }
    }
    glob.get(g..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_matches_the_whole_text() {
        let cases = [
            ("SW-*", "SW-WebRTC", true),
            ("SW-*", "SW-", true),
            ("SW-*", "AW-WebRTC", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a", "", false),
            ("*_bucket", "http_request_duration_ms_bucket", true),
            ("*_bucket", "http_bucket_total", false),
            ("a*b*c", "a--b--b--c", true),
            ("a*b*c", "a--b--b--", false),
            ("hloop ?*", "hloop 12", true),
            ("hloop ?*", "hloop ", false),
            ("ü?", "üx", true),
        ];
        for (glob, text, expect) in cases {
            assert_eq!(glob_matches(glob, text), expect, "{glob} on {text:?}");
        }
    }

    #[test]
    fn a_glob_of_stars_costs_no_more_than_the_product() {
        assert!(!glob_matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!glob_matches(&format!("{}b", "*a".repeat(2_000)), &"a".repeat(20_000)));
    }

    fn pack(processes: &[&str], threads: &[(&str, &str)]) -> Pack {
        let rule = |(name, group): &(&str, &str)| ThreadMeaning {
            name: (*name).into(),
            group: (*group).into(),
            ..ThreadMeaning::default()
        };
        Pack {
            processes: processes.iter().map(|name| (*name).into()).collect(),
            threads: threads.iter().map(rule).collect(),
            ..Pack::default()
        }
    }

    #[test]
    fn the_first_rule_that_matches_a_thread_counts() {
        let pack = pack(&[], &[("SW-WebRTC*", "webrtc"), ("SW-*", "stream workers")]);
        let group = |name| pack.thread_meaning(name).map(|meaning| meaning.group.as_str());
        assert_eq!(group("SW-WebRTCPublis"), Some("webrtc"));
        assert_eq!(group("SW-LLHLS"), Some("stream workers"));
        assert_eq!(group("main"), None);
    }

    #[test]
    fn threads_are_named_in_any_case_and_processes_are_not() {
        let pack = pack(&["janus"], &[("SPICE-U*", "ice"), ("ü?", "umlaut")]);
        let group = |name| pack.thread_meaning(name).map(|meaning| meaning.group.as_str());
        assert_eq!((group("SPICE-u10000"), group("spice-U3478")), (Some("ice"), Some("ice")));
        assert_eq!((group("SPICE-t3478"), group("Üx")), (None, None), "ASCII letters only");
        assert!(pack.is_of_process("janus") && !pack.is_of_process("Janus"));
    }

    #[test]
    fn a_name_is_looked_up_as_the_kernel_cuts_it() {
        let pack = pack(&[], &[("SPRtcSignalling", "signalling")]);
        assert!(pack.thread_meaning("SPRtcSignallingAndMore").is_some());
        assert_eq!(as_the_kernel_cuts("ääääääääää"), "äääääää");
    }

    #[test]
    fn a_pack_of_any_process_comes_last() {
        let packs = [pack(&["*"], &[]), pack(&["janus"], &[]), pack(&["nginx"], &[])];
        let found: Vec<_> =
            packs_of_process(&packs, "janus").map(|pack| &pack.processes[0]).collect();
        assert_eq!(found, ["janus", "*"]);
    }
}
