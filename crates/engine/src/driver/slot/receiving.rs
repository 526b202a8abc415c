//! Datagrams on their way to the participant, from sockets and rings.

use std::os::fd::AsFd;
use std::time::Instant;

use throng_net::RECEIVE_BATCH;
use throng_protocol::participant::{Channel, Input};

use super::Slot;
use crate::clock::ClockPair;
use crate::driver::io_context::{IoContext, Readiness};
use crate::sockets::{RingEntry, RingUse, SocketStep, apply};

/// Full batches received from one socket before other sockets are served.
const ROUNDS_MAX: usize = 8;

impl Slot {
    /// Delivers received datagrams of `channel` to the participant; false when more may be waiting.
    pub(in crate::driver) fn receive(&mut self, channel: Channel, io: &mut IoContext) -> bool {
        for _ in 0..ROUNDS_MAX {
            let Some(entry) = self.sockets.iter_mut().find(|entry| entry.channel == channel) else {
                return true;
            };
            if matches!(entry.socket.ring, RingUse::Entered(of_ring) if io.rings.holds(of_ring)) {
                return true;
            }
            let Ok(received) = io.batch.receive(entry.socket.as_fd(), RECEIVE_BATCH) else {
                // Reading a pending socket error (ICMP) clears it; datagrams may wait behind it.
                continue;
            };
            if received == 0 {
                return true;
            }
            // Read after the datagrams were received, so that none arrived later than this.
            let clocks = io.clocks.read();
            for index in 0..received {
                let Some(datagram) = io.batch.get(index) else { continue };
                let arrived_at = clocks.arrival(datagram.arrived_unix);
                let mut dropped_so_far = datagram.dropped_so_far;
                let mut is_delivered = true;
                if let RingUse::Entered(of_ring) = entry.socket.ring {
                    if !io.rings.counts_drops(of_ring, datagram.arrived_unix) {
                        dropped_so_far = None;
                    }
                    is_delivered = io.rings.by_socket(of_ring, &datagram);
                } else if self.readiness == Readiness::OnTick
                    // Who only sends gets too little for a ring.
                    && self.has_played
                    && entry.socket.ring == RingUse::Possible
                    && entry.socket.is_peer(datagram.source.ip())
                    && let Some(local) = entry.socket.local(datagram.local)
                {
                    let from = datagram.source.ip();
                    entry.socket.ring = io.rings.enter((self.key, channel), local, from, clocks);
                }
                if let Some(lost) = entry.socket.note(arrived_at, dropped_so_far) {
                    io.drops.note(lost);
                    if let RingUse::Entered(of_ring) = entry.socket.ring {
                        io.rings.socket_dropped(of_ring);
                    }
                }
                if !is_delivered {
                    continue;
                }
                if datagram.truncated {
                    io.drops.received += 1;
                    continue;
                }
                let input = Input::Datagram {
                    channel,
                    source: datagram.source,
                    local: datagram.local,
                    arrived_at,
                    bytes: datagram.bytes,
                };
                self.participant.handle(clocks.now, input);
            }
            self.drain(clocks.now, io);
            if received < RECEIVE_BATCH || self.ended.is_some() {
                return true;
            }
        }
        false
    }

    /// Delivers what the ring has for `channel`.
    pub(in crate::driver) fn receive_from_ring(
        &mut self,
        (channel, of_ring): (Channel, RingEntry),
        clocks: ClockPair,
        io: &mut IoContext,
    ) {
        let Some(entry) = self.sockets.iter_mut().find(|entry| entry.channel == channel) else {
            return;
        };
        let names_local = entry.socket.has_several();
        self.is_by_ring = true;
        let (mut next, mut last_arrival) = (io.rings.first(of_ring), None);
        while let Some(number) = next {
            let (datagram, following) = io.rings.datagram(number);
            next = following;
            let Some(datagram) = datagram else { continue };
            let arrived_at = clocks.arrival(Some(datagram.arrived_unix));
            let input = Input::Datagram {
                channel,
                source: datagram.source,
                local: names_local.then_some(datagram.local.ip()),
                arrived_at,
                bytes: datagram.bytes,
            };
            self.participant.handle(clocks.now, input);
            last_arrival = Some(arrived_at);
        }
        // Also where the last place of the pass was not good.
        if let Some(arrived_at) = last_arrival {
            entry.socket.note(arrived_at, None);
            io.rings.note_silence(of_ring, entry.socket.silence);
        }
        self.drain(clocks.now, io);
    }

    /// Tells the participant how far behind its datagrams are, if rings have or had them.
    pub(super) fn tell_receive_lag(&mut self, now: Instant, io: &IoContext) {
        if self.is_by_ring {
            let lags = self.sockets.iter().filter_map(|entry| match entry.socket.ring {
                RingUse::Entered(of_ring) => Some(io.rings.lag(of_ring, now)),
                RingUse::Possible | RingUse::Never => None,
            });
            let lag = lags.max();
            self.is_by_ring = lag.is_some();
            self.participant.receive_lag(lag.unwrap_or_default());
        }
    }

    /// Changes which datagrams a socket leaves to the ring; false when more may be waiting in it.
    pub(in crate::driver) fn step_ring(
        &mut self,
        (channel, of_ring): (Channel, RingEntry),
        clocks: ClockPair,
        io: &mut IoContext,
    ) -> bool {
        let Some(entry) = self.sockets.iter_mut().find(|entry| entry.channel == channel) else {
            return true;
        };
        // Before the ring's first datagrams come, the socket may already leave them to it.
        self.is_by_ring = true;
        let step = io.rings.step(of_ring, clocks);
        match step {
            SocketStep::Wait | SocketStep::LeaveToRing(_) => {}
            SocketStep::Read => return self.receive(channel, io),
            // The kernel counted what it left to the ring as drops.
            SocketStep::TakeAll => entry.socket.forget_drops(),
            SocketStep::Forget => entry.socket.ring = RingUse::Never,
        }
        if let Err(error) = apply(step, entry.socket.as_fd()) {
            io.rings.cannot_filter(&error);
        }
        true
    }
}
