//! AV1 (RTP payload specification of the Alliance for Open Media): the aggregation header and the
//! OBU headers, or the dependency descriptor where the packet has one.

use throng_observation::Codec;

use super::{CodecError, DependencyReader, PayloadFacts};
use crate::octets::leb128;

const SEQUENCE_HEADER: u8 = 1;
const FRAME_HEADER: u8 = 3;
const FRAME: u8 = 6;
const METADATA: u8 = 5;
const TEMPORAL_DELIMITER: u8 = 2;

/// Reads payloads of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    dependency: DependencyReader,
}

impl Reader {
    /// Reads one payload, with its dependency descriptor if it has one.
    pub(super) fn read(
        &mut self,
        payload: &[u8],
        descriptor: Option<&[u8]>,
    ) -> Result<PayloadFacts, CodecError> {
        let facts = read_obus(payload)?;
        match descriptor {
            Some(descriptor) => self.refine(facts, descriptor),
            None => Ok(facts),
        }
    }

    fn refine(
        &mut self,
        facts: PayloadFacts,
        descriptor: &[u8],
    ) -> Result<PayloadFacts, CodecError> {
        let said = self.dependency.read(descriptor)?;
        let (spatial_layer, temporal_layer) =
            said.template.map_or((facts.spatial_layer, facts.temporal_layer), |t| {
                (t.spatial_layer, t.temporal_layer)
            });
        Ok(PayloadFacts {
            starts_frame: said.start_of_frame && spatial_layer == 0,
            ends_frame: said.end_of_frame,
            key_frame: said.template.map_or(facts.key_frame, |template| template.independent),
            discardable: said.template.is_some_and(|template| template.discardable),
            picture_id: Some((said.frame_number, 16)),
            spatial_layer,
            temporal_layer,
            ..facts
        })
    }
}

fn truncated(payload: &[u8], what: &'static str) -> CodecError {
    CodecError::Truncated { codec: Codec::Av1, what, len: payload.len() }
}

/// Iterates over the OBU elements after the aggregation header (section 4.4 of the payload
/// specification).
fn read_obus(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    let (&aggregation, mut rest) =
        payload.split_first().ok_or_else(|| truncated(payload, "aggregation header"))?;
    let continues = aggregation & 0x80 != 0;
    let count = aggregation >> 4 & 3;
    let new_sequence = aggregation & 0x08 != 0;
    if new_sequence && continues {
        return Err(CodecError::Malformed {
            codec: Codec::Av1,
            what: "aggregation header: N with Z",
        });
    }

    let mut facts = PayloadFacts::default();
    let (mut sequence_header, mut frame_type) = (false, None);
    let mut index = 0_usize;
    while !rest.is_empty() {
        index += 1;
        // With W the last element has no length (and W = 0 gives each one a length).
        let element = if index == usize::from(count) {
            std::mem::take(&mut rest)
        } else {
            let (len, after) = leb128(rest).ok_or_else(|| truncated(payload, "OBU length"))?;
            let (element, after) =
                after.split_at_checked(len).ok_or_else(|| truncated(payload, "OBU element"))?;
            rest = after;
            element
        };
        if index == 1 && continues {
            continue; // the rest of an OBU whose head was in an earlier packet
        }
        let Some(obu) = Obu::parse(element) else { continue };
        if index == 1 {
            facts.starts_frame = obu.may_begin_picture();
        }
        if let Some((temporal, spatial)) = obu.layers {
            (facts.temporal_layer, facts.spatial_layer) = (temporal, spatial);
        }
        sequence_header |= obu.kind == SEQUENCE_HEADER;
        if matches!(obu.kind, FRAME | FRAME_HEADER) && frame_type.is_none() {
            frame_type = obu.body.first().map(|&first| first >> 5);
        }
    }
    facts.starts_frame &= facts.spatial_layer == 0;
    facts.key_frame = match frame_type {
        // show_existing_frame (1 bit) and frame_type (2 bits, 0 is a key frame), AV1 section 5.9.2.
        Some(head) => head == 0,
        None => new_sequence || sequence_header,
    };
    Ok(facts)
}

/// An OBU header (AV1 section 5.3).
struct Obu<'a> {
    kind: u8,
    layers: Option<(u8, u8)>,
    body: &'a [u8],
}

impl<'a> Obu<'a> {
    fn parse(element: &'a [u8]) -> Option<Self> {
        let (&head, mut body) = element.split_first()?;
        let mut layers = None;
        if head & 0x04 != 0 {
            let (&extension, after) = body.split_first()?;
            layers = Some((extension >> 5, extension >> 3 & 3));
            body = after;
        }
        if head & 0x02 != 0 {
            // The specification asks senders to omit the size, and receivers to accept it.
            body = leb128(body)?.1;
        }
        Some(Self { kind: head >> 3 & 0x0f, layers, body })
    }

    /// Tile groups and similar OBUs only follow a frame header.
    fn may_begin_picture(&self) -> bool {
        matches!(self.kind, SEQUENCE_HEADER | TEMPORAL_DELIMITER | FRAME_HEADER | METADATA | FRAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief(payload: &[u8]) -> String {
        match read_obus(payload) {
            Ok(f) => {
                let letters = [(f.starts_frame, 's'), (f.key_frame, 'k')];
                letters.iter().filter_map(|&(is, letter)| is.then_some(letter)).collect()
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn packets_say_what_their_obus_are() {
        for (payload, expect) in [
            (&[0x18, 0x30, 0x10][..], "sk"),            // N, W=1, FRAME, key
            (&[0x28, 2, 0x08, 0, 0x30, 0x10], "sk"),    // N, W=2: sequence header and FRAME
            (&[0x10, 0x30, 0x30], "s"),                 // frame_type 1: inter
            (&[0x10, 0x18, 0x90], "s"),                 // show_existing_frame
            (&[0x08, 2, 0x08, 0, 2, 0x30, 0x10], "sk"), // W=0: every element has a length
            (&[0x58, 0x08], "sk"), // the beginning of a sequence header that continues (Y)
            (&[0x90, 0x30, 0x10], ""), // Z: a fragment, whatever its bytes look like
            (&[0xa0, 1, 9, 0x20, 0], ""), // a fragment, then a tile group
            (&[0x10, 0x32, 5, 0x10], "sk"), // with a size field
            (&[0x10, 0x34, 0x08, 0x10], "k"), // extension: spatial layer 1 begins no picture
            (&[0x10], ""),         // nothing after the header
        ] {
            assert_eq!(brief(payload), expect, "{payload:x?}");
        }
        assert_eq!(
            read_obus(&[0x10, 0x34, 0x48, 0x10]).map(|f| (f.temporal_layer, f.spatial_layer)),
            Ok((2, 1))
        );
    }

    #[test]
    fn what_does_not_fit_the_format_is_named() {
        for (payload, expect) in [
            (&[0x88, 0][..], "AV1 payload has a bad aggregation header: N with Z"),
            (&[0x00, 5, 0x30], "AV1 payload of 3 bytes ends inside its OBU element"),
            (&[0x00, 0x80], "AV1 payload of 2 bytes ends inside its OBU length"),
            (
                &[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                "AV1 payload of 10 bytes ends inside its OBU length",
            ),
        ] {
            assert_eq!(brief(payload), expect, "{payload:x?}");
        }
    }

    #[test]
    fn the_dependency_descriptor_knows_better() {
        let mut reader = Reader::default();
        // Start and end of frame 7, template 0, its structure unknown.
        let facts = reader.read(&[0x10, 0x20, 0], Some(&[0xc0, 0, 7])).unwrap();
        assert!(facts.starts_frame && facts.ends_frame && !facts.key_frame);
        assert_eq!(facts.picture_id, Some((7, 16)));
        assert!(reader.read(&[0x10, 0x20, 0], Some(&[0xc0])).is_err());
    }
}
