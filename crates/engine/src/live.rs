//! Snapshots of a run in progress: the latest second, two minutes of history, the worst
//! participants.

use std::collections::{BTreeMap, VecDeque};

use throng_observation::run::{EventRow, GeneratorRow, ParticipantId};
use throng_observation::{
    CaptureBasis, ChatCounters, ClockDisagreement, Codec, Distribution, IceState, LatencyVote,
    MediaKind, PlaybackCounters, Quantiles, RunTime, TrackCounters,
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
    /// The crowd.
    pub crowd: CrowdFigures,
    /// All video tracks in that second.
    pub video: KindFigures,
    /// All audio tracks in that second.
    pub audio: KindFigures,
    /// All players in that second; `None` before the first of them, and where nobody plays from a
    /// buffer.
    pub playback: Option<PlaybackFigures>,
    /// All participants of chats in that second; `None` before the first of them, and where nobody
    /// is in one.
    pub chat: Option<ChatFigures>,
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

/// The crowd of all cohorts at the end of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrowdFigures {
    /// Joins of the whole plan.
    pub planned: u32,
    /// Joins whose intended time has come.
    pub intended: u32,
    /// Joins begun.
    pub started: u32,
    /// Transports up now.
    pub connected: u32,
    /// Received media in this second.
    pub playing: u32,
    /// Failed so far.
    pub failed: u32,
    /// Left in an orderly way so far.
    pub left: u32,
    /// ICE states now, indexed as `throng_observation::run::CrowdRow::ice`.
    pub ice: [u32; 6],
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
        let at = |quantile| samples.quantile(quantile).map(|value| value as f64 / scale);
        Some(Self { mean: samples.mean()? / scale, min: at(0.0)?, max: at(1.0)? })
    }
}

/// All tracks of one kind in one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindFigures {
    /// Distinct tracks that reported.
    pub tracks: u32,
    /// Tracks whose decodable frame rate was below 0.9 of the source's.
    pub tracks_below_source_fps: u64,
    /// Sums over the run so far, all tracks together.
    pub so_far: TrackCounters,
    /// Bits on the wire per second, all tracks together.
    pub bitrate_bps: f64,
    /// Packets lost of packets expected, all tracks together; missing time counts as loss.
    pub loss_ratio: f64,
    /// Loss of tracks, per cent.
    pub loss_percent: Option<Quantiles>,
    /// Decodable frames per second of tracks.
    pub fps: Option<Quantiles>,
    /// Mean, minimum and maximum of [`Self::fps`].
    pub fps_spread: Option<Spread>,
    /// Relative delay of frames, milliseconds.
    pub relative_delay_ms: Option<Quantiles>,
    /// Mean, minimum and maximum of [`Self::relative_delay_ms`].
    pub relative_delay_spread_ms: Option<Spread>,
    /// Absolute one-way delay of frames, milliseconds; `None` also when its median is negative.
    pub absolute_delay_ms: Option<Quantiles>,
    /// The source of its capture times.
    pub absolute_delay_basis: Option<CaptureBasis>,
    /// Frames that seem to arrive before their capture, because the clocks disagree; `None` where
    /// none does.
    pub clock_disagreement: Option<ClockDisagreement>,
    /// Jitter of tracks, milliseconds.
    pub jitter_ms: Option<Quantiles>,
    /// OvenRtcTester's "delay" of tracks, milliseconds.
    pub oven_rtc_tester_delay_ms: Option<Quantiles>,
    /// Mean, minimum and maximum of the same.
    pub oven_rtc_tester_delay_spread_ms: Option<Spread>,
    /// Freezes begun.
    pub freezes: u64,
    /// Frame rate of the sources (mean), frames per second.
    pub source_fps: Option<f64>,
}

/// All players in one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaybackFigures {
    /// Players that reported.
    pub players: u32,
    /// Players that stalled in it.
    pub stalled: u32,
    /// Players that waited for playback to begin.
    pub starting: u32,
    /// Bits of bodies that hold media per second, all players together.
    pub media_bps: f64,
    /// Media time buffered by players, milliseconds.
    pub buffer_ms: Option<Quantiles>,
    /// The lowest of the same.
    pub buffer_ms_min: Option<f64>,
    /// Median of the delivery ratio of players that have one; 1 where it is more.
    pub delivery_ratio_p50: Option<f64>,
    /// The lowest of the same.
    pub delivery_ratio_min: Option<f64>,
    /// Latency of players of live streams, milliseconds, by the basis that `latency_vote` has
    /// decided so far.
    pub latency_ms: Option<Quantiles>,
    /// What decides the basis of latencies: all seconds of the run so far.
    pub latency_vote: LatencyVote,
    /// Sums over the run so far, all players together.
    pub so_far: PlaybackCounters,
}

/// All participants of chats in one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatFigures {
    /// Participants that reported.
    pub members: u32,
    /// Of them, those that are in the room.
    pub joined: u32,
    /// Most others that one of them saw in the room.
    pub occupants_max: u32,
    /// From the intended time of each message to its arrival, milliseconds.
    pub delivery_ms: Option<Quantiles>,
    /// Sums over the second, all participants together.
    pub counters: ChatCounters,
    /// Sums over the run so far.
    pub so_far: ChatCounters,
}

/// One second in the history; figures of video if there is video, otherwise of audio.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HistoryPoint {
    /// Its number.
    pub second: i64,
    /// Transports up.
    pub connected: u32,
    /// Bits on the wire per second, audio and video.
    pub bitrate_bps: f64,
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
    /// Bits on the wire per second in the latest interval.
    pub bitrate_bps: f64,
    /// Packets lost of packets expected in the latest interval; missing time counts as loss.
    pub loss_ratio: f64,
    /// Decodable frames per second in the latest interval.
    pub fps: f64,
    /// Largest relative delay in the latest interval, milliseconds.
    pub delay_ms_max: Option<f64>,
    /// OvenRtcTester's "delay", milliseconds.
    pub oven_rtc_tester_delay_ms: Option<f64>,
    /// Packets received over its life.
    pub packets_original: u64,
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
