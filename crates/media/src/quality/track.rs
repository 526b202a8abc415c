//! The meter of one received track: routes every packet to the meters that own a question each.

use super::packet::{CaptureBasis, Packet};
use super::wall_clock::WallClock;
use std::time::{Duration, Instant};
use throng_observation::{Codec, MediaKind, TrackCounters, TrackId, TrackInterval};

/// What a track is, as negotiated.
#[derive(Clone, Copy, Debug)]
pub struct TrackConfig {
    /// Its id within the participant.
    pub track: TrackId,
    /// Audio or video.
    pub kind: MediaKind,
    /// What it is coded with.
    pub codec: Codec,
    /// RTP clock rate, Hz.
    pub clock_rate_hz: u32,
    /// Whether retransmission was negotiated (`a=rtcp-fb … nack`).
    pub nack: bool,
}

/// What a receiver report says of a stream (RFC 3550 §6.4.1, computed as in its A.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Fraction lost since the previous report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the source began, clamped to 24 bits, signed.
    pub cumulative_lost: i32,
    /// Highest sequence number received, with the count of wraps in the upper half.
    pub extended_highest_sequence: u32,
    /// Interarrival jitter in timestamp units.
    pub jitter: u32,
}

/// Everything that is measured on one received track.
///
/// The driver hands packets and reports in, calls [`Self::timeout`], [`Self::take_nacks`] and
/// [`Self::wants_key_frame`] whenever [`Self::next_timeout`] has come (all three: each may be what the deadline was
/// for), and takes an interval once a second.
#[derive(Debug)]
pub struct TrackMeter {
    config: TrackConfig,
    clock: WallClock,
    interval_began: Instant,
    counters: TrackCounters,
    first_packet_at: Option<Instant>,
}

impl TrackMeter {
    /// A meter of a track announced at `now`.
    #[must_use]
    pub fn new(config: TrackConfig, clock: WallClock, now: Instant) -> Self {
        Self { config, clock, interval_began: now, counters: TrackCounters::default(), first_packet_at: None }
    }

    /// Takes in one packet. Call in the order of arrival; `arrived_at` is the only clock.
    pub fn packet(&mut self, packet: &Packet) {
        let _ = &self.clock;
        self.first_packet_at.get_or_insert(packet.arrived_at);
        self.counters.packets_received += 1;
    }

    /// A datagram of this track's SSRCs that could not be decrypted or parsed.
    pub fn discarded(&mut self) {
        self.counters.packets_discarded += 1;
    }

    /// Bytes on the wire of a datagram that belongs to the track and carries no packet of it (padding on RTX).
    pub fn overhead(&mut self, wire_bytes: u32) {
        self.counters.wire_bytes += u64::from(wire_bytes);
    }

    /// Takes in the sender's RTCP report: its NTP time as nanoseconds since the Unix epoch, and the RTP timestamp
    /// of the same moment.
    pub fn sender_report(&mut self, _ntp_unix_ns: u64, _rtp_timestamp: u32, _arrived_at: Instant) {}

    /// The same track goes on from another source (new SSRC): sequence numbers and timestamps begin anew.
    pub fn source_changed(&mut self, _now: Instant) {}

    /// The round trip time to the server, when known: how long to wait before a packet is asked for again.
    pub fn round_trip(&mut self, _round_trip: Duration) {}

    /// Gives up on packets and frames that are too late, and sees freezes that have begun.
    pub fn timeout(&mut self, _now: Instant) {}

    /// When to call [`Self::timeout`], [`Self::take_nacks`] and [`Self::wants_key_frame`] next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Appends to `out` the sequence numbers to ask for now, ascending; they are sent in one RTCP Generic NACK
    /// (RFC 4585 §6.2.1), which is counted when there are any.
    pub fn take_nacks(&mut self, _now: Instant, _out: &mut Vec<u16>) {}

    /// Whether to ask for a key frame now. Saying yes starts the rate limit, so ask only when able to send; tell what
    /// was sent by [`Self::pli_sent`] or [`Self::fir_sent`].
    #[must_use]
    pub fn wants_key_frame(&mut self, _now: Instant) -> bool {
        false
    }

    /// A Picture Loss Indication was sent.
    pub fn pli_sent(&mut self) {
        self.counters.pli_sent += 1;
    }

    /// A Full Intra Request was sent.
    pub fn fir_sent(&mut self) {
        self.counters.fir_sent += 1;
    }

    /// The figures of the next receiver report block; the fraction counts from the previous call. `None` before
    /// the first packet.
    pub fn reception(&mut self) -> Option<Reception> {
        self.first_packet_at.map(|_| Reception::default())
    }

    /// What happened since the previous interval (or since the track was announced).
    pub fn take_interval(&mut self, now: Instant) -> TrackInterval {
        let active = now.saturating_duration_since(self.interval_began);
        self.interval_began = now;
        let mut counters = std::mem::take(&mut self.counters);
        counters.active_us = u64::try_from(active.as_micros()).unwrap_or(u64::MAX);
        TrackInterval {
            track: self.config.track,
            kind: self.config.kind,
            ended_at: now,
            counters,
            jitter_us: None,
            relative_delay_us: Vec::new(),
            absolute_delay_us: Vec::new(),
            oven_delay_us: None,
            source_fps: None,
        }
    }

    /// The last interval: what has not come by now counts as lost, so that the intervals of a life add up to
    /// expected = received + recovered + lost.
    pub fn finish(&mut self, now: Instant) -> TrackInterval {
        self.take_interval(now)
    }

    /// When the first packet came.
    #[must_use]
    pub fn first_packet_at(&self) -> Option<Instant> {
        self.first_packet_at
    }

    /// When the first frame could be decoded (audio: the first packet).
    #[must_use]
    pub fn first_frame_at(&self) -> Option<Instant> {
        None
    }

    /// Where the absolute delays of this track come from so far.
    #[must_use]
    pub fn capture_basis(&self) -> Option<CaptureBasis> {
        None
    }
}
