//! How a viewer's session ends: left, failed, or ended by the server.

use std::time::Instant;

use throng_observation::{Failure, FailureReason, Outcome};

use super::{State, Viewer};
use crate::participant::Output;
use crate::signalling::SignalInput;
use crate::webrtc::session::{SessionError, SessionOutput};

impl Viewer {
    pub(super) fn leave(&mut self, now: Instant) {
        let outcome = match &self.state {
            State::Playing { .. } => Outcome::Completed,
            State::Leaving { .. } | State::Over => return,
            _ => Outcome::Failed(Failure::new(FailureReason::NotStarted, "left before it was connected")),
        };
        self.part(now, outcome);
    }

    pub(super) fn fail(&mut self, now: Instant, reason: FailureReason, detail: &str) {
        if !matches!(self.state, State::Leaving { .. } | State::Over) {
            self.part(now, Outcome::Failed(Failure::new(reason, detail)));
        }
    }

    pub(super) fn fail_session(&mut self, now: Instant, error: &SessionError) {
        let reason = match error {
            SessionError::Crypto(_) => FailureReason::Generator,
            SessionError::Sdp(_) | SessionError::Candidate(_) | SessionError::Order(_) => {
                FailureReason::Protocol
            }
            SessionError::Transport(_) if matches!(self.state, State::Playing { .. }) => {
                FailureReason::MediaLost
            }
            SessionError::Transport(_) => FailureReason::Dtls,
        };
        self.fail(now, reason, &error.to_string());
    }

    /// Ends the media, and has signalling say goodbye.
    pub(super) fn part(&mut self, now: Instant, outcome: Outcome) {
        self.stop_media(now);
        let was_idle = matches!(self.state, State::Idle);
        self.state = State::Leaving { by: now + self.options.timeouts.goodbye, outcome };
        if was_idle {
            return self.over();
        }
        self.tell(now, SignalInput::Leave);
    }

    pub(super) fn stop_media(&mut self, now: Instant) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return self.leave_relay(now);
        };
        peer.session.close();
        let mut closing = Vec::new();
        while let Ok(SessionOutput::Transmit { source, to, bytes }) = peer.session.poll_output() {
            closing.push((peer.leaves(source), to, bytes));
        }
        if let State::Playing { receiver, .. } = &mut self.state {
            if let (Some(bytes), Some((via, to))) = (receiver.goodbye(), self.remote) {
                closing.insert(0, (via, to, bytes));
            }
            receiver.finish(now);
            self.outputs.extend(receiver.take_observed().map(Output::Observed));
        }
        closing.into_iter().for_each(|(via, to, bytes)| self.send(now, via, to, bytes));
        self.leave_relay(now);
    }

    pub(super) fn over(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => {}
            State::Leaving { outcome, .. } => self.end(outcome),
            _ => {
                let failure = Failure::new(FailureReason::SignallingClosed, "signalling ended by itself");
                self.end(Outcome::Failed(failure));
            }
        }
    }

    pub(super) fn end(&mut self, outcome: Outcome) {
        self.state = State::Over;
        self.outputs.push_back(Output::Ended(outcome));
    }
}
