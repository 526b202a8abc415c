//! MPEG transport streams (RFC 2250 section 2): a payload is whole transport packets of several
//! streams. What they say about pictures is not a fact of one RTP packet;
//! `quality::TransportStreamMeter` reads it.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts};
use crate::octets::chunk_at;

/// Length of a transport packet (ISO/IEC 13818-1 section 2.4.3.2), bytes.
pub(crate) const PACKET_LEN: usize = 188;
const HEADER_LEN: usize = 4;
/// The first byte of every transport packet.
pub(crate) const SYNC: u8 = 0x47;

/// Checks one payload, which is not empty.
pub(super) fn read(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    if !payload.len().is_multiple_of(PACKET_LEN) {
        return Err(CodecError::Truncated {
            codec: Codec::Mp2t,
            what: "last packet",
            len: payload.len(),
        });
    }
    if !payload.chunks_exact(PACKET_LEN).all(|packet| packet.first() == Some(&SYNC)) {
        return Err(CodecError::Malformed { codec: Codec::Mp2t, what: "sync byte" });
    }
    Ok(PayloadFacts::default())
}

/// One transport packet that has data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransportPacket<'a> {
    /// Its stream (PID).
    pub(crate) stream: u16,
    /// A PES packet or a section begins in it.
    pub(crate) starts_unit: bool,
    /// Counts the packets of its stream that have data, 4 bits.
    pub(crate) continuity: u8,
    /// The counter may jump here.
    pub(crate) is_discontinuity: bool,
    /// A decoder can begin here.
    pub(crate) random_access: bool,
    /// Bytes without meaning fill it up.
    pub(crate) stuffed: bool,
    /// Its data; never empty.
    pub(crate) data: &'a [u8],
}

/// The transport packets of a payload that have data, can be read, and are not marked as damaged.
pub(crate) fn packets(payload: &[u8]) -> impl Iterator<Item = TransportPacket<'_>> {
    payload.chunks_exact(PACKET_LEN).filter_map(packet)
}

/// Section 2.4.3.2 of ISO/IEC 13818-1; `None` for a packet that is damaged, scrambled, or has no
/// data.
pub(crate) fn packet(packet: &[u8]) -> Option<TransportPacket<'_>> {
    let &[sync, flags, low, control] = chunk_at::<HEADER_LEN>(packet, 0)?;
    let (has_error, is_scrambled) = (flags & 0x80 != 0, control & 0xc0 != 0);
    let (has_fields, has_data) = (control & 0x20 != 0, control & 0x10 != 0);
    if sync != SYNC || has_error || is_scrambled || !has_data {
        return None;
    }
    let rest = packet.get(HEADER_LEN..)?;
    let (fields, data) = if has_fields {
        let (&len, rest) = rest.split_first()?;
        rest.split_at_checked(usize::from(len))?
    } else {
        (&[][..], rest)
    };
    let said = fields.first().copied().unwrap_or(0);
    (!data.is_empty()).then_some(TransportPacket {
        stream: u16::from_be_bytes([flags & 0x1f, low]),
        starts_unit: flags & 0x40 != 0,
        continuity: control & 0x0f,
        is_discontinuity: said & 0x80 != 0,
        random_access: said & 0x40 != 0,
        stuffed: has_fields && is_stuffed(fields),
        data,
    })
}

/// Whether an adaptation field is longer than what it announces (section 2.4.3.4). Private data and
/// extensions are rare, and not looked into.
fn is_stuffed(fields: &[u8]) -> bool {
    let Some(&said) = fields.first() else { return true };
    let used = 1 + [(0x10, 6), (0x08, 6), (0x04, 1)]
        .map(|(flag, len)| if said & flag != 0 { len } else { 0 })
        .iter()
        .sum::<usize>();
    said == 0 || said & 0x03 == 0 && fields.len() > used
}

#[cfg(test)]
mod tests {
    use super::super::letters;
    use super::*;

    fn filled(head: &[u8]) -> Vec<u8> {
        let mut packet = head.to_vec();
        packet.resize(PACKET_LEN, 0xff);
        packet
    }

    #[test]
    fn payloads_are_whole_packets() {
        let packet = filled(&[SYNC]);
        for (payload, expect) in [
            (packet.repeat(7), ""),
            (packet[1..].to_vec(), "MP2T payload of 187 bytes ends inside its last packet"),
            ([&packet[..], &[0; PACKET_LEN]].concat(), "MP2T payload has a bad sync byte"),
        ] {
            assert_eq!(letters(read(&payload)), expect);
        }
    }

    #[test]
    fn headers_of_real_packets() {
        // GStreamer's `tsparse` passed this on: PCR and random access, then a PES packet.
        let bytes =
            filled(&[0x47, 0x41, 0, 0x30, 7, 0x50, 0, 0, 0x7b, 0x0c, 0x7e, 0, 0, 0, 1, 0xe0]);
        let read = packet(&bytes).unwrap();
        assert_eq!((read.stream, read.starts_unit, read.continuity), (0x100, true, 0));
        assert_eq!((read.random_access, read.stuffed, read.data.len()), (true, false, 176));
        for (head, stuffed, len) in [
            (&[0x47, 1, 0, 0x1b][..], false, 184),
            (&[0x47, 1, 0, 0x3b, 0], true, 183),
            (&[0x47, 1, 0, 0x3b, 1, 0], true, 182),
            (&[0x47, 1, 0, 0x3b, 1, 0x40], false, 182),
            (&[0x47, 1, 0, 0x3b, 9, 0x10], true, 174),
        ] {
            let bytes = filled(head);
            let read = packet(&bytes).unwrap();
            assert_eq!((read.stuffed, read.data.len()), (stuffed, len), "{head:x?}");
        }
    }

    #[test]
    fn packets_without_data_are_left_out() {
        for head in [
            &[0x46, 1, 0, 0x1b][..],  // no sync byte
            &[0x47, 0x81, 0, 0x1b],   // damaged
            &[0x47, 1, 0, 0x9b],      // scrambled
            &[0x47, 1, 0, 0x2b, 183], // an adaptation field only
            &[0x47, 1, 0, 0x3b, 183], // one that leaves no room
            &[0x47, 1, 0, 0x3b, 184], // one longer than the packet
        ] {
            assert_eq!(packet(&filled(head)), None, "{head:x?}");
        }
    }
}
