//! The scenario file as it is written, and its JSON Schema.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

mod conference;
mod streams;
mod written;

use conference::{ConversationFile, ReconnectFile, RoomFile, ScriptStepFile};
use streams::StreamsFile;
pub(crate) use written::to_toml;

/// A throng scenario: which server, which crowd, for how long, and what must hold.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "throng scenario", deny_unknown_fields)]
struct File {
    /// What must hold for the run to count as met: `metric [quantile] < threshold`, such as `video.loss p95 < 1%`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    objectives: Vec<String>,
    target: TargetFile,
    crowd: OneOrMany<CohortFile>,
    #[schemars(default)]
    run: RunFile,
    #[serde(skip_serializing_if = "StreamFile::is_empty")]
    #[schemars(default)]
    stream: StreamFile,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<RoomFile>,
    /// What is watched while the crowd is in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<WatchFile>")]
    watch: Vec<WatchFile>,
    /// Whose received frames are decoded, to hold what is seen against what the meters say.
    #[serde(skip_serializing_if = "Option::is_none")]
    tap: Option<TapFile>,
    /// Real browsers among the crowd, to hold their experience against that of the virtual participants.
    #[serde(skip_serializing_if = "Option::is_none")]
    canary: Option<CanaryFile>,
    #[schemars(default)]
    output: OutputFile,
    #[serde(skip_serializing_if = "CapsFile::is_empty")]
    #[schemars(default)]
    caps: CapsFile,
}

/// One, or a list of several.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany<T> {
    /// One.
    One(T),
    /// Several.
    Many(Vec<T>),
}

/// The server under load.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TargetFile {
    /// `ws(s)://HOST:3333/APP/STREAM` (OvenMediaEngine), `janus+ws(s)://HOST:8188/streaming/ID` or
    /// `…/videoroom/ID`, `livekit+ws(s)://HOST:7880/ROOM`, `whep+http(s)://…`, `whip+http(s)://…`. In path and query
    /// `{n}`, `{stream}`, `{room}`, `{cohort}` and `{random}` differ by participant.
    #[schemars(regex(
        pattern = r"^(([Jj][Aa][Nn][Uu][Ss]\+|[Ll][Ii][Vv][Ee][Kk][Ii][Tt]\+)?[Ww][Ss][Ss]?|[Ww][Hh][EeIi][Pp]\+[Hh][Tt][Tt][Pp][Ss]?)://"
    ))]
    url: String,
    /// `env:NAME`, `file:PATH`, or the token itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// LiveKit's API key, by which each participant gets a token of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    /// Its secret: `env:NAME`, `file:PATH`, or the secret itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_secret: Option<String>,
    /// LiveKit's room, where the URL (WHIP) does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<String>,
    /// How many rooms of a conference there are, the URL's among them, each with the whole crowd; 1 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    rooms: Option<u32>,
    /// Private networks that may be reached beside loopback and this host's own addresses, such as `10.0.0.0/8`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    allow: Vec<String>,
    /// Accept any TLS certificate.
    #[schemars(default)]
    tls_insecure: bool,
    /// Over which ways media may come: `all`, or `relay` for nothing but a relay (TURN) that the server announces; `all` when
    /// left out, but `relay` where the URL asks OvenMediaEngine for it (`?transport=tcp`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(all|relay)$"))]
    ice_transport_policy: Option<String>,
    /// A STUN server, `stun:HOST` or `stun:HOST:PORT`, that each participant asks for its address as it is seen from outside;
    /// HOST is an address, or the host name of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[Ss][Tt][Uu][Nn]:"))]
    stun: Option<String>,
    /// A TURN server, `turn:HOST`, `turn:HOST:PORT?transport=tcp` or `turns:HOST:PORT`, that each participant uses instead of
    /// those that the server announces; HOST is an address, or the host name of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[Tt][Uu][Rr][Nn][Ss]?:"))]
    turn: Option<String>,
    /// Its user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_username: Option<String>,
    /// Its password: `env:NAME`, `file:PATH`, or the password itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_password: Option<String>,
}

/// Participants who are alike and arrive together.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CohortFile {
    /// Its name in reports.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
    /// How many participants.
    #[schemars(range(min = 1, max = 1_000_000))]
    size: u32,
    /// When they arrive; one each 100 ms when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<ArrivalFile>,
    /// How long each stays; until the end of the run when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    stay: Option<StayFile>,
    /// Local addresses or ranges that participants are dealt in turn, such as `127.0.0.2-127.0.0.20`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    source_ips: Vec<String>,
    /// Where they go, where that is not `target.url`: another URL on the same host and port.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Over how many streams they are spread, for `{stream}` in the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<StreamsFile>,
    /// What participants of a conference send: `"none"` or a table; a 240p picture and sound when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    publish: Option<PublishFile>,
    /// Whom they receive: `"all"`, `"none"` or a table; all when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscribe: Option<SubscribeFile>,
    /// They receive each of the others on a peer connection of its own.
    #[schemars(default)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    connection_per_feed: bool,
    /// Which layer of the others' simulcast they ask for, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<LayersFile>,
    /// How often they speak beside others of weight 1, where there is a `[conversation]`; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1000))]
    speaking_weight: Option<u32>,
    /// What they all do at moments of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<ScriptStepFile>")]
    script: Vec<ScriptStepFile>,
    /// They all leave and join anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    reconnect: Option<ReconnectFile>,
}

/// A layer, or a script of them.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum LayersFile {
    /// From the join on.
    Word(Layer),
    /// One after another.
    Script(#[schemars(length(min = 1, max = 100))] Vec<LayerStep>),
}

/// One of the sizes of a simulcast.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Layer {
    /// None for the time being.
    Off,
    /// The smallest.
    Low,
    /// The one between, or the larger of two.
    Medium,
    /// The largest.
    High,
}

/// A layer that is asked for at a moment.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LayerStep {
    /// How long after the join; at once when left out.
    after: Option<Duration>,
    /// Which.
    layer: Layer,
}

/// What a participant of a conference sends.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum PublishFile {
    /// Nothing.
    Word(Nothing),
    /// A picture of the test card, sound, or both.
    Table(PublishTable),
}

/// `none`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Nothing {
    /// Nothing.
    None,
}

/// A picture, sound, or both.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PublishTable {
    /// The picture: a size of the test card, such as `240p`, or a file that is played in a loop (Annex-B, IVF, `.mjr`,
    /// `.pcap`); no picture when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(144p|180p|240p|360p|720p|.*\..+)$"))]
    video: Option<String>,
    /// Two or three sizes sent side by side, in place of `video`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, length(min = 2, max = 3), inner(regex(pattern = r"^(144p|180p|240p|360p|720p)$")))]
    simulcast: Vec<String>,
    /// `vp8` or `h264` of the test card; what a byte stream or a capture is coded with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(vp8|h264|h265|vp9|av1|opus)$"))]
    codec: Option<String>,
    /// Frames a second of a byte stream; 30 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    fps: Option<f64>,
    /// Which stream of a capture is the picture; the largest when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    ssrc: Option<u32>,
    /// Sound like speech, or a file (Ogg/Opus, `.mjr`, `.pcap`); sent when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioFile>,
    /// Which stream of a capture is the sound; the largest when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_ssrc: Option<u32>,
    /// Whether smaller sizes of the test card are sent, or fewer of a simulcast, when the server or the path allow less;
    /// `true` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    adapt: Option<bool>,
}

/// Whether sound is sent, or which.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum AudioFile {
    /// Sound like speech, or none.
    Speech(bool),
    /// A file.
    File(String),
}

/// Whom a participant of a conference receives.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum SubscribeFile {
    /// Pictures and sound alike.
    Word(Whom),
    /// Each for itself.
    Table(SubscribeTable),
}

/// Whom: `all`, `none`, or so many of those who spoke last, such as `last_speakers(10)`.
#[derive(Serialize, JsonSchema)]
struct Whom(#[schemars(regex(pattern = r"^(all|none|last_speakers\(\s*[1-9]\d*\s*\))$"))] String);

/// Whom to see and whom to hear.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SubscribeTable {
    /// Whom to see.
    video: Option<Whom>,
    /// Whom to hear.
    audio: Option<Whom>,
}

/// When participants arrive: exactly one way.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ArrivalFile {
    /// One join after another, this far apart, such as `100ms`.
    Every(Duration),
    /// All joins spread evenly over this time, such as `60s`.
    Ramp(Duration),
    /// Groups that arrive together.
    Burst(BurstFile),
    /// At random, as people who do not know of each other.
    Poisson(PoissonFile),
}

/// A duration: `100ms`, `1.5s`, `2m`, `1h30m`.
#[derive(Serialize, JsonSchema)]
struct Duration(#[schemars(regex(pattern = r"^\s*(\d+(\.\d*)?\s*(ns|us|µs|ms|s|m|min|h)\s*)+$"))] String);

/// A bit rate: `256kbit/s`, `1.5Mbit/s`.
#[derive(Serialize, JsonSchema)]
struct BitRate(#[schemars(regex(pattern = r"^\s*\d+(\.\d*)?\s*[kKMG]?(bit/s|bps)\s*$"))] String);

/// A rate: `5/s`, `30/min`, `100/h`.
#[derive(Serialize, JsonSchema)]
struct Rate(#[schemars(regex(pattern = r"^\s*\d+(\.\d*)?\s*/(s|m|min|h)\s*$"))] String);

/// Groups of `size` joins, the next group `every` later.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct BurstFile {
    /// How many arrive together.
    #[schemars(range(min = 1, max = 1_000_000))]
    size: u32,
    /// From one group to the next.
    every: Duration,
}

/// Poisson arrivals.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PoissonFile {
    /// Mean joins, such as `5/s`.
    rate: Rate,
    /// Seed: the same one gives the same arrivals; 1 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// How long each participant stays.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum StayFile {
    /// Exactly this long.
    Short(Duration),
    /// With all its choices.
    Table(StayTable),
}

/// `exactly` or `mean`, and whether somebody takes the place of who left.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct StayTable {
    /// Everybody stays exactly this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    exactly: Option<Duration>,
    /// Exponential with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Duration>,
    /// Seed of the exponential stays; 1 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// A new participant joins when one leaves.
    #[schemars(default)]
    rejoin: bool,
}

/// How long, counted from the first intended join.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RunFile {
    /// Until everybody is asked to leave; 60 s when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
    /// What objectives leave out at the beginning; nothing when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_up: Option<Duration>,
    /// How often the plain summary is printed; 5 s when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_every: Option<Duration>,
}

/// What one viewer is expected to receive, for planning.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct StreamFile {
    /// Video payload, such as `1Mbit/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    video: Option<BitRate>,
    /// Audio payload, such as `48kbit/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<BitRate>,
    /// The source's frames per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    fps: Option<f64>,
}

/// Processes to watch, named by exactly one of `process`, `unit`, `cgroup`, `pid`, `port`, `command`, `agent`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct WatchFile {
    /// Its name in reports; the host's own when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
    /// All processes of this name, such as `janus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    /// Those of a systemd unit, such as `nginx.service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Those of a control group, such as `/system.slice/janus.service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<String>,
    /// One process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pid: Option<u32>,
    /// Who listens on this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    port: Option<u16>,
    /// A command that the watcher starts, and ends with the run: program and arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    command: Vec<String>,
    /// The agent on the server's host: `tls://HOST:PORT`, on loopback also `tcp://`. What is read there was said when
    /// it was started, so that `every`, `logs`, `access_log` and `metrics` do not go with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(tls|tcp)://.+:\d+/?$"))]
    agent: Option<String>,
    /// The agent's token: `env:NAME`, `file:PATH`, or the token itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// SHA-256 of the agent's certificate, as it prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// From one reading to the next, 100 ms to 60 s; 1 s when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// The knowledge pack, such as `janus`; chosen by the processes when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pack: Option<String>,
}

/// When stacks are sampled.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ProfileFile {
    /// A moment by its name.
    Named(MomentFile),
    /// A moment and how long.
    Table(ProfileTable),
}

/// A moment of a run.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MomentFile {
    /// Before the first join.
    Baseline,
    /// When everybody has joined.
    Full,
    /// When an objective is missed for the first time.
    Fail,
}

/// A moment and how long.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ProfileTable {
    /// `baseline`, `full`, `fail`, or a time after the first intended join, such as `30s`.
    at: String,
    /// How long, 1 s to 5 min; 10 s when left out, 3 s for `baseline`.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
}

impl StreamFile {
    fn is_empty(&self) -> bool {
        self.video.is_none() && self.audio.is_none() && self.fps.is_none()
    }
}

/// Participants whose received video is handed to another process and decoded.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TapFile {
    /// How many of those who join first, or a list of participants by the order of joins, from 0.
    participants: TappedFile,
    /// Decode while the run goes on; with `false` nobody is started, and `throng tap` may attach.
    #[schemars(default = "yes")]
    decode: bool,
    /// Keep the coded streams in the run folder.
    #[schemars(default)]
    keep: bool,
    /// Compare decoded pictures of the test card with those of its source.
    #[schemars(default)]
    ssim: bool,
}

fn yes() -> bool {
    true
}

/// Headless browsers that join among the crowd.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CanaryFile {
    /// How many.
    #[schemars(range(min = 1, max = 16))]
    browsers: u16,
    /// When the first joins, since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Duration>,
    /// How long after each the next one joins; 1 s when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<Duration>,
    /// The browser's program; the first known one in `PATH` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    browser: Option<String>,
}

/// Which participants are tapped.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum TappedFile {
    /// So many that join first.
    First(#[schemars(range(min = 1, max = 1_000))] u32),
    /// These.
    These(#[schemars(length(min = 1, max = 1_000))] Vec<u32>),
}

/// Where results go.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct OutputFile {
    /// The run folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// Also write CSV tables.
    #[schemars(default)]
    csv: bool,
}

/// Limits; for targets that are not loopback 500 users, 20 joins/s, 1000 Mbit/s and 60 minutes when left out.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CapsFile {
    /// Participants at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    users: Option<u32>,
    /// Joins within any second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    joins_per_s: Option<f64>,
    /// Mbit/s sent and received together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    mbit_per_s: Option<f64>,
    /// Length of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
}

impl CapsFile {
    fn is_empty(&self) -> bool {
        self.users.is_none()
            && self.joins_per_s.is_none()
            && self.mbit_per_s.is_none()
            && self.duration.is_none()
    }
}

/// The JSON Schema (draft 2020-12) of the scenario file, for editors that know TOML.
#[must_use]
pub fn json_schema() -> Schema {
    schema_for!(File)
}
