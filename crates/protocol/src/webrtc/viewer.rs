//! The viewer: a participant with one peer connection that receives. It negotiates through its
//! signalling adapter, connects, plays and leaves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase};

use super::connection::{Connection, ConnectionConfig, ConnectionOutput, Socket};
use super::options::ParticipantOptions;
use crate::life::Life;
use crate::participant::{Input, NEVER, Opening, Output, Participant, Why};
use crate::signalling::{SIGNALLING, SignalInput, SignalOutput, Signalling};

/// A WebRTC viewer.
pub struct Viewer {
    options: Arc<ParticipantOptions>,
    signalling: Box<dyn Signalling>,
    connection: Connection,
    life: Life<State>,
    /// The first deadline at the last full check; `None` after any input but media.
    quiet_until: Option<(Instant, Why)>,
}

enum State {
    /// Signalling has no description yet.
    Joining { by: Instant },
    /// The connection is being established, or plays; its deadlines apply.
    Connecting,
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
            life: Life::new(),
            quiet_until: None,
        }
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
            SignalOutput::Open(open) => self.life.push(Output::Open(SIGNALLING, open)),
            SignalOutput::Signal(message) => self.life.push(Output::Signal(SIGNALLING, message)),
            SignalOutput::Close => self.life.push(Output::Close(SIGNALLING)),
            SignalOutput::Fetch(id, request) => self.life.push(Output::Fetch(id, request)),
            SignalOutput::Reached(opening) => self.reached(&opening),
            SignalOutput::WantOffer => {
                self.life.enter(State::Connecting);
                self.connection.offer(now);
            }
            SignalOutput::RemoteOffer(sdp) => {
                self.life.enter(State::Connecting);
                self.connection.remote_offer(now, sdp);
            }
            SignalOutput::RemoteAnswer(sdp) => self.connection.remote_answer(now, &sdp),
            SignalOutput::RemoteCandidate(candidate) => {
                self.connection.remote_candidate(now, candidate);
            }
            SignalOutput::Relay(relay) => self.connection.relay_announced(relay),
            SignalOutput::Refused(what, place) => {
                self.life.observe(Observation::Refused(what, place));
            }
            SignalOutput::Anomaly(detail) => self.life.anomaly("signalling", detail),
            SignalOutput::Failed(failure) => {
                self.close_connection(now);
                self.life.end(Outcome::Failed(failure));
            }
            SignalOutput::Goodbye => self.life.end_with("signalling"),
        }
    }

    fn connected(&mut self, now: Instant, output: ConnectionOutput) {
        match output {
            ConnectionOutput::Driver(output) => self.life.push(output),
            ConnectionOutput::Offer(sdp) => self.tell(now, SignalInput::Offer(sdp)),
            ConnectionOutput::Answer(sdp) => self.tell(now, SignalInput::Answer(sdp)),
            ConnectionOutput::Candidate(line) => self.tell(now, SignalInput::Candidate(&line)),
            ConnectionOutput::CandidatesDone => self.tell(now, SignalInput::CandidatesDone),
            ConnectionOutput::Negotiated => self.life.reach(Phase::Negotiated, now),
            ConnectionOutput::IceConnected => self.life.reach(Phase::IceConnected, now),
            ConnectionOutput::Connected(path) => {
                self.life.observe(Observation::Path(path));
                self.life.reach(Phase::DtlsConnected, now);
                self.tell(now, SignalInput::Connected);
            }
            ConnectionOutput::Observed(observation) => self.life.observe(observation),
            ConnectionOutput::Failed(failure) => self.part(now, Outcome::Failed(failure)),
        }
    }

    fn reached(&mut self, opening: &Opening) {
        self.connection.set_server(opening.remote);
        self.life.extend(opening.phases().map(Output::Observed));
    }

    fn leave(&mut self, now: Instant) {
        self.drain(now);
        let outcome = if self.connection.is_playing() {
            Outcome::Completed
        } else {
            Outcome::not_started("left before it was connected")
        };
        self.part(now, outcome);
    }

    /// Closes the connection, and lets signalling sign off.
    fn part(&mut self, now: Instant, outcome: Outcome) {
        if self.life.is_ending() {
            return;
        }
        self.close_connection(now);
        if self.life.leave(Some(now + self.options.timeouts.goodbye), outcome) {
            self.tell(now, SignalInput::Leave);
        }
    }

    fn close_connection(&mut self, now: Instant) {
        self.connection.close(now);
        while let Some(output) = self.connection.poll_output() {
            if !matches!(output, ConnectionOutput::Failed(_)) {
                self.connected(now, output);
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        if self.signalling.next_timeout().is_some_and(|(at, _)| now >= at) {
            self.signalling.handle(now, SignalInput::Timeout);
        }
        self.connection.tick(now);
        self.drain(now);
        self.life.give_up_goodbye(now, |outcome| *outcome == Outcome::Completed);
        if let Some(State::Joining { by }) = self.life.live()
            && now >= *by
        {
            let detail = "no offer or answer in time";
            let failure = Failure::new(FailureReason::SignallingTimeout, detail);
            self.part(now, Outcome::Failed(failure));
        }
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let own = match self.life.live() {
            Some(State::Joining { by }) => Some((*by, "signalling overdue")),
            Some(State::Connecting) => None,
            None => self.life.next_timeout(),
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
        let media = self.connection.media_deadline(now).filter(|_| !self.life.has_output())?;
        Some(if media.0 < quiet.0 { media } else { quiet })
    }
}

impl Participant for Viewer {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.life.is_over() {
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
                self.life.start(now, State::Joining { by: now + self.options.timeouts.signalling });
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
                if !self.life.has_output() {
                    self.tick(now);
                }
                if let Some(output) = self.life.pop() {
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
