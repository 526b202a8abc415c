//! What all slots of a thread use: readiness, buffers, timers, the ways to signalling and to the collector.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use throng_protocol::participant::{Channel, Transmit};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::collector_sender::CollectorSender;
use super::timers::Timers;
use super::wake_timer::WakeTimer;
use crate::clock::Clocks;
use crate::config::Reach;
use crate::control::Waker;
use crate::signalling::{SignallingChannels, SignallingCommand, SlotEvent};
use crate::sockets::{DatagramSocket, Lost, ReceiveBatch, Sources, watched};
use crate::tap::TapSender;

/// Signalling events taken before others are served.
const SIGNALLING_EVENTS_PER_PASS: usize = 256;

/// What is left to goodbyes when the last participant is gone.
const LAST_GOODBYES: Duration = Duration::from_millis(50);

/// The readiness event of the waker.
pub(super) const WAKE: u64 = u64::MAX;

/// What a io is made of.
pub(crate) struct IoContextConfig {
    pub(crate) thread: u16,
    pub(crate) reach: Reach,
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) grace: Duration,
    pub(crate) waker: Arc<Waker>,
    pub(crate) signalling: SignallingChannels,
    pub(crate) collector: CollectorSender,
    pub(crate) tap: Option<TapSender>,
}

/// Resources of one thread.
pub(crate) struct IoContext {
    pub(super) thread: u16,
    pub(super) reach: Reach,
    pub(super) sources: Sources,
    pub(super) receive_buffer_bytes: usize,
    pub(super) grace: Duration,
    pub(super) waker: Arc<Waker>,
    pub(super) collector: CollectorSender,
    /// Where frames of tapped participants go.
    pub(super) tap: Option<TapSender>,
    pub(super) timers: Timers,
    pub(super) batch: ReceiveBatch,
    pub(super) clocks: Clocks,
    /// Datagrams of the slot that is being drained, by the index of its socket.
    pub(super) outgoing: Vec<(usize, Transmit)>,
    pub(super) drops: Drops,
    /// Bytes on the wire of what was sent, since last reported.
    pub(super) sent_bytes: u64,
    /// Sockets of participants that are joining, served at once.
    eager: AsyncFd<OwnedFd>,
    /// Sockets of participants that play, served each tick: what gathered meanwhile comes in one call. Edge-triggered,
    /// so that the kernel need not look again at each socket that was emptied: who does not empty one comes back to it.
    settled: OwnedFd,
    pub(super) settled_sockets: usize,
    pub(super) eager_sockets: usize,
    wake_timer: WakeTimer,
    signalling: SignallingChannels,
}

/// What was lost, since last reported.
#[derive(Debug, Default)]
pub(super) struct Drops {
    /// Datagrams that our sockets had no room for, or that were too long.
    pub(super) received: u64,
    /// Datagrams that came at once after their sender had been silent, and found no room; and how long it had been.
    pub(super) burst: u64,
    pub(super) silent: Duration,
    /// Datagrams that the kernel had no room for.
    pub(super) sent: u64,
}

impl Drops {
    pub(super) fn note(&mut self, lost: Lost) {
        match lost.after_silence {
            None => self.received += u64::from(lost.count),
            Some(silent) => {
                self.burst += u64::from(lost.count);
                self.silent = self.silent.max(silent);
            }
        }
    }
}

/// Bytes of UDP and IP header that each datagram to `to` has on the wire (RFC 768, RFC 791, RFC 8200).
pub(super) fn header_bytes(to: std::net::SocketAddr) -> u64 {
    throng_observation::units::udp_header_bytes(to.is_ipv4()).into()
}

/// Which readiness set a socket is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Eager,
    Settled,
}

impl IoContext {
    /// To be called on the thread's runtime.
    pub(crate) fn new(config: IoContextConfig) -> io::Result<Self> {
        let eager = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let settled = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&eager, config.waker.event(), epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Self {
            thread: config.thread,
            reach: config.reach,
            sources: Sources::default(),
            receive_buffer_bytes: config.receive_buffer_bytes,
            grace: config.grace,
            waker: config.waker,
            collector: config.collector,
            tap: config.tap,
            timers: Timers::default(),
            batch: ReceiveBatch::new(),
            clocks: Clocks::new(),
            outgoing: Vec::new(),
            drops: Drops::default(),
            sent_bytes: 0,
            eager: watched(eager)?,
            settled,
            settled_sockets: 0,
            eager_sockets: 0,
            wake_timer: WakeTimer::new()?,
            signalling: config.signalling,
        })
    }

    /// Waits for joining participants' sockets, the waker or something in `inbox`, at most until `until`; lets signalling
    /// run meanwhile, and once in any case. Ready sockets are appended to `ready`, tidings to `told`.
    pub(super) async fn wait(
        &self,
        (now, until): (Instant, Instant),
        ready: &mut Vec<epoll::Event>,
        inbox: &mut mpsc::Receiver<SlotEvent>,
        told: &mut Vec<SlotEvent>,
    ) {
        let timeout = until.saturating_duration_since(now);
        if timeout.is_zero() {
            tokio::task::yield_now().await;
            poll(self.eager.get_ref(), ready);
            while told.len() < SIGNALLING_EVENTS_PER_PASS
                && let Ok(tidings) = inbox.try_recv()
            {
                told.push(tidings);
            }
            return;
        }
        self.wake_timer.set(until, timeout);
        let something = async {
            tokio::select! {
                biased;
                _ = inbox.recv_many(told, SIGNALLING_EVENTS_PER_PASS) => {}
                () = self.eager_ready(ready) => {}
                () = self.wake_timer.expired() => {}
            }
        };
        if !has_waited(something).await {
            tokio::task::yield_now().await;
        }
    }

    async fn eager_ready(&self, ready: &mut Vec<epoll::Event>) {
        // An epoll set that cannot be watched leaves the wake_timer, by which everything is looked at.
        while let Ok(mut guard) = self.eager.readable().await {
            let found = guard.try_io(|set| {
                poll(set.get_ref(), ready);
                if ready.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            if found.is_ok() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Playing participants' sockets that have something.
    pub(super) fn poll_settled(&self, ready: &mut Vec<epoll::Event>) {
        poll(&self.settled, ready);
    }

    pub(super) fn watch(
        &mut self,
        socket: &DatagramSocket,
        slot: u32,
        channel: Channel,
        pace: Pace,
    ) -> io::Result<()> {
        let (set, count, flags) = match pace {
            Pace::Eager => (self.eager.get_ref(), &mut self.eager_sockets, epoll::EventFlags::IN),
            Pace::Settled => {
                (&self.settled, &mut self.settled_sockets, epoll::EventFlags::IN | epoll::EventFlags::ET)
            }
        };
        let data = epoll::EventData::new_u64(u64::from(slot) << 16 | u64::from(channel.0));
        epoll::add(set, socket.as_fd(), data, flags)?;
        *count += 1;
        Ok(())
    }

    pub(super) fn unwatch(&mut self, socket: &DatagramSocket, pace: Pace) {
        let (set, count) = match pace {
            Pace::Eager => (self.eager.get_ref(), &mut self.eager_sockets),
            Pace::Settled => (&self.settled, &mut self.settled_sockets),
        };
        *count = count.saturating_sub(1);
        let _ = epoll::delete(set, socket.as_fd());
    }

    /// Asks for signalling.
    pub(super) fn ask(&mut self, slot: u32, source: Option<IpAddr>, want: SignallingCommand) {
        self.signalling.ask(slot, source, want);
    }

    /// Hands over what was seen, waiting: at the end. Last goodbyes (close frames, DELETE) get a moment; a silent server
    /// does not hold the run.
    pub(super) async fn finish(self) {
        let Self { collector, signalling, .. } = self;
        collector.finish();
        drop(signalling);
        tokio::time::sleep(LAST_GOODBYES).await;
    }
}

/// Completes `future`; whether that took a wait, in which others had their turn.
async fn has_waited(future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    let mut waited = false;
    poll_fn(move |context| {
        let done = future.as_mut().poll(context).map(|()| waited);
        waited = true;
        done
    })
    .await
}

/// What is ready in `set` now.
fn poll(set: &OwnedFd, ready: &mut Vec<epoll::Event>) {
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Interrupted by a signal: the loop comes again.
    let _ = epoll::wait(set, rustix::buffer::spare_capacity(ready), Some(&no_wait));
}
