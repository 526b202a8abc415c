//! MPEG transport streams (RFC 2250 section 2): a payload is whole transport packets of several streams. What they
//! say about pictures is not a fact of one RTP packet; `quality::transport_stream` reads it.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts};

/// Length of a transport packet (ISO/IEC 13818-1 section 2.4.3.2), bytes.
pub(crate) const PACKET_LEN: usize = 188;
/// Its first byte.
pub(crate) const SYNC: u8 = 0x47;

/// Checks one payload, which is not empty.
pub(super) fn read(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    if !payload.len().is_multiple_of(PACKET_LEN) {
        return Err(CodecError::Truncated { codec: Codec::Mp2t, what: "last packet", len: payload.len() });
    }
    if !payload.chunks_exact(PACKET_LEN).all(|packet| packet.first() == Some(&SYNC)) {
        return Err(CodecError::Malformed { codec: Codec::Mp2t, what: "sync byte" });
    }
    Ok(PayloadFacts::default())
}

#[cfg(test)]
mod tests {
    use super::super::letters;
    use super::*;

    #[test]
    fn payloads_are_whole_packets() {
        let packet = [&[SYNC][..], &[0xff; PACKET_LEN - 1]].concat();
        for (payload, expect) in [
            (packet.repeat(7), ""),
            (packet[1..].to_vec(), "MP2T payload of 187 bytes ends inside its last packet"),
            ([&packet[..], &[0; PACKET_LEN]].concat(), "MP2T payload has a bad sync byte"),
        ] {
            assert_eq!(letters(read(&payload)), expect);
        }
    }
}
