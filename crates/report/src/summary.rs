//! The shape of `summary.json`: stable keys, versioned. Absent figures are `null`, never 0.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use throng_analysis::bottleneck::{Bottleneck, OtherProcessesCpu};
use throng_analysis::demand::{ChatCost, Demand, JoinCost};
use throng_analysis::reasons::Reason;
use throng_observation::{CaptureBasis, ClockDisagreement};

use crate::canary::CanarySummary;
use crate::chat::Chat;
use crate::conference::Conference;
use crate::decoded::Decoded;
use crate::media_sums::MediaSums;
use crate::playback::Playback;
use crate::sent::{LayerSwitches, Sent};
use crate::server::WatchedHost;
use crate::survival::TimeTo;
use crate::workers::WorkerHealth;

/// The version of `summary.json`'s shape, and the newest that is read. Keys are only ever added
/// within a version; those that have another name in an earlier one have it as an alias.
pub const SUMMARY_VERSION: u32 = 2;

/// What was read has the shape of this version, whatever version it was written by.
fn read_version<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        newer if newer > SUMMARY_VERSION => Err(D::Error::custom(format!(
            "version {newer}, this throng reads up to {SUMMARY_VERSION}"
        ))),
        _ => Ok(SUMMARY_VERSION),
    }
}

/// The results of a run. Media figures leave the warm-up out; participants, failures and joins
/// cover the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Version of this shape, see `SUMMARY_VERSION`.
    #[serde(deserialize_with = "read_version")]
    pub summary_version: u32,
    /// The outcome of the run.
    pub outcome: RunOutcome,
    /// The answer in one sentence.
    pub headline: String,
    /// Of a search that found a limit: the number, the cause and what to change, as one tells it to
    /// a colleague.
    #[serde(default)]
    pub answer: Option<String>,
    /// Whether the run is incomplete: it is in progress, it was ended early, its process died, or
    /// rows of it were lost.
    pub partial: bool,
    /// What is incomplete, in words; empty when nothing is.
    pub partial_reasons: Vec<String>,
    /// Whether the run was in progress when this was made.
    #[serde(default)]
    pub in_progress: bool,
    /// How the run ended: `complete`, `interrupted`, `aborted` or `unfinished` (no ending was
    /// written).
    pub ending: String,
    /// The target's URL, without secrets.
    pub target: String,
    /// Wall clock of the first intended join, microseconds since the Unix epoch.
    pub started_at_unix_us: i64,
    /// How long the run lasted, seconds from its first intended join.
    pub duration_s: f64,
    /// The planned duration, seconds.
    pub planned_duration_s: f64,
    /// Seconds at the start that media figures and their objectives leave out.
    pub warm_up_s: f64,
    /// The crowd.
    pub participants: Participants,
    /// Video, over all tracks.
    pub video: Media,
    /// Audio, over all tracks.
    pub audio: Media,
    /// Median time from the intended join to the transport being up (DTLS done), milliseconds, over
    /// all intended participants: those that never connected count as infinitely late, so `null`
    /// when half of them did not.
    pub connect_ms_p50: Option<f64>,
    /// 99th percentile of the same; `null` when more than 1 % never connected.
    pub connect_ms_p99: Option<f64>,
    /// Intended join to transport up, in full.
    pub connect: TimeTo,
    /// Intended join to the first decodable frame (first packet, for audio only), in full.
    pub first_frame: TimeTo,
    /// Players: startup, stalls, delivery and buffers; `null` where nobody plays from a buffer.
    #[serde(default)]
    pub playback: Option<Playback>,
    /// The chat: deliveries, frames, joins; `null` where nobody is in one.
    #[serde(default)]
    pub chat: Option<Chat>,
    /// The time to the first frame split: each phase's share, in the order of a join.
    pub phases: Vec<PhaseTime>,
    /// Bits per second on the wire (RTP, SRTP tag, UDP and IP headers; of players: bodies of
    /// responses; of a chat: frames), mean from the first second with a receiver to the end of the
    /// run.
    pub received_bps: f64,
    /// The best second of the same.
    pub received_bps_max: f64,
    /// What participants sent; `null` in runs of viewers.
    #[serde(default)]
    pub sent: Option<Sent>,
    /// How fast simulcast layers changed; `null` without requests for a layer.
    #[serde(default)]
    pub layer_switches: Option<LayerSwitches>,
    /// The generator's own health: whether the figures can be trusted.
    pub generator: Generator,
    /// Failed participants by the stable key of the reason.
    pub failures: BTreeMap<String, u64>,
    /// One example of each kind of failure.
    pub failure_examples: Vec<FailureExample>,
    /// Participants whose transport came up, by media path: `host`, `srflx` (through a NAT),
    /// `relay_udp`, `relay_tcp`, `relay_tls`, `rtp_udp`, `rtp_tcp`, `rtp_tls`, `rtmp`, `rtmp_tls`,
    /// `process`, `http1`, `http2`, `http3`. Empty in unfinished runs.
    #[serde(default)]
    pub media_paths: BTreeMap<String, u64>,
    /// Participants by the server's address that they used, where its name has several; one that
    /// left an address counts at both. Empty in unfinished runs.
    #[serde(default)]
    pub addresses: BTreeMap<String, u64>,
    /// Counts of events by stable key: `refused_ice_candidate`, `refused_redirect`, `refused_send`,
    /// `unreachable_send`, `protocol_anomaly_rtcp`, `leave_unanswered`, `abort`, `host_drops`,
    /// `host_buffers_full`, `burst_drops`, `ring_burst_drops`, `protocol_anomaly_sender_clock`,
    /// `generator_memory`, …
    pub events: BTreeMap<String, u64>,
    /// The watched hosts, in the order of the scenario; empty when nothing was watched.
    #[serde(default)]
    pub hosts: Vec<WatchedHost>,
    /// The capacity of the server; `null` for a run that did not search.
    #[serde(default)]
    pub capacity: Option<CapacitySummary>,
    /// Tapped tracks as decoded; empty without a tap.
    #[serde(default)]
    pub decoded: Vec<Decoded>,
    /// Real browsers compared with the virtual participants; `null` without browsers.
    #[serde(default)]
    pub canary: Option<CanarySummary>,
    /// What stopped the server; `null` when no load failed. Plain runs are explained from their
    /// seconds, searches from the loads that they held.
    #[serde(default)]
    pub bottleneck: Option<Bottleneck>,
    /// Demand of a user on each resource of the watched hosts, the first to be exhausted first;
    /// empty where nothing was watched, or fewer than three loads passed.
    #[serde(default)]
    pub demand: Vec<Demand>,
    /// CPU time of a join on the server; `null` where it could not be estimated.
    #[serde(default)]
    pub join_cost: Option<JoinCost>,
    /// CPU time of a join of a chat and of each delivery, of the thread that works for it; `null`
    /// where it could not be told.
    #[serde(default)]
    pub chat_cost: Option<ChatCost>,
    /// CPU time of other processes on the server's host during the loads that decide the answer;
    /// `null` where it was little, or did no harm.
    #[serde(default)]
    pub other_processes_cpu: Option<OtherProcessesCpu>,
    /// The streams between the participants of a conference; `null` where no participant sent.
    #[serde(default)]
    pub conference: Option<Conference>,
    /// Every objective with its measured value; empty for a search, whose objectives define a bad
    /// second.
    pub objectives: Vec<ObjectiveResult>,
    /// The error of one-way delays.
    pub clock_error: ClockSummary,
    /// Warnings from before the run began, and what is so without load.
    pub warnings: Vec<String>,
    /// The throng that ran.
    pub throng_version: String,
    /// The format of the run's rows.
    pub run_format: u32,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Every objective was met (or none was set, and media played).
    Met,
    /// At least one objective was missed, or could not be measured.
    Missed,
    /// Real browsers among the crowd measured otherwise than it did (`canary`): its figures are not
    /// reliable.
    Disputed,
    /// No verdict: the generator was the limit, the run is partial, or a search could not decide
    /// (`capacity.verdict` says which).
    Invalid,
    /// There is nothing to judge: no participant was to join, none connected, or a guard ended the
    /// run.
    Error,
}

/// The capacity of the server, by a search (`throng find`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacitySummary {
    /// The largest crowd that was served well, by one model of all loads that were held
    /// (docs/find.md). `null` if none was.
    pub users: Option<u32>,
    /// The smallest crowd that was not, by the same model: always larger. `null` if none failed.
    pub first_failing: Option<u32>,
    /// The result of each repeat of the search.
    pub repeats: Vec<u32>,
    /// The goal that was searched: `acceptable`.
    pub goal: String,
    /// `found`, `at_least` (no load that was tried fails), `not_sustained` (the soak failed),
    /// `never_passes`, `undecidable` (this host is too noisy) or `invalid` (the generator was the
    /// limit).
    pub verdict: String,
    /// The answer in a sentence, with the load that failed.
    pub statement: String,
    /// Where a value of the scenario was varied: all that were tried, such as
    /// `crowd.publish.video = 360p`. `users`, `first_failing`, `repeats` and `goals` are then
    /// places in this list, from 1. Empty where the crowd's size was.
    pub values: Vec<String>,
    /// Between which loads the limit of each goal lies.
    pub goals: Vec<GoalBracket>,
    /// The longest that the server took to serve a smaller crowd well again after too large a one,
    /// milliseconds.
    pub recovery_ms: Option<u64>,
    /// Seconds that were judged.
    pub judged_s: u32,
    /// A crowd below the limit that was held for long; `null` where none was.
    pub soak: Option<SoakSummary>,
    /// What `users` and `first_failing` count: `viewers`, `participants`.
    #[serde(default)]
    pub noun: String,
    /// Why the number is not certain: clauses about the statement. Empty when it is certain.
    pub caveats: Vec<String>,
    /// Further notes.
    pub notes: Vec<String>,
}

/// A crowd below the limit that was held for long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoakSummary {
    /// How many users.
    pub users: u32,
    /// Whether it was served well to the end; `null` where the search ended before.
    pub sustained: Option<bool>,
    /// Seconds that were judged.
    pub seconds: u32,
    /// Seconds of them that were bad.
    pub bad_seconds: u32,
    /// How many seconds were judged before the first bad one; `null` where none was bad.
    pub broke_after_s: Option<f64>,
    /// Which clauses made its seconds bad, the most frequent first.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// Between which loads a goal's limit lies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalBracket {
    /// `clean`, `acceptable` or `broken`.
    pub goal: String,
    /// The share of users that may have a bad second.
    pub bad_users_ratio_max: f64,
    /// The largest crowd that kept it.
    pub passing: Option<u32>,
    /// The smallest that did not.
    pub failing: Option<u32>,
    /// Both in words, with the loads whose holds disagree and one that was not decided. `null`
    /// where nothing is known.
    #[serde(default)]
    pub statement: Option<String>,
    /// Which clauses made the seconds of `failing` bad for this goal, the most frequent first;
    /// empty where none failed.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// The crowd, over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Participants {
    /// Participants whose intended join lies within the run.
    pub intended: u64,
    /// Of those, publishers (such as WHIP), which only send.
    #[serde(default)]
    pub publishers: u64,
    /// Of those, participants whose transport was up at any time.
    pub connected: u64,
    /// Of those, participants that received media at any time.
    pub playing: u64,
    /// Of those, viewers that did not fail, got packets of video for as long as a join may take by
    /// the objectives (3 s by default), and never had a frame that can be decoded.
    #[serde(default)]
    pub without_frame: u64,
    /// Of those, participants that failed at any time.
    pub failed: u64,
    /// The most that played within one second.
    pub playing_max: u64,
    /// The most that were connected at once: in a search, which has many more joins, the largest
    /// crowd.
    #[serde(default)]
    pub connected_max: u64,
}

/// The received tracks of one kind, warm-up left out. Percentiles are of all samples of all tracks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Media {
    /// Tracks seen over the whole run.
    pub tracks: u64,
    /// Their codecs.
    pub codecs: Vec<String>,
    /// Of these, expected (negotiated) tracks of which no packet arrived.
    #[serde(default)]
    pub tracks_missing: u64,
    /// Time in which an expected track received nothing ÷ active time; `null` when none was active.
    #[serde(default)]
    pub missing_ratio: Option<f64>,
    /// Packets lost for good ÷ packets expected (RFC 3550 A.3); time in which an expected track
    /// received nothing counts as lost.
    pub loss_ratio: Option<f64>,
    /// 95th percentile of the loss ratio of a track in a second.
    pub loss_ratio_p95: Option<f64>,
    /// Median of decodable frames per second, over track-seconds; `null` for audio.
    pub fps_p50: Option<f64>,
    /// 5th percentile of the same: in one track-second of twenty it was lower.
    pub fps_p5: Option<f64>,
    /// 1st percentile of the same.
    #[serde(default)]
    pub fps_p1: Option<f64>,
    /// Frames per second by the source's timestamps.
    pub source_fps: Option<f64>,
    /// Share of track-seconds with at least 0.9 of the source's frame rate.
    pub fps_good_ratio: Option<f64>,
    /// Relative delay above each track's own floor: median, milliseconds.
    pub delay_ms_p50: Option<f64>,
    /// 95th percentile.
    pub delay_ms_p95: Option<f64>,
    /// 99th percentile.
    pub delay_ms_p99: Option<f64>,
    /// Largest.
    pub delay_ms_max: Option<f64>,
    /// Absolute one-way delay where frames carried a capture time: median, milliseconds; see
    /// `one_way_delay_basis` and `clock_error`. `null` also when it lies among frames that seem to
    /// arrive before their capture.
    pub one_way_delay_ms_p50: Option<f64>,
    /// 95th percentile.
    pub one_way_delay_ms_p95: Option<f64>,
    /// 99th percentile.
    pub one_way_delay_ms_p99: Option<f64>,
    /// Where the capture times come from: `mark` (in the media), `abs_capture_time`, or
    /// `sender_report` (RTCP SR: the server's own clock, so its egress and not the source).
    pub one_way_delay_basis: Option<String>,
    /// Share of frames that seem to arrive before their capture: the clocks disagree. Where
    /// `clock_ahead_ms_p95` is within `clock_error`, that is all there is to it.
    pub clock_disagrees_ratio: Option<f64>,
    /// How much too early those frames are: 95th percentile, milliseconds; `null` without any, and
    /// in runs of earlier versions.
    pub clock_ahead_ms_p95: Option<f64>,
    /// RFC 3550 interarrival jitter of tracks at the ends of seconds: median, milliseconds.
    pub jitter_ms_p50: Option<f64>,
    /// 95th percentile.
    pub jitter_ms_p95: Option<f64>,
    /// 99th percentile.
    pub jitter_ms_p99: Option<f64>,
    /// Time frozen ÷ time played (W3C freezes).
    pub freeze_ratio: Option<f64>,
    /// Freezes begun.
    pub freeze_count: u64,
    /// Bits per second on the wire, mean from the first second with such a track to the end of the
    /// run.
    pub received_bps: f64,
    /// Bits per second of payload of one track, mean over the time tracks were active.
    pub track_bps: Option<f64>,
    /// Counts of packets, bytes, messages and frames.
    #[serde(flatten)]
    pub sums: MediaSums,
    /// For comparison with OvenRtcTester only: the median of its "delay", which is drift since the
    /// first packet.
    pub oven_rtc_tester_delay_ms_p50: Option<f64>,
    /// The largest of the same.
    pub oven_rtc_tester_delay_ms_max: Option<f64>,
}

/// One phase of a join: its duration from the previous phase, over the participants that reached
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTime {
    /// The phase's stable key, e.g. `dtls_connected`. `started` is the generator's own lateness.
    pub phase: String,
    /// Participants that reached it.
    pub reached: u64,
    /// Median time from the phase before it, milliseconds.
    pub ms_p50: f64,
    /// 95th percentile.
    pub ms_p95: f64,
}

/// The generator's own health.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Whether the generator was the limit; the run is then invalid.
    pub limited: bool,
    /// Why, in sentences.
    pub reasons: Vec<String>,
    /// CPU of the process ÷ participant-seconds with a participant connected, milliseconds per
    /// second.
    pub cpu_ms_per_participant_s: Option<f64>,
    /// Largest resident memory without that of receive rings ÷ the most participants connected at
    /// once, bytes.
    pub rss_bytes_per_participant: Option<f64>,
    /// Largest resident memory, bytes.
    pub rss_bytes_max: Option<u64>,
    /// Threads.
    pub threads: u64,
    /// The busiest thread-second: CPU ÷ one core.
    pub thread_cpu_ratio_max: Option<f64>,
    /// The worst second's 99th percentile of lateness of a thread's loop, milliseconds.
    pub lag_ms_p99_max: Option<f64>,
    /// Datagrams dropped at full receive buffers of the generator's sockets, and those for which
    /// its receive rings had no room.
    pub socket_drops: u64,
    /// Datagrams that were received from memory-mapped rings; the others came by sockets.
    #[serde(default)]
    pub ring_datagrams: u64,
    /// Largest memory of those rings, bytes; the resident memory has it, too.
    #[serde(default)]
    pub ring_bytes_max: u64,
    /// What happened to the way in which datagrams are received: rings that were opened, and why
    /// sockets were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receive: Vec<String>,
    /// Datagrams that the kernel refused to send for lack of buffers.
    pub send_drops: u64,
    /// Observations dropped because the collector's queue was full.
    pub observations_dropped: u64,
    /// Rows that could not be stored.
    pub rows_lost: u64,
    /// The worst second's share of CPU steal (time taken by the hypervisor).
    pub steal_ratio_max: Option<f64>,
    /// The workers of a fleet, by number; empty where one machine played the crowd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerHealth>,
}

/// One example of a kind of failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureExample {
    /// The reason's stable key.
    pub reason: String,
    /// How many failed so.
    pub count: u64,
    /// The participant of the example.
    pub participant: u32,
    /// What exactly happened.
    pub detail: String,
}

/// An objective and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveResult {
    /// The objective as written, e.g. `video.loss p95 < 1%`.
    pub text: String,
    /// The measured value, in the objective's unit (milliseconds, ratio, frames per second, count);
    /// `null` when there is no such figure, or when it is infinite (a percentile that lies among
    /// failures).
    pub measured: Option<f64>,
    /// The same as text, with its unit.
    pub measured_text: String,
    /// `met`, `missed` or `not_measured` (nothing to judge it by, so not met).
    pub result: String,
    /// Whether it was met.
    pub met: bool,
}

impl ObjectiveResult {
    /// Whether a figure was measured and does not hold.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        self.result == "missed"
    }
}

/// The error of one-way delays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockSummary {
    /// Bound, milliseconds; `null` when the sender's clock is unknown.
    pub bound_ms: Option<f64>,
    /// The reason for the bound.
    pub basis: String,
}

/// The basis of the one-way delay of `media`.
pub(crate) fn one_way_basis(media: &Media) -> Option<CaptureBasis> {
    media.one_way_delay_basis.as_deref().and_then(CaptureBasis::from_key)
}

/// How far the clocks of `media` disagree; `None` where their known error explains it.
pub(crate) fn clock_disagreement(media: &Media, clock: &ClockSummary) -> Option<ClockDisagreement> {
    let ratio = media.clock_disagrees_ratio.filter(|ratio| *ratio > 0.0)?;
    ClockDisagreement { ratio, ahead_ms_p95: media.clock_ahead_ms_p95 }.beyond(clock.bound_ms)
}

impl PhaseTime {
    /// The phase in tables.
    pub(crate) fn name(&self) -> String {
        match self.phase.as_str() {
            "started" => "the generator's lateness".to_owned(),
            name => name.replace('_', " "),
        }
    }
}

impl RunOutcome {
    /// Its stable key, as in `summary.json`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Disputed => "disputed",
            Self::Invalid => "invalid",
            Self::Error => "error",
        }
    }
}

impl Summary {
    /// Whether what it measured counts: an objective that is met by other figures passes nothing.
    pub(crate) fn is_valid(&self) -> bool {
        let has_verdict = matches!(self.outcome, RunOutcome::Met | RunOutcome::Missed);
        has_verdict && !self.partial
    }

    /// Whether media came as packets: not in a run of players alone, which fetch it by HTTP.
    pub(crate) fn has_packets(&self) -> bool {
        self.playback.is_none() && !self.is_chat_only()
            || self.media().iter().any(|(_, media)| media.sums.packets_original > 0)
    }

    /// Whether its participants were in a chat, and in nothing else.
    pub(crate) fn is_chat_only(&self) -> bool {
        let has_media = self
            .media()
            .iter()
            .any(|(_, media)| media.tracks > 0 || media.sums.packets_original > 0);
        self.chat.is_some() && self.playback.is_none() && self.sent.is_none() && !has_media
    }

    /// Received media by kind.
    pub(crate) fn media(&self) -> [(&'static str, &Media); 2] {
        [("video", &self.video), ("audio", &self.audio)]
    }

    /// `summary.json`: indented JSON with a newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        crate::to_json(self)
    }
}

/// The JSON Schema of `summary.json` (draft 2020-12), as kept in `docs/summary.schema.json`.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(Summary).to_value()
}
