//! Sockets of participants on the loopback interface, and what they say of datagrams.

use std::sync::Arc;

use super::*;

#[test]
fn a_port_that_another_process_has_is_passed_over() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut ports = LocalPorts::only(port..=port);
    let ip = [127, 0, 0, 1].into();
    let socket = DatagramSocket::bind(&[ip], Some(&mut ports), 1 << 16).unwrap();
    assert_ne!(socket.locals()[0].port(), port);
    drop(taken);
    let socket = DatagramSocket::bind(&[ip], Some(&mut ports), 1 << 16).unwrap();
    assert_eq!(socket.locals()[0].port(), port);
}

#[test]
fn a_socket_on_several_addresses_answers_from_the_one_that_received() {
    let reach: Reach = Arc::new(|_, _| true);
    let loopback = |n: u8| IpAddr::from([127, 0, 0, n]);
    for ips in
        [vec![loopback(1), loopback(2)], vec![loopback(1), loopback(2), Ipv6Addr::LOCALHOST.into()]]
    {
        let mut socket = DatagramSocket::bind(&ips, None, 1 << 16).unwrap();
        assert!(socket.locals().iter().map(SocketAddr::ip).eq(ips.iter().copied()));
        let mut batch = throng_net::ReceiveBatch::default();
        for local in socket.locals().to_vec() {
            let peer = UdpSocket::bind((if local.is_ipv4() { loopback(1) } else { local.ip() }, 0))
                .unwrap();
            let to = peer.local_addr().unwrap();
            peer.send_to(b"asks", local).unwrap();
            assert_eq!(batch.receive(socket.as_fd(), throng_net::RECEIVE_BATCH).unwrap(), 1);
            let asked = batch.get(0).unwrap();
            assert_eq!((asked.local, asked.source), (Some(local.ip()), to));
            let mut bytes = [0; 8];
            assert_eq!(socket.send(to, Some(local.ip()), b"one", &reach), SendResult::Sent);
            assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, local));
            let two = [
                socket.outgoing(to, Some(local.ip()), b"two"),
                socket.outgoing(to, None, b"three"),
            ];
            socket.send_all(&two, |to, _, why| panic!("{to}: {why:?}"));
            assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, local));
            assert_eq!(peer.recv_from(&mut bytes).unwrap().0, 5);
        }
    }
}

#[test]
fn nothing_is_sent_where_the_guard_says_no() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let agreed = receiver.local_addr().unwrap();
    let reach: Reach = Arc::new(move |_, to| to == agreed);
    let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
    assert_eq!(
        socket.send("127.0.0.9:9".parse().unwrap(), None, b"no", &reach),
        SendResult::Refused
    );
    assert_eq!(socket.send(receiver.local_addr().unwrap(), None, b"yes", &reach), SendResult::Sent);
    assert_eq!(
        socket.send("127.0.0.9:9".parse().unwrap(), None, b"no", &reach),
        SendResult::Refused
    );
    let mut bytes = [0; 8];
    assert_eq!(receiver.recv(&mut bytes).unwrap(), 3);
    // Another port of the address that agreed, after one that was allowed.
    let other = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(socket.send(other, None, b"no", &reach), SendResult::Refused);
}

#[test]
fn an_unreachable_destination_differs_from_a_full_buffer() {
    let error = io::Error::from_raw_os_error;
    for full in [libc::EAGAIN, libc::ENOBUFS, libc::ENOMEM] {
        assert_eq!(SendResult::not_taken(&error(full), None), SendResult::BufferFull);
    }
    for astray in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EPERM, libc::EINVAL, libc::EMSGSIZE]
    {
        assert!(matches!(SendResult::not_taken(&error(astray), None), SendResult::Unreachable(_)));
        let from = Some(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(SendResult::not_taken(&error(astray), from), SendResult::LoopbackOnly);
    }
    let (reach, receiver): (Reach, _) =
        (Arc::new(|_, _| true), UdpSocket::bind("127.0.0.1:0").unwrap());
    // A loopback source address reaches nothing beyond this host.
    let (near, far) = (receiver.local_addr().unwrap(), "192.0.2.1:9".parse().unwrap());
    let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
    assert!(matches!(socket.send(far, None, b"far", &reach), SendResult::Unreachable(_)));
    let both = [(far, &b"far"[..]), (near, b"near"), (far, b"far"), (near, b"near")];
    let batch = both.map(|(to, bytes)| socket.outgoing(to, None, bytes));
    let mut lost = Vec::new();
    socket.send_all(&batch, |to, bytes, why| lost.push((to, bytes.len(), why)));
    assert!(lost.len() == 2 && lost.iter().all(|(to, length, _)| (*to, *length) == (far, 3)));
    assert!(lost.iter().all(|(.., why)| matches!(why, SendResult::Unreachable(_))), "{lost:?}");
    let mut bytes = [0; 8];
    assert_eq!([receiver.recv(&mut bytes).unwrap(), receiver.recv(&mut bytes).unwrap()], [4, 4]);
    // Each of those that could be one message has its result.
    let runs = [(far, &b"far"[..]), (far, b"far"), (far, b"far"), (near, b"near"), (near, b"near")];
    let batch = runs.map(|(to, bytes)| socket.outgoing(to, None, bytes));
    let mut lost = Vec::new();
    socket.send_all(&batch, |to, bytes, why| lost.push((to, bytes.len(), why)));
    assert!(
        lost.len() == 3 && lost.iter().all(|(to, length, _)| (*to, *length) == (far, 3)),
        "{lost:?}"
    );
    assert_eq!([receiver.recv(&mut bytes).unwrap(), receiver.recv(&mut bytes).unwrap()], [4, 4]);
}

#[test]
fn drops_are_counted_once_even_when_the_kernels_counter_wraps() {
    let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
    let now = Instant::now();
    let mut counts = |so_far: u32| socket.note(now, Some(so_far)).map_or(0, |lost| lost.count);
    assert_eq!([5, 5, 9].map(&mut counts), [5, 0, 4]);
    counts(u32::MAX);
    assert_eq!(counts(2), 3);
}

#[test]
fn drops_in_a_burst_after_silence_differ_from_those_of_a_slow_reader() {
    let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
    let start = Instant::now();
    let mut lost =
        |at_ms: u64, so_far: u32| socket.note(start + Duration::from_millis(at_ms), Some(so_far));
    assert_eq!(lost(0, 0), None);
    // The sender kept sending, and the reader did not keep reading.
    assert_eq!(lost(20, 3), Some(LostDatagrams { count: 3, after_silence: None }));
    (40..=1_000).step_by(20).for_each(|at_ms| assert_eq!(lost(at_ms, 3), None));
    // The sender stalled for 8 s, then sent all of that at once. The next datagram that fits
    // has the count.
    assert_eq!(lost(9_000, 3), None);
    let burst = Some(Duration::from_secs(8));
    assert_eq!(lost(9_030, 903), Some(LostDatagrams { count: 900, after_silence: burst }));
    assert_eq!(lost(9_900, 904), Some(LostDatagrams { count: 1, after_silence: burst }));
    assert_eq!(lost(10_100, 905), Some(LostDatagrams { count: 1, after_silence: None }));
}
