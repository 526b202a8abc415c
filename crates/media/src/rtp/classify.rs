//! The protocol of a datagram of a WebRTC transport, by its first byte (RFC 7983) and, between RTP
//! and RTCP, by its second (RFC 5761).

/// The protocol of a datagram on a multiplexed transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// First byte 0–3.
    Stun,
    /// First byte 20–63.
    Dtls,
    /// First byte 64–79: TURN ChannelData (RFC 8656 section 12.4).
    TurnChannel,
    /// First byte 128–191 and not RTCP.
    Rtp,
    /// First byte 128–191 with a packet type 192–223.
    Rtcp,
    /// None of these (ZRTP, QUIC), or empty.
    Unknown,
}

/// Classifies a datagram by its first two bytes.
///
/// RTP and RTCP datagrams shorter than two bytes are [`PacketKind::Unknown`]. Payload types 64–95
/// with the marker set look like RTCP, which is why RFC 5761 section 4 forbids them on a
/// multiplexed transport.
#[inline]
#[must_use]
pub fn classify(datagram: &[u8]) -> PacketKind {
    match *datagram {
        [0..=3, ..] => PacketKind::Stun,
        [20..=63, ..] => PacketKind::Dtls,
        [64..=79, ..] => PacketKind::TurnChannel,
        [128..=191, 192..=223, ..] => PacketKind::Rtcp,
        [128..=191, _, ..] => PacketKind::Rtp,
        _ => PacketKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_name_the_protocol() {
        for (bytes, kind) in [
            (&[][..], PacketKind::Unknown),
            (&[0, 1], PacketKind::Stun),
            (&[3], PacketKind::Stun),
            (&[4], PacketKind::Unknown),
            (&[16], PacketKind::Unknown),
            (&[20], PacketKind::Dtls),
            (&[63], PacketKind::Dtls),
            (&[64], PacketKind::TurnChannel),
            (&[79], PacketKind::TurnChannel),
            (&[80], PacketKind::Unknown),
            (&[127], PacketKind::Unknown),
            (&[128], PacketKind::Unknown),
            (&[128, 96], PacketKind::Rtp),
            (&[144, 128 + 111], PacketKind::Rtp),
            (&[191, 191], PacketKind::Rtp),
            (&[129, 192], PacketKind::Rtcp),
            (&[128, 200], PacketKind::Rtcp),
            (&[128, 223], PacketKind::Rtcp),
            (&[128, 224], PacketKind::Rtp),
            (&[192, 200], PacketKind::Unknown),
        ] {
            assert_eq!(classify(bytes), kind, "{bytes:?}");
        }
    }
}
