//! A link of known delay, jitter, loss, rate and queue between two namespaces, in userspace: for
//! kernels without `netem`. A TUN device `tl0` in each carries packets to the other.
//!
//! It runs as a process of its own (`throng-link`) with real-time priority, so that a busy test
//! does not bend its delays. It sleeps until shortly before the next delivery and spins the rest.

mod queue;
mod tun;

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::namespace::Namespace;
use crate::support::{ChildGuard, SimError};
use queue::Queue;

/// How long before a delivery the relay wakes up to spin: above the usual overshoot of a timed
/// sleep at real-time priority (about 0.1 ms).
const SPIN: Duration = Duration::from_micros(150);

/// Packets read from one side before the other is served.
const BATCH: usize = 64;

/// How a link treats packets, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// One-way delay, milliseconds.
    pub delay_ms: f64,
    /// Each packet's delay differs from it by up to this much, evenly, milliseconds; packets
    /// overtake each other.
    pub jitter_ms: f64,
    /// Loss, per cent, random and independent.
    pub loss_percent: f64,
    /// Line rate, kbit/s; 0 is unlimited.
    pub rate_kbps: u64,
    /// Packets on their way at once; more are dropped.
    pub queue_packets: usize,
}

impl Conditions {
    /// A delay and nothing else.
    #[must_use]
    pub fn delay(delay_ms: f64) -> Self {
        Self { delay_ms, jitter_ms: 0.0, loss_percent: 0.0, rate_kbps: 0, queue_packets: 10_000 }
    }
}

/// A running link; it ends when dropped.
#[derive(Debug)]
pub struct Link {
    _process: ChildGuard,
}

impl Link {
    /// Joins `a` and `b` by the program at `throng_link` (a test finds it as
    /// `env!("CARGO_BIN_EXE_throng-link")`).
    ///
    /// # Errors
    /// When it does not start or cannot make its devices.
    pub fn start(
        throng_link: &Path,
        (a, address_a): (&Namespace, Ipv4Addr),
        (b, address_b): (&Namespace, Ipv4Addr),
        conditions: Conditions,
    ) -> Result<Self, SimError> {
        let Conditions { delay_ms, jitter_ms, loss_percent, rate_kbps, queue_packets } = conditions;
        let mut process = ChildGuard::start(
            Command::new(throng_link)
                .args([a.name(), &address_a.to_string(), b.name(), &address_b.to_string()])
                .args([delay_ms, jitter_ms, loss_percent].map(|figure| figure.to_string()))
                .args([rate_kbps.to_string(), queue_packets.to_string()])
                .stdout(Stdio::piped())
                .stderr(Stdio::inherit()),
        )?;
        let mut said = String::new();
        if let Some(stdout) = process.child().stdout.take() {
            BufReader::new(stdout).read_line(&mut said)?;
        }
        match said.trim() {
            "ready" => Ok(Self { _process: process }),
            _ => Err(SimError::Said("throng-link ended before it was ready".into())),
        }
    }
}

/// What `throng-link` does: makes the devices, calls `ready`, carries packets until the process
/// ends.
///
/// `args` are `NAMESPACE_A ADDRESS_A NAMESPACE_B ADDRESS_B DELAY_MS JITTER_MS LOSS_PERCENT
/// RATE_KBPS QUEUE_PACKETS`.
///
/// # Errors
/// When the arguments are not those, or a device cannot be made or read.
pub fn carry(args: &[String], ready: impl FnOnce()) -> Result<(), SimError> {
    let usage = || {
        SimError::Said(
            "usage: throng-link NS_A ADDR_A NS_B ADDR_B DELAY JITTER LOSS RATE QUEUE".into(),
        )
    };
    let [ns_a, address_a, ns_b, address_b, delay, jitter, loss, rate, queue] = args else {
        return Err(usage());
    };
    let figure = |text: &String| {
        text.parse::<f64>().ok().filter(|f| f.is_finite() && *f >= 0.0).ok_or_else(usage)
    };
    let conditions = Conditions {
        delay_ms: figure(delay)?,
        jitter_ms: figure(jitter)?,
        loss_percent: figure(loss)?,
        rate_kbps: rate.parse().map_err(|_| usage())?,
        queue_packets: queue.parse().map_err(|_| usage())?,
    };
    let devices = [tun::open(ns_a, address_a)?, tun::open(ns_b, address_b)?];
    tun::real_time();
    ready();

    // queues[i] carries what was read from device i to the other one.
    let mut queues = [Queue::new(conditions), Queue::new(conditions)];
    let mut packet = [0_u8; 2048];
    loop {
        let mut next: Option<Instant> = None;
        for (queue, to) in queues.iter_mut().zip([&devices[1], &devices[0]]) {
            while let Some(packet) = queue.pop_due(Instant::now()) {
                // A full device queue loses the packet, as any link does.
                let _ = tun::write(to, &packet);
            }
            next = [next, queue.next_due()].into_iter().flatten().min();
        }
        // Less than the spin away: look again at once.
        let idle = next
            .map_or(Duration::from_secs(1), |due| due.saturating_duration_since(Instant::now()));
        tun::wait_readable(
            &[devices[0].as_raw_fd(), devices[1].as_raw_fd()],
            idle.saturating_sub(SPIN),
        )?;
        for (queue, from) in queues.iter_mut().zip(&devices) {
            for _ in 0..BATCH {
                match tun::read(from, &mut packet) {
                    Some(bytes) => queue.push(Instant::now(), bytes),
                    None => break,
                }
            }
        }
    }
}
