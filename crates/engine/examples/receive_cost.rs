//! What receiving costs: sockets that get a packet rate over loopback, and the threads' CPU per
//! datagram.
//!
//! `cargo run --release -p throng-engine --example receive_cost -- SOCKETS PACKETS_PER_SECOND
//! TICK_MS [SECONDS]`
//!
//! The sender's thread has the cost of the loopback path, like a server; only the other threads'
//! CPU is counted.
#![expect(clippy::print_stdout, reason = "a measurement prints its result")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use throng_engine::{Join, RunConfig, run};
use throng_observation::run::{CohortId, ParticipantId, Row};
use throng_observation::{Observation, Outcome, Phase, RunTime};
use throng_protocol::participant::{Channel, Input, Open, Output, Participant};

struct Counter {
    server: SocketAddr,
    outputs: Vec<Output>,
    count: Arc<AtomicU64>,
    known: Arc<Mutex<Vec<SocketAddr>>>,
    is_echoed: bool,
}

impl Participant for Counter {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start { .. } => {
                self.outputs.push(Output::Open(
                    Channel(0),
                    Open::Datagrams { toward: vec![self.server], otherwise: None, gathers: false },
                ));
            }
            Input::Opened { opening, .. } => {
                self.known.lock().expect("not poisoned").extend(opening.local);
            }
            Input::Datagram { .. } => {
                self.count.fetch_add(1, Relaxed);
                if !std::mem::replace(&mut self.is_echoed, true) {
                    self.outputs
                        .push(Output::Observed(Observation::Reached(Phase::FirstPacket, now)));
                }
            }
            Input::Leave { .. } => self.outputs.push(Output::Ended(Outcome::Completed)),
            _ => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        self.outputs.pop().unwrap_or(Output::Timeout(now + Duration::from_secs(1), "nothing"))
    }
}

fn main() {
    let number = |at: usize, or: u64| {
        std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(or)
    };
    let (sockets, rate, tick_ms, seconds) =
        (number(1, 300), number(2, 200), number(3, 5), number(4, 8));
    let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (address, count, known) =
        (server.local_addr().expect("bound"), Arc::default(), Arc::default());
    let join = |n| Join {
        participant: ParticipantId(n),
        cohort: CohortId(0),
        place: n,
        at: RunTime(0),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let ends_at = RunTime(i64::try_from(seconds * 1_000_000).unwrap_or(i64::MAX));
    let joins = (0..u32::try_from(sockets).unwrap_or(u32::MAX)).map(join).collect();
    let mut config =
        RunConfig::new(joins, ends_at, Arc::new(|_, to: SocketAddr| to.ip().is_loopback()));
    config.threads = Some(1);
    config.tick = Duration::from_millis(tick_ms);
    let factory = {
        let (count, known) = (Arc::clone(&count), Arc::clone(&known));
        move |_: &Join| -> Box<dyn Participant> {
            let (count, known) = (Arc::clone(&count), Arc::clone(&known));
            Box::new(Counter {
                server: address,
                outputs: Vec::new(),
                count,
                known,
                is_echoed: false,
            })
        }
    };
    let (rows, written) = mpsc::sync_channel(100_000);
    let handle = run(config, Arc::new(factory), rows).expect("a run");
    let known: Arc<Mutex<Vec<SocketAddr>>> = known;
    while !handle.is_finished() {
        // One packet to each, then the next round at its absolute time; sockets are spread over the
        // round.
        let targets = known.lock().expect("not poisoned").clone();
        let (begun, round) =
            (Instant::now(), Duration::from_secs(1) / u32::try_from(rate).unwrap_or(1));
        for (n, target) in (0u32..).zip(&targets) {
            let _ = server.send_to(&[0x80; 1100], target);
            if n % 16 == 15 {
                let due = begun + round * n / u32::try_from(targets.len()).unwrap_or(1).max(1);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
        std::thread::sleep((begun + round).saturating_duration_since(Instant::now()));
    }
    let end = handle.wait();
    let (mut cpu_us, mut lag_us_max, mut drops) = (0, 0, 0);
    for row in written {
        if let Row::Generator(row) = row
            && row.thread.is_some()
        {
            cpu_us += row.cpu_us;
            lag_us_max = lag_us_max.max(row.lag_p99_us);
            drops += row.socket_drops;
        }
    }
    let received: u64 = Arc::clone(&count).load(Relaxed);
    println!(
        "{sockets} sockets, {rate}/s, tick {tick_ms} ms: {received} datagrams, {:.2} us CPU each, \
         worst second's lag p99 {lag_us_max} us, {drops} drops, {:?}",
        cpu_us as f64 / received.max(1) as f64,
        end.ending
    );
}
