//! The flags of commands that play or read a scenario, and of what they leave.

use std::path::PathBuf;

use clap::Args;

use super::outputs::Outputs;
use super::parsers::{count_from_one, viewers};

/// What `run` and `view` have in common.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) outputs: Outputs,
    /// Also allow this private network (CIDR, or one address); repeatable
    #[arg(long, value_name = "CIDR", help_heading = "Server")]
    pub(crate) allow_target: Vec<String>,
    /// Local addresses that participants use in turn, such as 127.0.0.2-127.0.0.20; repeatable
    #[arg(long, value_name = "RANGE", help_heading = "Server")]
    pub(crate) source_ip: Vec<String>,
    /// Override a value of the scenario, such as crowd.size=50, or env:NAME or file:PATH, which
    /// hold that; repeatable
    #[arg(long, value_name = "PATH=VALUE", help_heading = "Crowd")]
    pub(crate) set: Vec<String>,
    /// Watch the server too: target (who listens on the target's port), process=janus, unit=…,
    /// cgroup=…, pid=…, port=8188 or command=…, and more with commas, such as
    /// every=200ms,profile=full,logs=/var/log/janus.log; or env:NAME or file:PATH, which hold that;
    /// repeatable
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Server")]
    pub(crate) watch: Vec<String>,
    /// Decode what the first N participants receive, to check the meters; more by --set
    /// tap.keep=true, tap.ssim=true, tap.decode=false (then `throng tap` may attach)
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "Crowd"
    )]
    pub(crate) tap: Option<u32>,
    /// Also use the knowledge packs (*.toml) of this folder; docs/knowledge-packs.md
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) packs: Option<PathBuf>,
    /// Spread participants over N streams: {stream} in the URL is then 0 to N-1, in turn; by Zipf's
    /// law with --set 'crowd.streams={ count = 10, zipf = 1.0 }'
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        help_heading = "Crowd"
    )]
    pub(crate) streams: Option<u32>,
    /// An objective, such as "video.loss p95 < 1%"; repeatable
    #[arg(long, value_name = "OBJECTIVE", help_heading = "Crowd")]
    pub(crate) objective: Vec<String>,
    /// Threads that drive participants [default: by the crowd and the cores]
    #[arg(long, value_name = "N", value_parser = count_from_one, help_heading = "Crowd")]
    pub(crate) threads: Option<usize>,
    /// How the datagrams of playing participants are received
    #[arg(long, value_enum, default_value_t, help_heading = "Crowd")]
    pub(crate) receive: ReceiveWay,
    /// The secret of the consent proof that the target's owner published, or env:NAME, or
    /// file:PATH, as `throng consent` made it; only public targets need one
    #[arg(long, alias = "consent-token", value_name = "SECRET", help_heading = "Server")]
    pub(crate) consent_secret: Option<String>,
    /// Trust these certificates (PEM) in addition to the system's
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Print the plan and end; sends nothing
    #[arg(long, help_heading = "Crowd")]
    pub(crate) dry_run: bool,
    /// Make the identities of participants (session ids, SSRCs, names of peers) from this number; a
    /// random one for each run without it, which command.json of the run folder has
    #[arg(long, value_name = "NUMBER", help_heading = "Crowd")]
    pub(crate) seed: Option<u64>,
    /// End the run as soon as its last 10 s miss an objective; judged every 2 s after the warm-up
    #[arg(long, help_heading = "Crowd")]
    pub(crate) until_missed: bool,
    #[command(flatten)]
    pub(crate) fleet: super::Fleet,
}

/// How the datagrams of playing participants are received.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReceiveWay {
    /// By memory-mapped rings (AF_PACKET) where that is allowed and they agree with the sockets,
    /// else by sockets
    #[default]
    Auto,
    /// The same, but no run without the right to it (CAP_NET_RAW)
    Ring,
    /// By sockets
    Sockets,
}

impl ReceiveWay {
    /// The flag's value, if it is not the default.
    pub(crate) fn flag(self) -> Option<String> {
        let name =
            clap::ValueEnum::to_possible_value(&self).map(|value| value.get_name().to_owned());
        name.filter(|_| self != Self::default())
    }
}

impl From<ReceiveWay> for throng_engine::Receive {
    fn from(way: ReceiveWay) -> Self {
        match way {
            ReceiveWay::Auto => Self::Auto,
            ReceiveWay::Ring => Self::Ring,
            ReceiveWay::Sockets => Self::Sockets,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The scenario (TOML)
    #[arg(required_unless_present = "resume")]
    pub(crate) file: Option<PathBuf>,
    /// Collect what the workers of a fleet have left of this run, whose coordinator was killed, and
    /// complete its folder
    #[arg(
        long,
        value_name = "RUN",
        requires = "fleet",
        conflicts_with_all = ["file", "output", "workers", "prometheus", "serve", "otlp"]
    )]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = super::targets())]
pub(crate) struct View {
    /// The server, such as whep+http://host/whep; see the list below. In path and query ⟨n⟩,
    /// {stream}, {room}, {cohort} and {random} differ by participant
    #[arg(required_unless_present = "url")]
    pub(crate) target: Option<String>,
    /// The same as TARGET
    #[arg(long, conflicts_with = "target", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// How many viewers
    #[arg(short, default_value_t = 1, value_parser = viewers, help_heading = "Crowd")]
    pub(crate) n: u32,
    /// Interval between joins, such as 100ms
    #[arg(long, value_name = "TIME", help_heading = "Crowd")]
    pub(crate) every: Option<String>,
    /// How long the run lasts, such as 60s, or forever (until Ctrl-C)
    #[arg(
        long = "for",
        short = 'd',
        visible_alias = "duration",
        value_name = "TIME",
        help_heading = "Crowd"
    )]
    pub(crate) duration: Option<String>,
    /// How often plain summary lines come, such as 5s
    #[arg(long, value_name = "TIME", help_heading = "Crowd")]
    pub(crate) summary: Option<String>,
    /// The time at the beginning that objectives leave out, such as 5s
    #[arg(long, value_name = "TIME", help_heading = "Crowd")]
    pub(crate) warm_up: Option<String>,
    /// Bearer token, or env:NAME, or file:PATH
    #[arg(long, value_name = "TOKEN", help_heading = "Server")]
    pub(crate) token: Option<String>,
    /// Accept any TLS certificate
    #[arg(long, help_heading = "Server")]
    pub(crate) tls_insecure: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = super::targets())]
pub(crate) struct Find {
    /// The scenario (TOML), or a target's URL
    pub(crate) scenario: String,
    /// About how long the search may take, such as 10m; less time means less precision, which the
    /// search prints [default: the full search, about three quarters of an hour]
    #[arg(long, value_name = "TIME", help_heading = "Crowd")]
    pub(crate) budget: Option<String>,
    /// The crowd to begin with [default: 5]
    #[arg(long, value_name = "N", value_parser = viewers, help_heading = "Crowd")]
    pub(crate) start: Option<u32>,
    /// The largest crowd to try [default: the cap on users, or 2000]
    #[arg(long, value_name = "N", value_parser = viewers, help_heading = "Crowd")]
    pub(crate) ceiling: Option<u32>,
    /// The cohort whose size is searched [default: the largest], the others stay as they are; or
    /// target.rooms, how many rooms like this one; or a value below `[crowd]`, the lightest first,
    /// such as crowd.publish.video=144p,240p,360p, while the crowd stays as large as it is
    #[arg(long, value_name = "COHORT|target.rooms|PATH=A,B,C", help_heading = "Crowd")]
    pub(crate) vary: Option<String>,
    /// Continue the interrupted search of this run folder
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The scenario (TOML), or a target's URL
    pub(crate) scenario: String,
    /// Override a value of the scenario, such as crowd.size=50, or env:NAME or file:PATH, which
    /// hold that; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Report {
    /// A run folder, or its name below runs/
    pub(crate) run: PathBuf,
    /// Print summary.json instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write series.csv and participants.csv
    #[arg(long)]
    pub(crate) csv: bool,
    /// Print the figures of every participant
    #[arg(long)]
    pub(crate) details: bool,
    /// Also write JUnit XML to this file: a test case for each objective
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also add the answer as Markdown to the end of this file, such as $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Consent {
    /// The server: HOST:PORT of its signalling, or a target's URL
    pub(crate) target: String,
    /// Further ports of the server that may get load, such as 443,5349/tcp
    #[arg(long, value_name = "PORTS")]
    pub(crate) ports: Option<String>,
    /// The only UDP ports that may get media, such as 10000-10100 [default: all of UDP]
    #[arg(long, value_name = "PORTS")]
    pub(crate) media_ports: Option<String>,
    /// The tester, in words for the owner, such as "Load lab, ops@lab.example"
    #[arg(long, value_name = "NAME")]
    pub(crate) tester: String,
    /// When the consent ends: 2026-12-31 (its end, UTC) or 2026-12-31T18:00:00Z; at most a year
    /// ahead
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: String,
    /// The most users that the consent covers
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = viewers)]
    pub(crate) max_users: u32,
    /// The highest bit rate that the consent covers, received and sent together
    #[arg(long, value_name = "RATE", default_value = "1Gbit/s")]
    pub(crate) max_bit_rate: String,
    /// The highest rate of joins that the consent covers, such as 5/s
    #[arg(long, value_name = "RATE")]
    pub(crate) max_joins: Option<String>,
    /// The longest run that the consent covers, such as 30m
    #[arg(long, value_name = "TIME")]
    pub(crate) max_duration: Option<String>,
    /// The file of the secret; an existing file is an error
    #[arg(long, value_name = "FILE", default_value = "throng-consent.secret")]
    pub(crate) secret: PathBuf,
    /// The file to publish [default: printed]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
