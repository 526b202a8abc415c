//! Writing an RTP header with the extensions that a session has negotiated.

use super::element::{ONE_BYTE_PROFILE, TWO_BYTE_PROFILE};
use super::extension::{Extension, ExtensionIds, Extensions};

/// The fixed fields of an RTP header to write; no contributing sources, no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// Payload type, 0–127.
    pub payload_type: u8,
    /// The marker bit.
    pub marker: bool,
    /// Sequence number.
    pub sequence: u16,
    /// Media timestamp in units of the codec's clock rate.
    pub timestamp: u32,
    /// Synchronization source.
    pub ssrc: u32,
}

/// Appends an RTP header to `out`; the payload follows it. Returns the header's length in bytes.
///
/// Extensions with a value and an id are written, in the one-byte form of RFC 8285 when every id is
/// at most 14 and every element 1–16 bytes long, otherwise in the two-byte form. Elements too long
/// for both (more than 255 bytes) are left out.
pub fn write_header(
    out: &mut Vec<u8>,
    fields: &HeaderFields,
    ids: &ExtensionIds,
    extensions: &Extensions<'_>,
) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0x80, u8::from(fields.marker) << 7 | (fields.payload_type & 0x7f)]);
    out.extend_from_slice(&fields.sequence.to_be_bytes());
    out.extend_from_slice(&fields.timestamp.to_be_bytes());
    out.extend_from_slice(&fields.ssrc.to_be_bytes());

    let mut two_byte = false;
    let mut any = false;
    for_each_element(ids, extensions, |id, data| {
        any = true;
        two_byte |= id > 14 || data.is_empty() || data.len() > 16;
    });
    if any {
        if let Some(first) = out.get_mut(start) {
            *first |= 0x10;
        }
        write_block(out, ids, extensions, two_byte);
    }
    out.len() - start
}

fn write_block(out: &mut Vec<u8>, ids: &ExtensionIds, extensions: &Extensions<'_>, two_byte: bool) {
    let block = out.len();
    out.extend_from_slice(
        &if two_byte { TWO_BYTE_PROFILE } else { ONE_BYTE_PROFILE }.to_be_bytes(),
    );
    out.extend_from_slice(&[0, 0]); // length, filled in below
    for_each_element(ids, extensions, |id, data| {
        let len = data.len() as u8; // for_each_element passes at most 255 bytes
        if two_byte {
            out.extend_from_slice(&[id, len]);
        } else {
            out.push(id << 4 | (len - 1));
        }
        out.extend_from_slice(data);
    });
    let body_len = (out.len() - block - 4).next_multiple_of(4);
    out.resize(block + 4 + body_len, 0);
    // Ten elements of at most 257 bytes are far below the 2^16 words of the length field.
    if let Some(length) = out.get_mut(block + 2..block + 4) {
        length.copy_from_slice(&((body_len / 4) as u16).to_be_bytes());
    }
}

/// Calls `each` with the id and the bytes of every element to write.
fn for_each_element(
    ids: &ExtensionIds,
    extensions: &Extensions<'_>,
    mut each: impl FnMut(u8, &[u8]),
) {
    let mut element = |extension, data: &[u8]| {
        if let Some(id) = ids.id(extension)
            && data.len() <= 255
        {
            each(id, data);
        }
    };
    if let Some(time) = extensions.abs_send_time {
        element(Extension::AbsSendTime, &time.0.to_be_bytes()[1..]);
    }
    if let Some(time) = extensions.abs_capture_time {
        let mut data = [0; 16];
        data[..8].copy_from_slice(&time.captured.0.to_be_bytes());
        data[8..].copy_from_slice(&time.clock_offset.unwrap_or(0).to_be_bytes());
        element(
            Extension::AbsCaptureTime,
            if time.clock_offset.is_some() { &data } else { &data[..8] },
        );
    }
    if let Some(sequence) = extensions.transport_sequence {
        element(Extension::TransportSequence, &sequence.to_be_bytes());
    }
    for (extension, text) in [
        (Extension::Mid, extensions.mid),
        (Extension::Rid, extensions.rid),
        (Extension::RepairedRid, extensions.repaired_rid),
    ] {
        if let Some(text) = text {
            element(extension, text.as_bytes());
        }
    }
    if let Some(level) = extensions.audio_level {
        element(Extension::AudioLevel, &[level.to_byte()]);
    }
    if let Some(orientation) = extensions.video_orientation {
        element(Extension::VideoOrientation, &[orientation]);
    }
    if let Some(delay) = extensions.playout_delay {
        element(Extension::PlayoutDelay, &delay.to_bits().to_be_bytes()[1..]);
    }
    if let Some(descriptor) = extensions.dependency_descriptor {
        element(Extension::DependencyDescriptor, descriptor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::{AbsCaptureTime, AbsSendTime, AudioLevel, NtpTime, PlayoutDelay, RtpHeader};
    use proptest::prelude::*;

    const FIELDS: HeaderFields = HeaderFields {
        payload_type: 96,
        marker: true,
        sequence: 7,
        timestamp: 90_000,
        ssrc: 0xabcd,
    };

    fn ids(first: u8) -> ExtensionIds {
        ExtensionIds::from_pairs(
            Extension::ALL.iter().zip(first..).map(|(extension, id)| (id, extension.uri())),
        )
    }

    fn all<'a>(mid: &'a str, descriptor: &'a [u8], clock_offset: Option<i64>) -> Extensions<'a> {
        Extensions {
            abs_send_time: Some(AbsSendTime(0x12_3456)),
            abs_capture_time: Some(AbsCaptureTime {
                captured: NtpTime(0x0123_4567_89ab_cdef),
                clock_offset,
            }),
            transport_sequence: Some(0xfedc),
            mid: Some(mid),
            rid: Some("hi"),
            repaired_rid: Some("lo"),
            audio_level: Some(AudioLevel { voice: true, minus_dbov: 33 }),
            dependency_descriptor: Some(descriptor),
            video_orientation: Some(3),
            playout_delay: Some(PlayoutDelay { min_ms: 0, max_ms: 400 }),
        }
    }

    fn read_back(first_id: u8, extensions: &Extensions<'_>) -> u16 {
        let mut out = vec![0xee; 3]; // headers are appended to existing bytes
        let len = write_header(&mut out, &FIELDS, &ids(first_id), extensions);
        let packet = &out[3..];
        let header = RtpHeader::parse(packet).unwrap();
        assert_eq!((header.header_len, packet.len()), (len, len));
        assert_eq!(
            (header.payload_type, header.marker, header.sequence, header.timestamp, header.ssrc),
            (96, true, 7, 90_000, 0xabcd)
        );
        assert_eq!(&ids(first_id).read(&header, packet), extensions);
        header.extension.unwrap().profile
    }

    #[test]
    fn without_extensions_it_is_the_twelve_bytes_of_rfc_3550() {
        let mut out = Vec::new();
        assert_eq!(write_header(&mut out, &FIELDS, &ids(1), &Extensions::default()), 12);
        assert_eq!(
            write_header(&mut out, &FIELDS, &ExtensionIds::default(), &all("0", &[], None)),
            12
        );
        assert_eq!(out[..12], [0x80, 0xe0, 0, 7, 0, 1, 0x5f, 0x90, 0, 0, 0xab, 0xcd]);
        assert_eq!(out[..12], out[12..]);
    }

    #[test]
    fn the_form_follows_ids_and_lengths() {
        assert_eq!(read_back(1, &all("0", &[1, 2, 3], None)), 0xbede);
        assert_eq!(read_back(1, &all("0", &[1, 2, 3], Some(-5))), 0xbede);
        assert_eq!(read_back(6, &all("0", &[1, 2, 3], None)), 0x1000); // ids up to 15
        assert_eq!(read_back(1, &all("0", &[1; 17], None)), 0x1000);
        assert_eq!(read_back(200, &all("0", &[1; 255], None)), 0x1000);
    }

    #[test]
    fn an_element_that_no_form_can_carry_is_left_out() {
        let mut out = Vec::new();
        let extensions =
            Extensions { dependency_descriptor: Some(&[0; 256]), ..Extensions::default() };
        assert_eq!(write_header(&mut out, &FIELDS, &ids(1), &extensions), 12);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(first in 1_u8..240, mid in "[a-z0-9]{1,40}", dd in prop::collection::vec(0_u8.., 1..60), offset: Option<i64>) {
            read_back(first, &all(&mid, &dd, offset));
        }
    }
}
