//! A participant slot: performs its outputs, and delivers datagrams, signalling events and timeouts
//! to it.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase, units};
use throng_protocol::participant::{
    Channel, DownloadEvent, Input, Open, Output, Participant, Prefetcher,
};

use super::collector_sender::DriverEvent;
use super::io_context::{IoContext, Readiness};
use super::panic_guard::PanicGuard;
use super::timers::Deadline;
use crate::config::Join;
use crate::signalling::{Outgoing, SignallingCommand, SignallingEvent};
use crate::sockets::http::DownloadPart;
use crate::sockets::{DatagramSocket, PeerAddresses};

mod opening;
mod receiving;
mod sending;

/// Outputs of one drain beyond which a participant fails: it would block its thread forever.
const OUTPUTS_MAX: usize = 100_000;

/// Shortest time to the next deadline, so that one participant cannot spin the loop.
const DEADLINE_MIN: Duration = Duration::from_millis(1);

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
            LeaveState::UntilTheEnd | LeaveState::Until(_) | LeaveState::Leaving(_) => {}
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
                    let outgoing = Outgoing::Message(message);
                    self.submit(SignallingCommand::Send(channel, outgoing), io);
                }
                Output::Open(channel, Open::Datagrams { toward, otherwise, gathers }) => {
                    let toward = PeerAddresses { peers: toward, otherwise, gathers };
                    self.open_sockets(now, channel, &toward, io);
                }
                Output::Open(channel, Open::RtpPair { rtcp, toward }) => {
                    self.open_pair(now, [channel, rtcp], toward, io);
                }
                Output::Open(channel, open) => {
                    self.submit(SignallingCommand::Open(channel, Box::new(open)), io);
                }
                Output::Close(channel) => self.close_channel(channel, now, io),
                Output::Fetch(id, request) => {
                    self.submit(SignallingCommand::Fetch(id, request), io);
                }
                Output::Download(id, request, version) => {
                    self.submit(SignallingCommand::Download(id, request, version), io);
                }
                Output::Demand(id, demand) => {
                    self.submit(SignallingCommand::Demand(id, demand), io);
                }
                Output::Cancel(id) => self.submit(SignallingCommand::Cancel(id), io),
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

    /// Leaves to the runtime of this thread what is not of its datagram sockets.
    fn submit(&self, want: SignallingCommand, io: &mut IoContext) {
        io.submit(self.key, self.source_ip, want);
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

    /// Closes its sockets and channels, and reports the outcome.
    pub(super) fn close(mut self, now: Instant, io: &mut IoContext) {
        for entry in self.sockets.drain(..) {
            io.dismiss(&entry.socket, self.readiness);
        }
        self.submit(SignallingCommand::CloseAll, io);
        let outcome = self.ended.take().unwrap_or_else(|| {
            Outcome::Failed(Failure::new(FailureReason::Generator, "dropped before it ended"))
        });
        io.collector.push(DriverEvent::Ended { id: self.id, at: now, outcome });
    }
}

#[cfg(test)]
mod tests;
