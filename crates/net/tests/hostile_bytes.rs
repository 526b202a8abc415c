//! A brief fuzz that runs with every `cargo test`: frames of a packet ring, damaged in every simple
//! way. The seed is fixed, so a failure is reproducible; the long search is `fuzz/`.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

/// Where the link-layer header is in a frame, and the network header.
const LINK: usize = 82;
const NETWORK: usize = LINK + 14;
/// The kernel has checked it (`TP_STATUS_CSUM_VALID`).
const CHECKED: u32 = 1 | 1 << 7;

fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A frame with an IP header and the ports, length and payload of UDP, at distance `next` to the
/// following one. `segment` is for several datagrams with one header.
fn frame(ip: &[u8], payload: &[u8], next: u32, segment: u16) -> Vec<u8> {
    let mut frame = vec![0; 28];
    let length = (14 + ip.len() + 8 + payload.len()) as u32;
    for (at, word) in [(0, next), (4, 7), (8, 5), (12, length), (16, length), (20, CHECKED)] {
        frame[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    frame[24..26].copy_from_slice(&(LINK as u16).to_ne_bytes());
    frame[26..28].copy_from_slice(&(NETWORK as u16).to_ne_bytes());
    frame.resize(LINK - 10, 0);
    frame.extend([0, if segment > 0 { 5 } else { 0 }, 0, 0]);
    frame.extend(segment.to_ne_bytes());
    frame.resize(NETWORK, 0);
    frame.extend(ip);
    frame.extend([1000, 2000, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat());
    frame.extend(payload);
    frame.resize(frame.len().next_multiple_of(16).max(next as usize), 0);
    frame
}

#[test]
fn packet_frames_hold_their_laws_for_any_bytes() {
    let payload = [7; 40];
    let mut v4 = vec![0x45, 0, 0, 68, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let sum = checksum(&v4);
    v4[10..12].copy_from_slice(&sum.to_be_bytes());
    let v6 = [&[0x60_u8, 0, 0, 0, 0, 48, 17, 64], &[1; 32][..]].concat();
    let one = frame(&v4, &payload, 0, 0);
    let two = [frame(&v6, &payload, 192, 0), frame(&v4, &payload, 0, 12)].concat();
    // By the law itself: what a seed has is read.
    let (next, first) = throng_net::packet_ring::read_any_frame(&two, 0);
    assert_eq!(first.map(|frame| frame.datagrams()), Some(1));
    let (_, second) = throng_net::packet_ring::read_any_frame(&two, next as usize);
    assert_eq!(second.map(|frame| frame.datagrams()), Some(4));
    let words: [&[u8]; 5] = [&[0xff; 4], &[0; 4], &[0x4f], &[0x60], &[5, 0]];
    hunt::hunt(laws::packet_frame, &[one, two], &words, 100_000);
}

#[test]
fn what_fuzzing_has_kept_holds_the_laws() {
    hunt::replay("packet-frame", laws::packet_frame);
}
