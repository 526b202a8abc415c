//! The command line: what each command takes, in the words that `--help` prints.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::exit::Exit;

/// Fills a streaming media server with people until it breaks, and says why.
#[derive(Debug, Parser)]
#[command(name = "throng", version, after_help = Exit::HELP, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send the crowd that a scenario file describes
    Run(Run),
    /// Send viewers at a URL without a file; also takes OvenRtcTester's -url -n -cint -sint -life
    View(View),
    /// Find the largest crowd that is served well: grows and shrinks it until one load passes and the next one fails
    Find(Find),
    /// Validate a scenario file and print what it comes to; sends nothing
    Check(Check),
    /// Make the report of a run again from its run.db
    Report(Report),
    /// Run the embedded media server (WHEP out, WHIP in)
    Stage(Stage),
    /// Find out how many viewers this machine can play before it is the limit itself
    Calibrate(Calibrate),
    /// Measure what it costs to pass frames between two processes, by each transport there is
    Ipc(Ipc),
    /// A process of `throng ipc`
    #[command(hide = true)]
    IpcRole,
    /// Watch what this host and its processes and threads do; --listen makes it the agent of runs elsewhere
    Watch(crate::watch::arguments::Watch),
    /// Find out how many video streams this machine decodes in real time
    Decode(Decode),
    /// Decode the frames of a run's tapped participants, beside that run: pictures, freezes, delay
    Tap(Tap),
    /// Look at the shared-memory rings of other processes
    Ring(Ring),
    /// Sample where running programs spend their time: threads, functions, a flame graph
    Profile(Profile),
    /// Make a consent proof: a secret for who tests, and the file that the owner of a public server publishes
    Consent(Consent),
    /// Print the JSON Schema of a file format
    Schema(Schema),
}

/// What `run` and `view` have in common.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    /// Run folder to make [default: a new one under runs/]
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Also allow this private network (CIDR, or one address); repeatable
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_target: Vec<String>,
    /// Local addresses that participants take turns to use, such as 127.0.0.2-127.0.0.20; repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) source_ip: Vec<String>,
    /// Override a value of the scenario, such as crowd.size=50; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Watch the server too: process=janus, unit=…, cgroup=…, pid=…, port=8188 or command=…, and more with commas, such as
    /// every=200ms,profile=full,logs=/var/log/janus.log; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) watch: Vec<String>,
    /// Decode what the first N participants receive, to hold it against the meters; more by --set tap.keep=true,
    /// tap.ssim=true, tap.decode=false (then `throng tap` may attach)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) tap: Option<u32>,
    /// Also know what the knowledge packs (*.toml) of this folder say of servers; docs/knowledge-packs.md
    #[arg(long, value_name = "DIR")]
    pub(crate) packs: Option<PathBuf>,
    /// Spread participants over N streams: {stream} in the URL is then 0 to N-1, in turn; by Zipf's law with
    /// --set 'crowd.streams={ count = 10, zipf = 1.0 }'
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) streams: Option<u32>,
    /// What must hold, such as "video.loss p95 < 1%"; repeatable
    #[arg(long, value_name = "OBJECTIVE")]
    pub(crate) objective: Vec<String>,
    /// Plain summary lines even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print nothing while it runs
    #[arg(short, long, conflicts_with = "plain")]
    pub(crate) quiet: bool,
    /// Print the figures of every participant at the end
    #[arg(long)]
    pub(crate) details: bool,
    /// Print summary.json at the end instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write series.csv and participants.csv
    #[arg(long)]
    pub(crate) csv: bool,
    /// Threads that drive participants [default: by the crowd and the cores]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) threads: Option<usize>,
    /// The secret of the consent proof that the target's owner published, or env:NAME, or file:PATH, as `throng consent` made
    /// it; only public targets need one
    #[arg(long, alias = "consent-token", value_name = "SECRET")]
    pub(crate) consent_secret: Option<String>,
    /// Trust these certificates (PEM) besides the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// End the run as soon as its last 10 s miss an objective; judged every 2 s after the warm-up
    #[arg(long)]
    pub(crate) until_missed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// So many streams at a time, such as 25, or several counts as 5,10,25 [default: search for the largest]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) streams: Vec<u32>,
    /// What is decoded: CODEC:WIDTHxHEIGHT@FPS:RATE, codec vp8, vp9, av1 or h264
    #[arg(long, default_value = "vp8:320x240@30:256k", value_name = "VIDEO", conflicts_with = "run")]
    pub(crate) video: String,
    /// The streams that this run's tap kept (--tap N --set tap.keep=true) instead
    #[arg(long, value_name = "FOLDER")]
    pub(crate) run: Option<PathBuf>,
    /// How long each count is measured, after all decoders have started
    #[arg(long = "for", default_value = "5s", value_name = "TIME")]
    pub(crate) duration: String,
    /// A picture that comes later than this after it was due is late
    #[arg(long, default_value = "100ms", value_name = "TIME")]
    pub(crate) late: String,
    /// The largest count that is searched
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) up_to: u32,
    /// A decoder of FFmpeg's, such as libvpx or vp8_v4l2m2m, or hwaccel:vaapi [default: FFmpeg's choice]
    #[arg(long, value_name = "NAME")]
    pub(crate) decoder: Option<String>,
    /// The FFmpeg that encodes and decodes
    #[arg(long, value_name = "PROGRAM", default_value = "ffmpeg")]
    pub(crate) ffmpeg: PathBuf,
    /// Print JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tap {
    /// The folder of a run that goes on and has a tap: --tap N --set tap.decode=false
    pub(crate) run: PathBuf,
    /// Only of this many participants, those that show first
    #[arg(long, value_name = "N")]
    pub(crate) participants: Option<usize>,
    /// Decode; the default unless --keep is there
    #[arg(long)]
    pub(crate) decode: bool,
    /// Keep the coded streams in RUN/tap/, as Matroska
    #[arg(long)]
    pub(crate) keep: bool,
    /// Compare pictures of the test card with their source (SSIM)
    #[arg(long)]
    pub(crate) ssim: bool,
    /// Streams beyond this many are left alone
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = count)]
    pub(crate) streams_max: usize,
    /// The FFmpeg that decodes
    #[arg(long, value_name = "PROGRAM", default_value = "ffmpeg")]
    pub(crate) ffmpeg: PathBuf,
    /// A decoder of FFmpeg's, such as libvpx, or hwaccel:vaapi [default: FFmpeg's choice]
    #[arg(long, value_name = "NAME")]
    pub(crate) decoder: Option<String>,
    /// Started by the run, which makes the report itself
    #[arg(long, hide = true)]
    pub(crate) of_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ring {
    #[command(subcommand)]
    pub(crate) command: RingCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RingCommand {
    /// Print what a ring's producers and consumer have done: frames, drops by reason, wake-ups
    Stat(RingStat),
}

#[derive(Debug, Args)]
pub(crate) struct RingStat {
    /// An inherited descriptor's number, a path such as /proc/PID/fd/N, or /proc/PID for all rings of a process
    #[arg(value_name = "FD|PATH")]
    pub(crate) ring: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The scenario (TOML)
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Find {
    /// The scenario (TOML), or a target's URL
    pub(crate) scenario: String,
    /// About how long the search may take, such as 10m; less time is less precision, and it says what that costs
    /// [default: the full search, about three quarters of an hour]
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<String>,
    /// The crowd to begin with [default: 5]
    #[arg(long, value_name = "N", value_parser = viewers)]
    pub(crate) start: Option<u32>,
    /// The largest crowd to try [default: the cap on users, or 2000]
    #[arg(long, value_name = "N", value_parser = viewers)]
    pub(crate) ceiling: Option<u32>,
    /// The cohort whose size is searched [default: the largest], the others stay as they are; or target.rooms, how many rooms
    /// like this one; or a value below `[crowd]`, the lightest first, such as crowd.publish.video=144p,240p,360p, while the
    /// crowd stays as large as it is
    #[arg(long, value_name = "COHORT|target.rooms|PATH=A,B,C")]
    pub(crate) vary: Option<String>,
    /// Go on with the search of this run folder, which was cut off
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    /// ws://host:3333/app/stream (OvenMediaEngine), janus+ws://host:8188/streaming/1, whep+http://host/whep; in path and
    /// query {n}, {stream}, {room}, {cohort} and {random} differ by participant
    #[arg(required_unless_present = "url")]
    pub(crate) target: Option<String>,
    /// The same as TARGET
    #[arg(long, conflicts_with = "target", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// How many viewers
    #[arg(short, default_value_t = 1, value_parser = viewers)]
    pub(crate) n: u32,
    /// Interval between joins, such as 100ms
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<String>,
    /// How long the run lasts, such as 60s, or forever (until Ctrl-C)
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// How often plain summary lines come, such as 5s
    #[arg(long, value_name = "TIME")]
    pub(crate) summary: Option<String>,
    /// What objectives leave out at the beginning, such as 5s
    #[arg(long, value_name = "TIME")]
    pub(crate) warm_up: Option<String>,
    /// Bearer token, or env:NAME, or file:PATH
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Accept any TLS certificate
    #[arg(long)]
    pub(crate) tls_insecure: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The scenario (TOML)
    pub(crate) file: PathBuf,
    /// Override a value of the scenario, such as crowd.size=50; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// A run folder
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
}

#[derive(Debug, Args)]
pub(crate) struct Consent {
    /// The server: HOST:PORT of its signalling, or a target's URL
    pub(crate) target: String,
    /// Who tests, in words for the owner, such as "Load lab, ops@lab.example"
    #[arg(long, value_name = "NAME")]
    pub(crate) tester: String,
    /// When the consent ends: 2026-12-31 (its end, UTC) or 2026-12-31T18:00:00Z; at most a year ahead
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: String,
    /// The most users that are agreed to
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = viewers)]
    pub(crate) max_users: u32,
    /// The highest rate that is agreed to, received and sent together
    #[arg(long, value_name = "RATE", default_value = "1Gbit/s")]
    pub(crate) max_bit_rate: String,
    /// The most joins that are agreed to, such as 5/s
    #[arg(long, value_name = "RATE")]
    pub(crate) max_joins: Option<String>,
    /// The longest run that is agreed to, such as 30m
    #[arg(long, value_name = "TIME")]
    pub(crate) max_duration: Option<String>,
    /// Where the secret goes; a file that is there is kept, and that is an error
    #[arg(long, value_name = "FILE", default_value = "throng-consent.secret")]
    pub(crate) secret: PathBuf,
    /// Where the file to publish goes [default: it is printed]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Stage {
    /// Where HTTP listens; media uses the same address
    #[arg(long, default_value = "127.0.0.1:7080", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Where media listens, when that is another address [default when HTTP listens on all: one of this machine's]
    #[arg(long, value_name = "IP")]
    pub(crate) media_ip: Option<IpAddr>,
    /// Allow an address that other machines can reach
    #[arg(long)]
    pub(crate) listen_any: bool,
    /// Threads that encrypt and send
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = count)]
    pub(crate) workers: usize,
    /// Limit what leaves the stage, such as 40Mbit/s: queueing delay, then loss, as on a full line
    #[arg(long, value_name = "RATE")]
    pub(crate) egress_cap: Option<String>,
    /// How much queueing delay that limit gives before it drops, milliseconds
    #[arg(long, default_value_t = 200, value_name = "MS")]
    pub(crate) egress_queue_ms: u32,
    /// Answer further viewers with 503
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = count)]
    pub(crate) max_viewers: usize,
    #[command(flatten)]
    pub(crate) planted: Planted,
    /// Test card: standard (640x360, 30 fps, 1 Mbit/s) or low (320x180, 15 fps, 100 kbit/s)
    #[arg(long, default_value = "standard", value_name = "CARD")]
    pub(crate) card: String,
    /// Ask viewers and publishers for this bearer token
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Answer as another server does: srs (7.0.121 and later), srs-silent (before: a refusal closes the connection)
    #[arg(long = "as", default_value = "stage", value_name = "SERVER")]
    pub(crate) emulates: String,
}

/// Limits of the stage that are planted on purpose.
#[derive(Debug, Args)]
#[command(next_help_heading = "Planted limits, for tests that need to know what the server ends at")]
pub(crate) struct Planted {
    /// Further encryption passes over each packet, so that a worker is full at a lower load
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) work_per_packet: u32,
    /// Copy so many kilobytes for each packet, so that a worker mostly copies
    #[arg(long, default_value_t = 0, value_name = "KB")]
    pub(crate) copy_per_packet_kb: u32,
    /// All workers take one lock around that work
    #[arg(long)]
    pub(crate) shared_lock: bool,
    /// Megabytes that each viewer holds
    #[arg(long, default_value_t = 0, value_name = "MB")]
    pub(crate) memory_per_viewer_mb: u32,
    /// Abort when so many viewers are there at a time
    #[arg(long, value_name = "N")]
    pub(crate) crash_at: Option<usize>,
    /// Connections that may wait to be accepted
    #[arg(long, value_name = "N")]
    pub(crate) backlog: Option<u32>,
    /// How long accepting sleeps after each connection, milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub(crate) accept_pause_ms: u32,
    /// Receive buffer of each worker's socket, KiB
    #[arg(long, value_name = "KIB")]
    pub(crate) receive_buffer_kb: Option<u32>,
    /// Datagrams that each worker takes from its socket at most, a second
    #[arg(long, value_name = "N")]
    pub(crate) receive_rate: Option<u32>,
    /// A folder with a file for each viewer, which is read as fast as the viewer is sent to
    #[arg(long, value_name = "DIR")]
    pub(crate) media_folder: Option<PathBuf>,
    /// Send the picture to N viewers at a time; further ones agree on it and get their sound alone
    #[arg(long, value_name = "N")]
    pub(crate) pictures_max: Option<usize>,
    /// Send each viewer sound for so long, seconds
    #[arg(long, value_name = "S")]
    pub(crate) sound_ends_after_s: Option<u32>,
    /// Serve N viewers well at a time; further ones get their picture in stutters
    #[arg(long, value_name = "N")]
    pub(crate) stutters_beyond: Option<usize>,
    /// Agree to no RTX: what viewers ask for again comes on the stream's own SSRC
    #[arg(long)]
    pub(crate) no_rtx: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// Test card to play: standard or low
    #[arg(long, default_value = "standard", value_name = "CARD")]
    pub(crate) card: String,
    /// Stop at this many viewers
    #[arg(long, default_value_t = 2_000, value_name = "N", value_parser = viewers)]
    pub(crate) up_to: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Ipc {
    /// What is passed: WIDTHxHEIGHT:FORMAT (i420, nv12, rgba, ...), or bytes such as 1200 or 3MB
    #[arg(long, default_value = "1920x1080:i420", value_name = "FRAME", conflicts_with = "sizes")]
    pub(crate) frame: String,
    /// A file with a frame size a line instead; producers go round it
    #[arg(long, value_name = "FILE")]
    pub(crate) sizes: Option<PathBuf>,
    /// Frames a second that each producer offers [default: as fast as the transport takes them]
    #[arg(long, value_name = "FPS", value_parser = positive)]
    pub(crate) fps: Option<f64>,
    /// Processes that send to the one that receives
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) producers: u8,
    /// How long each transport is measured, such as 3s
    #[arg(long = "for", default_value = "3s", value_name = "TIME")]
    pub(crate) duration: String,
    /// Measure everything so many times in turn; a row is the median of its rounds
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) rounds: u32,
    /// Only these transports, such as --only ring,tcp
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// What the consumer does: edges (checks both edges, leaves the payload alone) or all (reads and checks every byte)
    #[arg(long, default_value = "edges", value_name = "WHAT", value_parser = ["edges", "all"])]
    pub(crate) read: String,
    /// What a core costs an hour, in your currency
    #[arg(long, default_value_t = 0.05, value_name = "PRICE", value_parser = not_negative, allow_negative_numbers = true)]
    pub(crate) price_core_hour: f64,
    /// For how many streams the year is priced
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) streams: u32,
    /// Frames a second of a priced stream [default: that of --fps, or 30]
    #[arg(long, value_name = "FPS", value_parser = positive)]
    pub(crate) price_fps: Option<f64>,
    /// The Python whose websockets package is measured [default: python3, then /usr/bin/python3]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) python: Option<PathBuf>,
    /// Leave out the second, short pass that counts system calls
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print ipc.json instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder to put ipc.json and report.html into; made if it is not there
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number > 0.0 && number <= 1e6 { Ok(number) } else { Err("must be above 0 and at most 1000000".into()) }
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1e9).contains(&number) { Ok(number) } else { Err("must be 0 to 1000000000".into()) }
}

#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Processes, by number
    #[arg(required_unless_present = "process")]
    pub(crate) pid: Vec<u32>,
    /// Processes by the name of the program; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Vec<String>,
    /// How long to sample
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    pub(crate) duration: String,
    /// Samples a second on each CPU
    #[arg(long, value_name = "HZ", default_value_t = throng_watch::profiler::FREQUENCY_HZ)]
    pub(crate) hz: u32,
    /// How to sample [default: the clock where it is allowed, else the states of threads]
    #[arg(long, value_enum)]
    pub(crate) method: Option<ProfileMethod>,
    /// Leave out the processes that the named ones start
    #[arg(long)]
    pub(crate) no_children: bool,
    /// Follow frame pointers only: the kernel then copies no stacks
    #[arg(long)]
    pub(crate) no_unwind: bool,
    /// What to call this moment in the page, such as "300 viewers"
    #[arg(long, value_name = "WORDS")]
    pub(crate) moment: Option<String>,
    /// Compare with an earlier profile, as --json printed it
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Also write a page with flame graphs
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the profile as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ProfileMethod {
    /// A clock on each CPU: samples of what runs (root or CAP_PERFMON)
    Clock,
    /// The states of threads: what they wait in
    State,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Which format
    #[arg(value_enum)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    /// Scenario files
    Scenario,
    /// summary.json
    Summary,
    /// ipc.json
    Ipc,
}

/// A number of viewers.
fn viewers(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=1_000_000).contains(count))
        .ok_or_else(|| "write a whole number from 1 to 1000000, such as 50".into())
}

/// How many of something.
fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, such as 2".into())
}
