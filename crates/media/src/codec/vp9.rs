//! VP9 (RFC 9628): the payload descriptor in flexible and non-flexible mode.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts, TopLayer};

const INTER_PREDICTED: u8 = 0x40;
const LAYERS: u8 = 0x20;
const FLEXIBLE: u8 = 0x10;
const BEGINS: u8 = 0x08;
const ENDS: u8 = 0x04;
const STRUCTURE: u8 = 0x02;
const PICTURE_ID: u8 = 0x80;
/// At most three reference indices (section 4.2).
const REFERENCES_MAX: usize = 3;

/// Reads payloads of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    temporal: TopLayer,
}

impl Reader {
    /// Reads one payload.
    pub(super) fn read(&mut self, payload: &[u8]) -> Result<PayloadFacts, CodecError> {
        let (mut facts, _) = describe(payload)?;
        facts.discardable = self.temporal.is_top(facts.temporal_layer);
        Ok(facts)
    }
}

/// Facts from a payload's descriptor, and its length; the piece of the frame follows it.
pub(crate) fn describe(payload: &[u8]) -> Result<(PayloadFacts, usize), CodecError> {
    let mut descriptor = Descriptor { payload, at: 0 };
    let flags = descriptor.byte()?;
    let mut facts = PayloadFacts::default();
    if flags & PICTURE_ID != 0 {
        let high = descriptor.byte()?;
        facts.picture_id = Some(if high & 0x80 == 0 {
            (u16::from(high), 7)
        } else {
            (u16::from_be_bytes([high & 0x7f, descriptor.byte()?]), 15)
        });
    }
    let mut inter_layer = false;
    if flags & LAYERS != 0 {
        let layers = descriptor.byte()?;
        facts.temporal_layer = layers >> 5;
        facts.spatial_layer = layers >> 1 & 7;
        inter_layer = layers & 1 != 0;
        if flags & FLEXIBLE == 0 {
            facts.base_layer_index = Some(descriptor.byte()?);
        }
    }
    if flags & FLEXIBLE != 0 && flags & INTER_PREDICTED != 0 {
        descriptor.references()?;
    }
    if flags & STRUCTURE != 0 {
        descriptor.structure()?;
    }
    facts.starts_frame = flags & BEGINS != 0 && facts.spatial_layer == 0;
    facts.ends_frame = flags & ENDS != 0;
    let independent = flags & INTER_PREDICTED == 0 && facts.spatial_layer == 0 && !inter_layer;
    facts.key_frame = independent && flags & BEGINS != 0 && descriptor.frame_may_be_key();
    Ok((facts, descriptor.at))
}

/// The unread part of the descriptor.
struct Descriptor<'a> {
    payload: &'a [u8],
    at: usize,
}

impl Descriptor<'_> {
    fn byte(&mut self) -> Result<u8, CodecError> {
        self.skip(1)?;
        Ok(self.payload.get(self.at - 1).copied().unwrap_or_default())
    }

    fn skip(&mut self, len: usize) -> Result<(), CodecError> {
        self.at += len;
        if self.at > self.payload.len() {
            let len = self.payload.len();
            return Err(CodecError::Truncated {
                codec: Codec::Vp9,
                what: "payload descriptor",
                len,
            });
        }
        Ok(())
    }

    fn references(&mut self) -> Result<(), CodecError> {
        for _ in 0..REFERENCES_MAX {
            if self.byte()? & 1 == 0 {
                return Ok(());
            }
        }
        Err(CodecError::Malformed { codec: Codec::Vp9, what: "fourth reference index" })
    }

    /// Whether the frame's own first byte, after the descriptor, allows a key frame: ffmpeg leaves
    /// the P bit unset on every packet, so that by the descriptor alone each of its frames would be
    /// a key frame. For a payload without a VP9 frame header (encrypted end to end) only the
    /// descriptor counts.
    fn frame_may_be_key(&self) -> bool {
        // frame_marker (2 bits, binary 10), profile (2, and a reserved bit for profile 3),
        // show_existing_frame, frame_type (0 is a key frame): section 6.2 of the VP9 bitstream
        // specification.
        match self.payload.get(self.at) {
            Some(&first) if first >> 6 != 0b10 => true,
            Some(&first) if first & 0x30 == 0x30 => first & 0x06 == 0,
            Some(&first) => first & 0x0c == 0,
            None => false,
        }
    }

    /// The scalability structure (section 4.2.1).
    fn structure(&mut self) -> Result<(), CodecError> {
        let head = self.byte()?;
        if head & 0x10 != 0 {
            let spatial_layers = usize::from(head >> 5) + 1;
            self.skip(4 * spatial_layers)?;
        }
        if head & 0x08 != 0 {
            for _ in 0..self.byte()? {
                let references = usize::from(self.byte()? >> 2 & 3);
                self.skip(references)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &[u8]) -> PayloadFacts {
        Reader::default().read(payload).unwrap()
    }

    #[test]
    fn descriptors_as_rfc_9628_draws_them() {
        let none = PayloadFacts::default();
        for (payload, expect) in [
            (
                &[0x0c, 0][..],
                PayloadFacts { starts_frame: true, ends_frame: true, key_frame: true, ..none },
            ),
            (&[0x48, 0], PayloadFacts { starts_frame: true, ..none }),
            (&[0xc4, 0x05, 0], PayloadFacts { ends_frame: true, picture_id: Some((5, 7)), ..none }),
            (&[0xc0, 0x92, 0x34, 0], PayloadFacts { picture_id: Some((0x1234, 15)), ..none }),
            // Non-flexible with layers: TID 1, SID 0, TL0PICIDX 9.
            (
                &[0x68, 0x20, 9, 0],
                PayloadFacts {
                    starts_frame: true,
                    temporal_layer: 1,
                    discardable: true,
                    base_layer_index: Some(9),
                    ..none
                },
            ),
            // Flexible: two references; SID 1 begins a layer but not the picture, and needs the
            // layer below.
            (&[0x78, 0x03, 0x03, 0x02, 0], PayloadFacts { spatial_layer: 1, ..none }),
            (
                &[0x28, 0x03, 0, 0],
                PayloadFacts { spatial_layer: 1, base_layer_index: Some(0), ..none },
            ),
            // A structure of one layer with its size, and a group of two pictures with references.
            (
                &[0x0a, 0x18, 1, 0, 1, 0, 2, 0x04, 1, 0x08, 1, 2, 0xff],
                PayloadFacts { starts_frame: true, key_frame: true, ..none },
            ),
        ] {
            assert_eq!(read(payload), expect, "{payload:x?}");
        }
    }

    #[test]
    fn ffmpeg_leaves_the_p_bit_unset_and_the_frame_header_decides() {
        for (first, key) in [
            (0x82, true),  // profile 0, key frame
            (0x86, false), // inter frame
            (0x8a, false), // shows an existing frame
            (0xb1, true),  // profile 3
            (0xb2, false),
            (0x12, true), // no VP9 frame header
        ] {
            assert_eq!(read(&[0x08, first]).key_frame, key, "{first:x}");
        }
        assert!(!read(&[0x04, 0x82]).key_frame); // only the packet that begins the frame has its header
    }

    #[test]
    fn truncations_and_a_fourth_reference_are_errors() {
        let whole = [0xba, 0x80, 1, 0x00, 0x38, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0x04, 1];
        assert!(Reader::default().read(&whole).is_ok());
        for len in 1..whole.len() {
            assert!(Reader::default().read(&whole[..len]).is_err(), "{len}");
        }
        assert_eq!(
            Reader::default().read(&[0x50, 1, 1, 1, 0]),
            Err(CodecError::Malformed { codec: Codec::Vp9, what: "fourth reference index" })
        );
    }
}
