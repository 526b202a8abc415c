//! Splits coded frames into RTP payloads; one codec, one file.
//!
//! Pieces of one frame or NAL unit have equal length except the last, so that a sender can pass
//! them to the kernel as one segmented send (UDP GSO).

pub mod av1;
pub mod h264;
pub mod h265;
pub mod opus;
pub mod vp8;
pub mod vp9;

/// Length of the pieces when `len` bytes are split into the fewest equal pieces of at most
/// `piece_max`; at least 1.
fn even_piece(len: usize, piece_max: usize) -> usize {
    let pieces = len.div_ceil(piece_max.max(1)).max(1);
    len.div_ceil(pieces).max(1)
}

/// Appends payloads of at most `payload_max` bytes with NAL units whose headers have `HEADER`
/// bytes; units without a whole header are left out. Consecutive ones that fit together are one
/// payload, behind the header that `aggregated` makes of theirs; one that does not fit alone
/// becomes fragments, each behind what `fragmented` makes of its header and of the bits for start
/// (0x80) and end (0x40); all others are sent as they are.
fn nal_units<const HEADER: usize, const FRAGMENT_HEADER: usize>(
    nals: &[&[u8]],
    payload_max: usize,
    aggregated: fn(&[&[u8]]) -> [u8; HEADER],
    fragmented: fn([u8; HEADER], u8) -> [u8; FRAGMENT_HEADER],
    payloads: &mut Vec<Vec<u8>>,
) {
    let payload_max = payload_max.max(FRAGMENT_HEADER + 1);
    let mut rest = nals;
    while let Some((&first, after)) = rest.split_first() {
        let together = how_many_fit(rest, HEADER, payload_max);
        if let (2.., Some((group, after))) = (together, rest.split_at_checked(together)) {
            let mut payload = aggregated(group).to_vec();
            for nal in group {
                // how_many_fit keeps the length within 16 bits.
                payload.extend_from_slice(&(nal.len() as u16).to_be_bytes());
                payload.extend_from_slice(nal);
            }
            payloads.push(payload);
            rest = after;
            continue;
        }
        rest = after;
        let Some((header, body)) = first.split_first_chunk::<HEADER>() else { continue };
        if first.len() <= payload_max {
            payloads.push(first.to_vec());
            continue;
        }
        let pieces = body.chunks(even_piece(body.len(), payload_max - FRAGMENT_HEADER));
        let last = pieces.len().saturating_sub(1);
        for (index, piece) in pieces.enumerate() {
            let start_and_end = u8::from(index == 0) << 7 | u8::from(index == last) << 6;
            payloads.push([fragmented(*header, start_and_end).as_slice(), piece].concat());
        }
    }
}

/// Number of the first units that fit into one payload together.
fn how_many_fit(nals: &[&[u8]], header_len: usize, payload_max: usize) -> usize {
    let mut len = header_len;
    nals.iter()
        .take_while(|nal| {
            len += 2 + nal.len();
            nal.len() >= header_len && nal.len() <= usize::from(u16::MAX) && len <= payload_max
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::even_piece;

    #[test]
    fn pieces_are_even_and_as_few_as_possible() {
        for (len, piece_max, expect) in
            [(0, 100, 1), (100, 100, 100), (101, 100, 51), (1000, 300, 250), (5, 0, 1)]
        {
            assert_eq!(even_piece(len, piece_max), expect, "{len} by {piece_max}");
            assert!(expect <= piece_max.max(1));
        }
    }
}
