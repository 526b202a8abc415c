//! A relay against a TURN server in memory, over datagrams and over a stream, in simulated time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use throng_scenario::{RelayTransport, Secret};
use turn_client_proto::api::Transmit;
use turn_client_proto::stun::Instant as TurnInstant;
use turn_client_proto::types::{AddressFamily, TransportType};
use turn_server_proto::api::{SocketAllocateError, TurnServerApi, TurnServerPollRet};
use turn_server_proto::server::TurnServer;

use super::{Frames, Relay, RelayAccount, RelayOutput};

pub(in crate::webrtc) const SERVER: &str = "10.0.0.9:3478";
pub(in crate::webrtc) const RELAYED: &str = "10.0.0.9:40000";
const LOCAL: &str = "10.0.0.2:6001";
const PEER: &str = "10.0.0.1:5000";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A TURN server with one client; its credentials are `user` and `secret`.
pub(in crate::webrtc) struct Fixture {
    server: TurnServer,
    base: Instant,
    client: SocketAddr,
    is_stream: bool,
    from_client: Frames,
    /// What the client receives next: datagrams, or bytes of the stream.
    pub(in crate::webrtc) to_client: Vec<Vec<u8>>,
    /// What peers receive from the relayed address.
    pub(in crate::webrtc) to_peers: Vec<(SocketAddr, Vec<u8>)>,
    /// The relayed socket is open.
    pub(in crate::webrtc) is_allocated: bool,
}

impl Fixture {
    pub(in crate::webrtc) fn new(now: Instant, client: SocketAddr, is_stream: bool) -> Self {
        let mut server = TurnServer::new(TransportType::Udp, address(SERVER), "realm".into());
        server.add_user("user".into(), "secret".into());
        Self {
            server,
            base: now,
            client,
            is_stream,
            from_client: Frames::default(),
            to_client: Vec::new(),
            to_peers: Vec::new(),
            is_allocated: false,
        }
    }

    fn time(&self, now: Instant) -> TurnInstant {
        TurnInstant::from_nanos(now.duration_since(self.base).as_nanos() as i64)
    }

    /// Passes bytes of the client to the server.
    pub(in crate::webrtc) fn hear_client(&mut self, now: Instant, bytes: &[u8]) {
        if !self.is_stream {
            return self.hear(now, bytes, self.client, address(SERVER));
        }
        assert!(bytes.len().is_multiple_of(4), "frames of a stream are padded");
        self.from_client.push(bytes);
        let mut cut = Vec::new();
        while let Some(frame) = self.from_client.next_frame().unwrap() {
            cut.push(frame.to_vec());
        }
        cut.iter().for_each(|frame| self.hear(now, frame, self.client, address(SERVER)));
    }

    /// Passes a datagram of a peer to the relayed address.
    pub(in crate::webrtc) fn hear_peer(&mut self, now: Instant, peer: SocketAddr, bytes: &[u8]) {
        self.hear(now, bytes, peer, address(RELAYED));
    }

    fn hear(&mut self, now: Instant, bytes: &[u8], from: SocketAddr, to: SocketAddr) {
        let at = self.time(now);
        if let Some(built) =
            self.server.recv(Transmit::new(bytes.to_vec(), TransportType::Udp, from, to), at)
        {
            let built = built.build();
            self.carry(built.to, built.data);
        }
        self.turn(now);
    }

    /// Runs the server's due actions.
    pub(in crate::webrtc) fn turn(&mut self, now: Instant) {
        let at = self.time(now);
        for _ in 0..16 {
            match self.server.poll(at) {
                TurnServerPollRet::AllocateSocket {
                    transport,
                    listen_addr,
                    client_addr,
                    family,
                    ..
                } => {
                    let given = match family {
                        AddressFamily::IPV4 => Ok(address(RELAYED)),
                        AddressFamily::IPV6 => Err(SocketAllocateError::AddressFamilyNotSupported),
                    };
                    self.is_allocated = given.is_ok();
                    let of = TransportType::Udp;
                    self.server.allocated_socket(
                        transport,
                        listen_addr,
                        client_addr,
                        of,
                        family,
                        given,
                        at,
                    );
                }
                TurnServerPollRet::SocketClose { .. } => self.is_allocated = false,
                _ => {}
            }
            while let Some(transmit) = self.server.poll_transmit(at) {
                self.carry(transmit.to, transmit.data);
            }
        }
    }

    fn carry(&mut self, to: SocketAddr, mut bytes: Vec<u8>) {
        if to != self.client {
            return self.to_peers.push((to, bytes));
        }
        if self.is_stream {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        self.to_client.push(bytes);
    }
}

pub(in crate::webrtc) fn account(transport: RelayTransport, credential: &str) -> RelayAccount {
    RelayAccount {
        server: address(SERVER),
        transport,
        username: "user".into(),
        credential: Secret::new(credential),
    }
}

type Bend = Box<dyn FnMut(&mut Vec<u8>)>;

struct World {
    now: Instant,
    relay: Relay,
    fixture: Fixture,
    frames: Frames,
    /// Changes the server's messages.
    bend: Bend,
    received: Vec<(SocketAddr, Vec<u8>)>,
    allocated: Vec<SocketAddr>,
    odd: Vec<String>,
    failed: Vec<String>,
    requests: usize,
}

impl World {
    fn new(transport: &RelayTransport, credential: &str) -> Self {
        let now = Instant::now() + Duration::from_secs(1);
        Self {
            now,
            relay: Relay::new(now, address(LOCAL), &account(transport.clone(), credential)),
            fixture: Fixture::new(now, address(LOCAL), transport.is_stream()),
            frames: Frames::default(),
            bend: Box::new(|_| ()),
            received: Vec::new(),
            allocated: Vec::new(),
            odd: Vec::new(),
            failed: Vec::new(),
            requests: 0,
        }
    }

    fn exchange(&mut self) {
        while let Some(output) = self.relay.poll_output() {
            match output {
                RelayOutput::Send(bytes) => {
                    self.requests += 1;
                    self.fixture.hear_client(self.now, &bytes);
                }
                RelayOutput::Allocated(relayed) => self.allocated.push(relayed),
                RelayOutput::Anomaly(what) => self.odd.push(what),
                RelayOutput::Failed(why) => self.failed.push(why),
            }
        }
        self.fixture.turn(self.now);
        for mut bytes in std::mem::take(&mut self.fixture.to_client) {
            (self.bend)(&mut bytes);
            if !self.fixture.is_stream {
                self.take(&bytes);
                continue;
            }
            // In pieces, as TCP may split the stream.
            for piece in bytes.chunks(7) {
                self.frames.push(piece);
                while let Ok(Some(frame)) = self.frames.next_frame() {
                    let frame = frame.to_vec();
                    self.take(&frame);
                }
            }
        }
    }

    fn take(&mut self, frame: &[u8]) {
        if let Some((peer, range)) = self.relay.receive(self.now, frame) {
            self.received.push((peer, frame[range].to_vec()));
        }
    }

    fn run(&mut self, duration: Duration, step: Duration) {
        let until = self.now + duration;
        while self.now < until {
            self.now += step;
            if self.relay.next_timeout().is_some_and(|at| self.now >= at) {
                self.relay.timeout(self.now);
            }
            self.exchange();
        }
    }

    fn settle(&mut self) {
        self.run(Duration::from_secs(1), Duration::from_millis(5));
    }

    fn send_to_peer(&mut self, datagram: &[u8]) -> Option<usize> {
        let bytes = self.relay.wrap(self.now, address(PEER), datagram)?;
        self.fixture.hear_client(self.now, &bytes);
        Some(bytes.len())
    }
}

#[test]
fn datagrams_pass_both_ways_whatever_carries_turn() {
    for transport in
        [RelayTransport::Udp, RelayTransport::Tcp, RelayTransport::Tls("relay.example".into())]
    {
        let mut world = World::new(&transport, "secret");
        // Requested before the allocation exists.
        world.relay.permit(world.now, address(PEER));
        world.settle();
        assert_eq!(world.allocated, [address(RELAYED)], "{transport:?} {:?}", world.failed);
        for len in [1, 2, 3, 4, 100, 1_201] {
            let datagram: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let sent = world.send_to_peer(&datagram).unwrap();
            assert!(sent <= len + 4 + 3, "a channel costs four bytes, not {}", sent - len);
            assert_eq!(world.fixture.to_peers.pop(), Some((address(PEER), datagram.clone())));
            world.fixture.hear_peer(world.now, address(PEER), &datagram);
            world.exchange();
            assert_eq!(world.received.pop(), Some((address(PEER), datagram)), "{transport:?}");
        }
        assert_eq!((world.odd.len(), world.failed.len()), (0, 0));
    }
}

#[test]
fn a_connection_without_permission_is_blocked() {
    let mut world = World::new(&RelayTransport::Tcp, "secret");
    world.settle();
    assert_eq!(world.send_to_peer(b"hello"), None);
    world.fixture.hear_peer(world.now, address(PEER), b"hello");
    world.settle();
    assert!(world.received.is_empty() && world.fixture.to_peers.is_empty());
    world.relay.permit(world.now, address("[2001:db8::1]:5"));
    world.settle();
    assert!(world.odd.is_empty(), "a peer of the other family is left alone");
}

#[test]
fn a_peer_is_reached_as_long_as_the_session_lasts() {
    let mut world = World::new(&RelayTransport::Tcp, "secret");
    world.relay.permit(world.now, address(PEER));
    world.settle();
    // Permissions end after 5 minutes, channels after 10, an allocation after 30 unless refreshed.
    for minute in 0..70 {
        world.run(Duration::from_secs(60), Duration::from_millis(500));
        assert!(world.fixture.is_allocated, "minute {minute}");
        world.send_to_peer(b"up").unwrap();
        assert!(world.fixture.to_peers.pop().is_some(), "minute {minute}");
        world.fixture.hear_peer(world.now, address(PEER), b"down");
        world.exchange();
        assert!(world.received.pop().is_some(), "minute {minute}");
    }
    assert!(world.requests < 200, "{} requests in 70 minutes", world.requests);
}

#[test]
fn leaving_gives_the_allocation_back_at_once() {
    for transport in [RelayTransport::Udp, RelayTransport::Tcp] {
        let mut world = World::new(&transport, "secret");
        world.relay.permit(world.now, address(PEER));
        world.settle();
        assert!(world.fixture.is_allocated);
        world.relay.close(world.now);
        world.exchange();
        assert!(!world.fixture.is_allocated);
        assert_eq!(world.relay.next_timeout(), None);
        assert_eq!(world.relay.wrap(world.now, address(PEER), b"late"), None);
    }
}

#[test]
fn a_wrong_password_and_a_silent_server_fail_once() {
    let mut world = World::new(&RelayTransport::Tcp, "wrong");
    world.settle();
    assert_eq!(world.failed.len(), 1);
    assert!(world.failed[0].contains("401"), "{:?}", world.failed);
    assert_eq!((world.allocated.len(), world.requests), (0, 2));

    for transport in [RelayTransport::Udp, RelayTransport::Tcp] {
        let mut world = World::new(&transport, "secret");
        world.bend = Box::new(Vec::clear);
        world.run(Duration::from_secs(5), Duration::from_millis(20));
        assert_eq!(world.failed.len(), 0);
        world.run(Duration::from_secs(10), Duration::from_millis(20));
        assert_eq!(world.failed.len(), 1, "{transport:?}");
        assert_eq!(world.requests, if transport == RelayTransport::Udp { 4 } else { 1 });
    }
}

#[test]
fn bent_and_random_frames_neither_panic_nor_grow() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..300 {
        let transport = if round % 2 == 0 { RelayTransport::Tcp } else { RelayTransport::Udp };
        let mut world = World::new(&transport, "secret");
        world.relay.permit(world.now, address(PEER));
        let (mut bends, seed) = (fastrand::Rng::with_seed(round), round % 5);
        world.bend = Box::new(move |bytes| {
            if bends.u64(0..5) < seed {
                return;
            }
            for _ in 0..bends.usize(1..4) {
                let at = bends.usize(..bytes.len());
                match bends.u8(0..3) {
                    0 => bytes[at] = bends.u8(..),
                    1 => bytes[at] ^= 1 << bends.u8(0..8),
                    _ => bytes.truncate(at.max(1)),
                }
            }
        });
        world.run(Duration::from_millis(300), Duration::from_millis(10));
        for _ in 0..50 {
            let mut frame: Vec<u8> = (0..random.usize(0..80)).map(|_| random.u8(..)).collect();
            if frame.len() >= 20 {
                // Accepted as STUN, or as a channel.
                let len = (frame.len() - 20) as u8;
                frame[0] = if random.bool() { random.u8(0..4) } else { 0x40 };
                (frame[2], frame[3]) = (0, len);
                frame[4..8].copy_from_slice(&[0x21, 0x12, 0xa4, 0x42]);
            }
            world.take(&frame);
        }
        assert!(
            world.failed.iter().all(|why| !why.contains("library failed")),
            "{:?}",
            world.failed
        );
        assert!(world.failed.len() <= 1);
    }
}
