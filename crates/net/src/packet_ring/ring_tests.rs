use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

use super::*;
use crate::datagrams::{RECEIVE_BATCH, ReceiveBatch, receive_arrivals_and_drops};

/// A ring of what comes to `socket`, and the socket's own way; `None` without the right to a packet
/// socket.
fn ring(socket: &UdpSocket, bytes: usize) -> Option<(PacketRing, InRing)> {
    let local = socket.local_addr().unwrap();
    let interface = interface_of(local.ip()).unwrap();
    let (port, is_ipv4) = (local.port(), local.is_ipv4());
    let config = RingConfig { interface: interface.index, is_ipv4, ports: port..=port, bytes };
    match PacketRing::open(&config) {
        Ok(ring) => Some((
            ring,
            InRing { interface: interface.index, mtu: interface.mtu, local: local.ip() },
        )),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // As everywhere in these tests: the report of the test run counts these lines.
            #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("SKIPPED: a packet socket needs CAP_NET_RAW");
            }
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn socket(ip: IpAddr) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    receive_arrivals_and_drops(socket.as_fd()).unwrap();
    socket
}

/// What the ring gets until it has `count` datagrams, or for a second.
fn received(ring: &mut PacketRing, count: usize) -> Vec<(Vec<u8>, Duration)> {
    let (begun, mut all) = (Instant::now(), Vec::new());
    while all.len() < count && begun.elapsed() < Duration::from_secs(1) {
        let mut places = Vec::new();
        ring.collect(|place, frame| places.push((place, frame)));
        for (place, frame) in places {
            for index in 0..frame.datagrams() {
                let datagram = ring.datagram(place, index).unwrap();
                all.push((datagram.bytes.to_vec(), datagram.arrived_unix));
            }
        }
        ring.release();
        std::thread::sleep(Duration::from_millis(2));
    }
    all
}

fn by_socket(socket: &UdpSocket) -> Vec<(Vec<u8>, Duration)> {
    let (mut batch, mut all) = (ReceiveBatch::default(), Vec::new());
    loop {
        let count = batch.receive(socket.as_fd(), RECEIVE_BATCH).unwrap();
        if count == 0 {
            return all;
        }
        for index in 0..count {
            let datagram = batch.get(index).unwrap();
            all.push((datagram.bytes.to_vec(), datagram.arrived_unix.unwrap()));
        }
    }
}

#[test]
fn ring_and_socket_get_the_same_datagrams_with_the_same_times() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let (receiver, sender) = (socket(ip), socket(ip));
        let Some((mut ring, _)) = ring(&receiver, 1 << 20) else { return };
        let before = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        for n in 0..40_u8 {
            sender.send_to(&vec![n; usize::from(n) * 30], receiver.local_addr().unwrap()).unwrap();
        }
        let of_ring = received(&mut ring, 40);
        assert_eq!(of_ring.len(), 40);
        assert_eq!(of_ring, by_socket(&receiver));
        assert!(
            of_ring.iter().all(|(_, at)| *at >= before && *at - before < Duration::from_secs(2))
        );
    }
}

#[test]
fn what_a_sender_joins_comes_as_it_does_to_a_socket() {
    let (receiver, sender) =
        (socket(Ipv4Addr::LOCALHOST.into()), socket(Ipv4Addr::LOCALHOST.into()));
    let Some((mut ring, _)) = ring(&receiver, 1 << 20) else { return };
    sockopt::set(sender.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, &500_i32).unwrap();
    let bytes: Vec<u8> = (0..5250_u32).map(|n| n as u8).collect();
    sender.send_to(&bytes, receiver.local_addr().unwrap()).unwrap();
    let of_ring = received(&mut ring, 11);
    assert_eq!(of_ring.iter().map(|(bytes, _)| bytes.len()).collect::<Vec<_>>(), {
        let mut expect = vec![500; 10];
        expect.push(250);
        expect
    });
    assert_eq!(of_ring, by_socket(&receiver));
}

#[test]
fn a_socket_leaves_to_the_ring_what_that_has_and_takes_the_rest() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let (receiver, sender) = (socket(ip), socket(ip));
        let Some((mut ring, in_ring)) = ring(&receiver, 1 << 20) else { return };
        let to = receiver.local_addr().unwrap();
        leave_to_ring(receiver.as_fd(), &in_ring).unwrap();
        for n in 0..5_u8 {
            sender.send_to(&[n], to).unwrap();
        }
        assert_eq!(received(&mut ring, 5).len(), 5);
        assert!(by_socket(&receiver).is_empty());
        // Another interface, another address, and what was longer than the MTU are not in the ring.
        let others = [
            InRing { interface: in_ring.interface + 1000, ..in_ring },
            InRing {
                local: if ip.is_ipv4() { [127, 0, 0, 9].into() } else { [9_u8; 16].into() },
                ..in_ring
            },
            InRing { mtu: 40, ..in_ring },
        ];
        for other in others {
            leave_to_ring(receiver.as_fd(), &other).unwrap();
            sender.send_to(&[1; 100], to).unwrap();
            assert_eq!(by_socket(&receiver).len(), 1, "{other:?}");
        }
        take_all(receiver.as_fd()).unwrap();
        sender.send_to(&[1], to).unwrap();
        assert_eq!(by_socket(&receiver).len(), 1);
        assert!(take_all(receiver.as_fd()).is_err(), "there is no filter any more");
    }
}

#[test]
fn a_ring_without_room_counts_what_it_drops_and_goes_on() {
    let (receiver, sender) =
        (socket(Ipv4Addr::LOCALHOST.into()), socket(Ipv4Addr::LOCALHOST.into()));
    let Some((mut ring, _)) = ring(&receiver, 2 * BLOCK_BYTES) else { return };
    let to = receiver.local_addr().unwrap();
    for _ in 0..1000 {
        sender.send_to(&[7; 1000], to).unwrap();
    }
    let kept = received(&mut ring, 1000).len();
    let statistics = ring.statistics().unwrap();
    assert!(kept < 1000 && statistics.drops > 0, "{kept} {statistics:?}");
    assert_eq!((kept + statistics.drops as usize, statistics.frames), (1000, 1000));
    assert_eq!(ring.statistics().unwrap().drops, 0);
    sender.send_to(b"more", to).unwrap();
    assert_eq!(received(&mut ring, 1).len(), 1);
}

#[test]
fn other_ports_do_not_come_into_the_ring() {
    let (receiver, other, sender) = {
        let of = || socket(Ipv4Addr::LOCALHOST.into());
        (of(), of(), of())
    };
    let Some((mut ring, _)) = ring(&receiver, 1 << 20) else { return };
    sender.send_to(b"no", other.local_addr().unwrap()).unwrap();
    sender.send_to(b"yes", receiver.local_addr().unwrap()).unwrap();
    let all: Vec<_> = received(&mut ring, 2).into_iter().map(|(bytes, _)| bytes).collect();
    assert_eq!(all, [b"yes"]);
}
