//! The meters' view of one RTP packet.

use crate::codec::PayloadFacts;
use std::time::Instant;
use throng_observation::CaptureBasis;

/// One RTP packet of a track, after decryption; an RTX packet (RFC 4588) as the original that it
/// carries.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When it arrived.
    pub arrived_at: Instant,
    /// RTP sequence number; of an RTX packet the original one (OSN).
    pub sequence: u16,
    /// RTP timestamp.
    pub timestamp: u32,
    /// RTP marker bit.
    pub marker: bool,
    /// Facts from its payload about its frame.
    pub facts: PayloadFacts,
    /// Payload bytes without padding and without the OSN of RTX. Zero makes it a padding-only
    /// packet (probing): it takes a sequence number and belongs to no frame.
    pub payload_bytes: u32,
    /// RTP header, extensions and padding, bytes.
    pub header_bytes: u32,
    /// Bytes on the wire, with SRTP tag, UDP and IP header.
    pub wire_bytes: u32,
    /// It came on an RTX stream.
    pub retransmitted: bool,
    /// When its frame was captured, from a header extension. A mark in [`Self::facts`] need not be
    /// repeated here; with both, this one counts.
    pub captured: Option<CaptureTime>,
}

/// When a frame was captured, and the basis of that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureTime {
    /// Nanoseconds since the Unix epoch on the clock of the source.
    pub unix_ns: u64,
    /// The basis.
    pub basis: CaptureBasis,
}
