//! Receive rings: whatever way datagrams come, each comes once and in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_engine::{EngineError, Join, Receive, RunConfig, run};
use throng_net::SendBatch;
use throng_observation::limits::RING_BURST_DROPS_EVENT;
use throng_observation::run::{
    CohortId, EventRow, GeneratorRow, ParticipantId, RECEIVE_RING_EVENT, RECEIVE_SOCKETS_EVENT, Row,
};
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase, RunTime};
use throng_protocol::participant::{Channel, Input, Open, Output, Participant, Transmit};
use throng_sim::namespace::Namespace;
use throng_sim::not_tested;

const CHANNEL: Channel = Channel(5);

/// What may come out of order where datagrams become too long for the ring.
const OVERTAKEN_MAX: usize = 8;

/// Bytes of the longest datagrams: those of jumbo frames.
const LONGEST: u64 = 8900;

/// Addresses of the engine and of a source in namespaces of their own.
const HERE: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);

/// What a source of another program sends: no source comes so far.
const FOREIGN: u64 = u64::MAX;

/// What the participants got: numbers by participant, in the order of delivery.
type Seen = Arc<Mutex<HashMap<u32, Vec<u64>>>>;

/// Says hello to a [`Source`], and notes the numbers that it gets.
struct Sink {
    id: u32,
    server: SocketAddr,
    sending: Sending,
    outputs: Vec<Output>,
    seen: Seen,
    is_playing: bool,
}

impl Participant for Sink {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start { .. } => {
                let toward = vec![self.server];
                self.outputs.push(Output::Open(
                    CHANNEL,
                    Open::Datagrams { toward, otherwise: None, gathers: false },
                ));
            }
            Input::Opened { .. } => {
                let hello = Transmit { to: self.server, from: None, bytes: b"hello".to_vec() };
                self.outputs.push(Output::Send(CHANNEL, hello));
            }
            Input::Datagram { channel, source, arrived_at, bytes, .. } => {
                assert_eq!((channel, source), (CHANNEL, self.server));
                let late_max = Duration::from_secs(2) + self.sending.reader_stalls;
                assert!(now.saturating_duration_since(arrived_at) < late_max);
                let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
                assert_eq!(bytes.len(), (self.sending.length)(number));
                if (self.id, number) == (0, STALLS_AT) {
                    std::thread::sleep(self.sending.reader_stalls);
                }
                self.seen.lock().unwrap().entry(self.id).or_default().push(number);
                if !std::mem::replace(&mut self.is_playing, true) {
                    self.outputs
                        .push(Output::Observed(Observation::Reached(Phase::FirstPacket, now)));
                }
            }
            Input::Closed { why, .. } if !self.is_playing => {
                self.outputs.push(Output::Ended(Outcome::Failed(why.into())));
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

/// See [`Sending::reader_stalls`]: some 3 s after the start of one who gets two each 20 ms.
const STALLS_AT: u64 = 300;

/// From then on a source sends [`Sending::burst_later`].
const LATER: Duration = Duration::from_millis(3000);

/// What a [`Source`] sends to each.
#[derive(Clone, Copy)]
struct Sending {
    every: Duration,
    /// Datagrams at a time.
    burst: u64,
    /// After [`LATER`].
    burst_later: u64,
    /// At [`LATER`] it is silent for so long, and sends then at once what it did not send
    /// meanwhile.
    silent: Duration,
    /// When the first participant gets number [`STALLS_AT`], it keeps its thread for so long.
    reader_stalls: Duration,
    /// Bytes of a datagram, by its number: 8 at least.
    length: fn(u64) -> usize,
    /// Whether the kernel gets the datagrams of a burst as one (`UDP_SEGMENT`); they are then of
    /// one length.
    is_joined: bool,
}

impl Sending {
    /// Two datagrams each 4 ms.
    fn of(length: fn(u64) -> usize) -> Self {
        Self {
            every: Duration::from_millis(4),
            burst: 2,
            burst_later: 2,
            silent: Duration::ZERO,
            reader_stalls: Duration::ZERO,
            length,
            is_joined: false,
        }
    }

    fn append(&self, number: u64, bytes: &mut Vec<u8>) {
        let length = bytes.len() + (self.length)(number);
        bytes.extend(number.to_be_bytes());
        bytes.resize(length, 7);
    }

    /// Sends a burst that begins with `number`; how many of its datagrams the kernel took.
    fn send(
        &self,
        (from, to): (&UdpSocket, SocketAddr),
        (number, burst): (u64, u64),
        batch: &mut SendBatch,
    ) -> u64 {
        if self.is_joined {
            for number in number..number + burst {
                let start = batch.arena().len();
                self.append(number, batch.arena());
                batch.commit(to, start);
            }
            return batch.flush(from).packets;
        }
        let mut sent = 0;
        for _ in 0..burst {
            let mut bytes = Vec::new();
            self.append(number + sent, &mut bytes);
            sent += u64::from(from.send_to(&bytes, to).is_ok());
        }
        sent
    }
}

/// Sends numbers to all who have said hello.
struct Source {
    address: SocketAddr,
    sending: Sending,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<HashMap<SocketAddr, u64>>>,
}

impl Source {
    fn start(ip: IpAddr, sending: Sending) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (address, over) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            let (mut sent, mut hello, mut batch) = (HashMap::new(), [0; 16], SendBatch::default());
            let mut silent = sending.silent;
            while !is_over.load(Ordering::Relaxed) {
                while let Ok((_, from)) = socket.recv_from(&mut hello) {
                    sent.entry(from).or_insert(0_u64);
                }
                let mut burst =
                    if began.elapsed() < LATER { sending.burst } else { sending.burst_later };
                if began.elapsed() >= LATER && !silent.is_zero() {
                    std::thread::sleep(silent);
                    burst = burst * silent.as_millis() as u64 / sending.every.as_millis() as u64;
                    silent = Duration::ZERO;
                }
                for (to, number) in &mut sent {
                    *number += sending.send((&socket, *to), (*number, burst), &mut batch);
                }
                std::thread::sleep(sending.every);
            }
            sent
        });
        Self { address, sending, over, thread: Some(thread) }
    }

    /// How much each was sent.
    fn stop(&mut self) -> HashMap<SocketAddr, u64> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map_or_else(HashMap::new, |thread| thread.join().unwrap())
    }
}

struct Played {
    seen: HashMap<u32, Vec<u64>>,
    /// How much each address was sent.
    sent: HashMap<SocketAddr, u64>,
    failures: BTreeMap<u32, Failure>,
    health: Vec<GeneratorRow>,
    events: Vec<EventRow>,
}

impl Played {
    fn by_ring(&self) -> u64 {
        self.health.iter().filter(|row| row.thread.is_some()).map(|row| row.ring_datagrams).sum()
    }

    /// Datagrams that the engine says it dropped.
    fn drops(&self) -> u64 {
        self.health.iter().filter(|row| row.thread.is_some()).map(|row| row.socket_drops).sum()
    }

    /// Datagrams that found a full ring after a silence.
    fn burst_drops(&self) -> u64 {
        let bursts = self.events.iter().filter(|event| event.kind == RING_BURST_DROPS_EVENT);
        bursts.map(|event| u64::from(event.count)).sum()
    }

    /// Fails unless each of `count` participants got all from about the first one on, once and in
    /// order.
    #[track_caller]
    fn expect_all(&self, count: usize) {
        assert_eq!(self.seen.len(), count, "{:?}", self.failures);
        for (id, numbers) in &self.seen {
            let first = numbers[0];
            let at = numbers.iter().zip(first..).position(|(number, expect)| *number != expect);
            let around = at.map(|at| &numbers[at.saturating_sub(3)..numbers.len().min(at + 5)]);
            assert_eq!(around, None, "participant {id}, at {at:?}");
            assert!(
                first <= 1 && numbers.len() > 100,
                "participant {id}: from {first}, {}",
                numbers.len()
            );
        }
    }

    /// Fails unless none came twice, and no more than so many out of order; how many did not come
    /// between the first and the last.
    #[track_caller]
    fn expect_none_twice(&self, out_of_order: usize) -> u64 {
        let gaps = self.seen.iter().map(|(id, numbers)| {
            let overtaken = numbers.windows(2).filter(|pair| pair[0] >= pair[1]).count();
            assert!(overtaken <= out_of_order, "participant {id}: {overtaken} out of order");
            let once: BTreeSet<u64> = numbers.iter().copied().collect();
            assert_eq!(once.len(), numbers.len(), "participant {id}");
            let (first, last) = (once.first().unwrap_or(&0), once.last().unwrap_or(&0));
            last + 1 - first - numbers.len() as u64
        });
        gaps.sum()
    }

    /// The ports that were sent to.
    fn ports(&self) -> BTreeSet<u16> {
        self.sent.keys().map(SocketAddr::port).collect()
    }

    fn total(&self) -> u64 {
        self.seen.values().map(|numbers| numbers.len() as u64).sum()
    }

    fn told(&self, kind: &str) -> Vec<&str> {
        self.events
            .iter()
            .filter(|event| event.kind == kind)
            .map(|event| event.detail.as_str())
            .collect()
    }
}

fn play(
    mut source: Source,
    count: u32,
    for_ms: i64,
    change: impl FnOnce(&mut RunConfig),
) -> Played {
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
    let mut config = RunConfig::new(
        joins,
        RunTime(for_ms * 1000),
        Arc::new(|_, to: SocketAddr| to.ip().is_loopback()),
    );
    change(&mut config);
    let (seen, server, sending) = (Seen::default(), source.address, source.sending);
    let factory = {
        let seen = Arc::clone(&seen);
        move |join: &Join| -> Box<dyn Participant> {
            let (id, seen) = (join.participant.0, Arc::clone(&seen));
            Box::new(Sink { id, server, sending, outputs: Vec::new(), seen, is_playing: false })
        }
    };
    let (rows, written) = mpsc::sync_channel(100_000);
    let handle = run(config, Arc::new(factory), rows).unwrap();
    let _ = handle.wait();
    let sent = source.stop();
    let (mut health, mut events, mut failures) = (Vec::new(), Vec::new(), BTreeMap::new());
    for row in written {
        match row {
            Row::Participant(row) => {
                if let Some(Outcome::Failed(failure)) = row.outcome {
                    failures.insert(row.participant.0, failure);
                }
            }
            Row::Generator(row) => health.push(row),
            Row::Event(row) => events.push(row),
            _ => {}
        }
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    Played { seen, sent, failures, health, events }
}

/// Whether this process may open packet sockets; otherwise there is nothing to test.
fn may_open() -> bool {
    throng_sim::requires_root()
}

/// Each datagram is longer than the one before it.
fn rising(number: u64) -> usize {
    8 + (number % LONGEST) as usize
}

/// Lengths of all sizes from the beginning on.
fn mixed(number: u64) -> usize {
    // A prime, so that all lengths come.
    rising(number * 997)
}

/// As long as video packets.
fn as_video(_: u64) -> usize {
    1200
}

/// Of four in 4 ms, those after some 3 s are longer than an MTU of 1,000 bytes takes.
fn longer_later(number: u64) -> usize {
    if number < 2400 { 900 } else { 1200 }
}

/// Of two in 4 ms, those after some 2 s are in part longer than a frame of Ethernet.
fn long_later(number: u64) -> usize {
    if number > 1000 && number % 4 == 1 { 2000 } else { 1000 }
}

/// Two namespaces joined by a veth pair that carries packets; `None` where this process may not
/// make them.
fn joined(purpose: &str) -> Option<(Namespace, Namespace)> {
    if !may_open() {
        return None;
    }
    let (here, there) = Namespace::pair(purpose, HERE, THERE).unwrap();
    here.when_running().unwrap();
    there.when_running().unwrap();
    Some((here, there))
}

/// A run by the ring on one thread that may reach all addresses, with what `change` sets.
fn play_by_ring(
    source: Source,
    count: u32,
    for_ms: i64,
    change: impl FnOnce(&mut RunConfig),
) -> Played {
    play(source, count, for_ms, |config| {
        config.receive = Receive::Ring;
        config.threads = Some(1);
        config.reach = Arc::new(|_, _| true);
        change(config);
    })
}

/// Such a run in the first namespace, with a source in the second.
fn play_between((here, there): &(Namespace, Namespace), sending: Sending, for_ms: i64) -> Played {
    let source = there.enter(|| Source::start(THERE.into(), sending)).unwrap();
    here.enter(|| play_by_ring(source, 3, for_ms, |_| ())).unwrap()
}

#[test]
fn each_datagram_comes_once_and_in_order_by_the_ring_and_on_the_way_to_it() {
    if !may_open() {
        return;
    }
    for ip in ["127.0.0.1", "::1"] {
        let source = Source::start(ip.parse().unwrap(), Sending::of(rising));
        let played = play(source, 6, 5500, |config| {
            config.receive = Receive::Ring;
            config.threads = Some(2);
        });
        assert_eq!(played.seen.len(), 6);
        for (id, numbers) in &played.seen {
            let first = numbers[0];
            let expect: Vec<u64> = (first..first + numbers.len() as u64).collect();
            assert_eq!(numbers, &expect, "{id} over {ip}");
            assert!(
                first <= 1 && numbers.len() > 500,
                "{id} over {ip}: from {first}, {}",
                numbers.len()
            );
        }
        let (by_ring, total) = (played.by_ring(), played.total());
        assert!(by_ring * 2 > total && by_ring < total, "{by_ring} of {total} over {ip}");
        // A ring that was nearly full, as on a busy machine, is replaced by a larger one.
        let told = played.told(RECEIVE_RING_EVENT);
        for thread in ["thread 0:", "thread 1:"] {
            assert!(told.iter().any(|detail| detail.starts_with(thread)), "{:?}", played.events);
        }
        assert!(played.told(RECEIVE_SOCKETS_EVENT).is_empty(), "{:?}", played.events);
        assert_eq!(played.health.iter().map(|row| row.socket_drops).sum::<u64>(), 0);
    }
}

#[test]
fn sockets_are_used_when_they_are_asked_for() {
    let source = Source::start([127, 0, 0, 1].into(), Sending::of(rising));
    let played = play(source, 3, 1500, |config| config.receive = Receive::Sockets);
    assert_eq!(played.by_ring(), 0);
    assert!(
        played.total() > 300
            && played.events.iter().all(|event| !event.kind.starts_with("receive"))
    );
}

#[test]
fn a_ring_that_is_too_small_limits_the_generator_and_nothing_is_counted_twice() {
    if !may_open() {
        return;
    }
    let sending =
        Sending { every: Duration::from_millis(20), burst_later: 400, ..Sending::of(rising) };
    let source = Source::start([127, 0, 0, 1].into(), sending);
    let played = play(source, 2, 5000, |config| {
        config.receive = Receive::Ring;
        config.threads = Some(1);
        config.ring_bytes = Some(1);
    });
    let (lost, drops) = (played.expect_none_twice(0), played.drops());
    if (lost, drops) == (0, 0) {
        throng_sim::not_tested("the ring was replaced by a larger one before anybody needed it");
    }
    assert!(
        drops > 0 && lost <= drops,
        "{lost} lost, {drops} told, of {:?} datagrams",
        played.sent.values()
    );
}

#[test]
fn what_a_server_that_stood_still_sends_at_once_is_no_limit_of_the_generator() {
    if !may_open() {
        return;
    }
    let every = Duration::from_millis(20);
    let sending = Sending { every, burst_later: 4, silent: every * 75, ..Sending::of(as_video) };
    // Each second one socket is compared with the ring, and then takes its datagrams itself.
    let source = Source::start([127, 0, 0, 1].into(), sending);
    let played = play(source, 8, 6500, |config| {
        config.receive = Receive::Ring;
        config.threads = Some(1);
        config.ring_bytes = Some(1 << 20);
    });
    let lost = played.expect_none_twice(0);
    let told = played.burst_drops();
    if lost == 0 && told > 0 {
        not_tested(
            "the ring was full before it had the datagrams of all: the sockets still had them",
        );
    }
    assert!(
        lost > 0 && lost <= told && played.drops() == 0,
        "{lost} lost, {told} told, {:?}",
        played.events
    );
}

#[test]
fn what_a_thread_that_stood_still_did_not_read_is_its_own_loss() {
    if !may_open() {
        return;
    }
    let every = Duration::from_millis(20);
    let reader_stalls = Duration::from_millis(3_000);
    let source = Source::start(
        [127, 0, 0, 1].into(),
        Sending { every, reader_stalls, ..Sending::of(as_video) },
    );
    let played = play(source, 8, 8000, |config| {
        config.receive = Receive::Ring;
        config.threads = Some(1);
        config.ring_bytes = Some(1 << 20);
    });
    let (lost, drops) = (played.expect_none_twice(0), played.drops());
    // The ring was full of what had arrived before, and then its senders seem to have been silent.
    assert!(
        lost > 0 && lost <= drops && played.burst_drops() == 0,
        "{lost} lost, {drops}, {:?}",
        played.events
    );
}

#[test]
fn a_ring_that_is_too_small_from_the_start_is_told_and_costs_nothing() {
    if !may_open() {
        return;
    }
    let sending = Sending {
        every: Duration::from_millis(20),
        burst: 400,
        burst_later: 400,
        ..Sending::of(rising)
    };
    let source = Source::start([127, 0, 0, 1].into(), sending);
    let played = play(source, 2, 5500, |config| {
        config.receive = Receive::Ring;
        config.threads = Some(1);
        config.ring_bytes = Some(1);
        config.receive_buffer_bytes = 16 << 20;
    });
    played.expect_all(2);
    assert_eq!((played.drops(), played.by_ring()), (0, 0));
    let told = played.told(RECEIVE_SOCKETS_EVENT);
    assert!(told.len() == 1 && told[0].contains("were in the ring of lo"), "{told:?}");
}

#[test]
fn a_ring_that_was_asked_for_and_cannot_be_is_an_error_before_the_run() {
    // Only where this process may not: a test that runs as root has the right.
    if std::process::Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n") {
        return;
    }
    let mut config = RunConfig::new(Vec::new(), RunTime(1), Arc::new(|_, _| true));
    config.receive = Receive::Ring;
    let nobody = |_: &Join| -> Box<dyn Participant> { unreachable!("nobody joins") };
    let error = run(config, Arc::new(nobody), mpsc::sync_channel(1).0).unwrap_err();
    assert!(matches!(&error, EngineError::Receive(why) if why.contains("CAP_NET_RAW")), "{error}");
}

#[test]
fn datagrams_in_fragments_come_by_their_socket_each_once() {
    if !may_open() {
        return;
    }
    let namespace = Namespace::new("ringl").unwrap();
    // Loopback takes 64 KiB otherwise, and fragments nothing. IPv6 needs 1,280 bytes.
    namespace.set_mtu("lo", 1500).unwrap();
    for ip in ["127.0.0.1", "::1"] {
        let played = namespace.enter(|| {
            let source = Source::start(ip.parse().unwrap(), Sending::of(mixed));
            play_by_ring(source, 3, 3000, |_| ())
        });
        let played = played.unwrap();
        played.expect_all(3);
        assert_eq!((played.by_ring(), played.drops()), (0, 0), "over {ip}");
    }
}

#[test]
fn fragments_of_a_narrower_path_are_no_drops_of_a_socket_that_takes_all() {
    let Some(namespaces) = joined("ringn") else { return };
    // The datagrams are shorter than the MTU of the engine's own interface.
    namespaces.1.set_mtu("v0", 700).unwrap();
    let played = play_between(&namespaces, Sending::of(as_video), 3000);
    played.expect_all(3);
    assert_eq!((played.by_ring(), played.drops()), (0, 0), "{:?}", played.events);
}

#[test]
fn a_path_that_becomes_narrower_loses_nothing_that_is_not_counted() {
    let Some(namespaces) = joined("ringm") else { return };
    let played = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(3000));
            namespaces.1.set_mtu("v0", 700).unwrap();
        });
        play_between(&namespaces, Sending::of(as_video), 5500)
    });
    let (lost, drops) = (played.expect_none_twice(0), played.drops());
    assert!(lost <= drops, "{lost} were lost, {drops} counted");
    assert!(lost < played.total() / 20, "{lost} of {}", played.total());
    assert!(played.by_ring() > 300, "{} by the ring", played.by_ring());
    // More than half were sent before the change: those after it came by the sockets.
    let sent = played.sent.values().copied().max().unwrap_or(0);
    let went_on = |numbers: &Vec<u64>| numbers.last().is_some_and(|last| last * 10 > sent * 8);
    assert!(played.seen.values().all(went_on), "of {sent}");
}

#[test]
fn datagrams_longer_than_the_mtu_that_come_later_lose_nothing_that_is_not_counted() {
    let Some(namespaces) = joined("ringo") else { return };
    let played = play_between(&namespaces, Sending::of(long_later), 6500);
    // The first long ones overtake what the ring still has.
    let (lost, drops) = (played.expect_none_twice(OVERTAKEN_MAX), played.drops());
    assert!(lost <= drops, "{lost} were lost, {drops} counted");
    assert!(played.by_ring() > 300, "{} by the ring", played.by_ring());
    let sent = played.sent.values().copied().max().unwrap_or(0);
    assert!(sent > 1300, "no long ones were sent: {sent}");
}

#[test]
fn frames_longer_than_the_mtu_of_their_interface_are_not_counted_twice() {
    let Some(namespaces) = joined("ringt") else { return };
    // Frames of joined datagrams pass a veth pair whatever the MTU of its other end. Cards, too,
    // may take longer frames than they send.
    namespaces.0.set_mtu("v0", 1000).unwrap();
    let lengths: [fn(u64) -> usize; 2] = [as_video, longer_later];
    for (length, overtaken) in lengths.into_iter().zip([0, OVERTAKEN_MAX]) {
        let sending = Sending { burst: 4, burst_later: 4, is_joined: true, ..Sending::of(length) };
        let played = play_between(&namespaces, sending, 6500);
        assert_eq!((played.expect_none_twice(overtaken), played.drops()), (0, 0));
        let sent = played.sent.values().copied().max().unwrap_or(0);
        assert!(sent > 2600, "no long ones were sent: {sent}");
    }
}

#[test]
fn datagrams_of_jumbo_frames_come_by_the_ring() {
    let Some(namespaces) = joined("ringj") else { return };
    namespaces.0.set_mtu("v0", 9000).unwrap();
    namespaces.1.set_mtu("v0", 9000).unwrap();
    for is_joined in [false, true] {
        let length: fn(u64) -> usize = if is_joined { as_video } else { mixed };
        let played = play_between(&namespaces, Sending { is_joined, ..Sending::of(length) }, 4000);
        played.expect_all(3);
        let (by_ring, total) = (played.by_ring(), played.total());
        assert!(by_ring * 8 > total, "{by_ring} of {total}");
        assert_eq!(played.drops(), 0);
    }
}

/// Sends to all of `to` for about `time`.
fn disturb(from: &UdpSocket, to: &[SocketAddr], time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        for to in to {
            let _ = from.send_to(&FOREIGN.to_be_bytes(), to);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn ports_of_other_programs_are_passed_over_and_what_comes_to_them_is_counted_for_nobody() {
    let Some((here, there)) = joined("ringp") else { return };
    here.set_local_ports(&(40_000..=40_511)).unwrap();
    let taken = [40_000, 40_001, 40_003].map(|port| SocketAddr::from((HERE, port)));
    let foreign = here.enter(|| taken.map(|address| UdpSocket::bind(address).unwrap())).unwrap();
    // From the address of the source, as another client of the same server would get them.
    let stranger = there.enter(|| UdpSocket::bind((THERE, 0)).unwrap()).unwrap();
    let source = there.enter(|| Source::start(THERE.into(), Sending::of(as_video))).unwrap();
    let played = std::thread::scope(|scope| {
        scope.spawn(|| disturb(&stranger, &taken, Duration::from_millis(4500)));
        here.enter(|| play_by_ring(source, 3, 4500, |_| ())).unwrap()
    });
    played.expect_all(3);
    assert_eq!(played.ports(), BTreeSet::from([40_002, 40_004, 40_005]));
    let (by_ring, total) = (played.by_ring(), played.total());
    assert!(by_ring * 8 > total && by_ring < total, "{by_ring} of {total}");
    assert_eq!(played.drops(), 0);
    for socket in foreign {
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 16];
        assert_eq!(socket.recv(&mut bytes).unwrap(), 8);
        assert_eq!(bytes[..8], FOREIGN.to_be_bytes());
    }
}

#[test]
fn one_port_beside_the_ranges_is_served_by_its_socket_and_without_any_a_join_fails_by_name() {
    let Some((here, there)) = joined("ringq") else { return };
    // Ten ports for each of two threads, and one that is in neither range.
    here.set_local_ports(&(40_000..=40_020)).unwrap();
    let sending = Sending { every: Duration::from_millis(10), burst: 1, ..Sending::of(as_video) };
    let source = there.enter(|| Source::start(THERE.into(), sending)).unwrap();
    let played =
        here.enter(|| play_by_ring(source, 22, 5000, |config| config.threads = Some(2))).unwrap();
    played.expect_all(21);
    assert_eq!(played.ports(), (40_000..=40_020).collect::<BTreeSet<u16>>());
    let (by_ring, total) = (played.by_ring(), played.total());
    assert!(by_ring * 8 > total, "{by_ring} of {total}");
    let failures: Vec<_> = played.failures.values().collect();
    let [failure] = failures[..] else { panic!("{failures:?}") };
    assert_eq!(failure.reason, FailureReason::Generator);
    assert!(failure.detail.contains("datagram socket at 10.88.0.1"), "{failure:?}");
    assert_eq!(played.told(RECEIVE_SOCKETS_EVENT), Vec::<&str>::new());
}
