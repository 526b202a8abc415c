//! VP8 (RFC 7741): the payload descriptor, and the first byte of the frame for the key frame bit.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts, TopLayer};
use crate::octets::u16_at;

/// Reads payloads of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    temporal: TopLayer,
}

impl Reader {
    /// Reads one payload.
    pub(super) fn read(&mut self, payload: &[u8]) -> Result<PayloadFacts, CodecError> {
        let (mut facts, _) = describe(payload)?;
        facts.discardable |= self.temporal.is_top(facts.temporal_layer);
        Ok(facts)
    }
}

/// Facts from a payload's descriptor, and its length; the piece of the frame follows it.
pub(crate) fn describe(payload: &[u8]) -> Result<(PayloadFacts, usize), CodecError> {
    let read = |at: usize| {
        payload.get(at).copied().ok_or(CodecError::Truncated {
            codec: Codec::Vp8,
            what: "payload descriptor",
            len: payload.len(),
        })
    };
    let first = read(0)?;
    let mut at = 1;
    let mut facts = PayloadFacts::default();
    if first & 0x80 != 0 {
        let present = read(1)?;
        at = 2;
        if present & 0x80 != 0 {
            let low = read(at)?;
            if low & 0x80 != 0 {
                read(at + 1)?;
                facts.picture_id = u16_at(payload, at).map(|id| (id & 0x7fff, 15));
                at += 2;
            } else {
                facts.picture_id = Some((u16::from(low), 7));
                at += 1;
            }
        }
        if present & 0x40 != 0 {
            facts.base_layer_index = Some(read(at)?);
            at += 1;
        }
        if present & 0x30 != 0 {
            // TID, Y and KEYIDX share a byte that is present when either T or K is set.
            let layer = read(at)?;
            at += 1;
            if present & 0x20 != 0 {
                facts.temporal_layer = layer >> 6;
            }
        }
    }
    facts.discardable = first & 0x20 != 0;
    // S is set and the partition is the first.
    facts.starts_frame = first & 0x17 == 0x10;
    // Only in the frame's first byte (section 4.3): its lowest bit is 0 for a key frame.
    facts.key_frame = facts.starts_frame && read(at)? & 1 == 0;
    Ok((facts, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &[u8]) -> PayloadFacts {
        Reader::default().read(payload).unwrap()
    }

    #[test]
    fn descriptors_as_rfc_7741_draws_them() {
        let start = PayloadFacts { starts_frame: true, ..PayloadFacts::default() };
        for (payload, expect) in [
            (&[0x10, 0][..], PayloadFacts { key_frame: true, ..start }), // section 4.6.1 shape: no extension
            (&[0x10, 1], start),
            (&[0x00, 0], PayloadFacts::default()), // a later packet of the partition
            (&[0x11, 0], PayloadFacts::default()), // the start of partition 1
            (&[0x30, 1], PayloadFacts { discardable: true, ..start }),
            (&[0x90, 0x80, 0x7f, 1], PayloadFacts { picture_id: Some((0x7f, 7)), ..start }),
            (
                &[0x90, 0x80, 0x92, 0x34, 1],
                PayloadFacts { picture_id: Some((0x1234, 15)), ..start },
            ),
            (&[0x90, 0x40, 9, 1], PayloadFacts { base_layer_index: Some(9), ..start }),
            (&[0x90, 0x10, 0xc3, 1], start), // KEYIDX without TID
            (
                &[0x90, 0xf0, 0x80, 5, 9, 0x83, 0],
                PayloadFacts {
                    key_frame: true,
                    picture_id: Some((5, 15)),
                    base_layer_index: Some(9),
                    temporal_layer: 2,
                    discardable: true,
                    ..start
                },
            ),
        ] {
            assert_eq!(read(payload), expect, "{payload:x?}");
        }
    }

    #[test]
    fn only_the_top_temporal_layer_is_discardable() {
        let mut reader = Reader::default();
        let expect = [(0, false), (2, true), (1, false), (2, true), (0, false)];
        for (layer, discardable) in expect {
            let facts = reader.read(&[0x90, 0x20, layer << 6, 1]).unwrap();
            assert_eq!((facts.temporal_layer, facts.discardable), (layer, discardable));
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = [0x90, 0xf0, 0x80, 5, 9, 0x83, 0];
        for len in 1..whole.len() {
            assert!(
                matches!(Reader::default().read(&whole[..len]), Err(CodecError::Truncated { .. })),
                "{len}"
            );
        }
    }
}
