//! A participant slot: performs its outputs, and delivers datagrams, signalling events and timeouts
//! to it.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use throng_net::{RECEIVE_BATCH, SEND_BATCH};
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase, units};
use throng_protocol::participant::{
    Channel, ChannelError, DownloadEvent, Input, Open, Opening, Output, Participant, Prefetcher,
    Transmit,
};

use super::collector_sender::DriverEvent;
use super::io_context::{IoContext, Readiness, header_bytes};
use super::panic_guard::PanicGuard;
use super::timers::Deadline;
use crate::clock::ClockPair;
use crate::config::Join;
use crate::signalling::{Outgoing, SignallingCommand, SignallingEvent};
use crate::sockets::http::DownloadPart;
use crate::sockets::{
    DatagramSocket, PeerAddresses, RingEntry, RingUse, SendResult, SocketStep, apply,
};

/// Outputs of one drain beyond which a participant fails: it would block its thread forever.
const OUTPUTS_MAX: usize = 100_000;

/// Full batches received from one socket before other sockets are served.
const ROUNDS_MAX: usize = 8;

/// Shortest time to the next deadline, so that one participant cannot spin the loop.
const DEADLINE_MIN: Duration = Duration::from_millis(1);

/// Datagram sockets that one participant may hold.
const SOCKETS_MAX: usize = 512;

/// A participant, its sockets and its deadlines.
pub(super) struct Slot {
    /// Its key in [`super::slots::Slots`].
    key: u32,
    /// Index of the participant in the run.
    id: u32,
    participant: PanicGuard,
    pub(super) deadline: Deadline,
    next_timeout: Option<Instant>,
    leave_state: LeaveState,
    /// See [`Join::others_follow`].
    others_follow: bool,
    sockets: Vec<ChannelSocket>,
    readiness: Readiness,
    /// Its assigned local address, if any.
    source_ip: Option<IpAddr>,
    /// Whether it received media.
    has_played: bool,
    /// Whether datagrams came from a ring.
    is_by_ring: bool,
    ended: Option<Outcome>,
}

/// The participant's leave.
enum LeaveState {
    UntilTheEnd,
    Until(Instant),
    /// It was asked to leave, and is dropped at this time.
    Leaving(Instant),
}

struct ChannelSocket {
    channel: Channel,
    socket: DatagramSocket,
}

impl Slot {
    pub(super) fn new(
        key: u32,
        id: u32,
        participant: Box<dyn Participant>,
        join: &Join,
        leave_at: Option<Instant>,
    ) -> Self {
        Self {
            key,
            id,
            participant: PanicGuard::new(participant),
            deadline: Deadline::default(),
            next_timeout: None,
            leave_state: leave_at.map_or(LeaveState::UntilTheEnd, LeaveState::Until),
            others_follow: join.others_follow,
            sockets: Vec::new(),
            readiness: Readiness::Immediate,
            source_ip: join.source_ip,
            has_played: false,
            is_by_ring: false,
            ended: None,
        }
    }

    /// Index of the participant in the run.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Names the memory that the next datagram needs: see [`Prefetcher`].
    pub(super) fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match level.checked_sub(1) {
            Some(level) => self.participant.prefetch(level, prefetcher),
            None => {
                prefetcher.value(&*self.sockets);
                self.participant.itself(prefetcher);
            }
        }
    }

    /// The outcome, once the participant has ended.
    pub(super) fn ended(&self) -> Option<&Outcome> {
        self.ended.as_ref()
    }

    pub(super) fn start(&mut self, now: Instant, intended_at: Instant, io: &mut IoContext) {
        self.participant.handle(now, Input::Start { intended_at });
        self.drain(now, io);
    }

    /// Asks the participant to leave, once: the run ends, or it was removed. No other takes its
    /// place.
    pub(super) fn leave_now(&mut self, now: Instant, io: &mut IoContext) {
        self.leave(now, false, io);
    }

    fn leave(&mut self, now: Instant, others_follow: bool, io: &mut IoContext) {
        if !matches!(self.leave_state, LeaveState::Leaving(_)) {
            self.leave_state = LeaveState::Leaving(now + io.grace);
            self.tell_receive_lag(now, io);
            self.participant.handle(now, Input::Leave { others_follow });
            self.drain(now, io);
        }
    }

    /// Performs what is scheduled for `now`: the leave, its end, the participant's deadline.
    pub(super) fn timeout(&mut self, now: Instant, io: &mut IoContext) {
        match self.leave_state {
            LeaveState::Until(at) if at <= now => return self.leave(now, self.others_follow, io),
            LeaveState::Leaving(by) if by <= now => {
                self.ended = Some(self.outcome_after_grace(now, io));
                return;
            }
            _ => {}
        }
        if self.next_timeout.is_some_and(|at| at <= now) {
            self.tell_receive_lag(now, io);
            self.participant.handle(now, Input::Timeout);
        }
        self.drain(now, io);
    }

    /// The outcome of a participant that did not end within the grace time. If it had media, it
    /// stayed as long as intended, and the unanswered leave is an event; if it never had any, it
    /// failed.
    fn outcome_after_grace(&self, now: Instant, io: &mut IoContext) -> Outcome {
        if self.has_played {
            let observation = Observation::LeaveUnanswered;
            io.collector.push(DriverEvent::Observed { id: self.id, at: now, observation });
            return Outcome::Completed;
        }
        let grace = units::duration(io.grace);
        let detail = format!("it did not leave within {grace}");
        Outcome::Failed(Failure::new(FailureReason::SignallingTimeout, detail))
    }

    /// Delivers received datagrams of `channel` to the participant; false when more may be waiting.
    pub(super) fn receive(&mut self, channel: Channel, io: &mut IoContext) -> bool {
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
    pub(super) fn receive_from_ring(
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
    fn tell_receive_lag(&mut self, now: Instant, io: &IoContext) {
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
    pub(super) fn step_ring(
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

    /// Delivers a signalling event to the participant.
    pub(super) fn on_signalling(
        &mut self,
        now: Instant,
        event: SignallingEvent,
        io: &mut IoContext,
    ) {
        let input = match &event {
            SignallingEvent::Bytes(channel, bytes) => Input::Bytes { channel: *channel, bytes },
            SignallingEvent::Blocked(channel, duration) => {
                Input::Blocked { channel: *channel, duration: *duration }
            }
            SignallingEvent::Download(fetch, serial, part)
                if !io.accepts(self.key, *fetch, *serial, part) =>
            {
                return;
            }
            SignallingEvent::Download(fetch, _, DownloadPart::Body(bytes)) => {
                Input::Download { fetch: *fetch, event: DownloadEvent::Body(bytes) }
            }
            _ => match event {
                SignallingEvent::Opened(channel, opening) => {
                    Input::Opened { channel, opening: *opening }
                }
                SignallingEvent::Message(channel, message) => Input::Message { channel, message },
                SignallingEvent::Closed(channel, why) => Input::Closed { channel, why },
                SignallingEvent::Fetched(fetch, result) => {
                    Input::Fetched { fetch, result: *result }
                }
                SignallingEvent::Download(fetch, _, part) => {
                    let event = match part {
                        DownloadPart::Head(head, opening) => DownloadEvent::Head { head, opening },
                        DownloadPart::Ignored(bytes) => DownloadEvent::Ignored(bytes),
                        DownloadPart::Transport(state) => DownloadEvent::Transport(*state),
                        DownloadPart::Finished(result) => DownloadEvent::Finished(*result),
                        DownloadPart::Body(_) => return,
                    };
                    Input::Download { fetch, event }
                }
                SignallingEvent::Bytes(..) | SignallingEvent::Blocked(..) => return,
            },
        };
        self.participant.handle(now, input);
        self.drain(now, io);
    }

    /// Performs the participant's outputs until it waits for its next deadline.
    fn drain(&mut self, now: Instant, io: &mut IoContext) {
        self.tell_receive_lag(now, io);
        for _ in 0..OUTPUTS_MAX {
            match self.participant.poll_output(now) {
                Output::Timeout(at, _why) => {
                    self.next_timeout = Some(at.max(now + DEADLINE_MIN));
                    self.flush(now, io);
                    self.arm(io);
                    return;
                }
                Output::Send(channel, transmit) => self.send(channel, transmit, now, io),
                Output::Observed(observation) => self.observed(now, observation, io),
                Output::Signal(channel, message) => {
                    io.submit(
                        self.key,
                        self.source_ip,
                        SignallingCommand::Send(channel, Outgoing::Message(message)),
                    );
                }
                Output::Open(channel, Open::Datagrams { toward, otherwise, gathers }) => {
                    self.open_sockets(
                        now,
                        channel,
                        &PeerAddresses { peers: toward, otherwise, gathers },
                        io,
                    );
                }
                Output::Open(channel, Open::RtpPair { rtcp, toward }) => {
                    self.open_pair(now, [channel, rtcp], toward, io);
                }
                Output::Open(channel, open) => {
                    io.submit(
                        self.key,
                        self.source_ip,
                        SignallingCommand::Open(channel, Box::new(open)),
                    );
                }
                Output::Close(channel) => self.close_channel(channel, now, io),
                Output::Fetch(id, request) => {
                    io.submit(self.key, self.source_ip, SignallingCommand::Fetch(id, request));
                }
                Output::Download(id, request, version) => {
                    io.submit(
                        self.key,
                        self.source_ip,
                        SignallingCommand::Download(id, request, version),
                    );
                }
                Output::Demand(id, demand) => {
                    io.submit(self.key, self.source_ip, SignallingCommand::Demand(id, demand));
                }
                Output::Cancel(id) => {
                    io.submit(self.key, self.source_ip, SignallingCommand::Cancel(id));
                }
                Output::Ended(outcome) => {
                    self.flush(now, io);
                    self.ended = Some(outcome);
                    return;
                }
            }
        }
        let failure =
            Failure::new(FailureReason::Generator, "the participant exceeded its output limit");
        self.ended = Some(Outcome::Failed(failure));
    }

    fn arm(&mut self, io: &mut IoContext) {
        let leave_at = match self.leave_state {
            LeaveState::UntilTheEnd => None,
            LeaveState::Until(at) | LeaveState::Leaving(at) => Some(at),
        };
        let due = [self.next_timeout, leave_at].into_iter().flatten().min();
        io.timers.set(self.key, &mut self.deadline, due);
    }

    fn observed(&mut self, now: Instant, observation: Observation, io: &mut IoContext) {
        if let Observation::Frame(frame) = observation {
            if let Some(tap) = &mut io.tap {
                tap.send(self.id, &frame);
            }
            return;
        }
        if matches!(observation, Observation::Reached(Phase::FirstPacket | Phase::FirstFrame, _)) {
            self.has_played = true;
            self.serve_on_tick(io);
        }
        io.collector.push(DriverEvent::Observed { id: self.id, at: now, observation });
    }

    /// Moves its sockets to the set that is served on each tick.
    pub(super) fn serve_on_tick(&mut self, io: &mut IoContext) {
        if self.readiness == Readiness::Immediate {
            self.readiness = Readiness::OnTick;
            for entry in &self.sockets {
                io.unwatch(&entry.socket, Readiness::Immediate);
                // Fails only if the kernel has run out of memory; then media is reported missing.
                let _ = io.watch(&entry.socket, self.key, entry.channel, Readiness::OnTick);
            }
        }
    }

    fn open_sockets(
        &mut self,
        now: Instant,
        channel: Channel,
        toward: &PeerAddresses,
        io: &mut IoContext,
    ) {
        let input = match self.bind(now, channel, toward, io) {
            Ok(locals) => {
                let local = locals.first().copied();
                if let Some(address) = local {
                    io.collector.push(DriverEvent::LocalAddress { id: self.id, address });
                }
                Input::Opened { channel, opening: Opening { local, locals, ..Opening::default() } }
            }
            Err(why) => Input::Closed { channel, why },
        };
        self.participant.handle(now, input);
    }

    /// Opens sockets for RTP and RTCP, in this order.
    fn open_pair(
        &mut self,
        now: Instant,
        channels: [Channel; 2],
        toward: SocketAddr,
        io: &mut IoContext,
    ) {
        match self.bind_pair(now, channels, toward, io) {
            Ok(locals) => {
                let [address, _] = locals;
                io.collector.push(DriverEvent::LocalAddress { id: self.id, address });
                for (channel, local) in channels.into_iter().zip(locals) {
                    let opening =
                        Opening { local: Some(local), locals: vec![local], ..Opening::default() };
                    self.participant.handle(now, Input::Opened { channel, opening });
                }
            }
            Err(why) => self.participant.handle(now, Input::Closed { channel: channels[0], why }),
        }
    }

    fn bind_pair(
        &mut self,
        now: Instant,
        channels: [Channel; 2],
        toward: SocketAddr,
        io: &mut IoContext,
    ) -> Result<[SocketAddr; 2], ChannelError> {
        if self.sockets.len() + 2 > SOCKETS_MAX
            || self.sockets.iter().any(|entry| channels.contains(&entry.channel))
        {
            return Err(ChannelError::Generator("too many channels are open".into()));
        }
        let peers = PeerAddresses { peers: vec![toward], otherwise: None, gathers: false };
        let locals = io.sources.locals(now, self.source_ip, &peers, &io.reach)?;
        let ours = |e: std::io::Error| {
            ChannelError::Generator(format!("RTP sockets toward {toward}: {e}"))
        };
        let local = *locals.first().ok_or_else(|| ChannelError::NoRoute(toward.to_string()))?;
        let pair = DatagramSocket::bind_rtp_pair(local, io.rings.ports(), io.receive_buffer_bytes)
            .map_err(ours)?;
        let addresses =
            pair.each_ref().map(|socket| socket.locals().first().copied().unwrap_or(toward));
        for (channel, socket) in channels.into_iter().zip(pair) {
            io.watch(&socket, self.key, channel, self.readiness).map_err(ours)?;
            self.sockets.push(ChannelSocket { channel, socket });
        }
        Ok(addresses)
    }

    fn bind(
        &mut self,
        now: Instant,
        channel: Channel,
        toward: &PeerAddresses,
        io: &mut IoContext,
    ) -> Result<Vec<SocketAddr>, ChannelError> {
        if self.sockets.len() >= SOCKETS_MAX
            || self.sockets.iter().any(|entry| entry.channel == channel)
        {
            return Err(ChannelError::Generator(format!(
                "channel {} is taken, or too many are open",
                channel.0
            )));
        }
        let locals = io.sources.locals(now, self.source_ip, toward, &io.reach)?;
        let ours = |e: std::io::Error| {
            let locals: Vec<_> = locals.iter().map(ToString::to_string).collect();
            ChannelError::Generator(format!("datagram socket at {}: {e}", locals.join(", ")))
        };
        let socket = DatagramSocket::bind(&locals, io.rings.ports(), io.receive_buffer_bytes)
            .map_err(ours)?;
        io.watch(&socket, self.key, channel, self.readiness).map_err(ours)?;
        let locals = socket.locals().to_vec();
        self.sockets.push(ChannelSocket { channel, socket });
        Ok(locals)
    }

    fn close_channel(&mut self, channel: Channel, now: Instant, io: &mut IoContext) {
        self.flush(now, io);
        match self.sockets.iter().position(|entry| entry.channel == channel) {
            Some(at) => {
                let entry = self.sockets.remove(at);
                io.dismiss(&entry.socket, self.readiness);
            }
            None => io.submit(self.key, self.source_ip, SignallingCommand::Close(channel)),
        }
    }

    fn send(&mut self, channel: Channel, transmit: Transmit, now: Instant, io: &mut IoContext) {
        let Some(at) = self.sockets.iter().position(|entry| entry.channel == channel) else {
            let outgoing = Outgoing::Bytes(transmit.bytes);
            return io.submit(self.key, self.source_ip, SignallingCommand::Send(channel, outgoing));
        };
        let is_detour = self.sockets.get_mut(at).is_some_and(|entry| {
            entry.socket.is_detour(transmit.from, transmit.to, now, &mut io.sources)
        });
        if is_detour {
            return;
        }
        if io.outgoing.len() >= SEND_BATCH
            || io.outgoing.last().is_some_and(|(last, _)| *last != at)
        {
            self.flush(now, io);
        }
        io.outgoing.push((at, transmit));
    }

    /// Sends the gathered datagrams; all belong to one socket.
    fn flush(&mut self, now: Instant, io: &mut IoContext) {
        let Some(entry) = io.outgoing.first().and_then(|(at, _)| self.sockets.get_mut(*at)) else {
            io.outgoing.clear();
            return;
        };
        let (id, at) = (self.id, now);
        if let [(_, only)] = io.outgoing.as_slice() {
            let to = only.to;
            match entry.socket.send(to, only.from, &only.bytes, &io.reach) {
                SendResult::Sent => io.sent_bytes += only.bytes.len() as u64 + header_bytes(to),
                SendResult::BufferFull => io.drops.sent += 1,
                SendResult::LoopbackOnly => {}
                SendResult::Unreachable(why) => {
                    io.collector.push(DriverEvent::UnreachableSend { id, at, to, why });
                }
                SendResult::Refused => io.collector.push(DriverEvent::RefusedSend { id, at, to }),
            }
        } else {
            let mut datagrams = Vec::with_capacity(io.outgoing.len());
            for (_, transmit) in &io.outgoing {
                if entry.socket.permits(transmit.to, &io.reach) {
                    io.sent_bytes += transmit.bytes.len() as u64 + header_bytes(transmit.to);
                    datagrams.push(entry.socket.outgoing(
                        transmit.to,
                        transmit.from,
                        &transmit.bytes,
                    ));
                } else {
                    io.collector.push(DriverEvent::RefusedSend { id, at, to: transmit.to });
                }
            }
            entry.socket.send_all(&datagrams, |to, bytes, why| {
                io.sent_bytes = io.sent_bytes.saturating_sub(bytes.len() as u64 + header_bytes(to));
                match why {
                    SendResult::LoopbackOnly => {}
                    SendResult::Unreachable(why) => {
                        io.collector.push(DriverEvent::UnreachableSend { id, at, to, why });
                    }
                    _ => io.drops.sent += 1,
                }
            });
        }
        io.outgoing.clear();
    }

    /// Closes its sockets and channels, and reports the outcome.
    pub(super) fn close(mut self, now: Instant, io: &mut IoContext) {
        for entry in self.sockets.drain(..) {
            io.dismiss(&entry.socket, self.readiness);
        }
        io.submit(self.key, self.source_ip, SignallingCommand::CloseAll);
        let outcome = self.ended.take().unwrap_or_else(|| {
            Outcome::Failed(Failure::new(FailureReason::Generator, "dropped before it ended"))
        });
        io.collector.push(DriverEvent::Ended { id: self.id, at: now, outcome });
    }
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
