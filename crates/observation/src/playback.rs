//! Measurements of a player: a participant that downloads recorded or live video over HTTP and plays it from a
//! buffer. Terms are those of HTML media elements (WHATWG HTML section 4.8.11) and CTA-2066 (streaming quality of
//! experience): startup time, stall, rebuffering.

use std::ops::AddAssign;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Sums over an interval; all add up over time and over players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaybackCounters {
    /// Time in which the player was meant to play: startup, playback and stalls; not the pauses that its user made.
    pub active_us: u64,
    /// Part of `active_us` before playback began, or began again after a seek: the wait for enough data to start.
    pub startup_us: u64,
    /// Part of `active_us` in which playback had begun and waited for data (`waiting` event): a stall.
    pub stall_us: u64,
    /// Stalls begun.
    pub stall_count: u64,
    /// Media time that was played.
    pub played_us: u64,
    /// Pauses that its user made.
    pub paused_us: u64,
    /// Seeks that its user made.
    pub seek_count: u64,
    /// Bytes of response bodies that hold media, received.
    pub media_bytes: u64,
    /// Bytes of other response bodies: playlists, manifests, keys.
    pub other_bytes: u64,
    /// Media time that became playable by what was received.
    pub media_us: u64,
    /// Time in which the player wanted more media than it had: its buffer was below the target.
    pub wanted_us: u64,
    /// Requests sent, those that were sent again included.
    pub requests: u64,
    /// Requests without a usable response: refused, broken off, timed out.
    pub requests_failed: u64,
    /// Connections opened.
    pub connections: u64,
    /// Segments or packets that this host sent again on them (`tcpi_total_retrans`).
    pub retransmitted: u64,
    /// Segments that arrived out of order (`tcpi_rcv_ooopack`), a sign of loss on the way from the server.
    pub received_out_of_order: u64,
    /// Changes of the rendition.
    pub switches: u64,
}

impl PlaybackCounters {
    /// Stalled ÷ (stalled + playing) time, the rebuffering ratio of CTA-2066; `None` before playback began.
    #[must_use]
    pub fn stall_ratio(&self) -> Option<f64> {
        let begun_us = self.active_us.saturating_sub(self.startup_us);
        (begun_us > 0).then(|| (self.stall_us as f64 / begun_us as f64).min(1.0))
    }

    /// Media time received ÷ time in which it was wanted: below 1 the server delivers less than the media's own
    /// bit rate. `None` when nothing was wanted.
    #[must_use]
    pub fn delivery_ratio(&self) -> Option<f64> {
        (self.wanted_us > 0).then(|| self.media_us as f64 / self.wanted_us as f64)
    }

    /// Bits per second of media bodies over active time; 0 when never active.
    #[must_use]
    pub fn media_bps(&self) -> f64 {
        if self.active_us == 0 { 0.0 } else { self.media_bytes as f64 * 8e6 / self.active_us as f64 }
    }
}

impl AddAssign for PlaybackCounters {
    fn add_assign(&mut self, o: Self) {
        self.active_us += o.active_us;
        self.startup_us += o.startup_us;
        self.stall_us += o.stall_us;
        self.stall_count += o.stall_count;
        self.played_us += o.played_us;
        self.paused_us += o.paused_us;
        self.seek_count += o.seek_count;
        self.media_bytes += o.media_bytes;
        self.other_bytes += o.other_bytes;
        self.media_us += o.media_us;
        self.wanted_us += o.wanted_us;
        self.requests += o.requests;
        self.requests_failed += o.requests_failed;
        self.connections += o.connections;
        self.retransmitted += o.retransmitted;
        self.received_out_of_order += o.received_out_of_order;
        self.switches += o.switches;
    }
}

/// A player over one interval (a second, or the rest of one).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaybackInterval {
    /// When the interval ended.
    pub ended_at: Instant,
    /// Sums over the interval.
    pub counters: PlaybackCounters,
    /// Media time buffered ahead of the playback position at the end of the interval, microseconds.
    pub buffer_us: u64,
    /// Media time received ÷ time, over the last seconds if the player wanted data throughout them; `None` while its
    /// buffer is full or has not been below the target for that long. A buffer hides a server that delivers too
    /// slowly for as long as it lasts; this does not.
    pub delivery_ratio: Option<f32>,
    /// Since when playback has not begun, or not begun again after a seek; `None` once it has. The reader decides how
    /// long that may take.
    pub start_awaited_since: Option<Instant>,
}
