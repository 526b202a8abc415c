//! The schema of the scenario file: types for the JSON Schema and for writing TOML.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

mod conference;
mod streams;
pub(crate) mod template;
mod watch;
mod written;

use conference::ScriptStepFile;
use streams::StreamsFile;
use watch::WatchFile;

use crate::canary::Canary;
use crate::chat::ChatConfig;
use crate::churn::Reconnect;
use crate::conversation::Conversation;
use crate::keys::{NameOf, SEED_MAX, Table};
use crate::player::PlayerConfig;
use crate::room::RoomConfig;
use crate::run::{Caps, OutputConfig, RunTimes, Stream};
use crate::tap::Tap;
use crate::target::{IceTransportPolicy, RtspTransport};

/// A throng scenario: the server under load, the crowd, the run and its objectives.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "throng scenario", deny_unknown_fields)]
struct File {
    /// Objectives of the run: `metric [quantile] < threshold`, such as `video.loss p95 < 1%`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    objectives: Vec<String>,
    target: TargetFile,
    crowd: OneOrMany<CohortFile>,
    #[schemars(default)]
    run: Table<RunTimes>,
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    stream: Table<Stream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<Table<Conversation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<Table<RoomConfig>>,
    /// Processes that are monitored during the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<WatchFile>")]
    watch: Vec<WatchFile>,
    /// Participants whose received video is decoded, to validate the quality metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    tap: Option<Table<Tap>>,
    /// Real browsers that join with the crowd, to validate the metrics of the virtual participants.
    #[serde(skip_serializing_if = "Option::is_none")]
    canary: Option<Table<Canary>>,
    #[schemars(default)]
    output: Table<OutputConfig>,
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    caps: Table<Caps>,
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
    /// `…/videoroom/ID`, `livekit+ws(s)://HOST:7880/ROOM`, `whep+http(s)://…`, `whip+http(s)://…`,
    /// `rtsp(s)://…`, `publish+rtsp(s)://…`, `publish+rtmp(s)://HOST/APP/KEY`,
    /// `publish+srt://HOST:PORT`, `http(s)://…` (a video file, an HLS playlist or a DASH manifest),
    /// `xmpp+ws(s)://HOST/PATH?room=ROOM@SERVICE` (a chat), `chat+ws(s)://HOST/PATH` and
    /// `chat+http(s)://HOST/PATH` (a chat with a template). In path and query `{n}`, `{stream}`,
    /// `{room}`, `{cohort}` and `{random}` are variables of the participant.
    #[schemars(regex(
        pattern = concat!(
            r"^(([Jj][Aa][Nn][Uu][Ss]\+|[Ll][Ii][Vv][Ee][Kk][Ii][Tt]\+|",
            r"[Xx][Mm][Pp][Pp]\+|[Cc][Hh][Aa][Tt]\+)?[Ww][Ss][Ss]?|",
            r"[Ww][Hh][EeIi][Pp]\+[Hh][Tt][Tt][Pp][Ss]?|",
            r"([Pp][Uu][Bb][Ll][Ii][Ss][Hh]\+)?[Rr][Tt][Ss][Pp][Ss]?|",
            r"[Pp][Uu][Bb][Ll][Ii][Ss][Hh]\+([Rr][Tt][Mm][Pp][Ss]?|[Ss][Rr][Tt])|",
            r"([Pp][Ee][Ee][Rr][Tt][Uu][Bb][Ee]\+|[Cc][Hh][Aa][Tt]\+)?[Hh][Tt][Tt][Pp][Ss]?)://",
        )
    ))]
    url: String,
    /// `env:NAME`, `file:PATH`, or the token itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// LiveKit's API key, with which throng makes a token for each participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    /// Its secret: `env:NAME`, `file:PATH`, or the secret itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_secret: Option<String>,
    /// LiveKit's room, for WHIP only: its URL does not contain one.
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<String>,
    /// Number of rooms, that of the URL included, each with the whole crowd; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    rooms: Option<u32>,
    /// Private networks that throng may send to, such as `10.0.0.0/8`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    allow: Vec<String>,
    /// Accept any TLS certificate.
    #[schemars(default)]
    tls_insecure: bool,
    /// ICE candidates for media: `all`, or `relay` for the relay (TURN) alone that the server
    /// announces; default `all`, or `relay` if the URL requests it of OvenMediaEngine
    /// (`?transport=tcp`).
    #[serde(skip_serializing_if = "Option::is_none")]
    ice_transport_policy: Option<NameOf<IceTransportPolicy>>,
    /// A STUN server, `stun:HOST` or `stun:HOST:PORT`, from which each participant learns its
    /// address outside a NAT; HOST is an IP address, or the host name of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[Ss][Tt][Uu][Nn]:"))]
    stun: Option<String>,
    /// A TURN server, `turn:HOST`, `turn:HOST:PORT?transport=tcp` or `turns:HOST:PORT`, that each
    /// participant uses instead of those that the server announces; HOST is an address, or the host
    /// name of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[Tt][Uu][Rr][Nn][Ss]?:"))]
    turn: Option<String>,
    /// Its user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_username: Option<String>,
    /// Its password: `env:NAME`, `file:PATH`, or the password itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_password: Option<String>,
    /// The transport of RTP on an RTSP target: `udp`, `tcp` (interleaved), or `auto` for UDP, and
    /// TCP where the server refuses it; default `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtsp_transport: Option<NameOf<RtspTransport>>,
}

/// Participants with the same configuration, which arrive together.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CohortFile {
    /// Its name in reports.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
    /// Number of participants per room.
    #[schemars(range(min = 1, max = 1_000_000))]
    size: u32,
    /// The schedule of their joins; default `{ every = "100ms" }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<ArrivalFile>,
    /// When their arrivals begin, since the start of the run; default: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_at: Option<Duration>,
    /// How long each participant stays; default: until the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    stay: Option<StayFile>,
    /// Local addresses or ranges, assigned round robin, such as `127.0.0.2-127.0.0.20`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    source_ips: Vec<String>,
    /// Their own URL, on the same host and port as `target.url`; publishers by RTMP or SRT may have
    /// another port.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The streams that they are distributed over, for `{stream}` in the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<StreamsFile>,
    /// Media that participants of a conference send: `"none"` or a table; default: 240p video and
    /// audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    publish: Option<PublishFile>,
    /// Participants that they receive: `"all"`, `"none"` or a table; default `"all"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscribe: Option<SubscribeFile>,
    /// One peer connection for each participant that is received.
    #[schemars(default)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    connection_per_feed: bool,
    /// The simulcast layers that they request, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<LayersFile>,
    /// How often they speak in a `[conversation]`, relative to participants of weight 1; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1000))]
    speaking_weight: Option<u32>,
    /// How they play HTTP video.
    #[serde(skip_serializing_if = "Option::is_none")]
    player: Option<Table<PlayerConfig>>,
    /// What they do in a chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    chat: Option<Table<ChatConfig>>,
    /// Timed actions of the whole cohort.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<ScriptStepFile>")]
    script: Vec<ScriptStepFile>,
    /// The whole cohort leaves and joins again.
    #[serde(skip_serializing_if = "Option::is_none")]
    reconnect: Option<Table<Reconnect>>,
}

/// A layer, or a list of layers with times.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum LayersFile {
    /// From the join on.
    Word(Layer),
    /// In order of time.
    Script(#[schemars(length(min = 1, max = 100))] Vec<LayerStep>),
}

/// A simulcast layer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Layer {
    /// No video.
    Off,
    /// The smallest.
    Low,
    /// The middle one, or the larger of two.
    Medium,
    /// The largest.
    High,
}

/// A request for a layer.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LayerStep {
    /// Time after the join; default: at the join.
    after: Option<Duration>,
    /// The layer.
    layer: Layer,
}

/// Media that a participant of a conference sends.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum PublishFile {
    /// Nothing.
    Word(Nothing),
    /// Video, audio, or both.
    Table(PublishTable),
}

/// `none`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Nothing {
    /// Nothing.
    None,
}

/// Video, audio, or both.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PublishTable {
    /// A size of the test card, such as `240p`, or a file that is played in a loop (Annex-B, IVF,
    /// `.mjr`, `.pcap`); default: no video.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(144p|180p|240p|360p|720p|1080p|.*\..+)$"))]
    video: Option<String>,
    /// Two or three sizes sent at once, in place of `video`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        default,
        length(min = 2, max = 3),
        inner(regex(pattern = r"^(144p|180p|240p|360p|720p|1080p)$"))
    )]
    simulcast: Vec<String>,
    /// `vp8` or `h264` for the test card; the codec of a byte stream or a capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(vp8|h264|h265|vp9|av1|opus)$"))]
    codec: Option<String>,
    /// Frame rate of a byte stream; default 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.1, max = 1000.0))]
    fps: Option<f64>,
    /// SSRC of the video in a capture; default: the largest stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    ssrc: Option<u32>,
    /// Speech-like audio (`true`), or a file (Ogg/Opus, `.mjr`, `.pcap`); default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioFile>,
    /// SSRC of the audio in a capture; default: the largest stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_ssrc: Option<u32>,
    /// Sends smaller sizes of the test card, or fewer simulcast layers, when the server or the
    /// network allows less; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    adapt: Option<bool>,
    /// Publishers by RTMP and SRT: FFmpeg encodes the picture again, with a clock (UTC) in it;
    /// default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    burn_clock: Option<bool>,
}

/// Audio.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum AudioFile {
    /// Speech-like audio, or none.
    Speech(bool),
    /// A file.
    File(String),
}

/// Participants that one receives in a conference.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum SubscribeFile {
    /// The same for video and audio.
    Word(Whom),
    /// Video and audio separately.
    Table(SubscribeTable),
}

/// `all`, `none`, or the last N speakers, such as `last_speakers(10)`.
#[derive(Serialize, JsonSchema)]
struct Whom(#[schemars(regex(pattern = r"^(all|none|last_speakers\(\s*[1-9]\d*\s*\))$"))] String);

/// Policies for video and audio.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SubscribeTable {
    /// Whose video is received.
    video: Option<Whom>,
    /// Whose audio is received.
    audio: Option<Whom>,
}

/// The schedule of joins: exactly one kind.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ArrivalFile {
    /// At a regular interval.
    Every(EveryFile),
    /// Evenly spaced over a time.
    Ramp(RampFile),
    /// Groups that join at once.
    Burst(BurstsFile),
    /// A Poisson process.
    Poisson(PoissonArrivalFile),
}

/// Joins at a regular interval.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct EveryFile {
    /// Interval between joins, such as `100ms`.
    every: Duration,
    /// Each join comes later, by up to the interval, so that the joins meet all phases of what the
    /// server repeats.
    #[schemars(default = "yes")]
    jitter: bool,
    /// The same seed gives the same jitter; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
}

/// All joins evenly spaced over a time.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RampFile {
    /// The time until the crowd is complete, such as `60s`.
    ramp: Duration,
    /// Each join comes later, by up to the time between two of them.
    #[schemars(default = "yes")]
    jitter: bool,
    /// The same seed gives the same jitter; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
}

/// Groups that join at once.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct BurstsFile {
    /// Size and interval of the groups.
    burst: BurstFile,
}

/// A Poisson process.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PoissonArrivalFile {
    /// Rate and seed.
    poisson: PoissonFile,
}

/// A duration: `100ms`, `1.5s`, `2m`, `1h30m`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Duration(
    #[schemars(regex(pattern = r"^\s*(\d+(\.\d*)?\s*(ns|us|µs|ms|s|m|min|h)\s*)+$"))] String,
);

/// A bit rate: `256kbit/s`, `1.5Mbit/s`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BitRate(
    #[schemars(regex(pattern = r"^\s*\d+(\.\d*)?\s*[kKMG]?(bit/s|bps)\s*$"))] String,
);

/// A rate: `5/s`, `30/min`, `100/h`.
#[derive(Serialize, JsonSchema)]
struct Rate(#[schemars(regex(pattern = r"^\s*\d+(\.\d*)?\s*/(s|m|min|h)\s*$"))] String);

/// Groups of `size` joins, `every` apart.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct BurstFile {
    /// Joins per group.
    #[schemars(range(min = 1, max = 1_000_000))]
    size: u32,
    /// Between groups.
    every: Duration,
}

/// Poisson arrivals.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PoissonFile {
    /// Mean join rate, such as `5/s`.
    rate: Rate,
    /// The same seed gives the same arrivals; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
}

/// The stay of each participant.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum StayFile {
    /// The same for all participants.
    Short(Duration),
    /// With all options.
    Table(StayTable),
}

/// `exactly` or `mean`, and whether participants that leave are replaced.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct StayTable {
    /// The same for all participants.
    #[serde(skip_serializing_if = "Option::is_none")]
    exactly: Option<Duration>,
    /// Exponential with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Duration>,
    /// Seed of the exponential stays; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
    /// A new participant joins when one leaves.
    #[schemars(default)]
    rejoin: bool,
}

fn yes() -> bool {
    true
}

/// The JSON Schema (draft 2020-12) of the scenario file, for editors that support TOML.
#[must_use]
pub fn json_schema() -> Schema {
    schema_for!(File)
}
