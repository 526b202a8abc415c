//! Measurements of a track that a participant sends, with the names of W3C webrtc-stats
//! (`RTCOutboundRtpStreamStats`, `RTCRemoteInboundRtpStreamStats`) where they exist.

use crate::{Codec, MediaKind, TrackId};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// Sums over an interval; all add up over time and over tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentCounters {
    /// RTP packets sent, repeats left out (W3C `packetsSent` less `retransmittedPacketsSent`).
    pub packets_sent: u64,
    /// Payload bytes of those packets.
    pub payload_bytes: u64,
    /// Bytes of those packets as SRTP, without UDP and IP headers.
    pub wire_bytes: u64,
    /// Packets sent again (W3C `retransmittedPacketsSent`).
    pub retransmitted_packets: u64,
    /// Their bytes as SRTP.
    pub retransmitted_bytes: u64,
    /// Frames of video, packets of audio (W3C `framesSent`).
    pub frames_sent: u64,
    /// Key frames among them (W3C `keyFramesEncoded`).
    pub key_frames_sent: u64,
    /// NACK messages received (W3C `nackCount`).
    pub nack_received: u64,
    /// PLI messages received (W3C `pliCount`).
    pub pli_received: u64,
    /// FIR messages received (W3C `firCount`).
    pub fir_received: u64,
    /// Time in which the connection took no bytes of a publisher over TCP, because the server did
    /// not read or the line was too slow, microseconds. Counted once for all tracks of a publisher.
    /// ffmpeg shows it as `speed=` below 1.
    pub blocked_us: u64,
}

impl SentCounters {
    /// What was added since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            packets_sent: self.packets_sent - before.packets_sent,
            payload_bytes: self.payload_bytes - before.payload_bytes,
            wire_bytes: self.wire_bytes - before.wire_bytes,
            retransmitted_packets: self.retransmitted_packets - before.retransmitted_packets,
            retransmitted_bytes: self.retransmitted_bytes - before.retransmitted_bytes,
            frames_sent: self.frames_sent - before.frames_sent,
            key_frames_sent: self.key_frames_sent - before.key_frames_sent,
            nack_received: self.nack_received - before.nack_received,
            pli_received: self.pli_received - before.pli_received,
            fir_received: self.fir_received - before.fir_received,
            blocked_us: self.blocked_us - before.blocked_us,
        }
    }
}

impl AddAssign for SentCounters {
    fn add_assign(&mut self, other: Self) {
        self.packets_sent = self.packets_sent.saturating_add(other.packets_sent);
        self.payload_bytes = self.payload_bytes.saturating_add(other.payload_bytes);
        self.wire_bytes = self.wire_bytes.saturating_add(other.wire_bytes);
        self.retransmitted_packets =
            self.retransmitted_packets.saturating_add(other.retransmitted_packets);
        self.retransmitted_bytes =
            self.retransmitted_bytes.saturating_add(other.retransmitted_bytes);
        self.frames_sent = self.frames_sent.saturating_add(other.frames_sent);
        self.key_frames_sent = self.key_frames_sent.saturating_add(other.key_frames_sent);
        self.nack_received = self.nack_received.saturating_add(other.nack_received);
        self.pli_received = self.pli_received.saturating_add(other.pli_received);
        self.fir_received = self.fir_received.saturating_add(other.fir_received);
        self.blocked_us = self.blocked_us.saturating_add(other.blocked_us);
    }
}

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
