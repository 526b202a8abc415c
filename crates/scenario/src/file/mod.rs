//! The schema of the scenario file: types for the JSON Schema and for writing TOML, which leaves
//! out what is `None`.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

mod watch;
mod written;

use watch::WatchFile;
pub(crate) use written::duration;

use crate::canary::Canary;
use crate::conversation::Conversation;
use crate::keys::{NameOf, Table};
use crate::room::RoomConfig;
use crate::run::{Caps, OutputConfig, RunTimes, Stream};
use crate::scenario::Cohort;
use crate::tap::Tap;
use crate::target::{IceTransportPolicy, RtspTransport, target_pattern};

/// A throng scenario: the server under load, the crowd, the run and its objectives.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "throng scenario", deny_unknown_fields)]
struct File {
    /// Objectives of the run: `metric [quantile] < threshold`, such as `video.loss p95 < 1%`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    objectives: Vec<String>,
    target: TargetFile,
    crowd: OneOrMany<Table<Cohort>>,
    #[schemars(default)]
    run: Table<RunTimes>,
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    stream: Table<Stream>,
    conversation: Option<Table<Conversation>>,
    room: Option<Table<RoomConfig>>,
    /// Processes that are monitored during the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<WatchFile>")]
    watch: Vec<WatchFile>,
    /// Participants whose received video is decoded, to validate the quality metrics.
    tap: Option<Table<Tap>>,
    /// Real browsers that join with the crowd, to validate the metrics of the virtual participants.
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
pub(crate) enum OneOrMany<T> {
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
    #[schemars(regex(pattern = target_pattern()))]
    url: String,
    /// `env:NAME`, `file:PATH`, or the token itself.
    token: Option<String>,
    /// LiveKit's API key, with which throng makes a token for each participant.
    api_key: Option<String>,
    /// Its secret: `env:NAME`, `file:PATH`, or the secret itself.
    api_secret: Option<String>,
    /// LiveKit's room, for WHIP only: its URL does not contain one.
    room: Option<String>,
    /// Number of rooms, that of the URL included, each with the whole crowd; default 1.
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
    ice_transport_policy: Option<NameOf<IceTransportPolicy>>,
    /// A STUN server, `stun:HOST` or `stun:HOST:PORT`, from which each participant learns its
    /// address outside a NAT; HOST is an IP address, or the host name of `url`.
    #[schemars(regex(pattern = r"^[Ss][Tt][Uu][Nn]:"))]
    stun: Option<String>,
    /// A TURN server, `turn:HOST`, `turn:HOST:PORT?transport=tcp` or `turns:HOST:PORT`, that each
    /// participant uses instead of those that the server announces; HOST is an address, or the host
    /// name of `url`.
    #[schemars(regex(pattern = r"^[Tt][Uu][Rr][Nn][Ss]?:"))]
    turn: Option<String>,
    /// Its user name.
    turn_username: Option<String>,
    /// Its password: `env:NAME`, `file:PATH`, or the password itself.
    turn_password: Option<String>,
    /// The transport of RTP on an RTSP target: `udp`, `tcp` (interleaved), or `auto` for UDP, and
    /// TCP where the server refuses it; default `auto`.
    rtsp_transport: Option<NameOf<RtspTransport>>,
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

/// A rate above 0: `5/s`, `30/min`, `100/h`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rate(
    #[schemars(regex(pattern = r"^\s*(0*[1-9]\d*(\.\d*)?|0+\.\d*[1-9]\d*)\s*/(s|m|min|h)\s*$"))]
    String,
);

/// The JSON Schema (draft 2020-12) of the scenario file, for editors that support TOML.
#[must_use]
pub fn json_schema() -> Schema {
    schema_for!(File)
}
