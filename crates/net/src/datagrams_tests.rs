use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::SystemTime;

use super::*;

fn pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    b.set_nonblocking(true).unwrap();
    receive_arrivals_and_drops(b.as_fd()).unwrap();
    (a, b)
}

#[test]
fn a_batch_arrives_whole_in_order_and_with_times_between_send_and_now() {
    let (a, b) = pair();
    let to = SockAddr::from(b.local_addr().unwrap());
    let payloads: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n) + 1]).collect();
    let before = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let datagrams: Vec<_> =
        payloads.iter().map(|bytes| Outgoing { to: to.clone(), from: None, bytes }).collect();
    assert_eq!(send(a.as_fd(), &datagrams, &mut true).unwrap(), 20);
    let mut batch = ReceiveBatch::default();
    assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 20);
    let after = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    for (index, payload) in payloads.iter().enumerate() {
        let got = batch.get(index).unwrap();
        assert_eq!((&*got.bytes, got.source), (payload.as_slice(), a.local_addr().unwrap()));
        let arrived = got.arrived_unix.unwrap();
        assert!(
            before <= arrived && arrived <= after && !got.truncated,
            "{before:?} {arrived:?} {after:?}"
        );
    }
    assert!(batch.get(RECEIVE_BATCH).is_none());
    assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 0);
}

/// Payloads of these lengths; each byte is their number.
fn numbered(lengths: &[usize]) -> Vec<Vec<u8>> {
    lengths.iter().zip(0..).map(|(length, number)| vec![number; *length]).collect()
}

fn toward(to: SocketAddr, from: Option<IpAddr>, payloads: &[Vec<u8>]) -> Vec<Outgoing<'_>> {
    payloads.iter().map(|bytes| Outgoing { to: to.into(), from, bytes }).collect()
}

/// How many datagrams each message has.
fn messages(mut rest: &[Outgoing<'_>]) -> Vec<usize> {
    let mut counts = Vec::new();
    while !rest.is_empty() {
        counts.push(joined(rest));
        rest = &rest[joined(rest)..];
    }
    counts
}

fn send_each(socket: &UdpSocket, mut rest: &[Outgoing<'_>], joins: &mut bool) {
    while !rest.is_empty() {
        rest = &rest[send(socket.as_fd(), rest, joins).unwrap()..];
    }
}

/// Source and payload of each datagram that has arrived.
fn arrived(socket: &UdpSocket) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut batch, mut all) = (ReceiveBatch::default(), Vec::new());
    while let count @ 1.. = batch.receive(socket.as_fd(), RECEIVE_BATCH).unwrap() {
        for index in 0..count {
            let datagram = batch.get(index).unwrap();
            all.push((datagram.source, datagram.bytes.to_vec()));
        }
    }
    all
}

fn from_one(source: SocketAddr, payloads: &[Vec<u8>]) -> Vec<(SocketAddr, Vec<u8>)> {
    payloads.iter().map(|bytes| (source, bytes.clone())).collect()
}

#[test]
fn datagrams_that_are_sent_as_one_message_arrive_as_they_were() {
    for ip in ["127.0.0.1:0", "[::1]:0"] {
        let (a, b) = (UdpSocket::bind(ip).unwrap(), UdpSocket::bind(ip).unwrap());
        let payloads = numbered(&[100, 100, 100, 40, 100, 100, 7, 7, 120, 0, 0, 5]);
        let datagrams = toward(b.local_addr().unwrap(), None, &payloads);
        assert_eq!(messages(&datagrams), [4, 3, 1, 1, 1, 1, 1]);
        let mut joins = true;
        assert_eq!(send(a.as_fd(), &datagrams, &mut joins).unwrap(), payloads.len());
        assert!(joins, "the kernel refuses UDP_SEGMENT");
        assert_eq!(arrived(&b), from_one(a.local_addr().unwrap(), &payloads));
    }
}

#[test]
fn a_message_of_several_datagrams_has_the_source_that_was_asked_for() {
    use socket2::{Domain, Socket, Type};

    let [two, three] = [2, 3].map(|n| Ipv4Addr::new(127, 0, 0, n));
    let dual = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
    dual.set_only_v6(false).unwrap();
    dual.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into()).unwrap();
    let payloads = numbered(&[90, 90, 90, 30]);
    for a in [UdpSocket::bind("0.0.0.0:0").unwrap(), dual.into()] {
        let b = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = b.local_addr().unwrap().port();
        let to: SocketAddr = match a.local_addr().unwrap() {
            SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, port).into(),
            SocketAddr::V6(_) => (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port).into(),
        };
        let mut datagrams = toward(to, Some(two.into()), &payloads[..3]);
        datagrams.extend(toward(to, Some(three.into()), &payloads));
        assert_eq!(messages(&datagrams), [3, 4]);
        let mut joins = true;
        assert_eq!(send(a.as_fd(), &datagrams, &mut joins).unwrap(), 7);
        assert!(joins);
        let port = a.local_addr().unwrap().port();
        let mut expected = from_one((two, port).into(), &payloads[..3]);
        expected.extend(from_one((three, port).into(), &payloads));
        assert_eq!(arrived(&b), expected);
    }

    let (a, b) = (UdpSocket::bind("[::]:0").unwrap(), UdpSocket::bind("[::1]:0").unwrap());
    let datagrams = toward(b.local_addr().unwrap(), Some(Ipv6Addr::LOCALHOST.into()), &payloads);
    assert_eq!(send(a.as_fd(), &datagrams, &mut true).unwrap(), 4);
    let source = (Ipv6Addr::LOCALHOST, a.local_addr().unwrap().port()).into();
    assert_eq!(arrived(&b), from_one(source, &payloads));
}

#[test]
fn only_datagrams_to_one_address_are_one_message() {
    let ((a, b), (_, c)) = (pair(), pair());
    let payloads = numbered(&[80; 7]);
    let of_c = [false, true, false, true, true, false, false];
    let datagrams: Vec<_> = payloads
        .iter()
        .zip(of_c)
        .map(|(bytes, is_of_c)| {
            let to = if is_of_c { &c } else { &b };
            Outgoing { to: to.local_addr().unwrap().into(), from: None, bytes }
        })
        .collect();
    assert_eq!(messages(&datagrams), [1, 1, 1, 2, 2]);
    assert_eq!(send(a.as_fd(), &datagrams, &mut true).unwrap(), 7);
    let source = a.local_addr().unwrap();
    let numbers = |socket: &UdpSocket| -> Vec<u8> {
        let all = arrived(socket);
        assert!(all.iter().all(|(from, bytes)| *from == source && bytes.len() == 80));
        all.iter().map(|(_, bytes)| bytes[0]).collect()
    };
    assert_eq!((numbers(&b), numbers(&c)), (vec![0, 2, 5, 6], vec![1, 3, 4]));
}

#[test]
fn a_message_has_no_more_than_the_kernel_takes() {
    let (a, b) = pair();
    let to = b.local_addr().unwrap();
    let payloads = numbered(&[100; 150]);
    let datagrams = toward(to, None, &payloads);
    assert_eq!(messages(&datagrams), [64, 64, 22]);
    let mut joins = true;
    assert_eq!(send(a.as_fd(), &datagrams, &mut joins).unwrap(), SEND_BATCH);
    send_each(&a, &datagrams[SEND_BATCH..], &mut joins);
    assert!(joins);
    assert_eq!(arrived(&b), from_one(a.local_addr().unwrap(), &payloads));

    let payloads = numbered(&[1_400; 64]);
    assert_eq!(messages(&toward(to, None, &payloads)), [46, 18]);
    let payloads = numbered(&[40_000; 2]);
    assert_eq!(messages(&toward(to, None, &payloads)), [1, 1]);
}

#[test]
fn a_socket_that_refuses_segments_sends_single_datagrams_from_then_on() {
    /// `asm-generic/socket.h`; the kernel cuts nothing apart without checksums.
    const SO_NO_CHECK: i32 = 11;

    let (a, b) = pair();
    sockopt::set(a.as_fd(), libc::SOL_SOCKET, SO_NO_CHECK, &1_i32).unwrap();
    let payloads = numbered(&[50, 100, 100, 30, 100, 100]);
    let datagrams = toward(b.local_addr().unwrap(), None, &payloads);
    assert_eq!(messages(&datagrams), [1, 3, 2]);
    let mut joins = true;
    assert_eq!(send(a.as_fd(), &datagrams, &mut joins).unwrap(), 1);
    assert!(joins, "the first message was a single datagram");
    assert_eq!(send(a.as_fd(), &datagrams[1..], &mut joins).unwrap(), 5);
    assert!(!joins);
    assert_eq!(arrived(&b), from_one(a.local_addr().unwrap(), &payloads));

    // Segments would be taken again: none are tried.
    sockopt::set(a.as_fd(), libc::SOL_SOCKET, SO_NO_CHECK, &0_i32).unwrap();
    assert_eq!(send(a.as_fd(), &datagrams, &mut joins).unwrap(), 6);
    assert!(!joins);
    assert_eq!(arrived(&b), from_one(a.local_addr().unwrap(), &payloads));
}

#[test]
fn an_address_that_cannot_be_reached_says_nothing_of_segments() {
    let (a, _) = pair();
    // A loopback source address reaches nothing beyond this host.
    let payloads = numbered(&[100; 3]);
    let datagrams = toward("192.0.2.1:9".parse().unwrap(), None, &payloads);
    let mut joins = true;
    assert!(send(a.as_fd(), &datagrams, &mut joins).is_err());
    assert!(joins);
}

#[test]
fn sources_are_read_as_the_standard_library_reads_them() {
    for ip in ["127.0.0.1:0", "[::1]:0"] {
        let (a, b) = (UdpSocket::bind(ip).unwrap(), UdpSocket::bind(ip).unwrap());
        let mut batch = ReceiveBatch::default();
        // Batches of varying length: the buffers are ready again each time.
        for count in [3, 1, 5] {
            (0..count)
                .for_each(|_| assert_eq!(a.send_to(b"x", b.local_addr().unwrap()).unwrap(), 1));
            assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), count);
            for index in 0..count {
                assert_eq!(batch.get(index).unwrap().source, a.local_addr().unwrap());
            }
            assert!(batch.get(count).is_none());
        }
    }
    assert_eq!(address(&[0; 7]), None);
}

#[test]
fn a_datagram_that_is_too_long_is_marked_as_truncated() {
    let (a, b) = pair();
    a.send_to(&[7; DATAGRAM_BYTES_MAX + 1], b.local_addr().unwrap()).unwrap();
    a.send_to(&[7; DATAGRAM_BYTES_MAX], b.local_addr().unwrap()).unwrap();
    let mut batch = ReceiveBatch::default();
    assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 2);
    assert!(batch.get(0).unwrap().truncated);
    assert!(!batch.get(1).unwrap().truncated);
}

#[test]
fn a_full_receive_buffer_is_counted() {
    let (a, b) = pair();
    socket2::SockRef::from(&b).set_recv_buffer_size(4096).unwrap();
    for _ in 0..200 {
        a.send_to(&[7; 1000], b.local_addr().unwrap()).unwrap();
    }
    let mut batch = ReceiveBatch::default();
    while batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap() > 0 {}
    // The count is reported with the next datagram that fits.
    a.send_to(&[7; 10], b.local_addr().unwrap()).unwrap();
    assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 1);
    assert!(batch.get(0).unwrap().dropped_so_far.unwrap() > 100);
}
