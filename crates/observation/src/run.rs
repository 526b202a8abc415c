//! What a run is made of: the rows that the collector writes, the store keeps and the report reads.
//!
//! A report can always be made again from these rows alone.

use crate::canary::{CanaryData, CanaryRow};
use crate::host::{HostData, HostRow};
use crate::{
    AggregatedTracks, Codec, Distribution, ExperienceRow, FailureReason, HoldRow, IceState, Layer, MediaKind,
    OneWayDelay, Outcome, Phase, RunTime, SentCounters, TrackCounters, TrackId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A participant of the run, numbered from 0 in the order of intended joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParticipantId(pub u32);

impl ParticipantId {
    /// The name by which the others of a conference know this participant.
    #[must_use]
    pub fn name(self) -> String {
        format!("throng-{}", self.0)
    }

    /// The participant of that name; `None` for people who are not ours.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        name.strip_prefix("throng-")?.parse().ok().map(Self)
    }
}

/// A cohort of the scenario, numbered in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CohortId(pub u16);

/// What is known of the run as a whole before it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of the row format; readers refuse what is newer than they are.
    pub format: u32,
    /// The throng that ran, e.g. `0.1.0`.
    pub throng_version: String,
    /// Scenario file as run, overrides applied; TOML.
    pub scenario: String,
    /// The target's URL without secrets (tokens are shown as `…`).
    pub target: String,
    /// Names of the cohorts by [`CohortId`].
    pub cohorts: Vec<String>,
    /// Wall clock of [`RunTime`] 0, microseconds since the Unix epoch.
    pub started_at_unix_us: i64,
    /// How long the scenario meant the run to last, microseconds after RunTime 0.
    pub planned_duration_us: i64,
    /// Where the figures were made: CPU model, cores, kernel, limits; by name.
    pub generator_host: BTreeMap<String, String>,
    /// What the clock error of absolute delays is, and why.
    pub clock: ClockError,
    /// What of the plan the machine will not allow, said before the run began.
    pub warnings: Vec<String>,
}

/// How far an absolute one-way delay may be off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    /// Bound of the error, microseconds; `None` when nothing is known about the sender's clock.
    pub bound_us: Option<u64>,
    /// Why: `same host`, `not known`, …
    pub basis: String,
}

/// How the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// No ending was written: the run is going on, or the process died.
    #[default]
    Unfinished,
    /// It ran to its end.
    Complete,
    /// A person or a signal ended it early.
    Interrupted,
    /// A guard ended it: consent withdrawn, target unreachable, caps.
    Aborted,
}

impl Ending {
    const ALL: [Self; 4] = [Self::Unfinished, Self::Complete, Self::Interrupted, Self::Aborted];

    /// Its stable key in `run.db` and `summary.json`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
        }
    }

    /// The inverse of [`Self::key`].
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.key() == key)
    }
}

/// The crowd at the end of one second, by cohort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrowdRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which cohort.
    pub cohort: CohortId,
    /// Participants whose intended join has come.
    pub intended: u32,
    /// Participants whose join began.
    pub started: u32,
    /// Participants whose transport is up (ICE and DTLS done, or the protocol's equal), now.
    pub connected: u32,
    /// Participants who have received media in this second.
    pub playing: u32,
    /// Participants who failed so far.
    pub failed: u32,
    /// Participants who left in an orderly way so far.
    pub left: u32,
    /// ICE states now, by participants: new, checking, connected, disconnected, failed, closed.
    pub ice: [u32; 6],
}

impl CrowdRow {
    /// The index of `state` in [`Self::ice`].
    #[must_use]
    pub fn ice_index(state: IceState) -> usize {
        match state {
            IceState::New => 0,
            IceState::Checking => 1,
            IceState::Connected => 2,
            IceState::Disconnected => 3,
            IceState::Failed => 4,
            IceState::Closed => 5,
        }
    }
}

/// What all tracks of one kind of a cohort did in one second.
#[derive(Clone, Debug, Default)]
pub struct SeriesRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which cohort.
    pub cohort: CohortId,
    /// Audio or video.
    pub kind: Option<MediaKind>,
    /// Distinct tracks that reported in this second.
    pub tracks: u32,
    /// Tracks whose decodable frame rate was below 0.9 of the source's.
    pub tracks_below_source_fps: u32,
    /// Sums over those tracks.
    pub counters: TrackCounters,
    /// Relative delay of frames, microseconds.
    pub relative_delay_us: Distribution,
    /// Absolute one-way delay of frames, microseconds, with its basis; empty where no capture time came.
    pub absolute_delay: OneWayDelay,
    /// Jitter of tracks at the end of the second, microseconds.
    pub jitter_us: Distribution,
    /// Decodable frames per second of each track, in thousandths of a frame per second.
    pub fps_milli: Distribution,
    /// Loss ratio of each track in this second, parts per million.
    pub loss_ppm: Distribution,
    /// OvenRtcTester's "delay" of tracks, microseconds.
    pub oven_rtc_tester_delay_us: Distribution,
    /// Frames per second that the sources' timestamps say (mean over tracks that know), thousandths.
    pub source_fps_milli: Option<u32>,
}

impl SeriesRow {
    /// Adds the samples of another second; the counters stay as they are.
    pub fn add_samples(&mut self, other: &Self) {
        self.relative_delay_us.merge(&other.relative_delay_us);
        self.absolute_delay.merge(&other.absolute_delay);
        self.jitter_us.merge(&other.jitter_us);
        self.fps_milli.merge(&other.fps_milli);
        self.loss_ppm.merge(&other.loss_ppm);
        self.oven_rtc_tester_delay_us.merge(&other.oven_rtc_tester_delay_us);
    }
}

/// What all tracks of one kind that a cohort sends did in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which cohort.
    pub cohort: CohortId,
    /// Audio or video.
    pub kind: MediaKind,
    /// Distinct tracks that reported in this second.
    pub tracks: u32,
    /// Sums over those tracks.
    pub counters: SentCounters,
}

/// Another layer of a simulcast was asked for, and shown or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSwitchRow {
    /// Who asked.
    pub participant: ParticipantId,
    /// For which of their tracks.
    pub track: TrackId,
    /// What was asked for.
    pub layer: Layer,
    /// When.
    pub requested_at: RunTime,
    /// When the first decodable frame of that layer was complete; `None` when none came.
    pub shown_at: Option<RunTime>,
    /// Its width and height, pixels; 0 when none came.
    pub width: u16,
    /// See `width`.
    pub height: u16,
}

/// A participant's life and how it ended. Times are absent for phases not reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParticipantRow {
    /// Who.
    pub participant: ParticipantId,
    /// Of which cohort.
    pub cohort: CohortId,
    /// When the plan wanted the join; latencies count from here.
    pub intended_at: RunTime,
    /// When each phase was reached, by [`Phase`].
    pub reached: BTreeMap<Phase, RunTime>,
    /// When it ended; `None` while it lives.
    pub ended_at: Option<RunTime>,
    /// How it ended; `None` while it lives.
    pub outcome: Option<Outcome>,
    /// The local address its media used, if any.
    pub local_address: Option<String>,
}

impl ParticipantRow {
    /// Milliseconds from the intended join to `phase`.
    #[must_use]
    pub fn ms_to(&self, phase: Phase) -> Option<f64> {
        self.reached.get(&phase).map(|at| at.millis_since(self.intended_at))
    }

    /// Why it failed, if it did. Whom the end met while joining did not: see [`Self::was_censored`].
    #[must_use]
    pub fn failure(&self) -> Option<&FailureReason> {
        match &self.outcome {
            Some(Outcome::Failed(failure)) if failure.reason != FailureReason::NotStarted => {
                Some(&failure.reason)
            }
            _ => None,
        }
    }

    /// Whether the run's end, or its own time to leave, met it before it had joined: neither failed nor served.
    #[must_use]
    pub fn was_censored(&self) -> bool {
        matches!(&self.outcome, Some(Outcome::Failed(failure)) if failure.reason == FailureReason::NotStarted)
    }
}

/// A participant's track over its whole life.
#[derive(Clone, Debug)]
pub struct TrackRow {
    /// Whose.
    pub participant: ParticipantId,
    /// Which of its tracks.
    pub track: TrackId,
    /// Audio or video.
    pub kind: MediaKind,
    /// What it is coded with.
    pub codec: Codec,
    /// Who sent it last: the name by which a conference knows them.
    pub from: Option<String>,
    /// When its first complete and decodable frame came.
    pub first_frame_at: Option<RunTime>,
    /// Sums over its life.
    pub counters: TrackCounters,
    /// Relative delay of its frames, microseconds.
    pub relative_delay_us: Distribution,
    /// Absolute one-way delay of its frames, microseconds, with its basis.
    pub absolute_delay: OneWayDelay,
    /// Decodable frames per second over the time it was active.
    pub fps: Option<f64>,
    /// Last jitter, microseconds.
    pub jitter_us: Option<u32>,
    /// Last OvenRtcTester "delay", microseconds.
    pub oven_rtc_tester_delay_us: Option<u32>,
}

/// What a decoder made of a tapped track in one second: the truth that the meters estimate.
#[derive(Clone, Debug)]
pub struct DecodedRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Whose.
    pub participant: ParticipantId,
    /// Which of its tracks.
    pub track: TrackId,
    /// What it is coded with.
    pub codec: Codec,
    /// Width of the last picture, pixels; 0 before there was one.
    pub width: u32,
    /// Height of the last picture, pixels.
    pub height: u32,
    /// Coded frames that were given to the decoder.
    pub frames_fed: u64,
    /// Coded frames that the tap itself dropped because the decoder, or the way to it, was too slow.
    pub frames_dropped: u64,
    /// Breaks: places where frames did not arrive whole and the next key frame was waited for.
    pub breaks: u64,
    /// Pictures that came out.
    pub pictures: u64,
    /// Pictures whose number could be read off the test card.
    pub numbers_read: u64,
    /// Of those, how many followed the one before.
    pub numbers_next: u64,
    /// Of those, how many showed the number before once more.
    pub numbers_repeated: u64,
    /// Numbers that were passed over between two pictures.
    pub numbers_skipped: u64,
    /// Freezes, by the rule of the meters, between pictures as they came out.
    pub freeze_count: u64,
    /// Time frozen, microseconds.
    pub freeze_us: u64,
    /// From the last packet of a frame until its picture, microseconds.
    pub decode_delay_us: Distribution,
    /// From capture until the picture, microseconds, with its basis.
    pub glass_delay: OneWayDelay,
    /// Structural similarity with the source's picture, mean over those compared; `None` where none was.
    pub ssim_mean: Option<f64>,
    /// The least similar.
    pub ssim_min: Option<f64>,
    /// Pictures compared.
    pub ssim_pictures: u64,
}

/// The generator's own health in one second, by thread (`None`: the process as a whole).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Thread, numbered from 0; `None` for the whole process.
    pub thread: Option<u16>,
    /// CPU time used in this second, microseconds (user + system).
    pub cpu_us: u64,
    /// Time spent runnable but waiting for a CPU, microseconds (`/proc/self/task/T/schedstat` field 2).
    pub run_queue_wait_us: u64,
    /// 99th percentile of how late the loop came to a deadline, microseconds.
    pub lag_p99_us: u64,
    /// The worst of the same.
    pub lag_max_us: u64,
    /// Datagrams that our own sockets dropped because their receive buffers were full.
    pub socket_drops: u64,
    /// Datagrams that the kernel did not take for want of buffers (`EAGAIN`, `ENOBUFS`, `ENOMEM`).
    pub send_drops: u64,
    /// Bytes of datagrams that were sent, UDP and IP headers included.
    pub sent_bytes: u64,
    /// Resident set size, bytes (process rows).
    pub rss_bytes: u64,
    /// Open file descriptors (process rows).
    pub open_fds: u64,
    /// Steal time of the machine in this second, share of all CPUs (process rows).
    pub steal_ratio: f64,
    /// Observations that the collector had to drop because its queue was full.
    pub observations_dropped: u64,
}

/// Something that happened at a moment and has no series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// When.
    pub at: RunTime,
    /// Whose, if anybody's.
    pub participant: Option<ParticipantId>,
    /// A stable key: `failed`, `refused_ice_candidate`, `protocol_anomaly_rtcp`, `abort`, `generator_limited`, …
    pub kind: String,
    /// How many happenings of this kind the row stands for; more than 1 where there were too many to write each.
    pub count: u32,
    /// A sentence for a person.
    pub detail: String,
}

/// One row on its way from the collector to the store.
#[derive(Clone, Debug)]
pub enum Row {
    /// The crowd of a second.
    Crowd(CrowdRow),
    /// The tracks of a second.
    Series(Box<SeriesRow>),
    /// The tracks that were sent in a second.
    Sent(SentRow),
    /// How participants fared in a second.
    Experience(ExperienceRow),
    /// A step of a search; a later row of the same number replaces it.
    Hold(Box<HoldRow>),
    /// A participant; a later row of the same participant replaces it.
    Participant(Box<ParticipantRow>),
    /// A track; a later row of the same track replaces it.
    Track(Box<TrackRow>),
    /// A change of layers.
    LayerSwitch(LayerSwitchRow),
    /// The generator's health.
    Generator(GeneratorRow),
    /// An event.
    Event(EventRow),
    /// What a browser saw.
    Canary(CanaryRow),
    /// What a watched host did.
    Host(HostRow),
}

/// A whole run as read back from its folder.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// What was known before it started.
    pub info: RunInfo,
    /// How it ended.
    pub ending: Ending,
    /// When it ended, if that was written.
    pub ended_at: Option<RunTime>,
    /// The crowd by second and cohort.
    pub crowd: Vec<CrowdRow>,
    /// Tracks by second, cohort and kind.
    pub series: Vec<SeriesRow>,
    /// Sent tracks by second, cohort and kind.
    pub sent: Vec<SentRow>,
    /// How participants fared by second and cohort.
    pub experience: Vec<ExperienceRow>,
    /// The steps of a search in order; empty for a plain run.
    pub holds: Vec<HoldRow>,
    /// Every participant.
    pub participants: Vec<ParticipantRow>,
    /// Every track but those of [`Self::aggregated`].
    pub tracks: Vec<TrackRow>,
    /// Tracks that are known by what they come to together; none, unless whoever read the run wanted it so.
    pub aggregated: AggregatedTracks,
    /// Changes of layers in the order of their requests.
    pub layer_switches: Vec<LayerSwitchRow>,
    /// The generator's health.
    pub generator: Vec<GeneratorRow>,
    /// Events in order.
    pub events: Vec<EventRow>,
    /// What decoders made of tapped tracks, by second, participant and track; empty when nobody was tapped.
    pub decoded: Vec<DecodedRow>,
    /// What browsers among the crowd saw; empty when there were none.
    pub canary: CanaryData,
    /// What the watched hosts did; empty when nothing was watched.
    pub host: HostData,
    /// Rows that could not be stored (disk full) and are missing from the lists above.
    pub rows_lost: u64,
}
