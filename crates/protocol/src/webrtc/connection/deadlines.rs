//! The timed actions of a connection, and its deadlines with their reasons.

use std::time::Instant;

use throng_observation::FailureReason;

use super::tracks::sent;
use super::{Connection, State, Step};
use crate::participant::Why;
use crate::reports::next_second;
use crate::webrtc::reflexive::WAITS_FOR;

impl Connection {
    /// Performs the actions that are due.
    pub(in crate::webrtc) fn tick(&mut self, now: Instant) {
        self.gather(now);
        if let State::Connecting { peer, .. } | State::Playing { peer, .. } = &mut self.state
            && now >= peer.due_at()
        {
            peer.check_at = None;
            match peer.session.timeout(now) {
                Ok(()) => self.drain(now),
                Err(error) => self.fail_session(now, &error),
            }
        }
        self.tick_relay(now);
        self.tick_media(now);
        if let Some((at, reason, what)) = self.own_deadline()
            && now >= at
        {
            let detail = match &self.state {
                State::Playing { peer, receiver, .. } if reason == FailureReason::NoMedia => {
                    let anomaly = receiver.last_anomaly().map(|anomaly| format!(": {anomaly}"));
                    peer.session.explain(&[what, anomaly.as_deref().unwrap_or_default()].concat())
                }
                State::Connecting { peer, .. } | State::Playing { peer, .. } => {
                    peer.session.explain(what)
                }
                _ => what.to_owned(),
            };
            self.fail(now, reason, &detail);
        }
    }

    fn tick_media(&mut self, now: Instant) {
        let State::Playing { receiver, sender, next_interval_at, .. } = &mut self.state else {
            return;
        };
        if let Some(sender) = sender {
            if now >= *next_interval_at {
                *next_interval_at = next_second(*next_interval_at, now);
                self.transport.outputs.extend(sent(sender, now));
            }
            sender.timeout(now);
            while let Some((bytes, to)) =
                self.remote.and_then(|to| Some((sender.poll_packet(now)?, to)))
            {
                self.transport.send(now, to, bytes);
            }
        } else if now >= receiver.next_timeout() {
            while let Some((bytes, to)) = receiver.poll_feedback(now).zip(self.remote) {
                self.transport.send(now, to, bytes);
            }
            receiver.timeout(now);
        }
        self.take_observed();
    }

    /// The deadline of the current step, and the failure if it passes.
    fn own_deadline(&self) -> Option<(Instant, FailureReason, Why)> {
        let timeouts = &self.config.options.timeouts;
        match &self.state {
            State::Idle | State::Over => None,
            State::Opening { by, .. } => {
                Some((*by, FailureReason::Generator, "the media socket did not open"))
            }
            State::Connecting { by, step, .. } => Some(match step {
                Step::Answer => {
                    (*by, FailureReason::SignallingTimeout, "no answer to the offer in time")
                }
                Step::Ice => (*by, FailureReason::Ice, self.ice_overdue()),
                Step::Dtls => (*by, FailureReason::Dtls, "no DTLS handshake in time"),
            }),
            State::Playing { peer, receiver, since, .. } => {
                let lost_at = peer.consent_lost_at;
                let consent = lost_at.map(|at| {
                    (at + timeouts.consent, FailureReason::MediaLost, "ICE consent was lost")
                });
                // In a room, signalling determines which participants send, and when.
                let media = (!self.config.in_room).then(|| match receiver.last_media_at() {
                    Some(at) => (at + timeouts.silence, FailureReason::MediaLost, "media stopped"),
                    None => {
                        let by = *since + timeouts.first_media;
                        (by, FailureReason::NoMedia, "connected, but no media arrived")
                    }
                });
                media.into_iter().chain(consent).min_by_key(|(at, ..)| *at)
            }
        }
    }

    fn ice_overdue(&self) -> Why {
        match (self.config.options.relay_only, self.transport.relay.was_named()) {
            (false, _) => "no candidate pair worked in time",
            (true, true) => {
                "no candidate pair worked in time through the relay, the only path allowed"
            }
            (true, false) => {
                "only a relay is allowed (target.ice_transport_policy), and the server announced \
                 none that is usable"
            }
        }
    }

    /// The next moment to call [`Self::tick`], and why.
    pub(in crate::webrtc) fn next_deadline(&self) -> Option<(Instant, Why)> {
        let own = self.own_deadline().map(|(at, _, why)| (at, why));
        let (session, media) = match &self.state {
            State::Opening { gathering: Some(gathering), .. } => {
                (gathering.next_timeout().map(|at| (at, WAITS_FOR)), None)
            }
            State::Connecting { peer, .. } => (Some((peer.due_at(), "ICE and DTLS")), None),
            State::Playing { peer, receiver, sender, next_interval_at, .. } => {
                let media = match sender {
                    Some(sender) => {
                        let own = sender.next_timeout();
                        if *next_interval_at < own.0 {
                            (*next_interval_at, "interval over")
                        } else {
                            own
                        }
                    }
                    None => (receiver.next_timeout(), "reports and meters"),
                };
                (Some((peer.due_at(), "ICE and DTLS")), Some(media))
            }
            _ => (None, None),
        };
        let relay = self.transport.relay.next_timeout().map(|at| (at, "TURN"));
        [own, session, media, relay].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// The next deadline of received media if none has passed: packets change only this one, and
    /// checking all others after each packet would cost as much as receiving it.
    #[inline]
    pub(in crate::webrtc) fn media_deadline(&self, now: Instant) -> Option<(Instant, Why)> {
        let State::Playing { receiver, sender: None, .. } = &self.state else { return None };
        let at = receiver.next_timeout();
        let nothing_due = now < at && !receiver.has_observed() && !self.has_output();
        nothing_due.then_some((at, "reports and meters"))
    }
}
