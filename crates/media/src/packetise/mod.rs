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
