//! Extended reports (RFC 3611). Nothing is used of them: a malformed one is reported.

use crate::octets::chunk_at;

const RECEIVER_REFERENCE_TIME: u8 = 4;
const DELAY_SINCE_LAST_RECEIVER_REPORT: u8 = 5;
const SUB_BLOCK_LEN: usize = 12;

/// Whether the blocks of a report fill it, and have the lengths that their types demand.
pub(super) fn check(body: &[u8]) -> Result<(), &'static str> {
    let mut rest = body.get(4..).ok_or("XR reporter")?;
    while !rest.is_empty() {
        let (block_type, block, after) = split_block(rest).ok_or("XR block length")?;
        match block_type {
            RECEIVER_REFERENCE_TIME if block.len() != 8 => return Err("RRTR block"),
            DELAY_SINCE_LAST_RECEIVER_REPORT if !block.len().is_multiple_of(SUB_BLOCK_LEN) => {
                return Err("DLRR block");
            }
            _ => rest = after,
        }
    }
    Ok(())
}

fn split_block(blocks: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let &[block_type, _, l0, l1] = chunk_at(blocks, 0)?;
    let len = 4 * usize::from(u16::from_be_bytes([l0, l1]));
    let (body, rest) = blocks.get(4..)?.split_at_checked(len)?;
    Some((block_type, body, rest))
}

#[cfg(test)]
mod tests {
    use crate::rtcp::{Compound, Rtcp, RtcpError};

    #[test]
    fn reports_as_rfc_3611_draws_them_are_well_formed() {
        let reference_time = [0x80, 207, 0, 4, 0, 0, 0, 1, 4, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8];
        let delays = [&[0x80, 207, 0, 8, 0, 0, 0, 1, 5, 0, 0, 6][..], &[7; 24]].concat();
        let unknown = [
            0x80, 207, 0, 6, 0, 0, 0, 1, 42, 7, 0, 1, 9, 9, 9, 9, 4, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0,
            0,
        ];
        for bytes in [&reference_time[..], &delays, &unknown] {
            assert!(matches!(Compound::new(bytes).next(), Some(Ok(Rtcp::ExtendedReport))));
        }
    }

    #[test]
    fn blocks_of_the_wrong_length_are_refused() {
        for bytes in [
            &[0x80, 207, 0, 2, 0, 0, 0, 1, 4, 0, 0, 2][..],
            &[0x80, 207, 0, 3, 0, 0, 0, 1, 4, 0, 0, 1, 0, 0, 0, 0],
            &[0x80, 207, 0, 3, 0, 0, 0, 1, 5, 0, 0, 1, 0, 0, 0, 0],
        ] {
            assert!(matches!(Compound::new(bytes).next(), Some(Err(RtcpError::Malformed { .. }))));
        }
    }
}
