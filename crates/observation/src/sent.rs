//! Measurements of a track that a participant sends, with the names of W3C webrtc-stats
//! (`RTCOutboundRtpStreamStats`, `RTCRemoteInboundRtpStreamStats`) where they exist.

use crate::{Codec, MediaKind, SentCounters, TrackId};
use std::time::{Duration, Instant};

/// A sent track over one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct SentInterval {
    /// Which of the participant's sent tracks; numbered separately from received ones.
    pub track: TrackId,
    /// Audio or video.
    pub kind: MediaKind,
    /// Its codec.
    pub codec: Codec,
    /// When the interval ended.
    pub ended_at: Instant,
    /// How long it lasted.
    pub length: Duration,
    /// Sums over the interval.
    pub counters: SentCounters,
    /// Round-trip time by the receiver's last report (RFC 3550 section 6.4.1), seconds.
    pub round_trip_s: Option<f64>,
    /// Share of packets lost, by the receiver's last report.
    pub remote_loss_ratio: Option<f64>,
    /// Bits per second that the sender may send, by REMB, loss and delay.
    pub allowed_bps: f64,
    /// Bits per second that it would send without these bounds.
    pub wanted_bps: f64,
    /// The longest pause of a picture: from one frame's last packet to the next one's last, where
    /// the next was sent in the interval, microseconds. A freeze that the sender caused is not
    /// counted against the server.
    pub pause_us_max: u32,
}
