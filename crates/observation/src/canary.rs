//! Measurements of real browsers among the crowd, to compare with those of the virtual
//! participants.

use serde::{Deserialize, Serialize};

use crate::{Distribution, RunTime};

/// A browser of the run, numbered from 0 in the order of its joins.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BrowserId(pub u16);

impl BrowserId {
    /// The name of this browser as the other participants of a conference see it.
    #[must_use]
    pub fn name(self) -> String {
        format!("canary-{}", self.0)
    }
}

/// A row about a browser.
#[derive(Clone, Debug)]
pub enum CanaryRow {
    /// Its life; a later row of the same browser replaces it.
    Browser(CanaryBrowserRow),
    /// Its measurements in one second.
    Second(Box<CanarySecondRow>),
}

/// A browser's life. Times are absent for what was not reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CanaryBrowserRow {
    /// Which.
    pub browser: BrowserId,
    /// Its product name and version, e.g. `Chrome/156.0.8078.79`; empty where it did not start.
    pub version: String,
    /// When it was meant to join; `connected_at` and `first_frame_at` count from here.
    pub intended_at: RunTime,
    /// When its first peer connection was up (`connectionState` `connected`: ICE and DTLS done).
    pub connected_at: Option<RunTime>,
    /// When its first picture could be shown (`loadeddata` of the first video element that had
    /// one).
    pub first_frame_at: Option<RunTime>,
    /// When it left, crashed or was given up.
    pub ended_at: Option<RunTime>,
    /// Why it failed, in a sentence; `None` without a failure.
    pub failure: Option<String>,
    /// When it failed.
    pub failed_at: Option<RunTime>,
    /// The failure was the browser's own (it did not start, ended, did not respond, or could not
    /// reach the server because of this machine): it says nothing about the server.
    pub failure_is_own: bool,
    /// Remote candidates of the server's description that the consent guard removed.
    pub candidates_refused: u32,
}

/// A browser's `getStats()` over one second: differences of its counters, summed over tracks.
/// Fields are those of W3C webrtc-stats.
#[derive(Clone, Debug, Default)]
pub struct CanarySecondRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which browser.
    pub browser: BrowserId,
    /// Video tracks that had decoded a frame before this second.
    pub video_tracks: u32,
    /// Time over which those tracks were observed, microseconds, summed over them.
    pub video_active_us: u64,
    /// `framesDecoded` of video.
    pub frames_decoded: u64,
    /// `framesDropped` of video.
    pub frames_dropped: u64,
    /// `packetsReceived` of video, repeats included.
    pub video_packets_received: u64,
    /// `retransmittedPacketsReceived` of video: the part of them that arrived on an RTX stream (RFC
    /// 4588). 0 where RTX was not negotiated: other repeats cannot be distinguished from first
    /// transmissions.
    pub video_packets_repeated: u64,
    /// `packetsLost` of video: expected less received on the track's own SSRC. It falls with late
    /// packets and with repeats on that SSRC; repeats on an RTX stream do not change it.
    pub video_packets_lost: i64,
    /// `bytesReceived` of video: payload only, repeats included.
    pub video_bytes: u64,
    /// Of `video_active_us`, that of tracks that received no packet in this second.
    pub video_silent_us: u64,
    /// `jitter` of each video track at the end of the second, microseconds.
    pub video_jitter_us: Distribution,
    /// `jitterBufferDelay` of video, microseconds: with `jitter_buffer_emitted` the mean wait of a
    /// frame.
    pub jitter_buffer_us: u64,
    /// `jitterBufferEmittedCount` of video.
    pub jitter_buffer_emitted: u64,
    /// `freezeCount`.
    pub freeze_count: u64,
    /// `totalFreezesDuration`, microseconds.
    pub freeze_us: u64,
    /// `totalDecodeTime`, microseconds.
    pub decode_us: u64,
    /// `nackCount` of video.
    pub nack_sent: u64,
    /// `pliCount`.
    pub pli_sent: u64,
    /// Audio tracks that had received a packet before this second.
    pub audio_tracks: u32,
    /// `packetsReceived` of audio.
    pub audio_packets_received: u64,
    /// `packetsLost` of audio.
    pub audio_packets_lost: i64,
    /// `bytesReceived` of audio.
    pub audio_bytes: u64,
    /// `framesSent` of video, where it publishes.
    pub frames_sent: u64,
    /// `bytesSent` of audio and video.
    pub bytes_sent: u64,
    /// CPU time that the browser's processes used, microseconds (user + system).
    pub cpu_us: u64,
    /// Largest delay of a timer of its page, microseconds: the page waited for a CPU.
    pub late_max_us: u64,
    /// Share of this machine's CPU time in use, without low-priority work, 0 to 1; `None` where
    /// that is not known.
    pub host_cpu_ratio: Option<f64>,
}

/// The measurements of the browsers of a run; empty where there were none.
#[derive(Clone, Debug, Default)]
pub struct CanaryData {
    /// Every browser.
    pub browsers: Vec<CanaryBrowserRow>,
    /// By second and browser.
    pub seconds: Vec<CanarySecondRow>,
}
