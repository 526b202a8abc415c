//! Resources that all slots of a thread share: epoll sets, buffers, timers, signalling, the channel
//! to the collector.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use throng_net::{ReceiveBatch, Waker};
use throng_protocol::participant::{Channel, FetchId, Transmit};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::collector_sender::{CollectorSender, DriverEvent};
use super::timers::Timers;
use super::wake_timer::WakeTimer;
use crate::clock::Clocks;
use crate::config::Reach;
use crate::signalling::{Serial, SignallingChannels, SignallingCommand, SlotEvent};
use crate::sockets::http::DownloadPart;
use crate::sockets::{
    DatagramSocket, LostDatagrams, ReceiveConfig, ReceiveRings, RingUse, SourceAddresses, watched,
};
use crate::tap::TapSender;

/// Signalling events taken in one pass of the loop.
const SIGNALLING_EVENTS_PER_PASS: usize = 256;

/// Time for last close frames and DELETE requests after the last participant has ended.
const LAST_GOODBYES: Duration = Duration::from_millis(50);

/// `epoll` user data of the waker.
pub(super) const WAKE: u64 = u64::MAX;

/// The parts of an [`IoContext`].
pub(crate) struct IoContextConfig {
    pub(crate) thread: u16,
    pub(crate) reach: Reach,
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) receive: ReceiveConfig,
    pub(crate) grace: Duration,
    pub(crate) waker: Arc<Waker>,
    pub(crate) signalling: SignallingChannels,
    pub(crate) collector: CollectorSender,
    pub(crate) tap: Option<TapSender>,
}

/// Shared resources of one thread.
pub(crate) struct IoContext {
    pub(super) thread: u16,
    pub(super) reach: Reach,
    pub(super) sources: SourceAddresses,
    pub(super) receive_buffer_bytes: usize,
    pub(super) grace: Duration,
    pub(super) waker: Arc<Waker>,
    pub(super) collector: CollectorSender,
    /// The tap, for frames of tapped participants.
    pub(super) tap: Option<TapSender>,
    pub(super) timers: Timers,
    pub(super) batch: ReceiveBatch,
    pub(super) rings: ReceiveRings,
    pub(super) clocks: Clocks,
    /// Outgoing datagrams of the slot that is being served, each with the index of its socket.
    pub(super) outgoing: Vec<(usize, Transmit)>,
    pub(super) drops: Drops,
    /// Bytes sent on the wire since the last health row.
    pub(super) sent_bytes: u64,
    /// Sockets of joining participants, served at once.
    immediate: AsyncFd<OwnedFd>,
    /// Sockets of playing participants, served on each tick, so that one call returns many
    /// datagrams. Edge-triggered, so that the kernel does not check emptied sockets again; the loop
    /// itself returns to a socket that it did not empty.
    on_tick: OwnedFd,
    pub(super) on_tick_sockets: usize,
    pub(super) immediate_sockets: usize,
    wake_timer: WakeTimer,
    signalling: SignallingChannels,
}

/// Datagrams dropped since the last health row.
#[derive(Debug, Default)]
pub(super) struct Drops {
    /// Received datagrams that overflowed a receive buffer or were too long.
    pub(super) received: u64,
    /// Received datagrams that overflowed a receive buffer in a burst after silence, and the
    /// longest such silence.
    pub(super) burst: u64,
    pub(super) silent: Duration,
    /// Outgoing datagrams for which the kernel had no buffer.
    pub(super) sent: u64,
}

impl Drops {
    pub(super) fn note(&mut self, lost: LostDatagrams) {
        match lost.after_silence {
            None => self.received += u64::from(lost.count),
            Some(silent) => {
                self.burst += u64::from(lost.count);
                self.silent = self.silent.max(silent);
            }
        }
    }
}

/// Bytes of UDP and IP header of a datagram to `to` (RFC 768, RFC 791, RFC 8200).
pub(super) fn header_bytes(to: std::net::SocketAddr) -> u64 {
    throng_observation::units::udp_header_bytes(to.is_ipv4()).into()
}

/// Which epoll set a socket is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Immediate,
    OnTick,
}

impl IoContext {
    /// Must be called on the thread's runtime.
    pub(crate) fn new(config: IoContextConfig) -> io::Result<Self> {
        let immediate = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let on_tick = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &immediate,
            &config.waker,
            epoll::EventData::new_u64(WAKE),
            epoll::EventFlags::IN,
        )?;
        Ok(Self {
            thread: config.thread,
            reach: config.reach,
            sources: SourceAddresses::default(),
            receive_buffer_bytes: config.receive_buffer_bytes,
            grace: config.grace,
            waker: config.waker,
            collector: config.collector,
            tap: config.tap,
            timers: Timers::default(),
            batch: ReceiveBatch::default(),
            rings: ReceiveRings::new(config.receive),
            clocks: Clocks::new(),
            outgoing: Vec::new(),
            drops: Drops::default(),
            sent_bytes: 0,
            immediate: watched(immediate)?,
            on_tick,
            on_tick_sockets: 0,
            immediate_sockets: 0,
            wake_timer: WakeTimer::new()?,
            signalling: config.signalling,
        })
    }

    /// Waits for a joining participant's socket, the waker or a signalling event, at most until
    /// `until`. Signalling tasks run meanwhile, at least once. Appends ready sockets to `ready` and
    /// signalling events to `events`.
    pub(super) async fn wait(
        &self,
        (now, until): (Instant, Instant),
        ready: &mut Vec<epoll::Event>,
        inbox: &mut mpsc::Receiver<SlotEvent>,
        events: &mut Vec<SlotEvent>,
    ) {
        let timeout = until.saturating_duration_since(now);
        if timeout.is_zero() {
            tokio::task::yield_now().await;
            poll(self.immediate.get_ref(), ready);
            while events.len() < SIGNALLING_EVENTS_PER_PASS
                && let Ok(event) = inbox.try_recv()
            {
                events.push(event);
            }
            return;
        }
        self.wake_timer.set(until, timeout);
        let something = async {
            tokio::select! {
                biased;
                _ = inbox.recv_many(events, SIGNALLING_EVENTS_PER_PASS) => {}
                () = self.immediate_ready(ready) => {}
                () = self.wake_timer.expired() => {}
            }
        };
        if !has_waited(something).await {
            tokio::task::yield_now().await;
        }
    }

    async fn immediate_ready(&self, ready: &mut Vec<epoll::Event>) {
        // If the epoll set cannot be watched, the wake timer still makes the loop check every
        // socket.
        while let Ok(mut guard) = self.immediate.readable().await {
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

    /// Appends the ready sockets of playing participants.
    pub(super) fn poll_on_tick(&self, ready: &mut Vec<epoll::Event>) {
        poll(&self.on_tick, ready);
    }

    pub(super) fn watch(
        &mut self,
        socket: &DatagramSocket,
        slot: u32,
        channel: Channel,
        readiness: Readiness,
    ) -> io::Result<()> {
        let (set, count, flags) = match readiness {
            Readiness::Immediate => {
                (self.immediate.get_ref(), &mut self.immediate_sockets, epoll::EventFlags::IN)
            }
            Readiness::OnTick => (
                &self.on_tick,
                &mut self.on_tick_sockets,
                epoll::EventFlags::IN | epoll::EventFlags::ET,
            ),
        };
        let data = epoll::EventData::new_u64(u64::from(slot) << 16 | u64::from(channel.0));
        epoll::add(set, socket.as_fd(), data, flags)?;
        *count += 1;
        Ok(())
    }

    pub(super) fn unwatch(&mut self, socket: &DatagramSocket, readiness: Readiness) {
        let (set, count) = match readiness {
            Readiness::Immediate => (self.immediate.get_ref(), &mut self.immediate_sockets),
            Readiness::OnTick => (&self.on_tick, &mut self.on_tick_sockets),
        };
        *count = count.saturating_sub(1);
        let _ = epoll::delete(set, socket.as_fd());
    }

    /// Ends all that is known of a socket that is about to be closed.
    pub(super) fn dismiss(&mut self, socket: &DatagramSocket, readiness: Readiness) {
        self.unwatch(socket, readiness);
        if let RingUse::Entered(entry) = socket.ring {
            self.rings.forget(entry);
        }
    }

    /// Passes a command to the signalling channels.
    pub(super) fn submit(&mut self, slot: u32, source: Option<IpAddr>, want: SignallingCommand) {
        self.signalling.submit(slot, source, want);
    }

    /// Whether an event of a download still concerns its participant.
    pub(super) fn accepts(
        &mut self,
        slot: u32,
        id: FetchId,
        serial: Serial,
        part: &DownloadPart,
    ) -> bool {
        self.signalling.accepts(slot, id, serial, part)
    }

    /// Passes the requests that have ended to the collector.
    pub(super) fn report_requests(&mut self) {
        let requests = self.signalling.take_requests();
        if !requests.is_empty() {
            self.collector.push(DriverEvent::Requests(requests));
        }
    }

    /// Waits [`LAST_GOODBYES`] for close frames and DELETE requests, then sends the remaining
    /// events to the collector: sockets count their last bytes when their tasks end. A silent
    /// server does not delay the end of the run.
    pub(super) async fn finish(mut self) {
        self.signalling.close_all();
        tokio::time::sleep(LAST_GOODBYES).await;
        self.report_requests();
        self.collector.finish();
    }
}

/// Completes `future`; returns whether it was pending, so that other tasks ran.
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

/// Appends what is ready in `set` now.
fn poll(set: &OwnedFd, ready: &mut Vec<epoll::Event>) {
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Interrupted by a signal: the loop polls again.
    let _ = epoll::wait(set, rustix::buffer::spare_capacity(ready), Some(&no_wait));
}
