//! The rows of a run: written by the collector, kept by the store, read by the report.
//!
//! A report can always be made again from these rows alone.

use crate::canary::{CanaryData, CanaryRow};
use crate::fleet::WorkerInfo;
use crate::host::{HostData, HostRow};
use crate::keyed::keyed;
use crate::{
    AggregatedTracks, CaptureBasis, ChatRow, Codec, Detail, Distribution, ExperienceRow,
    FailureReason, HoldRow, HttpRequestRow, HttpRequestTotals, IceState, LatencyVote, Layer,
    MediaKind, OneWayDelay, Outcome, Phase, PlaybackRow, PlayerRow, Players, RunPlan, RunTime,
    SENDER_CLOCK_EVENT, SecondClosed, SentCounters, TrackCounters, TrackId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// A participant of the run, numbered from 0 in the order of intended joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParticipantId(pub u32);

impl ParticipantId {
    /// Its name in a conference.
    #[must_use]
    pub fn name(self) -> String {
        format!("throng-{}", self.0)
    }

    /// The participant of that name; `None` for participants of other programs.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        name.strip_prefix("throng-")?.parse().ok().map(Self)
    }
}

/// A cohort of the scenario, numbered in the order of the file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CohortId(pub u16);

/// The run as a whole, as known before it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of the row format; readers refuse a newer one.
    pub format: u32,
    /// The version of throng, e.g. `0.1.0`.
    pub throng_version: String,
    /// Scenario file as run, overrides applied; TOML.
    pub scenario: String,
    /// The target's URL without secrets (tokens are shown as `…`).
    pub target: String,
    /// Names of the cohorts by [`CohortId`].
    pub cohorts: Vec<String>,
    /// Wall clock of [`RunTime`] 0, microseconds since the Unix epoch.
    pub started_at_unix_us: i64,
    /// The planned duration, microseconds after RunTime 0.
    pub planned_duration_us: i64,
    /// The generator's host: CPU model, cores, kernel, governor, limits, settings; by name.
    pub generator_host: BTreeMap<String, String>,
    /// SHA-256 of the files that participants publish, hexadecimal, by path as the scenario has it.
    /// Empty in folders of earlier versions.
    pub media_files: BTreeMap<String, String>,
    /// The clock error of one-way delays, and its reason.
    pub clock: ClockError,
    /// Warnings of the preflight check: limits of this machine.
    pub warnings: Vec<String>,
    /// The workers that played it, by number; empty where this machine did.
    pub workers: Vec<WorkerInfo>,
    /// What was planned; `None` where nothing is known of it, as in folders of earlier versions
    /// whose scenario cannot be read.
    pub plan: Option<RunPlan>,
}

/// The error of one-way delays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    /// Bound of the error, microseconds; `None` when the sender's clock is unknown.
    pub bound_us: Option<u64>,
    /// Why: `same host`, `not known`, …
    pub basis: String,
}

keyed! {
    /// How the run ended.
    #[derive(Default)]
    Ending {
        /// No ending was written: the run is in progress ([`RunData::in_progress`]), or its process
        /// was killed.
        #[default]
        Unfinished = "unfinished",
        /// It ran to its end.
        Complete = "complete",
        /// A user or a signal ended it early.
        Interrupted = "interrupted",
        /// A guard ended it: consent withdrawn, target unreachable, a cap reached.
        Aborted = "aborted",
    }
}

/// The event of a run that ended as [`Ending::Aborted`]; its detail says why.
pub const ABORT_EVENT: &str = "abort";

/// The event of a moment that a person marked while the run went on; its detail says what.
pub const MARK_EVENT: &str = "mark";

/// What the kind of an event begins with that counts the participants at one address of the
/// server's name, where it has several; then the address follows.
pub const ADDRESS_EVENT: &str = "address_";

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
    /// Participants whose transport is up at the end of the second (ICE and DTLS done, or the
    /// protocol's equivalent).
    pub connected: u32,
    /// Participants that received media in this second, or played media from a buffer.
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

/// All received tracks of one kind of a cohort in one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    pub tracks_below_source_fps: u64,
    /// Sums over those tracks.
    pub counters: TrackCounters,
    /// Relative delay of frames, microseconds.
    pub relative_delay_us: Distribution,
    /// Absolute one-way delay of frames, microseconds, with its basis; empty without capture times.
    pub absolute_delay: OneWayDelay,
    /// Jitter of tracks at the end of the second, microseconds.
    pub jitter_us: Distribution,
    /// Decodable frames per second of each track, in thousandths of a frame per second.
    pub fps_milli: Distribution,
    /// Loss ratio of each track in this second, parts per million.
    pub loss_ppm: Distribution,
    /// OvenRtcTester's "delay" of tracks, microseconds.
    pub oven_rtc_tester_delay_us: Distribution,
    /// The shorter side of each track's picture, pixels: 720 of 720p. Of tracks whose size is known
    /// and that showed a frame in this second.
    pub picture_lines: Distribution,
    /// Frames per second by the sources' timestamps, of tracks with one.
    pub source_fps: SourceFps,
}

/// The frame rates of the sources of tracks, as a sum: means of two machines, or of two seconds,
/// cannot be added exactly, their sums can. A track whose source's rate is not known has no weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFps {
    /// Tracks whose source's rate is known.
    pub tracks: u64,
    /// Sum of their sources' rates, thousandths of a frame per second.
    pub sum_milli: u64,
}

impl SourceFps {
    /// The mean, frames per second; `None` without tracks.
    #[must_use]
    pub fn mean(self) -> Option<f64> {
        (self.tracks > 0).then(|| self.sum_milli as f64 / self.tracks as f64 / 1e3)
    }

    /// The mean, thousandths of a frame per second, rounded down; `None` without tracks.
    #[must_use]
    pub fn mean_milli(self) -> Option<u32> {
        self.sum_milli.checked_div(self.tracks).map(|fps| u32::try_from(fps).unwrap_or(u32::MAX))
    }
}

impl AddAssign for SourceFps {
    fn add_assign(&mut self, other: Self) {
        self.tracks = self.tracks.saturating_add(other.tracks);
        self.sum_milli = self.sum_milli.saturating_add(other.sum_milli);
    }
}

/// All sent tracks of one kind of a cohort in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which cohort.
    pub cohort: CohortId,
    /// Audio or video.
    pub kind: MediaKind,
    /// Distinct tracks that sent packets in this second, or none because the connection of their
    /// publisher took nothing for a while; muted ones did not.
    pub tracks: u32,
    /// Sums over those tracks.
    pub counters: SentCounters,
}

/// A request for another simulcast layer, and when the layer was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerSwitchRow {
    /// The receiver.
    pub participant: ParticipantId,
    /// The track within the receiver.
    pub track: TrackId,
    /// The requested layer.
    pub layer: Layer,
    /// When the request was sent.
    pub requested_at: RunTime,
    /// When the first decodable frame of that layer was complete; `None` when none arrived.
    pub shown_at: Option<RunTime>,
    /// Width of that frame, pixels; 0 without one.
    pub width: u16,
    /// Height of that frame, pixels; 0 without one.
    pub height: u16,
}

/// A participant: its phases and how it ended. Times are absent for phases not reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParticipantRow {
    /// The participant.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// The planned moment of the join; latencies count from here.
    pub intended_at: RunTime,
    /// When each phase was reached, by [`Phase`].
    pub reached: BTreeMap<Phase, RunTime>,
    /// When it ended; `None` while it is active.
    pub ended_at: Option<RunTime>,
    /// How it ended; `None` while it is active.
    pub outcome: Option<Outcome>,
    /// The local address of its media, if any.
    pub local_address: Option<String>,
}

impl ParticipantRow {
    /// Milliseconds from the intended join to `phase`.
    #[must_use]
    pub fn ms_to(&self, phase: Phase) -> Option<f64> {
        self.reached.get(&phase).map(|at| at.millis_since(self.intended_at))
    }

    /// Whether its transport was up at any time.
    #[must_use]
    pub fn was_connected(&self) -> bool {
        Phase::CONNECTED.iter().any(|phase| self.reached.contains_key(phase))
    }

    /// Whether media, or in a chat messages, arrived at any time.
    #[must_use]
    pub fn was_playing(&self) -> bool {
        Phase::PLAYING.iter().any(|phase| self.reached.contains_key(phase))
    }

    /// Why it failed, if it did. A participant that was joining when the run ended, or whose
    /// machine was lost, did not fail: see [`Self::was_censored`].
    #[must_use]
    pub fn failure(&self) -> Option<&FailureReason> {
        match &self.outcome {
            Some(Outcome::Failed(failure)) if !failure.reason.is_censored() => {
                Some(&failure.reason)
            }
            _ => None,
        }
    }

    /// Whether the run, or its planned stay, ended before it had joined, or its machine was lost:
    /// it did not fail, and what became of it is unknown.
    #[must_use]
    pub fn was_censored(&self) -> bool {
        matches!(&self.outcome, Some(Outcome::Failed(failure)) if failure.reason.is_censored())
    }
}

/// A received track over the life of its participant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrackRow {
    /// The receiver.
    pub participant: ParticipantId,
    /// The track within the receiver.
    pub track: TrackId,
    /// Audio or video.
    pub kind: MediaKind,
    /// Its codec.
    pub codec: Codec,
    /// Its last sender, by its name in the conference.
    pub from: Option<String>,
    /// When its first complete and decodable frame arrived.
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

/// A tapped track as decoded in one second: the ground truth that the meters estimate.
#[derive(Clone, Debug)]
pub struct DecodedRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// The tapped participant.
    pub participant: ParticipantId,
    /// The track within the participant.
    pub track: TrackId,
    /// Its codec.
    pub codec: Codec,
    /// Width of the last picture, pixels; 0 before there was one.
    pub width: u32,
    /// Height of the last picture, pixels.
    pub height: u32,
    /// Coded frames that were fed to the decoder.
    pub frames_fed: u64,
    /// Coded frames that the tap dropped because the decoder, or the ring to it, was too slow.
    pub frames_dropped: u64,
    /// Breaks: frames were incomplete, and the decoder waited for the next key frame.
    pub breaks: u64,
    /// Decoded pictures.
    pub pictures: u64,
    /// Pictures whose number on the test card could be read.
    pub numbers_read: u64,
    /// Of those, pictures with the next number.
    pub numbers_next: u64,
    /// Of those, pictures with the same number again.
    pub numbers_repeated: u64,
    /// Numbers skipped between two pictures.
    pub numbers_skipped: u64,
    /// Freezes between decoded pictures, by the rule of the meters.
    pub freeze_count: u64,
    /// Time frozen, microseconds.
    pub freeze_us: u64,
    /// From the last packet of a frame to its picture, microseconds.
    pub decode_delay_us: Distribution,
    /// From capture to the picture, microseconds, with its basis.
    pub glass_delay: OneWayDelay,
    /// SSIM with the source's picture, mean over the pictures compared; `None` without any.
    pub ssim_mean: Option<f64>,
    /// The lowest SSIM.
    pub ssim_min: Option<f64>,
    /// Pictures compared.
    pub ssim_pictures: u64,
}

/// The generator's own health in one second, by thread (`None`: the process as a whole).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// The machine of a fleet, numbered from 0 in the order of its workers; 0 for a run on one
    /// machine.
    #[serde(default)]
    pub worker: u16,
    /// Thread, numbered from 0; `None` for the whole process.
    pub thread: Option<u16>,
    /// CPU time used in this second, microseconds (user + system).
    pub cpu_us: u64,
    /// Time spent runnable but waiting for a CPU, microseconds (`/proc/self/task/T/schedstat` field
    /// 2).
    pub run_queue_wait_us: u64,
    /// 99th percentile of the loop's lateness at its deadlines, microseconds; of few deadlines what
    /// [`LATE_DEADLINES_MIN`](crate::limits::LATE_DEADLINES_MIN) of them exceeded.
    pub lag_p99_us: u64,
    /// The largest lateness.
    pub lag_max_us: u64,
    /// Datagrams dropped at full receive buffers and rings of the generator.
    pub socket_drops: u64,
    /// Those of them that found a full ring (thread rows).
    #[serde(default)]
    pub ring_drops: u64,
    /// Datagrams that were received from a memory-mapped ring (thread rows); the others came by
    /// sockets.
    #[serde(default)]
    pub ring_datagrams: u64,
    /// Memory of the rings, bytes (thread rows); the process's resident memory has them, too.
    #[serde(default)]
    pub ring_bytes: u64,
    /// Datagrams that the kernel refused for lack of buffers (`EAGAIN`, `ENOBUFS`, `ENOMEM`).
    pub send_drops: u64,
    /// Bytes of datagrams that were sent, UDP and IP headers included.
    pub sent_bytes: u64,
    /// Resident set size, bytes (process rows).
    pub rss_bytes: u64,
    /// Open file descriptors (process rows).
    pub open_fds: u64,
    /// Steal time of the machine in this second, share of all CPUs (process rows).
    pub steal_ratio: f64,
    /// Observations dropped because the collector's queue was full.
    pub observations_dropped: u64,
}

/// The event of datagrams that come by a memory-mapped ring from now on.
pub const RECEIVE_RING_EVENT: &str = "receive_ring";

/// The event of datagrams that come by sockets from now on, though rings are used or were to be
/// used.
pub const RECEIVE_SOCKETS_EVENT: &str = "receive_sockets";

/// An event: something that happened at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// When.
    pub at: RunTime,
    /// The participant, if it concerns one.
    pub participant: Option<ParticipantId>,
    /// A stable key: `failed`, `refused_ice_candidate`, `protocol_anomaly_rtcp`, `abort`,
    /// `generator_limited`, …
    pub kind: String,
    /// Number of events of this kind that the row represents; more than 1 where there were too many
    /// to write each.
    pub count: u32,
    /// What happened, in a sentence.
    pub detail: Detail,
}

/// One row on its way from the collector to the store.
///
/// Its serialised form travels between the machines of a fleet, in a format that does not describe
/// itself: variants are numbered in their order, and no field is left out. What only the
/// coordinator makes does not travel; serde numbers the variants before a skipped one alike on both
/// sides, so that those come last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Row {
    /// The crowd of a second.
    Crowd(CrowdRow),
    /// The tracks of a second.
    Series(Box<SeriesRow>),
    /// The tracks that were sent in a second.
    Sent(SentRow),
    /// The players of a second.
    Playback(Box<PlaybackRow>),
    /// The participants of a chat in a second.
    Chat(Box<ChatRow>),
    /// The end of a second, with its user-seconds.
    SecondClosed(SecondClosed),
    /// A participant; a later row of the same participant replaces it.
    Participant(Box<ParticipantRow>),
    /// A track; a later row of the same track replaces it.
    Track(Box<TrackRow>),
    /// A player; a later row of the same participant replaces it.
    Player(Box<PlayerRow>),
    /// Requests of players; a later row of the same key replaces it.
    HttpRequests(Box<HttpRequestRow>),
    /// A change of layers.
    LayerSwitch(LayerSwitchRow),
    /// The generator's health.
    Generator(GeneratorRow),
    /// An event.
    Event(EventRow),
    /// A step of a search; a later row of the same number replaces it.
    #[serde(skip)]
    Hold(Box<HoldRow>),
    /// A measurement of a browser.
    #[serde(skip)]
    Canary(CanaryRow),
    /// A measurement of a watched host.
    #[serde(skip)]
    Host(HostRow),
}

/// A whole run as read back from its folder.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// The run as known before it started.
    pub info: RunInfo,
    /// How it ended.
    pub ending: Ending,
    /// When it ended, if that was written.
    pub ended_at: Option<RunTime>,
    /// Whether it has no ending because its process was at work when it was read.
    pub in_progress: bool,
    /// The crowd by second and cohort.
    pub crowd: Vec<CrowdRow>,
    /// Tracks by second, cohort and kind.
    pub series: Vec<SeriesRow>,
    /// Sent tracks by second, cohort and kind.
    pub sent: Vec<SentRow>,
    /// Players by second and cohort; empty where no participant plays from a buffer.
    pub playback: Vec<PlaybackRow>,
    /// The vote of players in seconds that [`Self::playback`] no longer has: none, unless it is of
    /// a run that goes on, of which only the last seconds are kept.
    pub forgotten_latency_vote: LatencyVote,
    /// Participants of a chat by second and cohort; empty where there is no chat.
    pub chat: Vec<ChatRow>,
    /// User-seconds by second and cohort.
    pub experience: Vec<ExperienceRow>,
    /// The steps of a search in order; empty for a plain run.
    pub holds: Vec<HoldRow>,
    /// Every participant.
    pub participants: Vec<ParticipantRow>,
    /// Every track but those of [`Self::aggregated`].
    pub tracks: Vec<TrackRow>,
    /// Tracks that are kept as sums; none, unless a [`RowSelector`](crate::RowSelector) aggregated
    /// them.
    pub aggregated: AggregatedTracks,
    /// Every player over its life.
    pub players: Players,
    /// The requests of players by how they were answered; the store lists them by URI.
    pub http_requests: HttpRequestTotals,
    /// Changes of layers in the order of their requests.
    pub layer_switches: Vec<LayerSwitchRow>,
    /// The generator's health.
    pub generator: Vec<GeneratorRow>,
    /// Events in order.
    pub events: Vec<EventRow>,
    /// Decoded tapped tracks, by second, participant and track; empty without a tap.
    pub decoded: Vec<DecodedRow>,
    /// Measurements of browsers among the crowd; empty without any.
    pub canary: CanaryData,
    /// Measurements of the watched hosts; empty when nothing was watched.
    pub host: HostData,
    /// Rows that could not be stored (disk full) and are missing from the lists above.
    pub rows_lost: u64,
}

impl RunData {
    /// By what the latency of its players is measured, as all its seconds decide.
    #[must_use]
    pub fn latency_vote(&self) -> LatencyVote {
        let mut vote = self.forgotten_latency_vote;
        self.playback.iter().for_each(|row| vote.add(row));
        vote
    }

    /// Whether the reports of a sender were found to have no wall-clock time.
    #[must_use]
    pub fn has_wrong_sender_clock(&self) -> bool {
        self.events.iter().any(|event| event.kind == SENDER_CLOCK_EVENT)
    }

    /// Withdraws the delays by senders' reports from the start where a sender's clock was found
    /// wrong later: what it had said before was wrong as well, and rows are sums over senders.
    pub fn withdraw_sender_clocks(&mut self) {
        if self.has_wrong_sender_clock() {
            let of_series = self.series.iter_mut().map(|row| &mut row.absolute_delay);
            let of_tracks = self.tracks.iter_mut().map(|row| &mut row.absolute_delay);
            of_series.chain(of_tracks).for_each(|delay| delay.withdraw(CaptureBasis::SenderReport));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine was late, which is a part of what a user would have waited.
    #[test]
    fn latencies_count_from_the_intended_join() {
        let at = |s: i64| RunTime(s * 1_000_000);
        let row = ParticipantRow {
            participant: ParticipantId(0),
            cohort: CohortId(0),
            intended_at: at(1),
            reached: BTreeMap::from([(Phase::Started, at(3)), (Phase::FirstFrame, at(4))]),
            ended_at: None,
            outcome: None,
            local_address: None,
        };
        assert_eq!(row.ms_to(Phase::Started), Some(2_000.0));
        assert_eq!(row.ms_to(Phase::FirstFrame), Some(3_000.0));
        assert_eq!(row.ms_to(Phase::Joined), None);
    }

    #[test]
    fn delays_by_a_clock_that_was_found_wrong_are_withdrawn_from_the_start() {
        let row = |basis| {
            let mut row = SeriesRow::default();
            row.absolute_delay.record(basis, 15_900_000);
            row
        };
        let series = vec![row(CaptureBasis::SenderReport), row(CaptureBasis::Mark)];
        let mut run = RunData { series, ..RunData::default() };
        let bases = |run: &RunData| -> Vec<Option<CaptureBasis>> {
            run.series.iter().map(|row| row.absolute_delay.basis()).collect()
        };
        run.withdraw_sender_clocks();
        assert_eq!(bases(&run)[0], Some(CaptureBasis::SenderReport), "nobody doubts it");
        let (at, kind) = (RunTime(7_000_000), SENDER_CLOCK_EVENT.to_owned());
        run.events.push(EventRow {
            at,
            participant: None,
            kind,
            count: 1,
            detail: Detail::default(),
        });
        run.withdraw_sender_clocks();
        assert_eq!(bases(&run), [None, Some(CaptureBasis::Mark)]);
    }
}
