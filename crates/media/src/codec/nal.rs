//! What payloads of H.264 (RFC 6184) and H.265 (RFC 7798) have in common.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts};
use crate::octets::u16_at;

/// Facts of the aggregated `units` of a payload of `len` bytes: of its frame what any of them says,
/// of its beginning what the first one says. `single` has those of one unit, `None` if it is too
/// short.
pub(super) fn aggregate(
    codec: Codec,
    len: usize,
    mut units: &[u8],
    mut single: impl FnMut(&[u8]) -> Option<PayloadFacts>,
) -> Result<PayloadFacts, CodecError> {
    let mut all: Option<PayloadFacts> = None;
    while !units.is_empty() {
        let unit = first(units).and_then(|(nal, rest)| Some((single(nal)?, rest)));
        let truncated = CodecError::Truncated { codec, what: "aggregated NAL unit", len };
        let (said, rest) = unit.ok_or(truncated)?;
        all = Some(all.map_or(said, |all| PayloadFacts {
            precedes_picture: all.precedes_picture && said.precedes_picture,
            key_frame: all.key_frame || said.key_frame,
            discardable: all.discardable || said.discardable,
            mark: all.mark.or(said.mark),
            ..all
        }));
        units = rest;
    }
    all.ok_or(CodecError::Malformed { codec, what: "aggregation without NAL units" })
}

/// The first of the units, each behind its length, and what is after it.
fn first(units: &[u8]) -> Option<(&[u8], &[u8])> {
    units.get(2..)?.split_at_checked(usize::from(u16_at(units, 0)?))
}
