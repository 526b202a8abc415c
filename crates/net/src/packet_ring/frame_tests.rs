use super::*;

/// Where the link-layer header is in the frames of these tests, and the network header.
const LINK: usize = 82;
const NETWORK: usize = LINK + 14;

const CHECKSUM_UNKNOWN: u32 = 1;

/// An IPv4 packet with UDP from 10.0.0.1:1000 to 10.0.0.2:2000, with both checksums.
fn ipv4(payload: &[u8], fragment: u16) -> Vec<u8> {
    let udp_length = (8 + payload.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((20 + udp_length).to_be_bytes());
    ip.extend([0, 1]);
    ip.extend(fragment.to_be_bytes());
    ip.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = !folded(sum(&ip));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    ip.extend(udp(payload, sum(&[10, 0, 0, 1, 10, 0, 0, 2])));
    ip
}

fn ipv6(payload: &[u8]) -> Vec<u8> {
    let addresses =
        [Ipv6Addr::LOCALHOST.octets(), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets()]
            .concat();
    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend(((8 + payload.len()) as u16).to_be_bytes());
    ip.extend([17, 64]);
    ip.extend(&addresses);
    ip.extend(udp(payload, sum(&addresses)));
    ip
}

fn udp(payload: &[u8], addresses: u64) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut udp = [1000_u16, 2000, length, 0].map(u16::to_be_bytes).concat();
    udp.extend(payload);
    let checksum = !folded(addresses + 17 + u64::from(length) + sum(&udp));
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    udp
}

/// A block with one frame, as the kernel writes it.
fn block(packet: &[u8], status: u32, gso_segment: u16) -> Vec<u8> {
    let mut block = vec![0_u8; 48];
    let length = (14 + packet.len()) as u32;
    for (at, word) in [(4, 7), (8, 5), (12, length), (16, length), (20, status)] {
        block[at..at + 4].copy_from_slice(&u32::to_ne_bytes(word));
    }
    block[24..26].copy_from_slice(&(LINK as u16).to_ne_bytes());
    block[26..28].copy_from_slice(&(NETWORK as u16).to_ne_bytes());
    block.resize(LINK - OFFLOAD_HEADER, 0);
    let gso = if gso_segment > 0 { GSO_UDP } else { 0 };
    block.extend([0, gso, 0, 0]);
    block.extend(gso_segment.to_ne_bytes());
    block.resize(NETWORK, 0);
    block.extend(packet);
    block
}

/// A frame of a datagram with `payload`.
pub(in crate::packet_ring) fn frame_with(payload: &[u8]) -> Vec<u8> {
    block(&ipv4(payload, 0), CHECKSUM_UNKNOWN, 0)
}

fn parsed(block: &[u8]) -> Frame {
    read(block, 0).1.expect("a frame")
}

#[test]
fn a_datagram_of_either_family_is_read_with_its_addresses_time_and_bytes() {
    for (packet, source, local) in [
        (ipv4(b"payload", 0), "10.0.0.1:1000", "10.0.0.2:2000"),
        (ipv6(b"payload"), "[::1]:1000", "[fd00::2]:2000"),
    ] {
        let mut block = block(&packet, CHECKSUM_UNKNOWN, 0);
        let frame = parsed(&block);
        assert_eq!(frame.kind, FrameKind::Datagrams { each: 7 });
        assert_eq!((frame.datagrams(), frame.length_of(0)), (1, 7));
        let datagram = frame.datagram(0, &mut block).unwrap();
        assert_eq!(
            (datagram.source.to_string(), datagram.local.to_string()),
            (source.into(), local.into())
        );
        assert_eq!(
            (datagram.arrived_unix, &*datagram.bytes),
            (Duration::new(7, 5), &b"payload"[..])
        );
        assert!(frame.datagram(1, &mut block).is_none());
    }
}

#[test]
fn an_empty_datagram_is_one() {
    let mut block = block(&ipv4(b"", 0), CHECKSUM_UNKNOWN, 0);
    let frame = parsed(&block);
    assert_eq!(frame.datagrams(), 1);
    assert!(frame.datagram(0, &mut block).unwrap().bytes.is_empty());
}

#[test]
fn options_of_ip_are_part_of_its_header_and_of_its_checksum() {
    let plain = ipv4(b"payload", 0);
    // Four bytes of options (no operation), so that the header is six words long.
    let mut packet = [&plain[..20], &[1; 4], &plain[20..]].concat();
    packet[0] = 0x46;
    packet[2..4].copy_from_slice(&(plain.len() as u16 + 4).to_be_bytes());
    packet[10..12].fill(0);
    let checksum = !folded(sum(&packet[..24]));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut block = block(&packet, CHECKSUM_UNKNOWN, 0);
    let frame = parsed(&block);
    assert_eq!(frame.kind, FrameKind::Datagrams { each: 7 });
    assert_eq!(frame.datagram(0, &mut block).unwrap().bytes, b"payload");
}

#[test]
fn what_a_sender_joined_is_several_datagrams() {
    let payload: Vec<u8> = (0..250).collect();
    let mut block = block(&ipv4(&payload, 0), CHECKSUM_UNKNOWN, 100);
    let frame = parsed(&block);
    assert_eq!((frame.kind, frame.datagrams()), (FrameKind::Datagrams { each: 100 }, 3));
    assert_eq!([0, 1, 2, 3].map(|index| frame.length_of(index)), [100, 100, 50, 0]);
    let all: Vec<Vec<u8>> =
        (0..3).map(|index| frame.datagram(index, &mut block).unwrap().bytes.to_vec()).collect();
    assert_eq!(all.concat(), payload);
}

#[test]
fn what_a_socket_would_not_get_is_damaged_unless_the_kernel_vouches_for_it() {
    for (packet, offset) in [(ipv4(b"payload", 0), 30), (ipv6(b"payload"), 50)] {
        let mut wrong = packet.clone();
        wrong[offset] ^= 1;
        assert_eq!(parsed(&block(&wrong, CHECKSUM_UNKNOWN, 0)).kind, FrameKind::Damaged);
        for vouched in [CHECKSUM_VALID, CHECKSUM_NOT_READY] {
            assert_eq!(
                parsed(&block(&wrong, 1 | vouched, 0)).kind,
                FrameKind::Datagrams { each: 7 }
            );
        }
    }
    // A header that was changed on its way is dropped whatever a card says of the datagram.
    let mut wrong = ipv4(b"payload", 0);
    wrong[8] ^= 1;
    assert_eq!(parsed(&block(&wrong, 1 | CHECKSUM_VALID, 0)).kind, FrameKind::Damaged);
    // No checksum: allowed over IPv4 only.
    let mut without = ipv4(b"payload", 0);
    without[26..28].fill(0);
    assert_eq!(
        parsed(&block(&without, CHECKSUM_UNKNOWN, 0)).kind,
        FrameKind::Datagrams { each: 7 }
    );
    let mut without = ipv6(b"payload");
    without[46..48].fill(0);
    assert_eq!(parsed(&block(&without, CHECKSUM_UNKNOWN, 0)).kind, FrameKind::Damaged);
}

#[test]
fn fragments_and_frames_that_do_not_fit_are_told_apart() {
    assert_eq!(
        parsed(&block(&ipv4(b"payload", 0x2000), CHECKSUM_UNKNOWN, 0)).kind,
        FrameKind::Fragment
    );
    let mut cut = block(&ipv4(b"payload", 0), CHECKSUM_UNKNOWN, 0);
    cut[16..20].copy_from_slice(&9000_u32.to_ne_bytes());
    assert_eq!(parsed(&cut).kind, FrameKind::TooLong);
}

#[test]
fn no_block_makes_the_reader_look_beyond_it() {
    let whole = block(&ipv4(&[7; 64], 0), CHECKSUM_UNKNOWN, 24);
    for length in 0..whole.len() {
        let mut cut = whole[..length].to_vec();
        if let (_, Some(frame)) = read(&cut, 0) {
            (0..frame.datagrams().min(9)).for_each(|index| drop(frame.datagram(index, &mut cut)));
        }
    }
    let mut state = 1_u32;
    // Miri takes milliseconds for each.
    let tries = if cfg!(miri) { 500 } else { 20_000 };
    for _ in 0..tries {
        let mut broken = whole.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (state >> 8) as usize % broken.len();
            broken[at] = state as u8;
        }
        if let (_, Some(frame)) = read(&broken, (state >> 20) as usize) {
            (0..frame.datagrams().min(9))
                .for_each(|index| drop(frame.datagram(index, &mut broken)));
        }
    }
}
