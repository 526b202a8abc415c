//! The viewer: a participant with one peer connection that receives. It negotiates through its
//! signalling adapter, connects, plays and leaves.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase};

use super::connection::{Connection, ConnectionConfig, ConnectionOutput, Socket};
use super::options::ParticipantOptions;
use crate::participant::{Input, NEVER, Opening, Output, Participant, Why};
use crate::signalling::{SIGNALLING, SignalInput, SignalOutput, Signalling};

/// A WebRTC viewer.
pub struct Viewer {
    options: Arc<ParticipantOptions>,
    signalling: Box<dyn Signalling>,
    connection: Connection,
    state: State,
    /// The first deadline at the last full check; `None` after any input but media.
    quiet_until: Option<(Instant, Why)>,
    outputs: VecDeque<Output>,
}

enum State {
    Idle,
    /// Signalling has no description yet.
    Joining {
        by: Instant,
    },
    /// The connection is being established, or plays; its deadlines apply.
    Connecting,
    /// Signalling signs off.
    Leaving {
        by: Instant,
        outcome: Outcome,
    },
    Over,
}

impl Viewer {
    /// A viewer that joins through `signalling`.
    #[must_use]
    pub fn new(signalling: Box<dyn Signalling>, options: ParticipantOptions) -> Self {
        let options = Arc::new(options);
        let config = ConnectionConfig {
            number: 0,
            options: Arc::clone(&options),
            seed: options.seed,
            joined_at: options.clock.at,
            first_track: 0,
            in_room: false,
        };
        Self {
            options,
            signalling,
            connection: Connection::new(config, Vec::new()),
            state: State::Idle,
            quiet_until: None,
            outputs: VecDeque::new(),
        }
    }

    fn observe(&mut self, observation: Observation) {
        self.outputs.push_back(Output::Observed(observation));
    }

    fn tell(&mut self, now: Instant, input: SignalInput<'_>) {
        self.signalling.handle(now, input);
        self.drain(now);
    }

    /// Signalling's outputs first: a candidate that arrives with an offer helps to select the
    /// interface of the socket.
    fn drain(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.signalling.poll_output() {
                self.signalled(now, output);
            } else if let Some(output) = self.connection.poll_output() {
                self.connected(now, output);
            } else {
                return;
            }
        }
    }

    fn signalled(&mut self, now: Instant, output: SignalOutput) {
        match output {
            SignalOutput::Open(open) => self.outputs.push_back(Output::Open(SIGNALLING, open)),
            SignalOutput::Signal(message) => {
                self.outputs.push_back(Output::Signal(SIGNALLING, message));
            }
            SignalOutput::Close => self.outputs.push_back(Output::Close(SIGNALLING)),
            SignalOutput::Fetch(id, request) => self.outputs.push_back(Output::Fetch(id, request)),
            SignalOutput::Reached(opening) => self.reached(&opening),
            SignalOutput::WantOffer => {
                self.begin_connection();
                self.connection.offer(now);
            }
            SignalOutput::RemoteOffer(sdp) => {
                self.begin_connection();
                self.connection.remote_offer(now, sdp);
            }
            SignalOutput::RemoteAnswer(sdp) => self.connection.remote_answer(now, &sdp),
            SignalOutput::RemoteCandidate(candidate) => {
                self.connection.remote_candidate(now, candidate);
            }
            SignalOutput::Relay(relay) => self.connection.relay_announced(relay),
            SignalOutput::Refused(what, place) => self.observe(Observation::Refused(what, place)),
            SignalOutput::Anomaly(detail) => {
                let detail = detail.into();
                self.observe(Observation::ProtocolAnomaly { place: "signalling", detail });
            }
            SignalOutput::Failed(failure) => {
                self.close_connection(now);
                if matches!(self.state, State::Leaving { .. }) {
                    self.over();
                } else {
                    self.end(Outcome::Failed(failure));
                }
            }
            SignalOutput::Goodbye => self.over(),
        }
    }

    fn begin_connection(&mut self) {
        if matches!(self.state, State::Joining { .. }) {
            self.state = State::Connecting;
        }
    }

    fn connected(&mut self, now: Instant, output: ConnectionOutput) {
        match output {
            ConnectionOutput::Driver(output) => self.outputs.push_back(output),
            ConnectionOutput::Offer(sdp) => self.tell(now, SignalInput::Offer(sdp)),
            ConnectionOutput::Answer(sdp) => self.tell(now, SignalInput::Answer(sdp)),
            ConnectionOutput::Candidate(line) => self.tell(now, SignalInput::Candidate(&line)),
            ConnectionOutput::CandidatesDone => self.tell(now, SignalInput::CandidatesDone),
            ConnectionOutput::Negotiated => {
                self.observe(Observation::Reached(Phase::Negotiated, now));
            }
            ConnectionOutput::IceConnected => {
                self.observe(Observation::Reached(Phase::IceConnected, now));
            }
            ConnectionOutput::Connected(path) => {
                self.observe(Observation::Path(path));
                self.observe(Observation::Reached(Phase::DtlsConnected, now));
                self.tell(now, SignalInput::Connected);
            }
            ConnectionOutput::Observed(observation) => self.observe(observation),
            ConnectionOutput::Failed(failure) => self.fail(now, failure),
        }
    }

    fn reached(&mut self, opening: &Opening) {
        self.connection.set_server(opening.remote);
        self.outputs.extend(opening.phases().map(Output::Observed));
    }

    fn leave(&mut self, now: Instant) {
        self.drain(now);
        let outcome = match &self.state {
            State::Leaving { .. } | State::Over => return,
            _ if self.connection.is_playing() => Outcome::Completed,
            _ => Outcome::not_started("left before it was connected"),
        };
        self.part(now, outcome);
    }

    fn fail(&mut self, now: Instant, failure: Failure) {
        if !matches!(self.state, State::Leaving { .. } | State::Over) {
            self.part(now, Outcome::Failed(failure));
        }
    }

    /// Closes the connection, and lets signalling sign off.
    fn part(&mut self, now: Instant, outcome: Outcome) {
        self.close_connection(now);
        let was_idle = matches!(self.state, State::Idle);
        self.state = State::Leaving { by: now + self.options.timeouts.goodbye, outcome };
        if was_idle {
            return self.over();
        }
        self.tell(now, SignalInput::Leave);
    }

    fn close_connection(&mut self, now: Instant) {
        self.connection.close(now);
        while let Some(output) = self.connection.poll_output() {
            if !matches!(output, ConnectionOutput::Failed(_)) {
                self.connected(now, output);
            }
        }
    }

    fn over(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => {}
            State::Leaving { outcome, .. } => self.end(outcome),
            _ => {
                let failure =
                    Failure::new(FailureReason::SignallingClosed, "signalling ended by itself");
                self.end(Outcome::Failed(failure));
            }
        }
    }

    fn end(&mut self, outcome: Outcome) {
        self.state = State::Over;
        self.outputs.push_back(Output::Ended(outcome));
    }

    fn tick(&mut self, now: Instant) {
        if self.signalling.next_timeout().is_some_and(|(at, _)| now >= at) {
            self.signalling.handle(now, SignalInput::Timeout);
        }
        self.connection.tick(now);
        self.drain(now);
        match &self.state {
            State::Joining { by } if now >= *by => {
                let detail = "no offer or answer in time";
                self.fail(now, Failure::new(FailureReason::SignallingTimeout, detail));
            }
            State::Leaving { by, outcome } if now >= *by => {
                if *outcome == Outcome::Completed {
                    self.observe(Observation::LeaveUnanswered);
                }
                self.over();
            }
            _ => {}
        }
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let own = match &self.state {
            State::Joining { by } => Some((*by, "signalling overdue")),
            State::Leaving { by, .. } => Some((*by, "goodbye overdue")),
            _ => None,
        };
        let all = own
            .into_iter()
            .chain(self.signalling.next_timeout())
            .chain(self.connection.next_deadline());
        all.min_by_key(|(at, _)| *at).unwrap_or((self.options.clock.at + NEVER, "nothing"))
    }

    /// The next deadline, if only media arrived since the last full check and no deadline has
    /// passed.
    #[inline]
    fn media_only(&self, now: Instant) -> Option<(Instant, Why)> {
        let quiet = self.quiet_until.filter(|(at, _)| now < *at)?;
        let media = self.connection.media_deadline(now).filter(|_| self.outputs.is_empty())?;
        Some(if media.0 < quiet.0 { media } else { quiet })
    }
}

impl Participant for Viewer {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if matches!(self.state, State::Over) {
            return;
        }
        if let Some((0, socket)) = input.channel().and_then(Socket::of) {
            if !self.connection.handle(now, socket, input) {
                self.quiet_until = None;
            }
            return;
        }
        self.quiet_until = None;
        match input {
            Input::Start { .. } => {
                self.connection.begin(now);
                self.state = State::Joining { by: now + self.options.timeouts.signalling };
                self.observe(Observation::Reached(Phase::Started, now));
                self.tell(now, SignalInput::Start);
            }
            Input::Opened { channel: SIGNALLING, opening } => {
                self.reached(&opening);
                self.tell(now, SignalInput::Opened(&opening));
            }
            Input::Message { channel: SIGNALLING, message } => {
                self.tell(now, SignalInput::Message(&message));
            }
            Input::Closed { channel: SIGNALLING, why } => self.tell(now, SignalInput::Closed(why)),
            Input::Fetched { fetch, result } => {
                let result = result.as_ref().map_err(Clone::clone);
                self.tell(now, SignalInput::Fetched(fetch, result));
            }
            Input::Leave { .. } => self.leave(now),
            // Due work is done when the outputs are drained.
            Input::Timeout => {}
            Input::Opened { .. }
            | Input::Datagram { .. }
            | Input::Bytes { .. }
            | Input::Blocked { .. }
            | Input::Message { .. }
            | Input::Download { .. }
            | Input::Closed { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        let deadline = match self.media_only(now) {
            Some(deadline) => deadline,
            None => {
                if self.outputs.is_empty() {
                    self.tick(now);
                }
                if let Some(output) = self.outputs.pop_front() {
                    self.quiet_until = None;
                    return output;
                }
                *self.quiet_until.insert(self.next_deadline())
            }
        };
        Output::wait(now, deadline)
    }

    fn receive_lag(&mut self, lag: Duration) {
        self.connection.receive_lag(lag);
    }

    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        self.connection.prefetch(level, prefetcher);
    }
}
