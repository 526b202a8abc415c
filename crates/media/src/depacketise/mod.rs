//! Assembles RTP payloads into what a decoder takes: Annex B for H.264 and H.265, bare frames for
//! VP8 and VP9, low-overhead temporal units for AV1. The inverse of `packetise`; one codec, one
//! file.

use throng_observation::Codec;

use crate::codec::{CodecError, vp8, vp9};

mod av1;

mod h264;

mod h265;

/// Precedes each unit of H.264 and H.265 (Annex B of both).
const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Appends the coded frame whose payloads, in order and complete, are `payloads`.
///
/// # Errors
/// When a payload violates its format, or the codec is an audio codec or one that only RTSP uses;
/// `out` then ends with a part of the frame.
pub fn frame<'a>(
    codec: Codec,
    payloads: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let mut payloads = payloads.filter(|payload| !payload.is_empty());
    match codec {
        Codec::H264 => payloads.try_for_each(|payload| h264::append(payload, out)),
        Codec::H265 => payloads.try_for_each(|payload| h265::append(payload, out)),
        Codec::Vp8 => {
            payloads.try_for_each(|payload| piece(payload, vp8::describe(payload)?.1, out))
        }
        Codec::Vp9 => {
            payloads.try_for_each(|payload| piece(payload, vp9::describe(payload)?.1, out))
        }
        Codec::Av1 => av1::append(payloads, out),
        Codec::Opus | Codec::Pcmu | Codec::Pcma | Codec::Aac | Codec::MpegAudio | Codec::Other => {
            Err(CodecError::Unsupported { codec, what: "no pictures" })
        }
        Codec::MpegVideo | Codec::Mpeg4Visual | Codec::Jpeg | Codec::Mp2t => {
            Err(CodecError::Unsupported { codec, what: "a format of RTSP" })
        }
    }
}

/// Everything after the payload's descriptor is the frame's next piece.
fn piece(payload: &[u8], descriptor_len: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    out.extend_from_slice(payload.get(descriptor_len..).unwrap_or_default());
    Ok(())
}

/// Appends the units of an aggregation: each with its length, 16 bits, before it (RFC 6184 5.7.1,
/// RFC 7798 4.4.2).
fn aggregated(codec: Codec, mut units: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    while let Some((len, rest)) = units.split_first_chunk::<2>() {
        let unit = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)));
        let (unit, after) = unit.ok_or(CodecError::Truncated {
            codec,
            what: "aggregated NAL unit",
            len: units.len(),
        })?;
        out.extend_from_slice(&START_CODE);
        out.extend_from_slice(unit);
        units = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packetise;
    use proptest::prelude::*;

    fn back(codec: Codec, payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        frame(codec, payloads.iter().map(Vec::as_slice), &mut out).unwrap();
        out
    }

    fn annex_b(nals: &[Vec<u8>]) -> Vec<u8> {
        nals.iter().flat_map(|nal| [&START_CODE[..], nal].concat()).collect()
    }

    #[test]
    fn sound_is_no_picture_and_damage_is_an_error() {
        for codec in [Codec::Opus, Codec::Pcma, Codec::Jpeg, Codec::Mp2t, Codec::Other] {
            assert!(frame(codec, [&[1_u8][..]].into_iter(), &mut Vec::new()).is_err());
        }
        for (codec, payload) in [
            (Codec::H264, &[24, 0, 9, 1][..]),
            (Codec::H264, &[28]),
            (Codec::H264, &[30, 1, 2]),
            (Codec::H265, &[48 << 1, 1, 0, 9, 1]),
            (Codec::H265, &[49 << 1, 1]),
            (Codec::H265, &[1]),
            (Codec::Vp8, &[0x90]),
            (Codec::Vp9, &[0x80]),
            (Codec::Av1, &[0x00, 0x85]),
            (Codec::Av1, &[0x40, 0x01, 0x30]),
        ] {
            assert!(
                frame(codec, [payload].into_iter(), &mut Vec::new()).is_err(),
                "{codec:?} {payload:x?}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_packetised_comes_back(
            body in prop::collection::vec(any::<u8>(), 1..3000),
            nals in prop::collection::vec((0x61_u8..=0x68, prop::collection::vec(any::<u8>(), 1..400)), 1..6),
            payload_max in 16_usize..1300,
        ) {
            let mut payloads = Vec::new();
            packetise::vp8::packetise(&body, 7, payload_max, &mut payloads);
            prop_assert_eq!(back(Codec::Vp8, &payloads), &body[..]);
            payloads.clear();
            packetise::vp9::packetise(&body, 7, payload_max, &mut payloads);
            prop_assert_eq!(back(Codec::Vp9, &payloads), &body[..]);

            let h264: Vec<Vec<u8>> = nals.iter().map(|(head, body)| [&[*head], &body[..]].concat()).collect();
            let borrowed: Vec<&[u8]> = h264.iter().map(Vec::as_slice).collect();
            payloads.clear();
            packetise::h264::packetise(&borrowed, payload_max, &mut payloads);
            prop_assert_eq!(back(Codec::H264, &payloads), annex_b(&h264));

            // A type below 48 and a temporal id above 0.
            let h265: Vec<Vec<u8>> =
                nals.iter().map(|(head, body)| [&[(head & 0x1f) << 1, 1], &body[..]].concat()).collect();
            let borrowed: Vec<&[u8]> = h265.iter().map(Vec::as_slice).collect();
            payloads.clear();
            packetise::h265::packetise(&borrowed, payload_max, &mut payloads);
            prop_assert_eq!(back(Codec::H265, &payloads), annex_b(&h265));
        }

        #[test]
        fn hostile_payloads_never_panic_nor_grow(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
        ) {
            let len: usize = payloads.iter().map(Vec::len).sum();
            for codec in [Codec::H264, Codec::H265, Codec::Vp8, Codec::Vp9, Codec::Av1] {
                let mut out = Vec::new();
                let _ = frame(codec, payloads.iter().map(Vec::as_slice), &mut out);
                prop_assert!(out.len() <= 4 * len + 16, "{codec:?}: {} of {len}", out.len());
            }
        }
    }
}
