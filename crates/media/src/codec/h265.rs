//! H.265 (RFC 7798): single NAL units, aggregation packets, fragmentation units and PACI. Decoding
//! order numbers (`sprop-max-don-diff` > 0) are not expected: WebRTC sends in decoding order.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts, TopLayer, nal};
use crate::mark::Mark;
use crate::octets::{chunk_at, u16_at};

const FIRST_NON_SLICE: u8 = 32;
const VPS: u8 = 32;
const SPS: u8 = 33;
const DELIMITER: u8 = 35;
const PREFIX_SEI: u8 = 39;
const AGGREGATION: u8 = 48;
const FRAGMENT: u8 = 49;
const PACI: u8 = 50;

/// Reads payloads of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    temporal: TopLayer,
}

/// The two bytes before every NAL unit and payload (section 1.1.4).
#[derive(Clone, Copy)]
struct Head {
    kind: u8,
    layer: u8,
    temporal: u8,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let &[high, low] = chunk_at(bytes, 0)?;
        let head = Self {
            kind: high >> 1 & 0x3f,
            layer: (high & 1) << 5 | low >> 3,
            temporal: (low & 7).saturating_sub(1), // nuh_temporal_id_plus1
        };
        Some((head, bytes.get(2..)?))
    }
}

fn truncated(what: &'static str, len: usize) -> CodecError {
    CodecError::Truncated { codec: Codec::H265, what, len }
}

impl Reader {
    /// Reads one payload.
    pub(super) fn read(&mut self, payload: &[u8]) -> Result<PayloadFacts, CodecError> {
        let len = payload.len();
        let (head, body) = Head::parse(payload).ok_or_else(|| truncated("payload header", len))?;
        if head.kind == PACI {
            let (head, body) = unpack_paci(head, body, len)?;
            return self.read_kind(head, body, None, len);
        }
        self.read_kind(head, body, Mark::find_h265(payload), len)
    }

    fn read_kind(
        &mut self,
        head: Head,
        body: &[u8],
        mark: Option<Mark>,
        len: usize,
    ) -> Result<PayloadFacts, CodecError> {
        match head.kind {
            AGGREGATION => {
                let facts = nal::aggregate(Codec::H265, len, body, |nal| {
                    let (head, body) = Head::parse(nal)?;
                    let mark = Mark::find_h265(nal);
                    Some(PayloadFacts { mark, ..self.facts(head, body, true) })
                })?;
                let Head { layer, temporal, .. } = head;
                Ok(PayloadFacts { spatial_layer: layer, temporal_layer: temporal, ..facts })
            }
            FRAGMENT => {
                let (&header, body) =
                    body.split_first().ok_or_else(|| truncated("FU header", len))?;
                let kind = header & 0x3f;
                if kind >= AGGREGATION {
                    return Err(CodecError::Malformed {
                        codec: Codec::H265,
                        what: "fragmented NAL unit type",
                    });
                }
                Ok(self.facts(Head { kind, ..head }, body, header & 0x80 != 0))
            }
            0..AGGREGATION => Ok(PayloadFacts { mark, ..self.facts(head, body, true) }),
            _ => Err(CodecError::Malformed { codec: Codec::H265, what: "NAL unit type" }),
        }
    }

    /// Facts from a NAL unit, or its first fragment; `body` follows the NAL unit's header.
    fn facts(&mut self, head: Head, body: &[u8], first_fragment: bool) -> PayloadFacts {
        let slice = head.kind < FIRST_NON_SLICE;
        let starts_frame = match head.kind {
            // The bit is first_slice_segment_in_pic_flag.
            0..FIRST_NON_SLICE => body.first().is_some_and(|&first| first & 0x80 != 0),
            _ => precedes_slices(head.kind),
        };
        let top = slice && self.temporal.is_top(head.temporal);
        PayloadFacts {
            starts_frame: starts_frame && first_fragment && head.layer == 0,
            precedes_picture: precedes_slices(head.kind),
            key_frame: matches!(head.kind, 16..=23 | VPS | SPS),
            // Even types below 16 are not referred to by frames of the same temporal layer (table
            // 7-1 of H.265), but may be by those of a higher one.
            discardable: head.kind < 16 && head.kind.is_multiple_of(2) && top,
            spatial_layer: head.layer,
            temporal_layer: head.temporal,
            ..PayloadFacts::default()
        }
    }
}

/// The payload of a PACI packet (section 4.4.4): its header consists of fields of the PACI header.
fn unpack_paci(head: Head, body: &[u8], len: usize) -> Result<(Head, &[u8]), CodecError> {
    let fields = u16_at(body, 0).ok_or_else(|| truncated("PACI header", len))?;
    let (kind, extension_len) = ((fields >> 9 & 0x3f) as u8, usize::from(fields >> 4 & 0x1f));
    let body = body.get(2 + extension_len..).ok_or_else(|| truncated("PACI extension", len))?;
    Ok((Head { kind, ..head }, body))
}

/// Units that are allowed before the first slice.
fn precedes_slices(kind: u8) -> bool {
    matches!(kind, VPS..=DELIMITER | PREFIX_SEI)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reader: &mut Reader, payload: &[u8], expect: &str) {
        let said = match reader.read(payload) {
            Ok(f) => [
                (f.starts_frame, 's'),
                (f.key_frame, 'k'),
                (f.discardable, 'd'),
                (f.mark.is_some(), 'm'),
            ]
            .iter()
            .filter_map(|&(is, letter)| is.then_some(letter))
            .collect(),
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expect, "{payload:x?}");
    }

    /// NAL header bytes of a type in temporal layer `temporal`.
    fn nal(kind: u8, temporal: u8) -> [u8; 2] {
        [kind << 1, temporal + 1]
    }

    #[test]
    fn nal_units_say_what_they_are() {
        for (head, rest, expect) in [
            (nal(19, 0), &[0x80][..], "sk"), // IDR_W_RADL, first slice
            (nal(19, 0), &[0x00], "k"),
            (nal(21, 0), &[0x80], "sk"), // CRA
            (nal(VPS, 0), &[1], "sk"),
            (nal(SPS, 0), &[1], "sk"),
            (nal(34, 0), &[1], "s"), // PPS
            (nal(40, 0), &[1], ""),  // suffix SEI
            (nal(1, 0), &[0x80], "s"),
            (nal(0, 0), &[0x80], "s"), // not referred to, and no higher layer was seen: it may be the only one
            (nal(FRAGMENT, 0), &[0x80 | 19, 0x80], "sk"),
            (nal(FRAGMENT, 0), &[19, 0x80], "k"),
            (nal(PACI, 0), &[19 << 1, 0, 0x80], "sk"), // PACI with an IDR slice
            (nal(PACI, 0), &[FRAGMENT << 1, 0x10, 9, 0x80 | 1, 0x80], "s"), // with one byte of extension and an FU
            (nal(AGGREGATION, 0), &[0, 3, 33 << 1, 1, 9, 0, 3, 19 << 1, 1, 0x80], "sk"),
        ] {
            check(&mut Reader::default(), &[&head[..], rest].concat(), expect);
        }
    }

    #[test]
    fn only_the_top_temporal_layer_is_discardable() {
        let mut reader = Reader::default();
        let at = |kind, temporal| [&nal(kind, temporal)[..], &[0x80]].concat();
        check(&mut reader, &at(1, 0), "s");
        check(&mut reader, &at(0, 1), "sd");
        check(&mut reader, &at(2, 2), "sd");
        check(&mut reader, &at(0, 1), "s"); // layer 2 may refer to it
        check(&mut reader, &at(1, 2), "s"); // a reference picture of the top layer
        assert_eq!(reader.read(&at(0, 2)).unwrap().temporal_layer, 2);
    }

    #[test]
    fn what_does_not_fit_the_format_is_named() {
        for (payload, expect) in [
            (&[0x26][..], "H265 payload of 1 bytes ends inside its payload header"),
            (&[0x60, 1], "H265 payload has a bad aggregation without NAL units"),
            (&[0x60, 1, 0, 1, 9], "H265 payload of 5 bytes ends inside its aggregated NAL unit"),
            (&[0x60, 1, 0, 9, 9, 9], "H265 payload of 6 bytes ends inside its aggregated NAL unit"),
            (&[0x62, 1], "H265 payload of 2 bytes ends inside its FU header"),
            (&[0x62, 1, 0xb1], "H265 payload has a bad fragmented NAL unit type"),
            (&[0x64, 1, 0], "H265 payload of 3 bytes ends inside its PACI header"),
            (&[0x64, 1, 0x26, 0x10], "H265 payload of 4 bytes ends inside its PACI extension"),
            (&[0x64, 1, 0x64, 0], "H265 payload has a bad NAL unit type"), // a PACI in a PACI
            (&[0x66, 1], "H265 payload has a bad NAL unit type"),
        ] {
            check(&mut Reader::default(), payload, expect);
        }
    }

    #[test]
    fn marks_are_found_alone_and_aggregated() {
        let mut sei = Vec::new();
        Mark { frame: 7, captured_unix_ns: 9 }.write_h265(&mut sei);
        check(&mut Reader::default(), &sei, "sm");
        let packet =
            [&nal(AGGREGATION, 0)[..], &[0, sei.len() as u8], &sei, &[0, 3, 2, 1, 0x80]].concat();
        check(&mut Reader::default(), &packet, "sm");
    }
}
