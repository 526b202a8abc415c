//! Receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb-03).

use super::frame::{self, write_words};
use crate::octets::{chunk_at, u24_at, u32_at, words};

const IDENTIFIER: &[u8; 4] = b"REMB";
const MANTISSA_BITS: u32 = 18;

/// A receiver's estimate of what it can receive.
#[derive(Clone, Copy, Debug)]
pub struct Remb<'a> {
    /// SSRC of the receiver.
    pub sender_ssrc: u32,
    /// The estimate for all the sources together, bits per second.
    pub bitrate_bps: u64,
    sources: &'a [u8],
}

impl<'a> Remb<'a> {
    pub(super) const FORMAT: u8 = 15;

    /// Other application layer feedback shares the format number.
    pub(super) fn is_remb(body: &[u8]) -> bool {
        chunk_at(body, 8) == Some(IDENTIFIER)
    }

    pub(super) fn parse(body: &'a [u8]) -> Result<Self, &'static str> {
        let read = || Some((u32_at(body, 0)?, *body.get(12)?, u24_at(body, 13)?));
        let (sender_ssrc, count, rate) = read().ok_or("REMB")?;
        let (exponent, mantissa) = (rate >> MANTISSA_BITS, u64::from(rate & 0x3_ffff));
        // The exponent has six bits, so that the rate may exceed 64 bits.
        let bitrate_bps = mantissa << exponent;
        if bitrate_bps >> exponent != mantissa {
            return Err("REMB bitrate");
        }
        let sources = body.get(16..16 + 4 * usize::from(count)).ok_or("REMB source count")?;
        Ok(Self { sender_ssrc, bitrate_bps, sources })
    }

    /// The sources that the estimate covers.
    pub fn ssrcs(&self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        words(self.sources)
    }
}

/// Writes a REMB for the first 255 of `ssrcs`; the rate is rounded down to 18 significant bits.
pub(super) fn write(out: &mut Vec<u8>, sender_ssrc: u32, bitrate_bps: u64, ssrcs: &[u32]) {
    let ssrcs = ssrcs.get(..255).unwrap_or(ssrcs);
    let exponent = (u64::BITS - bitrate_bps.leading_zeros()).saturating_sub(MANTISSA_BITS);
    let mantissa = (bitrate_bps >> exponent) as u32;
    frame::write(out, frame::PAYLOAD_FEEDBACK, Remb::FORMAT, |out| {
        write_words(out, [sender_ssrc, 0, u32::from_be_bytes(*IDENTIFIER)]);
        write_words(out, [(ssrcs.len() as u32) << 24 | exponent << MANTISSA_BITS | mantissa]);
        write_words(out, ssrcs.iter().copied());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp, RtcpError};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> (u64, Vec<u32>) {
        let Some(Ok(Rtcp::Remb(remb))) = Compound::new(bytes).next() else { panic!("{bytes:?}") };
        assert_eq!(remb.sender_ssrc, 1);
        (remb.bitrate_bps, remb.ssrcs().collect())
    }

    #[test]
    fn the_rate_is_mantissa_times_two_to_the_exponent() {
        // 1 Mbit/s = 250_000 << 2
        let bytes = [
            0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, b'R', b'E', b'M', b'B', 1, 0x0b, 0xd0, 0x90,
            0, 0, 0, 2,
        ];
        assert_eq!(read(&bytes), (1_000_000, vec![2]));
        let mut out = Vec::new();
        write(&mut out, 1, 1_000_000, &[2]);
        assert_eq!(out, bytes);
    }

    #[test]
    fn impossible_rates_and_missing_sources_are_refused() {
        let mut out = Vec::new();
        write(&mut out, 1, u64::MAX, &[]);
        assert_eq!(read(&out).0, 0x3_ffff << 46);
        out[17] |= 0xfc; // exponent 63
        assert!(
            matches!(Compound::new(&out).next(), Some(Err(RtcpError::Malformed { what, .. })) if what == "REMB bitrate")
        );
        let mut out = Vec::new();
        write(&mut out, 1, 5, &[]);
        out[16] = 1;
        assert!(matches!(Compound::new(&out).next(), Some(Err(RtcpError::Malformed { .. }))));
    }

    #[test]
    fn other_application_feedback_is_passed_by() {
        let bytes = [0x8f, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, b'g', b'o', b'o', b'g'];
        assert!(matches!(Compound::new(&bytes).next(), Some(Ok(Rtcp::Other { format: 15, .. }))));
    }

    proptest! {
        #[test]
        fn rates_lose_less_than_one_part_in_2_to_the_17(rate: u64, ssrcs in prop::collection::vec(0_u32.., 0..300)) {
            let mut out = Vec::new();
            write(&mut out, 1, rate, &ssrcs);
            let (read, sources) = read(&out);
            prop_assert!(read <= rate && rate - read <= rate >> 17);
            prop_assert_eq!(&sources[..], &ssrcs[..ssrcs.len().min(255)]);
        }
    }
}
