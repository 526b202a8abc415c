//! Rows of a second: the crowd, its tracks, and the generator.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{CohortId, ParticipantId};
use crate::{
    Codec, Distribution, IceState, MediaKind, OneWayDelay, SentCounters, TrackCounters, TrackId,
};

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
    /// Participants by their ICE state now, in the order of [`IceState::ALL`].
    pub ice: [u32; IceState::ALL.len()],
}

impl CrowdRow {
    /// The index of `state` in [`Self::ice`].
    #[must_use]
    pub fn ice_index(state: IceState) -> usize {
        state as usize
    }

    /// Participants in `state` now.
    #[must_use]
    pub fn ice_of(&self, state: IceState) -> u32 {
        self.ice.get(Self::ice_index(state)).copied().unwrap_or(0)
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
