//! What a viewer does when time passes, and until when it waits for what.

use std::time::Instant;

use throng_observation::{FailureReason, Observation, Outcome};

use super::relaying::Relaying;
use super::{NEVER, State, Step, Viewer};
use crate::participant::{Output, Why};
use crate::signalling::SignalInput;
use crate::webrtc::reflexive::WAITS_FOR;

impl Viewer {
    pub(super) fn tick(&mut self, now: Instant) {
        if self.signalling.next_timeout().is_some_and(|(at, _)| now >= at) {
            self.tell(now, SignalInput::Timeout);
        }
        if let State::Connecting { peer, .. } | State::Playing { peer, .. } = &mut self.state
            && (now >= peer.timeout_at || peer.has_new_candidate)
        {
            peer.has_new_candidate = false;
            match peer.session.timeout(now) {
                Ok(()) => self.drain_session(now),
                Err(error) => self.fail_session(now, &error),
            }
        }
        self.gather(now);
        self.tick_relay(now);
        self.tick_receiver(now);
        self.check_deadline(now);
    }

    pub(super) fn tick_receiver(&mut self, now: Instant) {
        let State::Playing { receiver, .. } = &mut self.state else { return };
        let mut feedback = None;
        if now >= receiver.next_timeout() {
            feedback = receiver.poll_feedback(now).zip(self.remote);
            receiver.timeout(now);
        }
        self.outputs.extend(receiver.take_observed().map(Output::Observed));
        if let Some((bytes, (via, to))) = feedback {
            self.send(now, via, to, bytes);
        }
    }

    pub(super) fn check_deadline(&mut self, now: Instant) {
        let (at, why) = self.own_deadline();
        if now < at {
            return;
        }
        match &self.state {
            State::Idle | State::Over => {}
            State::Joining { .. } | State::Opening { .. } => {
                self.fail(now, FailureReason::SignallingTimeout, "no offer or answer in time");
            }
            State::Connecting { why: Step::Answer, .. } => {
                self.fail(now, FailureReason::SignallingTimeout, "no answer to our offer in time");
            }
            State::Connecting { why: Step::Ice, peer, .. } => {
                let has_relay = !matches!(self.relaying, Relaying::None);
                let what = match (self.options.relay_only, has_relay) {
                    (false, _) => "no candidate pair worked in time",
                    (true, true) => {
                        "no candidate pair worked in time through the relay, the only way allowed"
                    }
                    (true, false) => {
                        "only a relay is to be used (target.ice_transport_policy), and the server announced none that could be"
                    }
                };
                let detail = peer.session.explain(what);
                self.fail(now, FailureReason::Ice, &detail);
            }
            State::Connecting { why: Step::Dtls, peer, .. } => {
                let detail = peer.session.explain("no DTLS handshake in time");
                self.fail(now, FailureReason::Dtls, &detail);
            }
            State::Playing { peer, receiver, .. } if receiver.last_media_at().is_none() => {
                let odd = receiver.last_anomaly().map(|odd| format!(": {odd}"));
                let detail =
                    peer.session.explain(&format!("connected, and no media came{}", odd.unwrap_or_default()));
                self.fail(now, FailureReason::NoMedia, &detail);
            }
            State::Playing { peer, .. } => {
                let detail = peer.session.explain(why);
                self.fail(now, FailureReason::MediaLost, &detail);
            }
            State::Leaving { outcome, .. } => {
                if *outcome == Outcome::Completed {
                    self.observe(Observation::LeaveUnanswered);
                }
                self.over();
            }
        }
    }

    /// The deadline of the state that the viewer is in.
    pub(super) fn own_deadline(&self) -> (Instant, Why) {
        let timeouts = &self.options.timeouts;
        match &self.state {
            State::Idle | State::Over => (self.options.clock.at + NEVER, "nothing"),
            State::Joining { by } | State::Opening { by, .. } => (*by, "signalling overdue"),
            State::Connecting { by, why, .. } => (*by, why.why()),
            State::Playing { peer, receiver, first_media_by } => {
                let media = match receiver.last_media_at() {
                    Some(at) => (at + timeouts.silence, "no media any more"),
                    None => (*first_media_by, "first media overdue"),
                };
                let consent = peer.consent_lost_at.map(|at| (at + timeouts.consent, "ICE consent was lost"));
                consent.into_iter().fold(media, |first, other| if other.0 < first.0 { other } else { first })
            }
            State::Leaving { by, .. } => (*by, "goodbye overdue"),
        }
    }

    /// The next deadline, when nothing but media came and nothing is due: packets move the receiver's deadlines only, and
    /// to ask everybody else after each of them would cost as much as to take them in.
    #[inline]
    pub(super) fn media_only(&self, now: Instant) -> Option<(Instant, Why)> {
        let quiet = self.quiet_until.filter(|(at, _)| now < *at)?;
        let State::Playing { receiver, .. } = &self.state else { return None };
        let reports = (receiver.next_timeout(), "reports and meters");
        let nothing_due = now < reports.0 && !receiver.has_observed() && self.outputs.is_empty();
        nothing_due.then_some(if reports.0 < quiet.0 { reports } else { quiet })
    }

    pub(super) fn next_deadline(&self) -> (Instant, Why) {
        let mut first = self.own_deadline();
        let mut consider = |at: Instant, why: Why| {
            if at < first.0 {
                first = (at, why);
            }
        };
        if let Some((at, why)) = self.signalling.next_timeout() {
            consider(at, why);
        }
        if let State::Connecting { peer, .. } | State::Playing { peer, .. } = &self.state {
            let checks_at = if peer.has_new_candidate { self.options.clock.at } else { peer.timeout_at };
            consider(checks_at, "ICE and DTLS");
        }
        if let State::Opening { gathering: Some(gathering), .. } = &self.state
            && let Some(at) = gathering.next_timeout()
        {
            consider(at, WAITS_FOR);
        }
        if let Some(at) = self.relaying.next_timeout() {
            consider(at, "TURN");
        }
        if let State::Playing { receiver, .. } = &self.state {
            consider(receiver.next_timeout(), "reports and meters");
        }
        first
    }
}
