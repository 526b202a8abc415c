//! The scenario: what a run is asked to do, whether a file or a command line said so.

use std::time::Duration;

use crate::arrival::ArrivalKind;
use crate::canary::Canary;
use crate::churn::{Reconnect, Stay};
use crate::conversation::Conversation;
use crate::destination::Destination;
use crate::file;
use crate::network::AddressRange;
use crate::objective::Objective;
use crate::plan::Plan;
use crate::problem::ScenarioError;
use crate::read;
use crate::role::Role;
use crate::room::RoomConfig;
use crate::streams::Streams;
use crate::tap::Tap;
use crate::target::Target;
use crate::watch::{self, Watch};

/// What a run is asked to do. Made by [`Scenario::parse_with`] or [`Scenario::from_flags`], which checked it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The server under load.
    pub target: Target,
    /// The cohorts in the order of the file, at least one; a cohort's index is its `CohortId`.
    pub crowd: Vec<Cohort>,
    /// How long, and how often to say so.
    pub run: RunTimes,
    /// What one viewer is expected to receive.
    pub stream: Stream,
    /// Who speaks when in a conference; `None` for everybody all the time.
    pub conversation: Option<Conversation>,
    /// The conference's room, where the run is to make it.
    pub room: Option<RoomConfig>,
    /// What is watched beside the crowd; a watch's index is its `HostId`.
    pub watch: Vec<Watch>,
    /// Whose frames are handed out to be decoded; `None`: nobody's.
    pub tap: Option<Tap>,
    /// Real browsers among the crowd; `None`: none.
    pub canary: Option<Canary>,
    /// What must hold for the run to count as met.
    pub objectives: Vec<Objective>,
    /// Where results go.
    pub output: OutputTo,
    /// The limits in force.
    pub caps: Caps,
}

/// Participants who are alike and arrive together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cohort {
    /// Its name in reports, unique within the scenario.
    pub name: String,
    /// How many participants, at least 1. With rejoining, how many are there at a time.
    pub size: u32,
    /// When they arrive.
    pub arrival: ArrivalKind,
    /// How long each stays; `None` until the end of the run.
    pub stay: Option<Stay>,
    /// Local addresses that participants are dealt in turn; empty lets the kernel choose.
    pub source_ips: Vec<AddressRange>,
    /// Over how many streams they are spread, for `{stream}` in the URL.
    pub streams: Option<Streams>,
    /// Where they go, where that is not the scenario's target: another URL on the same host and port.
    pub target: Option<Target>,
    /// What its participants do in a conference; `None` where the file says nothing of it.
    pub role: Option<Role>,
    /// When they all leave and join anew.
    pub reconnect: Option<Reconnect>,
}

/// How long the run lasts, counted from the first intended join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTimes {
    /// From the first intended join until everybody is asked to leave.
    pub duration: Duration,
    /// Seconds at the beginning that objectives leave out.
    pub warm_up: Duration,
    /// How often the plain summary is printed.
    pub summary_every: Duration,
}

/// What one viewer is expected to receive, for planning; what is measured stands in the report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Video, bits per second of RTP payload; `None` when the scenario does not say.
    pub video_bits_per_s: Option<f64>,
    /// Audio, bits per second of RTP payload; `None` when the scenario does not say.
    pub audio_bits_per_s: Option<f64>,
    /// The source's frame rate, frames per second, for objectives `of source` where timestamps do not tell.
    pub fps: Option<f64>,
}

/// Where results go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputTo {
    /// The run folder; `None` lets the caller name one.
    pub folder: Option<String>,
    /// Also write CSV tables.
    pub csv: bool,
}

/// Limits that a run may not pass; `None` means not limited (loopback targets, unless `[caps]` says otherwise).
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// Participants at a time.
    pub users: Option<u32>,
    /// Joins within any second.
    pub joins_per_s: Option<f64>,
    /// Sent and received together, Mbit/s (10^6 bit/s).
    pub mbit_per_s: Option<f64>,
    /// Length of the run.
    pub duration: Option<Duration>,
}

impl Caps {
    /// The limits for anything but loopback, unless the scenario overrides them: enough for a real test, too little
    /// for harm by mistake.
    pub const DEFAULT: Self = Self {
        users: Some(500),
        joins_per_s: Some(20.0),
        mbit_per_s: Some(1_000.0),
        duration: Some(Duration::from_secs(60 * 60)),
    };

    /// No limits: what never leaves this host.
    pub const NONE: Self = Self { users: None, joins_per_s: None, mbit_per_s: None, duration: None };
}

/// A value that replaces one of the file's, or adds to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Dotted path, such as `crowd.size`, or `crowd.NAME.size` with several cohorts.
    pub path: String,
    /// The value as written: TOML, or plain text where text is expected.
    pub value: String,
    /// The words of the command line that errors quote, such as `--set crowd.size=50`.
    pub origin: String,
    /// Take the value as text whatever it looks like.
    pub is_text: bool,
}

impl Override {
    /// Reads `PATH=VALUE` of `--set`.
    ///
    /// # Errors
    /// When there is no `=`, or nothing before it.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        read::parse_override(text)
    }

    /// A flag of the command line that stands for a text value, such as `--every 100ms` for `crowd.arrival.every`.
    #[must_use]
    pub fn flag(flag: &str, path: &str, value: &str) -> Self {
        Self { path: path.to_owned(), value: value.to_owned(), origin: flag.to_owned(), is_text: true }
    }

    /// A flag that stands for TOML (a list, a number, `true`).
    #[must_use]
    pub fn flag_toml(flag: &str, path: &str, toml: &str) -> Self {
        Self { path: path.to_owned(), value: toml.to_owned(), origin: flag.to_owned(), is_text: false }
    }
}

/// A scenario said in one command line. Texts are as the person typed them, so that errors quote them; everything
/// left out takes the default that a file would.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioFlags {
    /// The target URL.
    pub url: String,
    /// `-n`: how many participants; 1 when absent.
    pub size: Option<u32>,
    /// `--every`: interval between joins, such as `100ms`.
    pub every: Option<String>,
    /// `--for`: how long the run lasts, such as `60s`.
    pub duration: Option<String>,
    /// `--summary`: how often the summary is printed, such as `5s`.
    pub summary_every: Option<String>,
    /// `--warm-up`: what objectives leave out at the beginning.
    pub warm_up: Option<String>,
    /// `--token`: the token, `env:NAME` or `file:PATH`.
    pub token: Option<String>,
    /// `--streams`: over how many streams viewers are spread, for `{stream}` in the URL.
    pub streams: Option<u32>,
    /// `--allow-target`: networks that may be reached.
    pub allow: Vec<String>,
    /// `--source-ip`: local addresses or ranges.
    pub source_ips: Vec<String>,
    /// `--objective`: objectives.
    pub objectives: Vec<String>,
    /// `--watch`: whom to watch, such as `process=janus` or `port=8188,every=100ms`.
    pub watch: Vec<String>,
    /// `--tap`: how many participants are tapped.
    pub tap: Option<u32>,
    /// `--tls-insecure`.
    pub tls_insecure: bool,
    /// `--output`: the run folder.
    pub folder: Option<String>,
    /// `--csv`.
    pub csv: bool,
    /// `--set`: anything else that a file could say.
    pub set: Vec<Override>,
}

impl Scenario {
    /// Reads a scenario file's text.
    ///
    /// # Errors
    /// With every problem that could be found, each with its place and help.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, &[])
    }

    /// Reads what [`Self::to_toml`] wrote, to judge what was run by it: a token that was left out (`…`) is no error
    /// there. It cannot be sent.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_stored(text: &str) -> Result<Self, ScenarioError> {
        read::stored_scenario(text)
    }

    /// Reads a scenario file's text after `overrides` are laid over it, the last one of a path winning.
    ///
    /// # Errors
    /// With every problem that could be found, each with its place and help.
    pub fn parse_with(text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        read::scenario(text, overrides)
    }

    /// The scenario that a command line without a file means: the same as an empty file with overrides.
    ///
    /// # Errors
    /// As [`Self::parse_with`]; the places are flags.
    pub fn from_flags(form: &ScenarioFlags) -> Result<Self, ScenarioError> {
        Self::parse_with("", &form.overrides())
    }

    /// The whole scenario as TOML again, defaults and overrides included, secrets left out (shown as `…`).
    #[must_use]
    pub fn to_toml(&self) -> String {
        file::to_toml(self)
    }

    /// What the scenario comes to: who joins and leaves when, and what the server has to carry.
    #[must_use]
    pub fn plan(&self) -> Plan {
        Plan::of(self)
    }

    /// Where the participants of each cohort of a run go, by `CohortId`.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        Destination::all_of(self)
    }

    /// Participants of all cohorts together, in all rooms.
    #[must_use]
    pub fn users(&self) -> u64 {
        let of_room: u64 = self.crowd.iter().map(|cohort| u64::from(cohort.size)).sum();
        of_room.saturating_mul(u64::from(self.target.rooms))
    }

    /// Name and role of each cohort of a run, by `CohortId`: those of the file, room after room.
    pub fn cohorts(&self) -> impl Iterator<Item = (String, Role)> {
        let rooms = self.target.rooms;
        (0..rooms).flat_map(move |room| {
            self.crowd.iter().map(move |cohort| {
                let name = match rooms {
                    1 => cohort.name.clone(),
                    _ => format!("{}, room {}", cohort.name, room + 1),
                };
                (name, Role { room, ..cohort.role.clone().unwrap_or_default() })
            })
        })
    }
}

impl ScenarioFlags {
    /// The overrides of an empty file that this form stands for.
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        let mut all = vec![
            Override::flag("the URL", "target.url", &self.url),
            Override::flag_toml("-n", "crowd.size", &self.size.unwrap_or(1).to_string()),
        ];
        let texts = [
            ("--every", "crowd.arrival.every", &self.every),
            ("--for", "run.duration", &self.duration),
            ("--summary", "run.summary_every", &self.summary_every),
            ("--warm-up", "run.warm_up", &self.warm_up),
            ("--token", "target.token", &self.token),
            ("--output", "output.folder", &self.folder),
        ];
        for (flag, path, value) in texts {
            all.extend(value.as_ref().map(|value| Override::flag(flag, path, value)));
        }
        let lists = [
            ("--allow-target", "target.allow", &self.allow),
            ("--source-ip", "crowd.source_ips", &self.source_ips),
            ("--objective", "objectives", &self.objectives),
        ];
        for (flag, path, values) in lists {
            if !values.is_empty() {
                all.push(Override::flag_toml(flag, path, &read::toml_list(values)));
            }
        }
        if !self.watch.is_empty() {
            let tables: Vec<String> = self.watch.iter().map(|text| watch::inline_table(text)).collect();
            all.push(Override::flag_toml("--watch", "watch", &format!("[{}]", tables.join(", "))));
        }
        all.extend(
            self.streams.map(|count| Override::flag_toml("--streams", "crowd.streams", &count.to_string())),
        );
        all.extend(
            self.tap.map(|count| Override::flag_toml("--tap", "tap.participants", &count.to_string())),
        );
        for (flag, path, is_set) in
            [("--tls-insecure", "target.tls_insecure", self.tls_insecure), ("--csv", "output.csv", self.csv)]
        {
            if is_set {
                all.push(Override::flag_toml(flag, path, "true"));
            }
        }
        all.extend(self.set.iter().cloned());
        all
    }
}
