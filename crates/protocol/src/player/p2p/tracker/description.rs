//! Session descriptions of data channels as browsers write them (RFC 8829, RFC 8841), for offers
//! that only the tracker and other viewers of the same run read: nothing listens behind them.

use std::fmt::Write;

/// Lengths as Chromium's, whose offer has two host candidates.
const CANDIDATES: usize = 2;

/// An offer or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Offer,
    Answer,
}

/// A description that no other one is equal to. Its candidates have names that mDNS would have to
/// know (RFC draft mdns-ice-candidates), as those of browsers; nobody knows these.
pub(super) fn description(kind: Kind, rng: &mut fastrand::Rng) -> String {
    let mut sdp = format!(
        "v=0\r\no=- {} 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE \
         0\r\na=extmap-allow-mixed\r\na=msid-semantic: WMS\r\nm=application 9 UDP/DTLS/SCTP \
         webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n",
        rng.u64(1_000_000_000_000_000_000..9_000_000_000_000_000_000)
    );
    for network in 0..CANDIDATES {
        let _ = write!(
            sdp,
            "a=candidate:{} 1 udp {} {} {} typ host generation 0 network-cost 999\r\n",
            rng.u32(1_000_000_000..),
            2_113_937_151 - 256 * network,
            host(rng),
            rng.u16(32_768..60_999),
        );
    }
    let _ = write!(
        sdp,
        "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\na=fingerprint:sha-256 \
         {}\r\na=setup:{}\r\na=mid:0\r\na=sctp-port:5000\r\na=max-message-size:262144\r\n",
        letters(4, rng),
        letters(24, rng),
        fingerprint(rng),
        match kind {
            Kind::Offer => "actpass",
            Kind::Answer => "active",
        },
    );
    sdp
}

fn letters(count: usize, rng: &mut fastrand::Rng) -> String {
    (0..count).map(|_| rng.alphanumeric()).collect()
}

/// A name of version 4 (RFC 9562) below `.local`.
fn host(rng: &mut fastrand::Rng) -> String {
    let bits = rng.u128(..) & !(0xf << 76) & !(0x3 << 62) | 4 << 76 | 2 << 62;
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    format!(
        "{}-{}-{}-{}-{}.local",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}

fn fingerprint(rng: &mut fastrand::Rng) -> String {
    let bytes: Vec<String> = (0..32).map(|_| format!("{:02X}", rng.u8(..))).collect();
    bytes.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_as_long_as_that_of_a_browser_and_can_be_read() {
        let mut rng = fastrand::Rng::with_seed(1);
        let offer = description(Kind::Offer, &mut rng);
        assert!((690..=742).contains(&offer.len()), "{}: Chromium's have 716 bytes", offer.len());
        assert!(str0m::change::SdpOffer::from_sdp_string(&offer).is_ok(), "{offer}");
        let answer = description(Kind::Answer, &mut rng);
        assert!(str0m::change::SdpAnswer::from_sdp_string(&answer).is_ok(), "{answer}");
        assert_ne!(offer, description(Kind::Offer, &mut rng));
    }
}
