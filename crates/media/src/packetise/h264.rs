//! H.264 (RFC 6184), packetization-mode 1: small NAL units together in a STAP-A, large ones split
//! into FU-As.

use super::nal_units;

const STAP_A: u8 = 24;
const FU_A: u8 = 28;

/// Appends the RTP payloads of one access unit to `payloads`; none is longer than `payload_max`
/// bytes (at least 3). The caller sets the marker bit of the last one. Empty NAL units are left
/// out.
///
/// Consecutive units that fit into one payload share a STAP-A (§5.7.1), as parameter sets and SEI
/// messages usually do with their slice; one that does not fit alone becomes FU-As (§5.8); all
/// others are sent as they are (§5.6). A unit above 65 535 bytes is never put in a STAP-A, whose
/// lengths have 16 bits.
pub fn packetise(nals: &[&[u8]], payload_max: usize, payloads: &mut Vec<Vec<u8>>) {
    nal_units(nals, payload_max, aggregated, fragmented, payloads);
}

/// §5.3: the highest NRI of the aggregated units, F if any has it.
fn aggregated(group: &[&[u8]]) -> [u8; 1] {
    let heads = group.iter().filter_map(|nal| nal.first());
    let nri = heads.clone().map(|head| head & 0x60).max().unwrap_or(0);
    let forbidden = heads.fold(0, |all, head| all | (head & 0x80));
    [forbidden | nri | STAP_A]
}

fn fragmented([head]: [u8; 1], start_and_end: u8) -> [u8; 2] {
    [(head & 0xe0) | FU_A, start_and_end | (head & 0x1f)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The inverse, RFC 6184 §5.6–5.8: the NAL units of one access unit.
    fn reassemble(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut nals: Vec<Vec<u8>> = Vec::new();
        for payload in payloads {
            match payload[0] & 0x1f {
                STAP_A => {
                    let mut rest = &payload[1..];
                    while let [high, low, after @ ..] = rest {
                        let (nal, after) =
                            after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
                        nals.push(nal.to_vec());
                        rest = after;
                    }
                }
                FU_A => {
                    if payload[1] & 0x80 != 0 {
                        nals.push(vec![(payload[0] & 0xe0) | (payload[1] & 0x1f)]);
                    }
                    nals.last_mut().unwrap().extend_from_slice(&payload[2..]);
                }
                _ => nals.push(payload.clone()),
            }
        }
        nals
    }

    fn payloads_of(nals: &[&[u8]], payload_max: usize) -> Vec<Vec<u8>> {
        let mut payloads = Vec::new();
        packetise(nals, payload_max, &mut payloads);
        payloads
    }

    #[test]
    fn small_units_share_a_payload_and_large_ones_are_cut() {
        let slice = [&[0x65][..], &[0x11; 30]].concat();
        let payloads = payloads_of(&[&[0x67, 1, 2], &[0x68, 3], &slice], 20);
        assert_eq!(payloads[0], [0x78, 0, 3, 0x67, 1, 2, 0, 2, 0x68, 3]);
        assert_eq!(payloads[1][..2], [0x7c, 0x85]);
        assert_eq!(payloads[2][..2], [0x7c, 0x45]);
        assert_eq!(payloads[1].len(), payloads[2].len());
        assert_eq!(payloads_of(&[&[0x41, 1]], 1200), [vec![0x41, 1]]);
        assert!(payloads_of(&[&[], &[]], 1200).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_packetised_comes_back(
            nals in prop::collection::vec((0x61_u8..=0x68, prop::collection::vec(any::<u8>(), 0..400)), 0..6),
            payload_max in 3_usize..300,
        ) {
            let nals: Vec<Vec<u8>> = nals.into_iter().map(|(head, body)| [vec![head], body].concat()).collect();
            let borrowed: Vec<&[u8]> = nals.iter().map(Vec::as_slice).collect();
            let payloads = payloads_of(&borrowed, payload_max);
            prop_assert!(payloads.iter().all(|payload| payload.len() <= payload_max));
            prop_assert_eq!(reassemble(&payloads), nals);
        }
    }
}
