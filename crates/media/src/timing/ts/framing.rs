//! How transport packets follow each other: directly, after a time code of four bytes (M2TS, of
//! Blu-ray and AVCHD), or before 16 bytes of error correction (DVB).

use crate::codec::mp2t::{PACKET_LEN, SYNC};

/// Distance of packets, and bytes before one.
const KINDS: [(usize, usize); 3] = [(PACKET_LEN, 0), (192, 4), (204, 0)];

/// Packets in a row by which a stream is recognised.
const PACKETS: usize = 3;

/// How the packets of a file follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::timing) struct Framing {
    /// Where the first packet begins, with what is before it.
    pub(super) first: usize,
    pub(super) stride: usize,
    pub(super) lead: usize,
}

impl Framing {
    /// How packets follow each other in the first bytes of a file; `None` when there are none.
    pub(in crate::timing) fn find(first: &[u8]) -> Option<Self> {
        (0..first.len().min(204)).find_map(|at| {
            KINDS
                .iter()
                .map(|(stride, lead)| Self { first: at, stride: *stride, lead: *lead })
                .find(|framing| {
                    // A whole packet, and those after it as far as the bytes go.
                    let rest = first.get(at..).unwrap_or_default();
                    rest.len() >= framing.lead + PACKET_LEN && framing.fits(rest)
                })
        })
    }

    /// Whether packets begin at the beginning of `bytes`, as far as there are bytes.
    fn fits(&self, bytes: &[u8]) -> bool {
        (0..PACKETS)
            .all(|i| bytes.get(self.lead + i * self.stride).is_none_or(|byte| *byte == SYNC))
    }

    /// The packet within a stride.
    #[inline]
    pub(super) fn packet<'a>(&self, stride: &'a [u8]) -> &'a [u8] {
        stride.get(self.lead..self.lead + PACKET_LEN).unwrap_or_default()
    }

    /// Bytes in which packets are looked for: at any place in the first half, the next ones can be
    /// checked.
    pub(super) fn search_len(&self) -> usize {
        2 * PACKETS * self.stride
    }

    /// Where packets begin in that many bytes.
    pub(super) fn search(&self, bytes: &[u8]) -> Option<usize> {
        (0..bytes.len() / 2).find(|at| self.fits(&bytes[*at..]))
    }

    /// Where packets begin in the last bytes of a file.
    pub(super) fn search_to_end(&self, bytes: &[u8]) -> Option<usize> {
        (0..bytes.len().saturating_sub(PACKET_LEN - 1)).find(|at| self.fits(&bytes[*at..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_recognised() {
        for (stride, lead) in KINDS {
            for junk in [0, 1, 100] {
                for packets in [3, 4] {
                    let mut file = vec![0x46; junk];
                    for _ in 0..packets {
                        let mut packet = vec![0xff; stride];
                        packet[lead] = SYNC;
                        file.extend(packet);
                    }
                    let found = Framing::find(&file);
                    assert_eq!(
                        found,
                        Some(Framing { first: junk, stride, lead }),
                        "{junk} {packets}"
                    );
                }
            }
        }
        let mut one = vec![0xff; PACKET_LEN];
        one[0] = SYNC;
        assert_eq!(Framing::find(&one), Some(Framing { first: 0, stride: PACKET_LEN, lead: 0 }));
        assert_eq!(Framing::find(&[0; 900]), None);
        assert_eq!(Framing::find(b"GET / HTTP/1.1"), None);
    }
}
