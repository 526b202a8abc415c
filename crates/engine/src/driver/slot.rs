//! One participant on its thread: what it wants is done, what comes for it is handed over.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase, units};
use throng_protocol::participant::{
    Channel, ChannelError, Input, Open, Opening, Output, Participant, Transmit,
};

use super::collector_sender::DriverEvent;
use super::io_context::{IoContext, Pace, header_bytes};
use super::panic_guard::PanicGuard;
use super::timers::Deadline;
use crate::config::Join;
use crate::signalling::{Outgoing, SignallingCommand, SignallingEvent};
use crate::sockets::{DatagramSocket, RECEIVE_BATCH, SEND_BATCH, Sending, Toward};

/// Outputs of one drain beyond which a participant is broken: it would hold up everybody else for ever.
const OUTPUTS_MAX: usize = 100_000;

/// Full batches taken from one socket before others get their turn.
const ROUNDS_MAX: usize = 8;

/// Deadlines that lie in the past come again after this long, lest one participant spins the loop.
const DEADLINE_MIN: Duration = Duration::from_millis(1);

/// Datagram sockets that one participant may hold.
const SOCKETS_MAX: usize = 512;

/// A participant and what it holds.
pub(super) struct Slot {
    /// Its number on this thread.
    number: u32,
    /// Its place in the plan.
    who: u32,
    participant: PanicGuard,
    pub(super) deadline: Deadline,
    wants: Option<Instant>,
    stay: Stay,
    /// See [`Join::others_follow`].
    others_follow: bool,
    sockets: Vec<Line>,
    pace: Pace,
    /// The local address that it was dealt, if any.
    source_ip: Option<IpAddr>,
    /// Whether it received media.
    has_played: bool,
    ended: Option<Outcome>,
}

/// How long it may stay.
enum Stay {
    UntilTheEnd,
    Until(Instant),
    /// It was told to leave; it is dropped at this moment.
    Leaving(Instant),
}

struct Line {
    channel: Channel,
    socket: DatagramSocket,
}

impl Slot {
    pub(super) fn new(
        number: u32,
        who: u32,
        participant: Box<dyn Participant>,
        join: &Join,
        leave_at: Option<Instant>,
    ) -> Self {
        Self {
            number,
            who,
            participant: PanicGuard::new(participant),
            deadline: Deadline::default(),
            wants: None,
            stay: leave_at.map_or(Stay::UntilTheEnd, Stay::Until),
            others_follow: join.others_follow,
            sockets: Vec::new(),
            pace: Pace::Eager,
            source_ip: join.source_ip,
            has_played: false,
            ended: None,
        }
    }

    /// Its place in the plan.
    pub(super) fn who(&self) -> u32 {
        self.who
    }

    /// See [`Participant::prefetch`].
    pub(super) fn prefetch(&self) -> u64 {
        self.participant.prefetch() ^ self.sockets.len() as u64
    }

    /// How it ended, once it has.
    pub(super) fn ended(&self) -> Option<&Outcome> {
        self.ended.as_ref()
    }

    pub(super) fn start(&mut self, now: Instant, intended_at: Instant, io: &mut IoContext) {
        self.participant.handle(now, Input::Start { intended_at });
        self.drain(now, io);
    }

    /// Tells it to leave, once: the run ends, or nobody wants it any more. Nobody comes in its place.
    pub(super) fn dismiss(&mut self, now: Instant, io: &mut IoContext) {
        self.leave(now, false, io);
    }

    fn leave(&mut self, now: Instant, others_follow: bool, io: &mut IoContext) {
        if !matches!(self.stay, Stay::Leaving(_)) {
            self.stay = Stay::Leaving(now + io.grace);
            self.participant.handle(now, Input::Leave { others_follow });
            self.drain(now, io);
        }
    }

    /// What is due at `now`.
    pub(super) fn timeout(&mut self, now: Instant, io: &mut IoContext) {
        match self.stay {
            Stay::Until(at) if at <= now => return self.leave(now, self.others_follow, io),
            Stay::Leaving(by) if by <= now => {
                self.ended = Some(self.never_said_goodbye(now, io));
                return;
            }
            _ => {}
        }
        if self.wants.is_some_and(|at| at <= now) {
            self.participant.handle(now, Input::Timeout);
        }
        self.drain(now, io);
    }

    /// It was told to leave and did not end in time. One that had media stayed for as long as it was meant to: what its
    /// goodbye lacks is an event. One that never had any was kept waiting to the last.
    fn never_said_goodbye(&self, now: Instant, io: &mut IoContext) -> Outcome {
        if self.has_played {
            let observation = Observation::LeaveUnanswered;
            io.collector.push(DriverEvent::Observed { who: self.who, at: now, observation });
            return Outcome::Completed;
        }
        let grace = units::duration(io.grace);
        let detail = format!("told to leave, it had not said goodbye after {grace}");
        Outcome::Failed(Failure::new(FailureReason::SignallingTimeout, detail))
    }

    /// Hands over what waits in the socket of `channel`; false when there may be more.
    pub(super) fn receive(&mut self, channel: Channel, io: &mut IoContext) -> bool {
        for _ in 0..ROUNDS_MAX {
            let Some(line) = self.sockets.iter_mut().find(|line| line.channel == channel) else {
                return true;
            };
            let Ok(received) = io.batch.receive(line.socket.as_fd()) else {
                // The socket's error (ICMP) is cleared by telling it; datagrams may wait behind it.
                continue;
            };
            if received == 0 {
                return true;
            }
            // Read after the datagrams were taken, so that none arrived later than it.
            let clocks = io.clocks.read();
            for index in 0..received {
                let Some(datagram) = io.batch.get(index) else { continue };
                let arrived_at = clocks.arrival(datagram.arrived_unix);
                if let Some(lost) = line.socket.note(arrived_at, datagram.dropped_so_far) {
                    io.drops.note(lost);
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

    /// Hands over what signalling brought.
    pub(super) fn told(&mut self, now: Instant, tidings: SignallingEvent, io: &mut IoContext) {
        let input = match &tidings {
            SignallingEvent::Bytes(channel, bytes) => Input::Bytes { channel: *channel, bytes },
            _ => match tidings {
                SignallingEvent::Opened(channel, opening) => Input::Opened { channel, opening: *opening },
                SignallingEvent::Message(channel, message) => Input::Message { channel, message },
                SignallingEvent::Closed(channel, why) => Input::Closed { channel, why },
                SignallingEvent::Fetched(fetch, result) => Input::Fetched { fetch, result: *result },
                SignallingEvent::Bytes(..) => return,
            },
        };
        self.participant.handle(now, input);
        self.drain(now, io);
    }

    /// Does what the participant wants until it wants nothing before its next deadline.
    fn drain(&mut self, now: Instant, io: &mut IoContext) {
        for _ in 0..OUTPUTS_MAX {
            match self.participant.poll_output(now) {
                Output::Timeout(at, _why) => {
                    self.wants = Some(at.max(now + DEADLINE_MIN));
                    self.flush(now, io);
                    self.arm(io);
                    return;
                }
                Output::Send(channel, transmit) => self.send(channel, transmit, now, io),
                Output::Observed(observation) => self.observed(now, observation, io),
                Output::Signal(channel, message) => {
                    io.ask(
                        self.number,
                        self.source_ip,
                        SignallingCommand::Send(channel, Outgoing::Message(message)),
                    );
                }
                Output::Open(channel, Open::Datagrams { toward, otherwise, gathers }) => {
                    self.open(now, channel, &Toward { peers: toward, otherwise, gathers }, io);
                }
                Output::Open(channel, open) => {
                    io.ask(self.number, self.source_ip, SignallingCommand::Open(channel, Box::new(open)));
                }
                Output::Close(channel) => self.close(channel, now, io),
                Output::Fetch(id, request) => {
                    io.ask(self.number, self.source_ip, SignallingCommand::Fetch(id, request))
                }
                Output::Ended(outcome) => {
                    self.flush(now, io);
                    self.ended = Some(outcome);
                    return;
                }
            }
        }
        let failure = Failure::new(FailureReason::Generator, "the participant does not come to rest");
        self.ended = Some(Outcome::Failed(failure));
    }

    fn arm(&mut self, io: &mut IoContext) {
        let stay = match self.stay {
            Stay::UntilTheEnd => None,
            Stay::Until(at) | Stay::Leaving(at) => Some(at),
        };
        let due = [self.wants, stay].into_iter().flatten().min();
        io.timers.set(self.number, &mut self.deadline, due);
    }

    fn observed(&mut self, now: Instant, observation: Observation, io: &mut IoContext) {
        if let Observation::Frame(frame) = observation {
            if let Some(tap) = &mut io.tap {
                tap.hand_over(self.who, &frame);
            }
            return;
        }
        if matches!(observation, Observation::Reached(Phase::FirstPacket | Phase::FirstFrame, _)) {
            self.has_played = true;
            self.settle(io);
        }
        io.collector.push(DriverEvent::Observed { who: self.who, at: now, observation });
    }

    /// From here on its sockets are served by tick.
    pub(super) fn settle(&mut self, io: &mut IoContext) {
        if self.pace == Pace::Eager {
            self.pace = Pace::Settled;
            for line in &self.sockets {
                io.unwatch(&line.socket, Pace::Eager);
                // Memory was there for it a moment ago; without it the socket would be deaf and media is found missing.
                let _ = io.watch(&line.socket, self.number, line.channel, Pace::Settled);
            }
        }
    }

    fn open(&mut self, now: Instant, channel: Channel, toward: &Toward, io: &mut IoContext) {
        let input = match self.bind(channel, toward, io) {
            Ok(locals) => {
                let local = locals.first().copied();
                if let Some(address) = local {
                    io.collector.push(DriverEvent::LocalAddress { who: self.who, address });
                }
                Input::Opened { channel, opening: Opening { local, locals, ..Opening::default() } }
            }
            Err(why) => Input::Closed { channel, why },
        };
        self.participant.handle(now, input);
    }

    fn bind(
        &mut self,
        channel: Channel,
        toward: &Toward,
        io: &mut IoContext,
    ) -> Result<Vec<SocketAddr>, ChannelError> {
        if self.sockets.len() >= SOCKETS_MAX || self.sockets.iter().any(|line| line.channel == channel) {
            return Err(ChannelError::Generator(format!(
                "channel {} is taken, or too many are open",
                channel.0
            )));
        }
        let locals = io.sources.locals(self.source_ip, toward, &io.reach)?;
        let ours = |e: std::io::Error| {
            let locals: Vec<_> = locals.iter().map(ToString::to_string).collect();
            ChannelError::Generator(format!("datagram socket at {}: {e}", locals.join(", ")))
        };
        let socket = DatagramSocket::bind(&locals, io.receive_buffer_bytes).map_err(ours)?;
        io.watch(&socket, self.number, channel, self.pace).map_err(ours)?;
        let locals = socket.locals().to_vec();
        self.sockets.push(Line { channel, socket });
        Ok(locals)
    }

    fn close(&mut self, channel: Channel, now: Instant, io: &mut IoContext) {
        self.flush(now, io);
        match self.sockets.iter().position(|line| line.channel == channel) {
            Some(at) => {
                let line = self.sockets.remove(at);
                io.unwatch(&line.socket, self.pace);
            }
            None => io.ask(self.number, self.source_ip, SignallingCommand::Close(channel)),
        }
    }

    fn send(&mut self, channel: Channel, transmit: Transmit, now: Instant, io: &mut IoContext) {
        let Some(at) = self.sockets.iter().position(|line| line.channel == channel) else {
            let outgoing = Outgoing::Bytes(transmit.bytes);
            return io.ask(self.number, self.source_ip, SignallingCommand::Send(channel, outgoing));
        };
        if io.outgoing.len() >= SEND_BATCH || io.outgoing.last().is_some_and(|(last, _)| *last != at) {
            self.flush(now, io);
        }
        io.outgoing.push((at, transmit));
    }

    /// Sends the datagrams that gathered; all are of one socket.
    fn flush(&mut self, now: Instant, io: &mut IoContext) {
        let Some(line) = io.outgoing.first().and_then(|(at, _)| self.sockets.get_mut(*at)) else {
            io.outgoing.clear();
            return;
        };
        let (who, at) = (self.who, now);
        if let [(_, only)] = io.outgoing.as_slice() {
            let to = only.to;
            match line.socket.send(to, only.from, &only.bytes, &io.reach) {
                Sending::Sent => io.sent_bytes += only.bytes.len() as u64 + header_bytes(to),
                Sending::NoRoom => io.drops.sent += 1,
                Sending::NoPair => {}
                Sending::NoWay(why) => io.collector.push(DriverEvent::UnreachableSend { who, at, to, why }),
                Sending::Refused => io.collector.push(DriverEvent::RefusedSend { who, at, to }),
            }
        } else {
            let mut datagrams = Vec::with_capacity(io.outgoing.len());
            for (_, transmit) in &io.outgoing {
                if line.socket.permits(transmit.to, &io.reach) {
                    io.sent_bytes += transmit.bytes.len() as u64 + header_bytes(transmit.to);
                    datagrams.push(line.socket.outgoing(transmit.to, transmit.from, &transmit.bytes));
                } else {
                    io.collector.push(DriverEvent::RefusedSend { who, at, to: transmit.to });
                }
            }
            line.socket.send_all(&datagrams, |to, bytes, why| {
                io.sent_bytes = io.sent_bytes.saturating_sub(bytes.len() as u64 + header_bytes(to));
                match why {
                    Sending::NoPair => {}
                    Sending::NoWay(why) => {
                        io.collector.push(DriverEvent::UnreachableSend { who, at, to, why })
                    }
                    _ => io.drops.sent += 1,
                }
            });
        }
        io.outgoing.clear();
    }

    /// Closes everything it holds and reports how it ended.
    pub(super) fn vacate(mut self, now: Instant, io: &mut IoContext) {
        for line in self.sockets.drain(..) {
            io.unwatch(&line.socket, self.pace);
        }
        io.ask(self.number, self.source_ip, SignallingCommand::CloseAll);
        let outcome = self.ended.take().unwrap_or_else(|| {
            Outcome::Failed(Failure::new(FailureReason::Generator, "dropped before it ended"))
        });
        io.collector.push(DriverEvent::Ended { who: self.who, at: now, outcome });
    }
}
