//! Receive rings: whatever way datagrams come, each comes once and in order.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_engine::{EngineError, Join, Receive, RunConfig, run};
use throng_observation::run::{
    CohortId, EventRow, GeneratorRow, ParticipantId, RECEIVE_RING_EVENT, RECEIVE_SOCKETS_EVENT, Row,
};
use throng_observation::{Observation, Outcome, Phase, RunTime};
use throng_protocol::participant::{Channel, Input, Open, Output, Participant, Transmit};

const CHANNEL: Channel = Channel(5);

/// Bytes of the longest datagrams: those of jumbo frames.
const LONGEST: u64 = 8900;

/// What the participants got: numbers by participant, in the order of delivery.
type Seen = Arc<Mutex<HashMap<u32, Vec<u64>>>>;

/// Says hello to a [`Source`], and notes the numbers that it gets.
struct Sink {
    id: u32,
    server: SocketAddr,
    outputs: Vec<Output>,
    seen: Seen,
    is_playing: bool,
}

impl Participant for Sink {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start { .. } => {
                let toward = vec![self.server];
                self.outputs
                    .push(Output::Open(CHANNEL, Open::Datagrams { toward, otherwise: None, gathers: false }));
            }
            Input::Opened { .. } => {
                let hello = Transmit { to: self.server, from: None, bytes: b"hello".to_vec() };
                self.outputs.push(Output::Send(CHANNEL, hello));
            }
            Input::Datagram { channel, source, arrived_at, bytes, .. } => {
                assert_eq!((channel, source), (CHANNEL, self.server));
                assert!(now.saturating_duration_since(arrived_at) < Duration::from_secs(2));
                let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
                assert_eq!(bytes.len(), 8 + (number % LONGEST) as usize);
                self.seen.lock().unwrap().entry(self.id).or_default().push(number);
                if !std::mem::replace(&mut self.is_playing, true) {
                    self.outputs.push(Output::Observed(Observation::Reached(Phase::FirstPacket, now)));
                }
            }
            Input::Leave { .. } => self.outputs.push(Output::Ended(Outcome::Completed)),
            _ => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if self.outputs.is_empty() {
            return Output::Timeout(now + Duration::from_secs(1), "nothing");
        }
        self.outputs.remove(0)
    }
}

/// Sends numbers, each `every`, to all who have said hello.
struct Source {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<HashMap<SocketAddr, u64>>>,
}

impl Source {
    fn start(ip: IpAddr, every: Duration, burst: u64) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (address, over) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let (mut sent, mut hello) = (HashMap::new(), [0; 16]);
            while !is_over.load(Ordering::Relaxed) {
                while let Ok((_, from)) = socket.recv_from(&mut hello) {
                    sent.entry(from).or_insert(0_u64);
                }
                for (to, number) in &mut sent {
                    for _ in 0..burst {
                        let mut bytes = number.to_be_bytes().to_vec();
                        bytes.resize(8 + (*number % LONGEST) as usize, 7);
                        *number += u64::from(socket.send_to(&bytes, to).is_ok());
                    }
                }
                std::thread::sleep(every);
            }
            sent
        });
        Self { address, over, thread: Some(thread) }
    }

    /// The most that anybody was sent.
    fn stop(&mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map_or(0, |thread| thread.join().unwrap().into_values().max().unwrap_or(0))
    }
}

struct Played {
    seen: HashMap<u32, Vec<u64>>,
    sent: u64,
    health: Vec<GeneratorRow>,
    events: Vec<EventRow>,
}

impl Played {
    fn by_ring(&self) -> u64 {
        self.health.iter().filter(|row| row.thread.is_some()).map(|row| row.ring_datagrams).sum()
    }

    fn total(&self) -> u64 {
        self.seen.values().map(|numbers| numbers.len() as u64).sum()
    }

    fn told(&self, kind: &str) -> Vec<&str> {
        self.events.iter().filter(|event| event.kind == kind).map(|event| event.detail.as_str()).collect()
    }
}

fn play(mut source: Source, count: u32, for_ms: i64, change: impl FnOnce(&mut RunConfig)) -> Played {
    let join = |n: u32| Join {
        participant: ParticipantId(n),
        cohort: CohortId(0),
        place: n,
        at: RunTime(i64::from(n) * 40_000),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let joins = (0..count).map(join).collect();
    let mut config = RunConfig::new(joins, RunTime(for_ms * 1000), Arc::new(|ip: IpAddr| ip.is_loopback()));
    change(&mut config);
    let (seen, server): (Seen, _) = (Seen::default(), source.address);
    let factory = {
        let seen = Arc::clone(&seen);
        move |join: &Join| -> Box<dyn Participant> {
            let (id, seen) = (join.participant.0, Arc::clone(&seen));
            Box::new(Sink { id, server, outputs: Vec::new(), seen, is_playing: false })
        }
    };
    let (rows, written) = mpsc::sync_channel(100_000);
    let handle = run(config, Arc::new(factory), rows).unwrap();
    let _ = handle.wait();
    let sent = source.stop();
    let (mut health, mut events) = (Vec::new(), Vec::new());
    for row in written {
        match row {
            Row::Generator(row) => health.push(row),
            Row::Event(row) => events.push(row),
            _ => {}
        }
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    Played { seen, sent, health, events }
}

/// Whether this process may open packet sockets; otherwise there is nothing to test.
fn may_open() -> bool {
    throng_sim::requires_root()
}

#[test]
fn each_datagram_comes_once_and_in_order_by_the_ring_and_on_the_way_to_it() {
    if !may_open() {
        return;
    }
    for ip in ["127.0.0.1", "::1"] {
        let source = Source::start(ip.parse().unwrap(), Duration::from_millis(4), 2);
        let played = play(source, 6, 5500, |config| {
            config.receive = Receive::Ring;
            config.threads = Some(2);
        });
        assert_eq!(played.seen.len(), 6);
        for (id, numbers) in &played.seen {
            let first = numbers[0];
            let expect: Vec<u64> = (first..first + numbers.len() as u64).collect();
            assert_eq!(numbers, &expect, "{id} over {ip}");
            assert!(first <= 1 && numbers.len() > 500, "{id} over {ip}: from {first}, {}", numbers.len());
        }
        let (by_ring, total) = (played.by_ring(), played.total());
        assert!(by_ring * 2 > total && by_ring < total, "{by_ring} of {total} over {ip}");
        assert_eq!(played.told(RECEIVE_RING_EVENT).len(), 2, "{:?}", played.events);
        assert!(played.told(RECEIVE_SOCKETS_EVENT).is_empty(), "{:?}", played.events);
        assert_eq!(played.health.iter().map(|row| row.socket_drops).sum::<u64>(), 0);
    }
}

#[test]
fn sockets_are_used_when_they_are_asked_for() {
    let source = Source::start([127, 0, 0, 1].into(), Duration::from_millis(4), 2);
    let played = play(source, 3, 1500, |config| config.receive = Receive::Sockets);
    assert_eq!(played.by_ring(), 0);
    assert!(played.total() > 300 && played.events.iter().all(|event| !event.kind.starts_with("receive")));
}

#[test]
fn a_ring_that_is_too_small_limits_the_generator_and_nothing_is_counted_twice() {
    if !may_open() {
        return;
    }
    let source = Source::start([127, 0, 0, 1].into(), Duration::from_millis(20), 400);
    let played = play(source, 2, 3000, |config| {
        config.receive = Receive::Auto;
        config.threads = Some(1);
        config.ring_bytes = Some(1);
    });
    let drops: u64 = played.health.iter().map(|row| row.socket_drops).sum();
    assert!(drops > 0, "{} of {} datagrams", played.total(), played.sent);
    for numbers in played.seen.values() {
        assert!(numbers.is_sorted_by(|one, next| one < next));
    }
}

#[test]
fn a_ring_that_was_asked_for_and_cannot_be_is_an_error_before_the_run() {
    // Only where this process may not: a test that runs as root has the right.
    if std::process::Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n") {
        return;
    }
    let mut config = RunConfig::new(Vec::new(), RunTime(1), Arc::new(|_| true));
    config.receive = Receive::Ring;
    let nobody = |_: &Join| -> Box<dyn Participant> { unreachable!("nobody joins") };
    let error = run(config, Arc::new(nobody), mpsc::sync_channel(1).0).unwrap_err();
    assert!(matches!(&error, EngineError::Receive(why) if why.contains("CAP_NET_RAW")), "{error}");
}
