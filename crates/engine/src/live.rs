//! Snapshots of a run in progress: the latest second, two minutes of history, the worst
//! participants.

use std::collections::{BTreeMap, VecDeque};
use std::ops::AddAssign;

use throng_observation::run::{CrowdRow, EventRow, GeneratorRow, ParticipantId, SeriesRow};
use throng_observation::{
    ChatCounters, ChatRow, Codec, Distribution, IceState, LatencyVote, MediaKind, PlaybackCounters,
    PlaybackRow, Quantiles, RunTime, SecondRow, TrackCounters,
};

/// Seconds that [`LiveSnapshot::history`] keeps.
pub const HISTORY_SECONDS: usize = 120;

/// Events that [`LiveSnapshot::events`] keeps.
pub const RECENT_EVENTS: usize = 20;

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// Before RunTime 0.
    #[default]
    Starting,
    /// Joins are offered, participants play.
    Running,
    /// All participants were asked to leave.
    Leaving,
    /// All participants have ended and all rows are written.
    Finished,
}

/// A snapshot of the run, updated once a second.
#[derive(Clone, Debug, Default)]
pub struct LiveSnapshot {
    /// When the snapshot was made.
    pub at: RunTime,
    /// When all participants are asked to leave.
    pub ends_at: RunTime,
    /// The state of the run.
    pub state: RunState,
    /// The second of [`Self::crowd`], [`Self::video`] and [`Self::audio`]; `None` before the first.
    pub second: Option<i64>,
    /// Joins of the whole plan.
    pub planned: u32,
    /// All cohorts at the end of that second.
    pub crowd: CrowdRow,
    /// All video tracks.
    pub video: LiveTracks,
    /// All audio tracks.
    pub audio: LiveTracks,
    /// All players; `None` before the first of them, and where nobody plays from a buffer.
    pub playback: Option<LivePlayers>,
    /// What decides the basis of their latencies: all seconds of the run so far.
    pub latency_vote: LatencyVote,
    /// All participants of chats; `None` before the first of them, and where nobody is in one.
    pub chat: Option<LiveChat>,
    /// From the intended join to the connected transport, milliseconds, over the run so far.
    pub connect_ms: Option<Quantiles>,
    /// From the intended join to the first frame, milliseconds, over the run so far.
    pub first_frame_ms: Option<Quantiles>,
    /// From the intended join to the begin of playback, milliseconds, over the run so far.
    pub startup_ms: Option<Quantiles>,
    /// From the intended join to being in the room of a chat, milliseconds, over the run so far.
    pub joined_ms: Option<Quantiles>,
    /// Payload bits per second of each participant that received any, over its life so far.
    pub client_bps: Option<Spread>,
    /// The last [`HISTORY_SECONDS`] seconds, oldest first.
    pub history: VecDeque<HistoryPoint>,
    /// The worst participants of the latest second, worst first.
    pub worst: Vec<ParticipantFigures>,
    /// How many participants failed, by the key of the reason.
    pub failures: BTreeMap<String, u32>,
    /// When the last of them failed.
    pub last_failure_at: Option<RunTime>,
    /// The generator's own health.
    pub generator: GeneratorFigures,
    /// The last [`RECENT_EVENTS`] events, oldest first.
    pub events: VecDeque<EventRow>,
}

/// What was measured of one family of rows: those of the last second added up, which have the
/// figures of that second, and the sums of all seconds.
#[derive(Clone, Debug, Default)]
pub struct LiveFigures<R, C> {
    /// The last second.
    pub last: R,
    /// Sums over the run so far.
    pub so_far: C,
}

/// All tracks of one kind.
pub type LiveTracks = LiveFigures<SeriesRow, TrackCounters>;
/// All players.
pub type LivePlayers = LiveFigures<PlaybackRow, PlaybackCounters>;
/// All participants of chats.
pub type LiveChat = LiveFigures<ChatRow, ChatCounters>;

impl<R: SecondRow + Default, C: AddAssign> LiveFigures<R, C> {
    /// Takes the rows of the next second.
    pub(crate) fn close<'a>(&mut self, rows: impl IntoIterator<Item = &'a R>, counters: fn(&R) -> C)
    where
        R: 'a,
    {
        self.last = R::sum(rows);
        self.so_far += counters(&self.last);
    }
}

/// The three figures that OvenRtcTester shows of a distribution. The mean is over samples, never
/// over means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean of all samples.
    pub mean: f64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
}

impl Spread {
    /// Of samples in units of `1 / scale`; `None` without samples.
    #[must_use]
    pub fn of(samples: &Distribution, scale: f64) -> Option<Self> {
        let at = |quantile| samples.quantile_in(quantile, scale);
        Some(Self { mean: samples.mean()? / scale, min: at(0.0)?, max: at(1.0)? })
    }
}

/// One second in the history; figures of video if there is video, otherwise of audio.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HistoryPoint {
    /// Its number.
    pub second: i64,
    /// Transports up.
    pub connected: u32,
    /// Bits that participants received ([`Received`](throng_observation::Received)).
    pub received_bps: f64,
    /// Packets lost of packets expected, audio and video; missing time counts as loss.
    pub loss_ratio: f64,
    /// Players that stalled ÷ players; `None` without players.
    pub stalled_ratio: Option<f64>,
    /// The lowest buffer of a player, milliseconds; `None` without players.
    pub buffer_ms_min: Option<f64>,
    /// Participants in the room of a chat.
    pub in_room: Option<u32>,
    /// 95th percentile of the delay of messages of a chat, milliseconds.
    pub delivery_ms_p95: Option<f64>,
    /// Messages of a chat that are missing.
    pub messages_missing: u64,
    /// 95th percentile of relative delay, milliseconds.
    pub delay_ms_p95: Option<f64>,
    /// Median of decodable frames per second.
    pub fps_p50: Option<f64>,
}

/// One participant in its latest interval.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticipantFigures {
    /// Its id.
    pub participant: ParticipantId,
    /// Its ICE transport.
    pub ice: IceState,
    /// When it joined, as intended.
    pub intended_at: RunTime,
    /// Its tracks.
    pub tracks: Vec<TrackFigures>,
    /// Its player, if it plays from a buffer.
    pub player: Option<PlayerFigures>,
}

/// The player of one participant in its latest interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerFigures {
    /// Media time buffered, milliseconds.
    pub buffer_ms: f64,
    /// Time stalled in the latest interval, milliseconds.
    pub stall_ms: f64,
    /// Whether playback has not begun, or not begun again after a seek.
    pub is_starting: bool,
    /// Its delivery ratio; `None` while it does not want data throughout.
    pub delivery_ratio: Option<f64>,
    /// Stalls over its life.
    pub stalls: u64,
}

/// One track of one participant: the latest interval, and its life.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackFigures {
    /// Audio or video.
    pub kind: MediaKind,
    /// Its codec.
    pub codec: Codec,
    /// Packets lost of packets expected in the latest interval; missing time counts as loss.
    pub loss_ratio: f64,
    /// Decodable frames per second in the latest interval.
    pub fps: f64,
    /// Largest relative delay in the latest interval, milliseconds.
    pub delay_ms_max: Option<f64>,
    /// Packets lost over its life.
    pub packets_lost: i64,
    /// Bytes on the wire over its life.
    pub wire_bytes: u64,
}

/// The generator's own health in the latest second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeneratorFigures {
    /// The process as a whole.
    pub process: GeneratorRow,
    /// Each thread.
    pub threads: Vec<GeneratorRow>,
    /// Why the figures of this second may be limited by the generator; empty when it is healthy.
    pub limited: Vec<String>,
    /// Seconds so far that were limited.
    pub limited_seconds: u32,
}
