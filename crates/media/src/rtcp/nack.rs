//! Generic NACK (RFC 4585 section 6.2.1): sequence numbers that a receiver lacks, 17 to an entry.

use super::frame::{self, write_words};
use crate::octets::{u32_at, words};

/// A generic NACK.
#[derive(Clone, Copy, Debug)]
pub struct Nack<'a> {
    /// SSRC of the requester.
    pub sender_ssrc: u32,
    /// SSRC of the media source.
    pub media_ssrc: u32,
    entries: &'a [u8],
}

impl<'a> Nack<'a> {
    pub(super) const FORMAT: u8 = 1;

    pub(super) fn parse(body: &'a [u8]) -> Result<Self, &'static str> {
        let read = || {
            let entries = body.get(8..).filter(|entries| entries.len().is_multiple_of(4))?;
            Some(Self { sender_ssrc: u32_at(body, 0)?, media_ssrc: u32_at(body, 4)?, entries })
        };
        read().ok_or("NACK entry")
    }

    /// The missing sequence numbers.
    pub fn sequences(&self) -> impl Iterator<Item = u16> + Clone + 'a {
        words(self.entries).flat_map(|entry| {
            let (first, following) = ((entry >> 16) as u16, entry & 0xffff);
            std::iter::once(first).chain(
                (0..16_u16)
                    .filter(move |bit| following >> bit & 1 == 1)
                    .map(move |bit| first.wrapping_add(bit + 1)),
            )
        })
    }
}

/// Writes a NACK. Ascending order of `missing` (with wrap) needs the fewest entries; empty writes
/// nothing.
pub(super) fn write(out: &mut Vec<u8>, sender_ssrc: u32, media_ssrc: u32, missing: &[u16]) {
    if missing.is_empty() {
        return;
    }
    frame::write(out, frame::TRANSPORT_FEEDBACK, Nack::FORMAT, |out| {
        write_words(out, [sender_ssrc, media_ssrc]);
        let mut rest = missing.iter().copied().peekable();
        while let Some(first) = rest.next() {
            let mut following = 0_u32;
            while let Some(next) = rest.next_if(|next| (1..=16).contains(&next.wrapping_sub(first)))
            {
                following |= 1 << (next.wrapping_sub(first) - 1);
            }
            write_words(out, [u32::from(first) << 16 | following]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp, RtcpError};

    fn check(missing: &[u16], entries: usize) {
        let mut out = Vec::new();
        write(&mut out, 1, 2, missing);
        let Some(Ok(Rtcp::Nack(nack))) = Compound::new(&out).next() else { panic!("{missing:?}") };
        assert_eq!((nack.sender_ssrc, nack.media_ssrc), (1, 2));
        assert_eq!(nack.sequences().collect::<Vec<_>>(), missing);
        assert_eq!(out.len(), 12 + 4 * entries, "{missing:?}");
    }

    #[test]
    fn seventeen_numbers_fit_an_entry() {
        check(&[7], 1);
        check(&[7, 8, 23], 1);
        check(&[7, 24], 2);
        check(&(100..117).collect::<Vec<_>>(), 1);
        check(&(100..118).collect::<Vec<_>>(), 2);
        check(&[65534, 65535, 0, 3], 1); // over the wrap
        check(&[9, 3], 2); // out of order costs an entry and loses nothing
    }

    #[test]
    fn the_bitmask_counts_from_the_number_after_the_first() {
        let bytes = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 10, 0x80, 0x01];
        let Some(Ok(Rtcp::Nack(nack))) = Compound::new(&bytes).next() else { panic!() };
        assert_eq!(nack.sequences().collect::<Vec<_>>(), [10, 11, 26]);
    }

    #[test]
    fn nothing_missing_writes_nothing_and_a_short_nack_is_refused() {
        let mut out = Vec::new();
        write(&mut out, 1, 2, &[]);
        assert!(out.is_empty());
        let short = [0x81, 205, 0, 1, 0, 0, 0, 1];
        assert!(matches!(Compound::new(&short).next(), Some(Err(RtcpError::Malformed { .. }))));
    }
}
