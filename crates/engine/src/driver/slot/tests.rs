//! What a slot sends, on sockets of this host.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, mpsc};

use throng_net::Waker;
use throng_observation::RunTime;
use throng_observation::run::{CohortId, ParticipantId};
use throng_protocol::participant::Transmit;

use super::*;
use crate::config::{Receive, RunConfig};
use crate::driver::{CollectorSender, IoContextConfig};
use crate::signalling::SignallingChannels;
use crate::sockets::{Dialer, LocalPorts, ReceiveConfig};

const CHANNEL: Channel = Channel(0);

/// A participant that sends these.
struct Sender(VecDeque<Transmit>);

impl Participant for Sender {
    fn handle(&mut self, _now: Instant, _input: Input<'_>) {}

    fn poll_output(&mut self, now: Instant) -> Output {
        match self.0.pop_front() {
            Some(transmit) => Output::Send(CHANNEL, transmit),
            None => Output::Timeout(now, "nothing"),
        }
    }
}

/// Of a thread whose participants may reach everything. Needs a runtime.
fn io() -> IoContext {
    let config = RunConfig::new(Vec::new(), RunTime::default(), Arc::new(|_, _| true));
    let dialer = Arc::new(Dialer::new(&config).unwrap());
    let (signalling, _) = SignallingChannels::new(dialer, config.body_bytes_max);
    let (collector, _) = mpsc::sync_channel(1);
    IoContext::new(IoContextConfig {
        thread: 0,
        reach: config.reach,
        receive_buffer_bytes: 1 << 16,
        receive: ReceiveConfig {
            receive: Receive::Sockets,
            ports: LocalPorts::of_thread(0, 1, 1, 0),
            planned: 1,
            threads: 1,
            ring_bytes: None,
        },
        grace: config.grace,
        waker: Arc::new(Waker::new().unwrap()),
        signalling,
        collector: CollectorSender::new(collector),
        tap: None,
    })
    .unwrap()
}

#[tokio::test]
async fn a_peer_is_sent_nothing_by_a_detour() {
    let join = Join {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        place: 0,
        at: RunTime(0),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let [routed, detour] = [1, 2].map(|last| IpAddr::from([127, 0, 0, last]));
    let peer = UdpSocket::bind((routed, 0)).unwrap();
    let to = peer.local_addr().unwrap();
    let sent = [(detour, &b"astray"[..]), (routed, b"straight"), (detour, b"astray again")]
        .map(|(from, bytes)| Transmit { to, from: Some(from), bytes: bytes.to_vec() });
    let last = Transmit { to, from: None, bytes: b"last".to_vec() };
    let sender = Sender(sent.into_iter().chain([last]).collect());
    let mut slot = Slot::new(0, 0, Box::new(sender), &join, None);
    let socket = DatagramSocket::bind(&[routed, detour], None, 1 << 16).unwrap();
    let port = socket.locals()[0].port();
    slot.sockets.push(ChannelSocket { channel: CHANNEL, socket });
    let now = Instant::now();
    slot.start(now, now, &mut io());
    let mut bytes = [0; 16];
    for expect in [&b"straight"[..], b"last"] {
        let (length, source) = peer.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..length], source), (expect, SocketAddr::new(routed, port)));
    }
}
