//! What all seats of a worker use: readiness, buffers, timers, the ways to signalling and to the collector.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use throng_protocol::participant::{Channel, Transmit};
use tokio::sync::mpsc;

use super::reports::Reports;
use super::timers::Timers;
use crate::config::Reach;
use crate::control::Waker;
use crate::signalling::{Ask, SeatId, Want};
use crate::sockets::{DatagramSocket, ReceiveBatch, Sources};

/// Questions held back while the signalling thread is behind; beyond it a participant's question fails.
const BACKLOG_MAX: usize = 65_536;

/// The readiness event of the waker.
pub(super) const WAKE: u64 = u64::MAX;

/// What a hub is made of.
pub(crate) struct HubConfig {
    pub(crate) worker: u16,
    pub(crate) reach: Reach,
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) grace: Duration,
    pub(crate) waker: Arc<Waker>,
    pub(crate) ask: mpsc::Sender<Ask>,
    pub(crate) reports: Reports,
}

/// Resources of one worker.
pub(crate) struct Hub {
    pub(super) worker: u16,
    pub(super) reach: Reach,
    pub(super) sources: Sources,
    pub(super) receive_buffer_bytes: usize,
    pub(super) grace: Duration,
    pub(super) waker: Arc<Waker>,
    pub(super) reports: Reports,
    pub(super) timers: Timers,
    pub(super) batch: ReceiveBatch,
    /// Datagrams of the seat that is being drained, by the index of its socket.
    pub(super) outgoing: Vec<(usize, Transmit)>,
    pub(super) drops: Drops,
    /// Bytes on the wire of what was sent, since last reported.
    pub(super) sent_bytes: u64,
    /// Sockets of participants that are joining, served at once.
    eager: OwnedFd,
    /// Sockets of participants that play, served each tick: what gathered meanwhile comes in one call. Edge-triggered,
    /// so that the kernel need not look again at each socket that was emptied: who does not empty one comes back to it.
    settled: OwnedFd,
    pub(super) settled_sockets: usize,
    pub(super) eager_sockets: usize,
    ask: mpsc::Sender<Ask>,
    backlog: VecDeque<Ask>,
}

/// What was lost, since last reported.
#[derive(Debug, Default)]
pub(super) struct Drops {
    /// Datagrams that our sockets had no room for, or that were too long.
    pub(super) received: u64,
    /// Datagrams that the kernel did not take.
    pub(super) sent: u64,
}

/// Bytes of UDP and IP header that each datagram to `to` has on the wire (RFC 768, RFC 791, RFC 8200).
pub(super) fn header_bytes(to: std::net::SocketAddr) -> u64 {
    if to.is_ipv4() { 28 } else { 48 }
}

/// Which readiness set a socket is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Eager,
    Settled,
}

impl Hub {
    pub(crate) fn new(config: HubConfig) -> io::Result<Self> {
        let eager = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let settled = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&eager, config.waker.event(), epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Self {
            worker: config.worker,
            reach: config.reach,
            sources: Sources::default(),
            receive_buffer_bytes: config.receive_buffer_bytes,
            grace: config.grace,
            waker: config.waker,
            reports: config.reports,
            timers: Timers::default(),
            batch: ReceiveBatch::new(),
            outgoing: Vec::new(),
            drops: Drops::default(),
            sent_bytes: 0,
            eager,
            settled,
            settled_sockets: 0,
            eager_sockets: 0,
            ask: config.ask,
            backlog: VecDeque::new(),
        })
    }

    /// Waits for joining participants' sockets or the waker, at most `timeout`; ready ones are appended to `ready`.
    pub(super) fn wait_eager(&self, timeout: Duration, ready: &mut Vec<epoll::Event>) {
        wait(&self.eager, timeout, ready);
    }

    /// Playing participants' sockets that have something.
    pub(super) fn poll_settled(&self, ready: &mut Vec<epoll::Event>) {
        wait(&self.settled, Duration::ZERO, ready);
    }

    pub(super) fn watch(
        &mut self,
        socket: &DatagramSocket,
        seat: u32,
        channel: Channel,
        pace: Pace,
    ) -> io::Result<()> {
        let (set, count, flags) = match pace {
            Pace::Eager => (&self.eager, &mut self.eager_sockets, epoll::EventFlags::IN),
            Pace::Settled => {
                (&self.settled, &mut self.settled_sockets, epoll::EventFlags::IN | epoll::EventFlags::ET)
            }
        };
        let data = epoll::EventData::new_u64(u64::from(seat) << 16 | u64::from(channel.0));
        epoll::add(set, socket.as_fd(), data, flags)?;
        *count += 1;
        Ok(())
    }

    pub(super) fn unwatch(&mut self, socket: &DatagramSocket, pace: Pace) {
        let (set, count) = match pace {
            Pace::Eager => (&self.eager, &mut self.eager_sockets),
            Pace::Settled => (&self.settled, &mut self.settled_sockets),
        };
        *count = count.saturating_sub(1);
        let _ = epoll::delete(set, socket.as_fd());
    }

    /// Asks the signalling thread; false when it is hopelessly behind.
    pub(super) fn ask(&mut self, seat: u32, source: Option<IpAddr>, what: Want) -> bool {
        if self.backlog.len() >= BACKLOG_MAX && !matches!(what, Want::Gone) {
            return false;
        }
        self.backlog.push_back(Ask { seat: SeatId { worker: self.worker, seat }, source, what });
        self.ask_backlog();
        true
    }

    /// Hands over what could not be asked before.
    pub(super) fn ask_backlog(&mut self) {
        while let Some(ask) = self.backlog.pop_front() {
            match self.ask.try_send(ask) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(ask)) => {
                    self.backlog.push_front(ask);
                    return;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => {}
            }
        }
    }

    /// Hands over everything, waiting: at the end.
    pub(super) fn finish(mut self) {
        for ask in self.backlog.drain(..) {
            let _ = self.ask.blocking_send(ask);
        }
        self.reports.finish();
    }
}

fn wait(set: &OwnedFd, timeout: Duration, ready: &mut Vec<epoll::Event>) {
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    if !timeout.is_zero() {
        // poll on the set waits to the microsecond; epoll_wait itself would round to a millisecond before Linux 5.11.
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut fds = [PollFd::new(set, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0) {
            return;
        }
    }
    // Interrupted by a signal: the loop comes again.
    let _ = epoll::wait(set, rustix::buffer::spare_capacity(ready), Some(&no_wait));
}
